#include "jit/code/pack_tables.h"

#include <algorithm>

namespace uptier::jit {
namespace {

using profile::append_varint;
using profile::VarintReader;

// A signed difference as a number that is small if the difference is.
uint64_t folded(uint32_t from, uint32_t to) {
  const int64_t d = int64_t{to} - int64_t{from};
  return static_cast<uint64_t>(d) << 1 ^ static_cast<uint64_t>(d >> 63);
}

uint32_t unfolded(uint32_t from, uint64_t n) {
  return from + static_cast<uint32_t>(n >> 1 ^ (0 - (n & 1)));
}

class Packer {
 public:
  explicit Packer(profile::Bytes& out) : out_(out) {}
  void number(uint64_t n) { append_varint(n, out_); }
  // A list begins: its length; differences count from 0.
  void list(size_t length) {
    number(length);
    offset_ = loc_ = 0;
  }
  void offset(uint32_t to) {
    number(folded(offset_, to));
    offset_ = to;
  }
  void loc(uint32_t to) {
    number(folded(loc_, to));
    loc_ = to;
  }

 private:
  profile::Bytes& out_;
  uint32_t offset_ = 0, loc_ = 0;
};

class Unpacker {
 public:
  Unpacker(VarintReader& in, uint32_t size) : in_(in), size_(size) {}
  uint64_t number(uint64_t most = UINT32_MAX) {
    const uint64_t n = in_.number();
    failed_ |= n > most;
    return failed_ ? 0 : n;
  }
  uint32_t small(uint64_t most = UINT32_MAX) { return static_cast<uint32_t>(number(most)); }
  // Each row takes a byte or more.
  size_t list() {
    offset_ = loc_ = 0;
    return number(in_.rest().size());
  }
  uint32_t offset() {
    offset_ = unfolded(offset_, in_.number());
    failed_ |= offset_ > size_;
    return offset_;
  }
  uint32_t loc() { return loc_ = unfolded(loc_, in_.number()); }
  void require(bool holds) { failed_ |= !holds; }
  bool ok() const { return in_.ok() && !failed_; }

 private:
  VarintReader& in_;
  const uint32_t size_;
  uint32_t offset_ = 0, loc_ = 0;
  bool failed_ = false;
};

template <typename Rows>
bool rise(const Rows& rows) {
  return std::ranges::is_sorted(rows, {}, [](const auto& r) { return r.offset; });
}

Error only(const char* what) {
  return {ErrorCode::kUnsupported, std::string(what) + ", which recorded code cannot have"};
}

Status check(const CodeTables& t) {
  if (!t.inlined.empty() || !t.inlined_counts.empty() || !t.inlined_probes.empty()) {
    return only("inlined bodies");
  }
  if (!t.tallies.words.empty()) return only("counters");
  if (!t.loop_ranges.empty() || t.counts_edges) return only("counts of edges");
  if (!t.exits.empty() || !t.exit_frames.empty() || !t.exit_values.empty()) return only("exits");
  if (!t.entries.empty() || t.baseline_frame != 0 || !t.saved.empty()) return only("entries");
  const auto inlined = [](const auto& r) { return r.body != 0; };
  const bool own =
      std::ranges::none_of(t.traps, inlined) && std::ranges::none_of(t.calls, inlined) &&
      std::ranges::none_of(t.probes, inlined) && std::ranges::none_of(t.lines, inlined);
  if (!own) return only("rows of inlined bodies");
  return {};
}

}  // namespace

Status pack_tables(const CodeTables& t, profile::Bytes& out) {
  if (Status s = check(t); !s) return s;
  Packer p(out);
  p.number(t.data_at);
  p.number(t.frame_size);
  p.list(t.traps.size());
  for (const TrapRow& r : t.traps) {
    p.offset(r.offset);
    p.number(static_cast<uint64_t>(r.code));
    p.loc(r.loc);
  }
  p.list(t.calls.size());
  for (const CallRow& r : t.calls) {
    p.offset(r.offset);
    p.loc(r.loc);
    p.number(uint64_t{r.site} << 4 | r.bytes);
  }
  p.list(t.probes.size());
  for (const ProbeRow& r : t.probes) {
    p.offset(r.offset);
    p.loc(r.site);
    p.number((r.starts ? 1 : 0) | (r.partial ? 2 : 0));
  }
  p.list(t.lines.size());
  for (const LineRow& r : t.lines) {
    p.offset(r.offset);
    p.loc(r.loc);
  }
  p.list(t.loops.size());
  for (const LoopEntry& r : t.loops) {
    p.offset(r.continue_offset);
    p.offset(r.arrive_offset);
  }
  p.list(t.frames.size());
  for (const FrameRow& r : t.frames) {
    p.offset(r.offset);
    p.number(uint64_t{r.state.saved} << 2 | static_cast<uint64_t>(r.state.kind));
  }
  p.list(t.place_fields.size());
  for (const PlaceField& f : t.place_fields) {
    p.offset(f.offset);
    p.number(f.to);
  }
  return {};
}

Result<CodeTables> unpack_tables(VarintReader& in, uint32_t size) {
  Unpacker u(in, size);
  CodeTables t;
  t.data_at = u.small(size);
  t.frame_size = u.small();
  t.traps.resize(u.list());
  for (TrapRow& r : t.traps) {
    r.offset = u.offset();
    r.code = static_cast<TrapCode>(u.small(UINT8_MAX));
    r.loc = u.loc();
  }
  t.calls.resize(u.list());
  for (CallRow& r : t.calls) {
    r.offset = u.offset();
    r.loc = u.loc();
    const uint32_t packed = u.small();
    r.site = packed >> 4;
    r.bytes = packed & 15;
  }
  t.probes.resize(u.list());
  for (ProbeRow& r : t.probes) {
    r.offset = u.offset();
    r.site = u.loc();
    const uint32_t flags = u.small(3);
    r.starts = (flags & 1) != 0;
    r.partial = (flags & 2) != 0;
  }
  t.lines.resize(u.list());
  for (LineRow& r : t.lines) {
    r.offset = u.offset();
    r.loc = u.loc();
  }
  t.loops.resize(u.list());
  for (LoopEntry& r : t.loops) {
    r.continue_offset = u.offset();
    r.arrive_offset = u.offset();
  }
  t.frames.resize(u.list());
  for (FrameRow& r : t.frames) {
    r.offset = u.offset();
    const uint32_t packed = u.small(UINT8_MAX << 2 | 3);
    u.require((packed & 3) <= static_cast<uint32_t>(FrameState::Kind::kMade));
    r.state = {static_cast<FrameState::Kind>(packed & 3), static_cast<uint8_t>(packed >> 2)};
  }
  t.place_fields.resize(u.list());
  for (PlaceField& f : t.place_fields) {
    f.offset = u.offset() & ((1u << 30) - 1);
    f.to = u.small(static_cast<uint64_t>(PlaceField::To::kOtherPart)) & 3;
    u.require(f.what() != PlaceField::To::kPoll);
  }
  const bool sorted =
      rise(t.traps) && rise(t.calls) && rise(t.probes) && rise(t.lines) && rise(t.frames);
  if (u.ok() && sorted) return t;
  return Error{ErrorCode::kCorruptInput, "the tables of the code are damaged"};
}

}  // namespace uptier::jit
