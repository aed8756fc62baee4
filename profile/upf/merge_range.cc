// Sums of a range of methods, as merge.h has them: what they take, and what goes when that is too
// much.
//
// A method that is all counts can lie bare: words, and the bytes of its schema. Its slots, which take
// more than its words, come back when somebody wants to see it.
#include <cassert>

#include "profile/upf/merge.h"

namespace uptier::profile {
namespace {

constexpr uint64_t kMethodBytes = 512;  // of two nodes of maps, a schema's bytes and a short name
constexpr uint64_t kTableBytes = 112;   // nodes of maps
constexpr uint64_t kEntryBytes = 80;
constexpr uint64_t kSome = 32;  // of the limit

MethodView view_of(const MethodProfile& sum, ByteSpan desc, uint16_t format, uint32_t version) {
  MethodView view;
  view.key = sum.key;
  view.calls = sum.calls;
  view.sampled_calls = sum.sampled_calls;
  view.iterations = sum.iterations;
  view.bursts = sum.bursts;
  view.interval = sum.interval;
  view.weight_squares = sum.weight_squares;
  view.time = sum.time;
  view.behind = sum.behind;
  view.format = format;
  view.version = version;
  view.desc = desc;
  view.counts = sum.counts;
  return view;
}

uint64_t size_of(const MethodProfile& m) {
  uint64_t bytes = kMethodBytes + m.name.size() + m.schema.slots.size() * sizeof(Slot) +
                   (m.counts.size() + m.estimates.size()) * sizeof(uint64_t);
  for (const auto& [site, table] : m.tables) bytes += kTableBytes + kEntryBytes * table.size();
  return bytes;
}

}  // namespace

void ProfileSum::limit(const MethodKey& from, uint64_t bytes) {
  limited_ = true;
  range_ = {from, std::nullopt};
  limit_ = bytes;
  lean_ = again();
}

// Does nothing to what is bare already, or is not all counts.
void ProfileSum::strip(Known& known) {
  if (known.bare || !known.plain) return;
  known.sum->schema.slots = std::vector<Slot>();
  if (known.same) known.sum->estimates = std::vector<uint64_t>();
  known.bare = true;
}

// Makes the sum of a method whole.
void ProfileSum::restore(Known& known) {
  if (std::exchange(known.bare, false)) {
    MethodProfile& sum = *known.sum;
    Result<Schema> schema = schema_of(view_of(sum, known.desc, known.format, known.version));
    assert(schema.ok());
    if (schema.ok()) sum.schema = std::move(*schema);
  }
  settle(known);
}

// Returns what a method takes here; 0 where nobody asks.
uint64_t ProfileSum::bytes_of(const MethodKey& key) const {
  if (!limited_) return 0;
  const auto at = sum_.methods.find(key);
  return at == sum_.methods.end() ? 0 : size_of(at->second) + other_bytes_of(key);
}

// Returns what other code of a method takes.
uint64_t ProfileSum::other_bytes_of(const MethodKey& key) const {
  uint64_t bytes = 0;
  auto at = sum_.other_code.lower_bound({key, 0});
  for (; at != sum_.other_code.end() && at->first.first == key; ++at) bytes += size_of(at->second);
  return bytes;
}

// First methods become bare, then they go: some at once, so that it does not happen for every
// method. One stays at least.
void ProfileSum::make_room() {
  if (!std::exchange(lean_, true)) {
    for (auto& [key, known] : known_) {
      bytes_ -= size_of(*known.sum);
      strip(known);
      bytes_ += size_of(*known.sum);
    }
  }
  if (bytes_ <= limit_ || sum_.methods.size() < 2) return;
  const uint64_t wanted = limit_ - limit_ / kSome;
  auto end = sum_.methods.end();
  for (uint64_t left = bytes_; left > wanted && std::prev(end) != sum_.methods.begin();) {
    --end;
    left -= size_of(end->second) + other_bytes_of(end->first);
  }
  cut(end->first);
}

void ProfileSum::cut(MethodKey end) {
  range_.end = end;
  const auto first = sum_.methods.lower_bound(end);
  for (auto at = first; at != sum_.methods.end(); ++at) bytes_ -= bytes_of(at->first);
  sum_.methods.erase(first, sum_.methods.end());
  sum_.other_code.erase(sum_.other_code.lower_bound({end, 0}), sum_.other_code.end());
  known_.erase(known_.lower_bound(end), known_.end());
  last_ = nullptr;
  for (auto& [key, known] : known_) known.next = nullptr;  // it may have gone
  std::erase_if(lost_, [&](const Lost& lost) { return lost.key >= end; });
}

// Says what adding a method has lost, as the report had it before; under a limit of that method
// alone, which may go. Returns false if a profile was left out.
bool ProfileSum::book(const MethodKey& key, uint64_t saturated, size_t dropped) {
  const bool whole = report_.dropped.size() == dropped;
  if (limited_ && (!whole || report_.saturated != saturated)) {
    lost_.push_back({key, report_.saturated - saturated, report_.dropped.size() - dropped});
    report_.saturated = saturated;
    report_.dropped.resize(dropped);
  }
  return whole;
}

MergeReport ProfileSum::report() const {
  MergeReport all = report_;
  for (const Lost& lost : lost_) {
    all.saturated += lost.saturated;
    all.dropped.insert(all.dropped.end(), lost.dropped, lost.key);
  }
  return all;
}

// What both may have grows no more: it has a method twice for a moment, and its words once.
void ProfileSum::unite_ranges(ProfileSum& other) {
  std::optional<MethodKey> end = range_.end;
  if (!end || (other.range_.end && *other.range_.end < *end)) end = other.range_.end;
  if (end) cut(*end);
  if (end) other.cut(*end);
  limit_ = UINT64_MAX;
  refuses_ = refuses_ || other.refuses_;
}

// Takes a method of another sum as its words lie; false if it is not of that kind.
bool ProfileSum::absorb_known(ProfileSum& other, Known& theirs) {
  if (!theirs.plain) return false;
  const MethodKey key = theirs.sum->key;
  if (Known* mine = find_known(key)) {
    MethodView view = view_of(*theirs.sum, theirs.desc, theirs.format, theirs.version);
    view.estimates = theirs.same ? view.counts : theirs.sum->estimates;
    view.bound = theirs.bound;
    const uint64_t saturated = report_.saturated;
    if (!add_words(view, theirs.sum->name, *mine)) return false;
    book(key, saturated, report_.dropped.size());
    other.sum_.methods.erase(key);
  } else {
    if (sum_.methods.contains(key)) return false;
    const auto at = sum_.methods.insert(other.sum_.methods.extract(key)).position;
    Known& known = known_[key] = std::move(theirs);
    known.sum = &at->second;
    known.next = nullptr;
    bytes_ += limited_ ? size_of(at->second) : 0;
    ++report_.added;
  }
  return true;
}

void ProfileSum::drain(const std::function<void(MethodProfile)>& take) {
  last_ = nullptr;
  while (!sum_.methods.empty()) {
    const auto at = sum_.methods.begin();
    const auto known = known_.find(at->first);
    if (known != known_.end()) restore(known->second);
    const MethodKey key = at->first;
    take(std::move(at->second));
    if (known != known_.end()) known_.erase(known);
    sum_.methods.erase(at);
    auto other = sum_.other_code.lower_bound({key, 0});
    while (other != sum_.other_code.end() && other->first.first == key) {
      take(std::move(other->second));
      other = sum_.other_code.erase(other);
    }
  }
  bytes_ = 0;
}

}  // namespace uptier::profile
