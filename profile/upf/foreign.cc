#include "profile/upf/foreign.h"

#include <algorithm>
#include <tuple>

#include "profile/base/numbers.h"
#include "uptier/profile_query.h"

namespace uptier::profile {
namespace {

constexpr uint64_t kShare =
    16;  // limit for texts, as a multiple of the bytes of a segment's chunks
constexpr uint64_t kAtLeast = 64 << 10;

using Words = std::vector<uint64_t>;

Words words_of(const Bytes& payload) {
  Words words(payload.size() / sizeof(uint64_t));
  for (size_t i = 0; i < words.size(); ++i) words[i] = load<uint64_t>(payload, i * sizeof words[i]);
  return words;
}

void put(const Words& words, Bytes& payload) {
  for (size_t i = 0; i < words.size(); ++i) store(payload, i * sizeof words[i], words[i]);
}

bool is_counter(std::string_view type, uint64_t payload) {
  return type == "iree.instrument.counter" && payload == sizeof(uint64_t);
}
bool is_range(std::string_view type, uint64_t payload) {
  return type == "iree.instrument.range" &&
         payload == sizeof(uint64_t) * slot_words(SlotKind::kRange);
}
bool is_counter(const ForeignInstrument& i) { return is_counter(i.type, i.payload.size()); }
bool is_range(const ForeignInstrument& i) { return is_range(i.type, i.payload.size()); }

// Adds one range to another. An empty range is all zeros.
void widen(Words& into, const Words& from) {
  using namespace slot_word;
  if (from[kCount] == 0) return;
  if (into[kCount] == 0) {
    into = from;
    return;
  }
  (void)add_saturating(into[kCount], from[kCount]);
  store_wide(&into[kSum], add_wrapping(load_wide(&into[kSum]), load_wide(&from[kSum])));
  const auto less = [](uint64_t a, uint64_t b) {
    return static_cast<int64_t>(a) < static_cast<int64_t>(b);
  };
  into[kMin] = std::min(into[kMin], from[kMin], less);
  into[kMax] = std::max(into[kMax], from[kMax], less);
}

ByteSpan bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

bool is_summed(std::string_view type, uint64_t payload) {
  return is_counter(type, payload) || is_range(type, payload);
}

void add_foreign(UpfReader& file, const UpfReader::Segment& segment, ForeignTables& sum,
                 const std::function<bool(const Instrument&)>& wanted) {
  uint64_t left = kShare * segment.foreign_bytes + kAtLeast;
  bool over = false;
  const auto spend = [&](std::initializer_list<std::string_view> texts) {
    uint64_t size = 0;
    for (const std::string_view text : texts) size += bytes_of(text).size();
    over = over || size > left;
    if (!over) left -= size;
    return !over;
  };
  const auto copy = [](ByteSpan bytes) { return Bytes(bytes.begin(), bytes.end()); };
  for (const Instrument& i : segment.instruments) {
    if (i.stage == kQueryStage || (wanted && !wanted(i))) continue;
    if (!spend({i.type, i.stage, i.scope_hash, i.scope_key, i.metadata})) break;
    sum.add({std::string(i.type), std::string(i.stage), std::string(i.scope_hash),
             std::string(i.scope_key), std::string(i.metadata), copy(i.payload)});
  }
  for (const UpfReader::UserData& d : segment.user_data) {
    if (!spend({d.type, d.metadata})) break;
    sum.data.insert({std::string(d.type), std::string(d.metadata), copy(d.data)});
  }
  if (over) {
    file.warn(segment.offset,
              "texts of instruments come to many times the size of it all, the rest is left out");
  }
}

}  // namespace uptier::profile

namespace uptier {
namespace {

// Returns whether two instruments have the same texts, and payloads of one size.
bool is_same(const ForeignInstrument& a, const ForeignInstrument& b) {
  return a.type == b.type && a.stage == b.stage && a.scope_hash == b.scope_hash &&
         a.scope_key == b.scope_key && a.metadata == b.metadata &&
         a.payload.size() == b.payload.size();
}

}  // namespace

std::strong_ordering operator<=>(const ForeignInstrument& a, const ForeignInstrument& b) {
  const auto texts = [](const ForeignInstrument& i) {
    return std::tie(i.type, i.stage, i.scope_hash, i.scope_key, i.metadata);
  };
  if (const auto order = texts(a) <=> texts(b); order != 0) return order;
  const auto size = a.payload.size() <=> b.payload.size();
  return size != 0 ? size : a.payload <=> b.payload;
}

void ForeignTables::add(ForeignInstrument instrument) {
  using namespace profile;
  const bool range = is_range(instrument);
  if (!range && !is_counter(instrument)) {
    instruments.insert(std::move(instrument));
    return;
  }
  static_assert(slot_word::kCount == 0);
  Words sum = words_of(instrument.payload);
  if (range && sum[slot_word::kCount] == 0) std::ranges::fill(sum, 0);
  // There is at most one with these texts and this size; zeros come before any other payload.
  std::ranges::fill(instrument.payload, std::byte{0});
  const auto at = instruments.lower_bound(instrument);
  if (at != instruments.end() && is_same(*at, instrument)) {
    const Words before = words_of(at->payload);
    range ? widen(sum, before) : (void)add_saturating(sum[0], before[0]);
    instruments.erase(at);
  }
  put(sum, instrument.payload);
  instruments.insert(std::move(instrument));
}

void ForeignTables::subtract(const ForeignInstrument& instrument) {
  using namespace profile;
  const bool range = is_range(instrument);
  if (!range && !is_counter(instrument)) return;
  ForeignInstrument one = instrument;
  std::ranges::fill(one.payload, std::byte{0});
  const auto at = instruments.lower_bound(one);
  if (at == instruments.end() || !is_same(*at, one)) return;
  Words left = words_of(at->payload);
  const Words taken = words_of(instrument.payload);
  left[0] -= std::min(left[0], taken[0]);  // the count
  if (range) {
    using namespace slot_word;
    store_wide(&left[kSum], sub_wrapping(load_wide(&left[kSum]), load_wide(&taken[kSum])));
  }
  instruments.erase(at);
  if (left[0] == 0) return;
  put(left, one.payload);
  instruments.insert(std::move(one));
}

ForeignTables& ForeignTables::operator+=(const ForeignTables& other) {
  for (const ForeignInstrument& i : other.instruments) add(i);
  data.insert(other.data.begin(), other.data.end());
  return *this;
}

}  // namespace uptier
