#include "tools/wasm_hints.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include "profile/algebra/algebra.h"
#include "tools/body_graph.h"

namespace uptier::tools {
namespace {

constexpr uint8_t kLoop = 0x03, kIf = 0x04, kBrIf = 0x0d, kCall = 0x10, kCallIndirect = 0x11;
constexpr uint8_t kCustomSection = 0, kCodeSection = 10;
constexpr size_t kModuleHeader = 8;
constexpr std::string_view kBranchHint = "metadata.code.branch_hint";
constexpr std::string_view kInstrFreq = "metadata.code.instr_freq";
constexpr std::string_view kCallTargets = "metadata.code.call_targets";
constexpr std::string_view kPriority = "metadata.code.compilation_priority";
constexpr uint64_t kRunsOnce = 127;
constexpr double kConfidence = 1.96;  // 95 %

using Bytes = std::vector<uint8_t>;
using Hints = std::map<uint32_t, Bytes>;          // values by offset in the body
using FunctionHints = std::map<uint32_t, Hints>;  // by function index

void put_leb(Bytes& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<uint8_t>(value | 0x80));
  out.push_back(static_cast<uint8_t>(value));
}

void put_section(Bytes& out, std::string_view name, const FunctionHints& functions) {
  Bytes body;
  put_leb(body, name.size());
  body.insert(body.end(), name.begin(), name.end());
  put_leb(body, functions.size());
  for (const auto& [function, hints] : functions) {
    put_leb(body, function);
    put_leb(body, hints.size());
    for (const auto& [offset, values] : hints) {
      put_leb(body, offset);
      put_leb(body, values.size());
      body.insert(body.end(), values.begin(), values.end());
    }
  }
  out.push_back(kCustomSection);
  put_leb(out, body.size());
  out.insert(out.end(), body.begin(), body.end());
}

// The module was validated, so nothing is checked.
uint32_t take_leb(const Bytes& in, size_t& at) {
  uint32_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    uint8_t byte = in[at++];
    value |= static_cast<uint32_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

bool is_named(const Bytes& module, size_t at, std::string_view name) {
  uint32_t size = take_leb(module, at);
  return std::string_view(reinterpret_cast<const char*>(&module[at]), size) == name;
}

using Sections = std::array<std::pair<std::string_view, FunctionHints>, 4>;

Bytes rebuild(const Bytes& module, const Sections& sections) {
  Bytes out(module.begin(), module.begin() + kModuleHeader);
  for (size_t at = kModuleHeader; at < module.size();) {
    const size_t start = at;
    const uint8_t id = module[at++];
    const uint32_t size = take_leb(module, at);
    const bool replaced = id == kCustomSection && std::ranges::any_of(sections, [&](const auto& s) {
                            return is_named(module, at, s.first);
                          });
    at += size;
    if (replaced) continue;
    if (id == kCodeSection) {
      for (const auto& [name, hints] : sections) put_section(out, name, hints);
    }
    out.insert(out.end(), module.begin() + static_cast<ptrdiff_t>(start),
               module.begin() + static_cast<ptrdiff_t>(at));
  }
  return out;
}

// The least share that n samples of which `share` went one way leave possible.
double wilson_low(double share, double n) {
  if (!(n > 0)) return 0;
  if (std::isinf(n)) return share;
  const double z2 = kConfidence * kConfidence;
  const double spread = kConfidence * std::sqrt(share * (1 - share) / n + z2 / (4 * n * n));
  return (share + z2 / (2 * n) - spread) / (1 + z2 / n);
}

class Hinter {
 public:
  // By the key that a function has in the profile, its index in the module.
  using Indices = std::map<MethodKey, uint32_t>;

  Hinter(const Bytes& module, const Functions& fs, const HintOptions& options,
         const Indices& indices, HintReport& report)
      : module_(module), fs_(fs), options_(options), indices_(indices), report_(report) {}

  void add(uint32_t index, const BodyGraph& body, const MethodProfile& m) {
    const uint32_t function = fs_.first + index;
    begin_ = fs_.begins[index];
    Hints branches, frequencies, targets;
    for (const BodyGraph::Block& b : body.blocks) {
      if (b.is_branch && is_at(b.branch_location, kBrIf, kIf)) add_branch(body, b, m, branches);
    }
    for (const BodyGraph::Call& c : body.calls) {
      if (is_at(c.location, kCall, kCallIndirect))
        add_frequency(m, c.block, c.location, frequencies);
      if (is_at(c.location, kCallIndirect, kCallIndirect)) add_targets(m, c, targets);
    }
    for (const BodyGraph::Loop& l : body.loops) {
      if (is_at(l.location, kLoop, kLoop)) add_frequency(m, l.block, l.location, frequencies);
    }
    if (!branches.empty()) branches_.emplace(function, std::move(branches));
    if (!frequencies.empty()) frequencies_.emplace(function, std::move(frequencies));
    if (!targets.empty()) targets_.emplace(function, std::move(targets));
  }

  void add_priority(uint32_t function, const std::vector<uint64_t>& values) {
    for (const uint64_t value : values) put_leb(priorities_[function][0], value);
    ++report_.prioritized;
  }

  Bytes run() const {
    return rebuild(module_, {{{kBranchHint, branches_},
                              {kInstrFreq, frequencies_},
                              {kCallTargets, targets_},
                              {kPriority, priorities_}}});
  }

 private:
  bool is_at(uint32_t location, uint8_t a, uint8_t b) const {
    return location >= begin_ && location < module_.size() &&
           (module_[location] == a || module_[location] == b);
  }

  // Returns which way it goes, or nothing where that is not clear.
  std::optional<bool> likely(const Counted& one, const Counted& other,
                             const MethodProfile& m) const {
    const double all = static_cast<double>(one.estimate) + static_cast<double>(other.estimate);
    if (all < static_cast<double>(options_.executions) || all == 0) return std::nullopt;
    const double count = static_cast<double>(one.count) + static_cast<double>(other.count);
    const double samples =
        std::min(count, static_cast<double>(m.sampled_calls) + static_cast<double>(m.bursts));
    const double share = static_cast<double>(std::max(one.estimate, other.estimate)) / all;
    const double n = all <= count ? INFINITY : samples / (1 - count / all);
    if (share < options_.share || wilson_low(share, n) < options_.share) return std::nullopt;
    return one.estimate > other.estimate;
  }

  void add_branch(const BodyGraph& body, const BodyGraph::Block& b, const MethodProfile& m,
                  Hints& hints) {
    const auto one = edge_count(m, body, b.first_edge);
    const auto other = edge_count(m, body, b.first_edge + 1);
    const std::optional<bool> first = one && other ? likely(*one, *other, m) : std::nullopt;
    if (!first) {
      ++report_.unclear;
      return;
    }
    const bool condition = *first != b.inverted;
    ++(condition ? report_.likely : report_.unlikely);
    hints[b.branch_location - begin_] = {static_cast<uint8_t>(condition ? 1 : 0)};
  }

  void add_frequency(const MethodProfile& m, uint32_t block, uint32_t location, Hints& hints) {
    const auto calls = m.estimate(SlotKind::kBlock, 1);
    const auto runs = m.estimate(SlotKind::kBlock, block);
    if (block == 1 || !calls || !runs || calls->total == 0) return;
    const double n = runs->total > 0 ? runs->total : std::max(runs->high, 1.0);
    const double f = std::floor(std::log2(n / calls->total)) + 32;
    hints[location - begin_] = {static_cast<uint8_t>(std::clamp(f, 1.0, 64.0))};
    ++report_.frequencies;
  }

  std::optional<uint32_t> index_of(const TableKey& key) const {
    if (key.value > UINT32_MAX) return std::nullopt;
    const auto at = indices_.find({key.module_key, static_cast<uint32_t>(key.value)});
    return at == indices_.end() ? std::nullopt : std::optional(at->second);
  }

  void add_targets(const MethodProfile& m, const BodyGraph::Call& call, Hints& hints) {
    const Slot* slot = m.schema.find(SlotKind::kCallTarget, call.site);
    const Table* table = m.table(SlotKind::kCallTarget, call.site);
    if (slot == nullptr || table == nullptr) return;
    auto all = static_cast<double>(m.estimates[slot->word + slot_word::kTargetOther]);
    for (const auto& [key, entry] : *table) all += static_cast<double>(entry.estimate);
    if (all < static_cast<double>(options_.executions)) return;
    std::vector<std::pair<uint32_t, uint32_t>> shares;  // percent, function
    for (const auto& [key, entry] : *table) {
      const auto percent = static_cast<uint32_t>(100 * static_cast<double>(entry.estimate) / all);
      const std::optional<uint32_t> function = index_of(key);
      if (function && percent > 0) shares.emplace_back(percent, *function);
    }
    if (shares.empty()) return;
    std::ranges::stable_sort(shares, std::greater<>{}, [](const auto& s) { return s.first; });
    Bytes& values = hints[call.location - begin_];
    for (const auto& [percent, function] : shares) {
      put_leb(values, function);
      put_leb(values, percent);
    }
    ++report_.targeted;
  }

  const Bytes& module_;
  const Functions& fs_;
  const HintOptions& options_;
  const Indices& indices_;
  HintReport& report_;
  uint32_t begin_ = 0;
  FunctionHints branches_, frequencies_, targets_, priorities_;
};

// A function that the profile knows.
struct Known {
  uint32_t index = 0;  // in the module
  const MethodProfile* profile = nullptr;
  long double executions = 0;
};

bool runs_once(const MethodProfile& m, uint64_t runs) {
  if (m.calls > runs) return false;
  return std::ranges::all_of(m.schema.slots, [&](const Slot& slot) {
    return slot.kind != SlotKind::kBlock || m.estimates[slot.word] <= runs;
  });
}

// See the header: the order of first calls, and of the hottest how hot they are.
void add_priorities(std::vector<Known> known, const ProfileFile& file, Hinter& hinter) {
  std::erase_if(known, [](const Known& k) { return k.profile->calls == 0; });
  std::ranges::stable_sort(known, std::greater<>{}, &Known::executions);
  const auto first = [&](const Known& k) {
    const auto at = file.calls.first.find(k.profile->key);
    return at == file.calls.first.end() ? std::numeric_limits<double>::infinity()
                                        : at->second.mean();
  };
  std::map<uint32_t, std::optional<uint64_t>> heat;
  long double all = 0, sum = 0;
  for (const Known& k : known) all += k.executions;
  for (const Known& k : known) {
    if (sum < kHotShare * all && k.executions > 0) {
      const long double times = known.front().executions / k.executions;
      heat[k.index] = static_cast<uint64_t>(std::floor(std::log2(times)));
    }
    if (runs_once(*k.profile, file.info.runs)) heat[k.index] = kRunsOnce;
    sum += k.executions;
  }
  std::ranges::stable_sort(known, std::less<>{}, first);
  for (uint64_t place = 0; place < known.size(); ++place) {
    std::vector<uint64_t> values = {place};
    if (const auto& h = heat[known[place].index]) values.push_back(*h);
    hinter.add_priority(known[place].index, values);
  }
}

}  // namespace

Result<std::vector<uint8_t>> add_hints(const std::vector<uint8_t>& module, const ProfileFile& file,
                                       const HintOptions& options, HintReport* report) {
  Result<Functions> fs = read_functions(options.name, module);
  if (!fs) return fs.error();
  if (fs->begins.size() != fs->module.functions.size()) {
    return Error{ErrorCode::kInvalidArgument,
                 options.name + ": only WebAssembly modules can have hints"};
  }
  HintReport local;
  HintReport& r = report != nullptr ? *report : local;
  const std::vector<BodyGraph> bodies = body_graphs(*fs);
  std::vector<Known> known;
  Hinter::Indices indices;
  for (uint32_t i = 0; i < bodies.size(); ++i) {
    if (bodies[i].key) indices.emplace(*bodies[i].key, fs->first + i);
    const MethodProfile* m = profile_of(file.profile, bodies[i]);
    ++(m != nullptr ? r.functions : r.unknown);
    if (m != nullptr) known.push_back({fs->first + i, m, profile::executions(*m)});
  }
  for (const Known& k : known) indices[k.profile->key] = k.index;
  Hinter hinter(module, *fs, options, indices, r);
  for (const Known& k : known)
    hinter.add(k.index - fs->first, bodies[k.index - fs->first], *k.profile);
  add_priorities(known, file, hinter);
  if (r.functions == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 options.name + ": the profile has no function of this module"};
  }
  return hinter.run();
}

}  // namespace uptier::tools
