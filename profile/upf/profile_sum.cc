#include "profile/upf/profile_sum.h"

#include <emmintrin.h>

#include <algorithm>
#include <cassert>
#include <set>

#include "profile/base/numbers.h"
#include "profile/trace/read_trace.h"
#include "profile/upf/foreign.h"
#include "profile/upf/trace_info.h"

namespace uptier::profile {
namespace {

constexpr uint64_t kSafe = uint64_t{1} << 63;  // below it, adding a smaller word cannot wrap

bool is_count(SlotKind kind) {
  return kind == SlotKind::kBlock || kind == SlotKind::kEdge || kind == SlotKind::kCounter;
}

constexpr uint64_t kMethodBytes = 512;  // of two map nodes, a schema's bytes and a short name
constexpr uint64_t kTableBytes = 112;   // map nodes
constexpr uint64_t kEntryBytes = 80;
constexpr uint64_t kSome = 32;  // 1/32 of the limit

// Two words at a time; the compiler does not vectorize this by itself.
void add_plain(std::span<uint64_t> sums, std::span<const uint64_t> values) {
  size_t i = 0;
  for (; i + 2 <= sums.size(); i += 2) {
    auto* to = reinterpret_cast<__m128i*>(&sums[i]);
    const auto* from = reinterpret_cast<const __m128i*>(&values[i]);
    _mm_storeu_si128(to, _mm_add_epi64(_mm_loadu_si128(to), _mm_loadu_si128(from)));
  }
  for (; i < sums.size(); ++i) sums[i] += values[i];
}

// Without a call to memcmp, since only a few bytes are compared.
bool same_bytes(ByteSpan a, ByteSpan b) {
  constexpr size_t kWord = sizeof(uint64_t);
  if (a.size() != b.size()) return false;
  if (a.size() < kWord) return std::ranges::equal(a, b);
  for (size_t at = 0; at + kWord <= a.size(); at += kWord) {
    if (load<uint64_t>(a, at) != load<uint64_t>(b, at)) return false;
  }
  return load<uint64_t>(a, a.size() - kWord) == load<uint64_t>(b, b.size() - kWord);
}

// O3, because -O2 alone does not vectorize; that is twice as fast.
__attribute__((optimize("O3"))) uint64_t add_saturating(std::span<uint64_t> sums,
                                                        std::span<const uint64_t> values) {
  uint64_t saturated = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const uint64_t sum = sums[i] + values[i];
    const uint64_t over = sum < values[i] ? 1 : 0;
    sums[i] = sum | (0 - over);
    saturated += over;
  }
  return saturated;
}

MethodView view_of(const MethodProfile& sum, ByteSpan desc, uint16_t format, uint32_t version) {
  MethodView view;
  view.key = sum.key;
  view.calls = sum.calls;
  view.sampled_calls = sum.sampled_calls;
  view.guessed_calls = sum.guessed_calls;
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

ProfileSum::Known* ProfileSum::find_known(const MethodKey& key) {
  Known* known = last_ != nullptr ? last_->next : nullptr;
  const bool next = known != nullptr && known->sum->key == key;
  if (!next) {
    const auto at = known_.find(key);
    known = at == known_.end() ? nullptr : &at->second;
    if (last_ != nullptr) last_->next = known;
  }
  if (known != nullptr) last_ = known;
  return known;
}

bool ProfileSum::add(const MethodView& view, std::string_view name, Weight weight) {
  if (limited_ && !range_.contains(view.key)) return true;
  const uint64_t saturated = report_.saturated;
  const size_t dropped = report_.dropped.size();
  add_view(view, name, weight);
  return book(view.key, saturated, dropped);
}

void ProfileSum::add_view(const MethodView& view, std::string_view name, Weight weight) {
  if (weight.is_one()) {
    Known* known = find_known(view.key);
    if (known != nullptr && add_words(view, name, *known)) return;
  }
  bytes_ -= bytes_of(view.key);
  Result<MethodProfile> method = method_of(view, name);
  if (!method.ok()) {
    bytes_ += bytes_of(view.key);
    report_.dropped.push_back(view.key);
    return;
  }
  // The check above is most of the cost of a first meeting.
  const bool first = weight.is_one() && !sum_.methods.contains(view.key);
  if (first) {
    sum_.methods.emplace(view.key, std::move(*method));
    ++report_.added;
  } else {
    add_method(std::move(*method), weight);
  }
  know(view.key, view);
  bytes_ += bytes_of(view.key);
}

void ProfileSum::add(MethodProfile method, Weight weight) {
  const MethodKey key = method.key;
  if (limited_ && !range_.contains(key)) return;
  const uint64_t saturated = report_.saturated;
  const size_t dropped = report_.dropped.size();
  bytes_ -= bytes_of(key);
  add_method(std::move(method), weight);
  bytes_ += bytes_of(key);
  book(key, saturated, dropped);
  keep_within_limit();
}

void ProfileSum::add_method(MethodProfile method, Weight weight) {
  const MethodKey key = method.key;
  Profile one;
  one.methods.emplace(key, std::move(method));
  if (!weight.is_one()) {
    const Result<uint64_t> scaled = scale(one, weight.numerator, weight.denominator);
    if (scaled.ok()) report_.saturated += *scaled;
  }
  if (sum_.methods.contains(key)) {
    if (const auto known = known_.find(key); known != known_.end()) {
      restore(known->second);
      known->second.plain = false;  // if the schemas are equal, this view makes it plain again
    }
    report_ += merge(sum_, std::move(one));
    return;
  }
  if (!one.methods.begin()->second.check().ok()) {
    report_.dropped.push_back(key);
    return;
  }
  sum_.methods.insert(one.methods.extract(key));
  ++report_.added;
}

void ProfileSum::add(CallProfile calls, Weight weight) {
  if (!weight.is_one()) calls.scale(weight.numerator, weight.denominator);
  calls_ += std::move(calls);
}

void ProfileSum::add(InlinedBodies bodies, Weight weight) {
  Profile one;
  one.inlined = std::move(bodies);
  if (!weight.is_one()) {
    const Result<uint64_t> scaled = scale(one, weight.numerator, weight.denominator);
    if (scaled.ok()) report_.saturated += *scaled;
  }
  report_ += merge(sum_, std::move(one));
}

// Records the bytes of the sum's schema, if they are the bytes of `view`.
void ProfileSum::know(const MethodKey& key, const MethodView& view) {
  const auto at = sum_.methods.find(key);
  if (at == sum_.methods.end()) return;
  MethodProfile& sum = at->second;
  const bool plain =
      view.format == kUpfEntries && std::ranges::equal(desc_bytes(sum.schema), view.desc) &&
      std::ranges::all_of(sum.schema.slots, [](const Slot& slot) { return is_count(slot.kind); });
  if (!plain) return;
  Known& known = known_[key];
  const uint64_t greatest = sum.counts.empty() ? 0 : std::ranges::max(sum.counts);
  known = {.desc = Bytes(view.desc.begin(), view.desc.end()),
           .format = view.format,
           .version = view.version,
           .plain = true,
           .same = sum.estimates == sum.counts,
           .bound = greatest,
           .sum = &sum,
           .next = known.next};
  if (!known.same) known.bound = std::max(greatest, std::ranges::max(sum.estimates));
  if (lean_) strip(known);
}

// Updates the estimates.
void ProfileSum::settle(Known& known) {
  if (known.same) known.sum->estimates = known.sum->counts;
  known.same = false;
}

// Adds the words of a file to a sum of the same schema; returns false if that is not possible.
bool ProfileSum::add_words(const MethodView& view, std::string_view name, Known& known) {
  MethodProfile& sum = *known.sum;
  const bool same = known.plain && view.format == known.format && view.version == known.version &&
                    view.tables == 0 && view.table_bytes.empty() &&
                    view.counts.size() == sum.counts.size() && same_bytes(view.desc, known.desc);
  if (!same) return false;
  if (!view.same_estimates()) {
    if (known.same) bytes_ += known.bare ? sum.counts.size() * sizeof(uint64_t) : 0;
    settle(known);
  }
  const auto add = [safe = known.bound < kSafe && view.bound < kSafe](
                       std::span<uint64_t> sums, std::span<const uint64_t> values) -> uint64_t {
    if (!safe) return add_saturating(sums, values);
    add_plain(sums, values);
    return 0;
  };
  const uint64_t saturated = add(sum.counts, view.counts);
  report_.saturated += saturated + (known.same ? saturated : add(sum.estimates, view.estimates));
  profile::add_saturating(known.bound, view.bound);
  const std::pair<uint64_t*, uint64_t> fields[] = {{&sum.calls, view.calls},
                                                   {&sum.sampled_calls, view.sampled_calls},
                                                   {&sum.guessed_calls, view.guessed_calls},
                                                   {&sum.iterations, view.iterations},
                                                   {&sum.bursts, view.bursts},
                                                   {&sum.weight_squares, view.weight_squares}};
  for (const auto& [field, value] : fields) {
    report_.saturated += profile::add_saturating(*field, value) ? 1 : 0;
  }
  if (sum.interval != view.interval) sum.interval = 0;
  sum.time = std::max(sum.time, view.time);
  sum.behind = sum.behind || view.behind;
  const bool named = same_bytes(std::as_bytes(std::span(name)), std::as_bytes(std::span(sum.name)));
  if (!named && sum.name < name) sum.name = name;
  ++report_.merged;
  return true;
}

Profile ProfileSum::take() {
  for (auto& [key, known] : known_) restore(known);
  known_.clear();
  last_ = nullptr;
  return std::move(sum_);
}

namespace {

// Names are copied, and all methods may have the same name, as long as the file. So names may take
// a limited multiple of the bytes of the methods and the names there; the remaining methods get
// none.
class Names {
 public:
  void allow(uint64_t bytes) { left_ += kShare * bytes; }

  std::string_view spend(std::string_view name) {
    if (name.empty()) return name;
    const char *begin = name.data(), *end = begin + name.size();
    const auto before = static_cast<uint64_t>(end_ - begin_);
    begin_ = begin_ == nullptr ? begin : std::min(begin_, begin);
    end_ = end_ == nullptr ? end : std::max(end_, end);
    allow(static_cast<uint64_t>(end_ - begin_) - before);
    over_ = over_ || name.size() > left_;
    if (over_) return {};
    left_ -= name.size();
    return name;
  }
  bool over() const { return over_; }

 private:
  static constexpr uint64_t kShare = 16;

  uint64_t left_ = 64 << 10;
  const char* begin_ = nullptr;  // of the bytes that hold names
  const char* end_ = nullptr;
  bool over_ = false;
};

}  // namespace

void ProfileSum::add_rest(UpfReader& file, const UpfReader::Segment& segment, Weight weight) {
  if (segment.has_info) {
    ProfileInfo info = segment.info;
    info.weight = mul_div(info.weight, weight.numerator, weight.denominator, report_.saturated);
    infos_.add(std::move(info));
  }
  if (!segment.calls.empty()) add(file.calls(segment), weight);
  if (!segment.inlined.empty()) add(file.inlined(segment), weight);
  add_foreign(file, segment, foreign_);
}

void ProfileSum::add(UpfReader& file, const UpfReader::Segment& segment, Weight weight,
                     std::span<GroupKeys> keys) {
  if (!again()) add_rest(file, segment, weight);
  Names names;
  for (const UpfReader::Group& group : segment.groups) names.allow(group.record.size());
  // The first range has met all names.
  const auto spend = [&](std::string_view name) { return again() ? name : names.spend(name); };
  for (size_t i = 0; i < segment.groups.size(); ++i) {
    const UpfReader::Group& group = segment.groups[i];
    const auto visit = [&](const MethodView& view, std::string_view name) {
      if (!add(view, spend(name), weight)) {
        file.warn(group.offset, "a method that breaks a rule, or of another schema, was left out");
      }
      keep_within_limit();
    };
    // Before the range has an end, all methods are wanted.
    if (!again() && !range_.end) {
      const bool whole = file.read(segment, group, visit);
      refuses_ = refuses_ || !whole;
    } else if (keys[i].meets(range_)) {
      file.read(segment, group, range_, keys[i], visit, spend);
      refuses_ = refuses_ || !keys[i].ascending;
    }
  }
  if (names.over()) {
    refuses_ = true;
    file.warn(segment.offset, "names come to many times the size of it all, the rest have none");
  }
}

void ProfileSum::add_trace(UpfReader& file, ByteSpan trace, Weight weight) {
  Result<TraceRead> whole = read_trace(trace);
  if (!whole.ok()) return file.warn(file.offset_of(trace), "trace: " + whole.error().message);
  TraceProfile* read = &whole->trace;
  for (auto& [key, method] : read->profile.methods) add(std::move(method), weight);
  for (auto& [at, method] : read->profile.other_code) add(std::move(method), weight);
  if (again()) return;
  for (const std::string& what : whole->warnings) {
    file.warn(file.offset_of(trace), "trace: " + what);
  }
  ProfileInfo info = trace_info(trace, read->profile);
  info.weight = mul_div(info.weight, weight.numerator, weight.denominator, report_.saturated);
  infos_.add(std::move(info));
  report_ += read->report;
  add(calls_of(*read), weight);
  add(std::move(read->profile.inlined), weight);
}

void ProfileSum::add_traces(UpfReader& file) {
  if (file.traces().empty()) return;
  const ProfileInfo before = info();
  std::set<UploadId> known(before.uploads.begin(), before.uploads.end());
  for (const ByteSpan trace : file.traces()) {
    if (known.insert(trace_id(trace)).second) add_trace(file, trace);
  }
}

void ProfileSum::absorb(ProfileSum& other) {
  if (limited_) unite_ranges(other);
  report_ += other.report_;
  lost_.insert(lost_.end(), other.lost_.begin(), other.lost_.end());
  infos_.add(other.info());
  calls_ += other.calls_;
  foreign_ += other.foreign_;
  while (!other.sum_.methods.empty()) {
    const auto first = other.sum_.methods.begin();
    const auto known = other.known_.find(first->first);
    const bool absorbed = known != other.known_.end() && absorb_known(other, known->second);
    if (absorbed) continue;
    if (known != other.known_.end()) other.restore(known->second);
    MethodProfile method = std::move(other.sum_.methods.extract(first).mapped());
    add(std::move(method));
  }
  other.known_.clear();
  other.last_ = nullptr;
  for (auto& [at, method] : std::exchange(other.sum_.other_code, {})) add(std::move(method));
  add(std::move(other.sum_.inlined));
}

// ---- Ranges ---------------------------------------------------------------------------------
//
// A method with only plain counts can be stored bare: its words, and the bytes of its schema. Its
// slots, which take more memory than its words, are rebuilt when the method is needed.

void ProfileSum::limit(const MethodKey& from, uint64_t bytes) {
  limited_ = true;
  range_ = {from, std::nullopt};
  limit_ = bytes;
  lean_ = again();
}

// Does nothing to a method that is already bare, or not plain.
void ProfileSum::strip(Known& known) {
  if (known.bare || !known.plain) return;
  known.sum->schema.slots = std::vector<Slot>();
  if (known.same) known.sum->estimates = std::vector<uint64_t>();
  known.bare = true;
}

// Restores the sum of a bare method.
void ProfileSum::restore(Known& known) {
  if (std::exchange(known.bare, false)) {
    MethodProfile& sum = *known.sum;
    Result<Schema> schema = schema_of(view_of(sum, known.desc, known.format, known.version));
    assert(schema.ok());
    if (schema.ok()) sum.schema = std::move(*schema);
  }
  settle(known);
}

// Returns the memory of a method here; 0 without a limit.
uint64_t ProfileSum::bytes_of(const MethodKey& key) const {
  if (!limited_) return 0;
  const auto at = sum_.methods.find(key);
  return at == sum_.methods.end() ? 0 : size_of(at->second) + other_bytes_of(key);
}

// Returns the memory of other code of a method.
uint64_t ProfileSum::other_bytes_of(const MethodKey& key) const {
  uint64_t bytes = 0;
  auto at = sum_.other_code.lower_bound({key, 0});
  for (; at != sum_.other_code.end() && at->first.first == key; ++at) bytes += size_of(at->second);
  return bytes;
}

// First, all methods become bare. If that is not enough, the greatest ones are removed: enough at
// once that this does not happen for every method. At least one stays.
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

// Under a limit, moves the losses of adding a method from the report to an entry of that method,
// which may be removed again. Returns false if a profile was left out.
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

// The limit no longer applies: memory holds a method twice for a moment, but its words only once.
void ProfileSum::unite_ranges(ProfileSum& other) {
  std::optional<MethodKey> end = range_.end;
  if (!end || (other.range_.end && *other.range_.end < *end)) end = other.range_.end;
  if (end) cut(*end);
  if (end) other.cut(*end);
  limit_ = UINT64_MAX;
  refuses_ = refuses_ || other.refuses_;
}

// Takes a method of another sum by its words; returns false if that is not possible.
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
