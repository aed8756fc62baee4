#include "tiering/observe/packed_decisions.h"

#include <algorithm>
#include <cassert>
#include <type_traits>

#include "tiering/policy/packed_snapshot.h"

namespace uptier::tiering {
namespace {

using profile::append_varint;
using profile::Bytes;

// The head of a record: the index of its inputs in DecisionInputs, and these flags.
constexpr uint8_t kInputs = 7;
constexpr uint8_t kNewName = 8;
constexpr uint8_t kByRules = 16;     // it has options: the answer is made from the inputs
constexpr uint8_t kNewOptions = 32;  // with kByRules: others than before
constexpr uint8_t kNewAction = 64;   // without kByRules
constexpr uint8_t kReason = 128;
static_assert(std::variant_size_v<DecisionInputs> <= kInputs + 1);

void append_text(std::string_view text, Bytes& out) {
  append_varint(text.size(), out);
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

bool same(const PolicyOptions& a, const PolicyOptions& b) {
  bool same = true;
  each_field<PolicyOptions>(
      [&](const auto& f) { same &= to_bits(a.*f.member) == to_bits(b.*f.member); });
  return same;
}

// The snapshot of a kind that is before.
MethodInputs& of_kind(PackedState& s, const MethodInputs*) { return s.method; }
ExitSnapshot& of_kind(PackedState& s, const ExitSnapshot*) { return s.exit; }
TrialSnapshot& of_kind(PackedState& s, const TrialSnapshot*) { return s.trial; }
ValueSnapshot& of_kind(PackedState& s, const ValueSnapshot*) { return s.value; }
GuardSnapshot& of_kind(PackedState& s, const GuardSnapshot*) { return s.guard; }
SiteSnapshot& of_kind(PackedState& s, const SiteSnapshot*) { return s.site; }

template <typename Snapshot>
void pack_inputs(const Snapshot& s, PackedState& before, Bytes& out) {
  Snapshot& b = of_kind(before, &s);
  if constexpr (std::is_same_v<Snapshot, MethodInputs>) {
    pack(s.method, b.method, out);
    pack(s.system, b.system, out);
  } else {
    pack(s, b, out);
  }
  b = s;
}

template <typename Snapshot>
Snapshot unpack_inputs(profile::VarintReader& in, PackedState& before) {
  Snapshot& b = of_kind(before, static_cast<const Snapshot*>(nullptr));
  if constexpr (std::is_same_v<Snapshot, MethodInputs>) {
    unpack(in, b.method);
    unpack(in, b.system);
  } else {
    unpack(in, b);
  }
  return b;
}

DecisionInputs unpack_inputs(uint8_t kind, profile::VarintReader& in, PackedState& before) {
  switch (kind) {
    case 1: return unpack_inputs<MethodInputs>(in, before);
    case 2: return unpack_inputs<ExitSnapshot>(in, before);
    case 3: return unpack_inputs<TrialSnapshot>(in, before);
    case 4: return unpack_inputs<ValueSnapshot>(in, before);
    case 5: return unpack_inputs<GuardSnapshot>(in, before);
    case 6: return unpack_inputs<SiteSnapshot>(in, before);
    default: return {};
  }
}

}  // namespace

// ---- Writing ------------------------------------------------------------------------------------

void PackedDecisions::append(const LoggedDecision& d, uint64_t sequence) {
  const bool fits = open_ && chunks_.back().bytes.size() < kChunk &&
                    chunks_.back().first + chunks_.back().records == sequence;
  if (!fits) begin_chunk(sequence);
  Chunk& c = chunks_.back();
  const size_t size = c.bytes.size();
  try {
    pack_record(d, c.bytes);
  } catch (...) {
    // Differences may refer to the record that is left out.
    c.bytes.resize(size);
    open_ = false;
    if (c.records == 0) chunks_.pop_back();
    throw;
  }
  ++c.records;
  ++size_;
}

void PackedDecisions::begin_chunk(uint64_t first) {
  assert(chunks_.empty() || first >= chunks_.back().first + chunks_.back().records);
  if (!chunks_.empty()) chunks_.back().bytes.shrink_to_fit();
  Bytes bytes;
  bytes.reserve(kChunk + kChunk / 8);
  open_ = false;
  words_.clear();
  before_ = {};
  chunks_.push_back({first, 0, 0, std::move(bytes)});
  open_ = true;
}

uint32_t PackedDecisions::word(std::string_view text, bool& first) {
  auto at = words_.find(text);
  first = at == words_.end();
  if (first) at = words_.emplace(text, static_cast<uint32_t>(words_.size())).first;
  return at->second;
}

void PackedDecisions::pack_record(const LoggedDecision& d, Bytes& out) {
  bool new_name = false, new_action = false;
  const uint32_t name = word(d.method_name, new_name);
  const bool by_rules = d.options != nullptr;
  const bool new_options = by_rules && !same(*d.options, before_.options);
  const uint32_t action = by_rules ? 0 : word(d.action, new_action);
  out.push_back(static_cast<std::byte>(d.inputs.index() | (new_name ? kNewName : 0) |
                                       (by_rules ? kByRules : 0) | (new_options ? kNewOptions : 0) |
                                       (new_action ? kNewAction : 0) |
                                       (d.reason.empty() ? 0 : kReason)));
  append_varint(d.at_ns - before_.at_ns, out);
  before_.at_ns = d.at_ns;
  append_varint(d.method.number() + 1, out);  // none is 0
  append_varint(d.location, out);
  append_varint(name, out);
  if (new_name) append_text(d.method_name, out);
  if (new_options) {
    pack(*d.options, before_.options, out);
    before_.options = *d.options;
  }
  if (!std::holds_alternative<MethodInputs>(d.inputs)) {
    for (uint64_t n : {d.calls, d.samples, d.iterations}) append_varint(n, out);
  }
  std::visit(
      [&](const auto& inputs) {
        if constexpr (!std::is_same_v<decltype(inputs), const std::monostate&>) {
          pack_inputs(inputs, before_, out);
        }
      },
      d.inputs);
  if (!by_rules) {
    append_varint(action, out);
    if (new_action) append_text(d.action, out);
    append_varint(to_bits(d.priority), out);
  }
  if (!d.reason.empty()) append_text(d.reason, out);
}

// ---- Dropping and reading -----------------------------------------------------------------------

void PackedDecisions::keep(uint64_t kept) noexcept {
  while (size_ > kept) {
    Chunk& c = chunks_.front();
    const uint64_t drop = std::min(size_ - kept, c.records - c.dropped);
    c.dropped += drop;
    size_ -= drop;
    if (c.dropped < c.records) continue;
    chunks_.pop_front();
    if (chunks_.empty()) open_ = false;
  }
}

size_t PackedDecisions::bytes() const {
  size_t sum = 0;
  for (const Chunk& c : chunks_) sum += sizeof c + c.bytes.capacity();
  return sum;
}

std::string_view PackedDecisions::Reader::text() {
  const profile::ByteSpan bytes = in_.take(in_.number());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view PackedDecisions::Reader::word(bool first) {
  const uint32_t number = in_.small();
  if (first) words_.push_back(text());
  assert(number < words_.size());
  return words_[number];
}

LoggedDecision PackedDecisions::Reader::next() {
  const auto head = static_cast<uint8_t>(in_.take(1)[0]);
  LoggedDecision d;
  d.at_ns = before_.at_ns += in_.number();
  d.method = MethodId(in_.small() - 1);
  d.location = in_.small();
  d.method_name = word((head & kNewName) != 0);
  if ((head & kNewOptions) != 0) unpack(in_, before_.options);
  const uint8_t kind = head & kInputs;
  if (kind != 1) {
    d.calls = in_.number();
    d.samples = in_.number();
    d.iterations = in_.number();
  }
  d.inputs = unpack_inputs(kind, in_, before_);
  if ((head & kByRules) != 0) {
    d.options = &before_.options;
  } else {
    d.action = word((head & kNewAction) != 0);
    d.priority = from_bits<double>(in_.number());
  }
  if ((head & kReason) != 0) d.reason = text();
  assert(in_.ok());
  return d;
}

}  // namespace uptier::tiering
