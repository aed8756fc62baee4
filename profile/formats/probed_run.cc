#include "profile/formats/probed_run.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <unordered_map>

#include "profile/formats/llvm_names.h"

namespace uptier::profile {
namespace {

constexpr SiteId kMostId = 0xffff;
constexpr uint64_t kCodeLine = 64;
constexpr uint32_t kNone = UINT32_MAX;
constexpr uint8_t kReturn = 0xc3, kInt3 = 0xcc;

bool has_id(SiteId site) { return site != 0 && site <= kMostId; }

// Ranges of addresses that do not overlap.
class Ranges {
 public:
  bool is_free(uint64_t from, uint64_t size) const {
    if (size == 0) return true;
    const auto next = ends_.upper_bound(from);
    const bool before = next == ends_.begin() || std::prev(next)->second <= from;
    return before && (next == ends_.end() || next->first >= from + size);
  }
  void take(uint64_t from, uint64_t size) {
    if (size != 0) ends_.emplace(from, from + size);
  }

 private:
  std::map<uint64_t, uint64_t> ends_;  // by start
};

class RunMaker {
 public:
  explicit RunMaker(const CodeImages& images) : images_(images) {}

  ProbedRun run() {
    name_functions();
    place_codes();
    entries_.assign(images_.methods.size(), 0);
    for (size_t c = 0; c < images_.codes.size(); ++c) note_entry(c);
    for (size_t c = 0; c < images_.codes.size(); ++c) add_code(c);
    for (const ImagedStack& s : images_.stacks) add_stack(s);
    return std::move(to_);
  }

 private:
  void name_functions() {
    LlvmNames names;
    for (const ImagedMethod& m : images_.methods) names.add(m.key, m.name);
    std::map<MethodKey, uint32_t> numbers;
    for (const ImagedMethod& m : images_.methods) {
      const auto [at, fresh] =
          numbers.try_emplace(m.key, static_cast<uint32_t>(to_.file.functions.size()));
      if (fresh) to_.file.functions.push_back({names.of(m.key), std::max<uint64_t>(m.cfg_hash, 1)});
      functions_.push_back(at->second);
    }
  }

  // Returns the bytes of the hot part (0) or the cold part (1).
  static uint64_t size_of(const CodeImage& c, int part) {
    return part == 0 ? c.hot_size : c.bytes.size() - c.hot_size;
  }
  static uint64_t address_of(const CodeImage& c, int part) {
    return part == 0 ? c.address : c.cold_address;
  }

  void place_codes() {
    std::vector<size_t> order(images_.codes.size());
    for (size_t c = 0; c < order.size(); ++c) order[c] = order.size() - 1 - c;
    std::ranges::stable_partition(order, [&](size_t c) { return !images_.codes[c].freed; });
    uint64_t end = 0;
    for (const CodeImage& c : images_.codes) {
      for (const int part : {0, 1}) end = std::max(end, address_of(c, part) + size_of(c, part));
    }
    places_.resize(order.size());
    for (const size_t n : order) place_code(images_.codes[n], places_[n], end);
  }

  struct Place {
    uint64_t parts[2] = {0, 0};
  };
  void place_code(const CodeImage& c, Place& place, uint64_t& end) {
    bool fits = true;
    for (const int part : {0, 1}) fits &= taken_.is_free(address_of(c, part), size_of(c, part));
    if (!fits) ++to_.displaced;
    for (const int part : {0, 1}) {
      place.parts[part] = address_of(c, part);
      if (!fits) {
        place.parts[part] = (end + kCodeLine - 1) / kCodeLine * kCodeLine;
        end = place.parts[part] + size_of(c, part);
      }
      taken_.take(place.parts[part], size_of(c, part));
    }
  }

  uint64_t address_in(size_t code, uint32_t offset) const {
    const uint32_t hot = images_.codes[code].hot_size;
    const Place& p = places_[code];
    return offset < hot ? p.parts[0] + offset : p.parts[1] + (offset - hot);
  }
  // Of the end of an instruction, which may be the end of its part.
  uint64_t address_after(size_t code, uint32_t offset) const {
    return address_in(code, offset - 1) + 1;
  }

  // The newest code that calls of a method reach.
  void note_entry(size_t code) {
    const CodeImage& c = images_.codes[code];
    if (!c.loop.valid() && c.hot_size != 0) entries_[c.bodies[0].method] = places_[code].parts[0];
  }

  void add_code(size_t code) {
    const CodeImage& c = images_.codes[code];
    ProbedCode& to = to_.file.codes.emplace_back();
    std::vector<uint8_t> bytes = c.bytes;
    assert(c.data_at <= c.data_end && c.data_end <= bytes.size());
    std::fill(bytes.begin() + c.data_at, bytes.begin() + c.data_end, kInt3);
    for (const int part : {0, 1}) {
      if (size_of(c, part) == 0) continue;
      const auto from = bytes.begin() + (part == 0 ? 0 : c.hot_size);
      to.parts.push_back(
          {places_[code].parts[part], {from, from + static_cast<ptrdiff_t>(size_of(c, part))}});
    }
    std::vector<bool> known(c.bodies.size(), true);
    for (size_t b = 0; b < c.bodies.size(); ++b) {
      const ImageBody& body = c.bodies[b];
      assert(b == 0 || body.parent < b);
      to.bodies.push_back({functions_[body.method], body.parent, body.site});
      if (b != 0) known[b] = known[body.parent] && has_id(body.site);
    }
    for (const ImageRow& row : c.rows) {
      if (row.kind == ImageRow::Kind::kContinues) continue;
      if (!has_id(row.site) || !known[row.body]) {
        ++to_.left_out;
        continue;
      }
      to_.partial += row.partial ? 1 : 0;
      const LlvmProbe kind = row.kind == ImageRow::Kind::kBlock  ? LlvmProbe::kBlock
                             : row.kind == ImageRow::Kind::kCall ? LlvmProbe::kDirectCall
                                                                 : LlvmProbe::kIndirectCall;
      to.probes.push_back({address_in(code, row.offset), row.body, row.site, kind});
    }
    add_blocks(code);
  }

  // Makes a block of each run of rows with the same offset.
  void add_blocks(size_t code) {
    const CodeImage& c = images_.codes[code];
    std::vector<Stretch>& to = stretches_.emplace_back();
    for (const ImageRow& row : c.rows) {
      if (!row.is_call()) {
        if (to.empty() || to.back().offset != row.offset) {
          to.push_back({row.offset, static_cast<uint32_t>(to_.samples.blocks.size())});
          to_.samples.blocks.emplace_back();
        }
        note_row(code, row, to);
      } else if (!to.empty()) {
        SampledBlock& block = to_.samples.blocks[to.back().block];
        if (row.offset == to.back().offset) block.first = FirstInstruction::kCall;
        block.calls.push_back(call_of(code, row));
      }
    }
  }

  struct Stretch {
    uint32_t offset = 0;
    uint32_t block = 0;      // in ProbeSamples::blocks
    uint32_t start = kNone;  // where a block that goes on here started, by its block
  };

  void note_row(size_t code, const ImageRow& row, std::vector<Stretch>& to) {
    Stretch& here = to.back();
    SampledBlock& block = to_.samples.blocks[here.block];
    const std::pair key(row.body, row.site);
    here.start = kNone;
    if (row.kind == ImageRow::Kind::kBlock) {
      block.start = address_in(code, row.offset);
      const bool returns = images_.codes[code].bytes[row.offset] == kReturn;
      if (returns) block.first = FirstInstruction::kReturn;
      starts_[code][key] = here.block;
    } else if (const auto at = starts_[code].find(key); at != starts_[code].end()) {
      here.start = at->second;
    }
  }

  SampledCall call_of(size_t code, const ImageRow& row) const {
    const uint64_t target = row.callee == ImageRow::kNoCallee ? 0 : entries_[row.callee];
    return {address_in(code, row.offset), address_after(code, row.returns), target};
  }

  void add_stack(const ImagedStack& s) {
    const ImageFrame& leaf = s.frames[0];
    const std::vector<Stretch>& all = stretches_[leaf.code];
    const auto after = std::ranges::upper_bound(all, leaf.offset, {}, &Stretch::offset);
    if (all.empty()) return;
    const Stretch& here = after == all.begin() ? *after : *std::prev(after);
    ProbeSample sample;
    sample.blocks.push_back(here.block);
    if (here.start != kNone && here.start != here.block) sample.blocks.push_back(here.start);
    for (size_t i = 1; i < s.frames.size(); ++i) {
      sample.callers.push_back(address_after(s.frames[i].code, s.frames[i].offset));
    }
    sample.count = std::max<uint64_t>((s.ns + 500) / 1000, 1);
    to_.samples.samples.push_back(std::move(sample));
  }

  const CodeImages& images_;
  ProbedRun to_;
  std::vector<uint32_t> functions_;  // of methods, in ProbedFile::functions
  Ranges taken_;
  std::vector<Place> places_;                    // of codes
  std::vector<uint64_t> entries_;                // of methods: an address, or 0
  std::vector<std::vector<Stretch>> stretches_;  // of codes, by rising offset
  std::unordered_map<size_t, std::map<std::pair<uint32_t, SiteId>, uint32_t>> starts_;
};

}  // namespace

ProbedRun probed_run(const CodeImages& images) { return RunMaker(images).run(); }

}  // namespace uptier::profile
