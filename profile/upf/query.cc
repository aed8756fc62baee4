#include "uptier/profile_query.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>

#include "profile/base/numbers.h"
#include "profile/data/inlined.h"
#include "profile/data/schema.h"
#include "profile/data/text.h"
#include "profile/upf/foreign.h"
#include "profile/upf/profile_sum.h"
#include "profile/upf/uploads.h"
#include "uptier/gather.h"

namespace uptier {
namespace {

using profile::add_saturating;

// A call on the path to an inlined body.
struct Step {
  SiteId site = 0;
  std::string_view code;
};

// The parsed key and scope.
struct Question {
  SlotKind kind = SlotKind::kBlock;
  SiteId site = 0;
  std::string_view scope;
  std::string_view method;  // empty: any
  std::vector<Step> path;   // empty: a method's own site
};

std::optional<SiteId> parse_site(std::string_view text) {
  SiteId site = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), site);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(site) : std::nullopt;
}

std::optional<SlotKind> parse_kind(std::string_view text) {
  for (auto kind = SlotKind::kBlock; kind <= SlotKind::kGauge;
       kind = static_cast<SlotKind>(static_cast<int>(kind) + 1)) {
    if (slot_kind_name(kind) == text) return kind;
  }
  return std::nullopt;
}

std::optional<Question> parse(std::string_view scope, std::string_view key) {
  Question q;
  for (size_t slash = key.find('/'); slash != std::string_view::npos; slash = key.find('/')) {
    const size_t colon = key.find(':');
    const std::optional<SiteId> site = parse_site(key.substr(0, colon));
    if (!site) return std::nullopt;
    q.path.push_back({*site, key.substr(colon + 1, slash - colon - 1)});
    key.remove_prefix(slash + 1);
  }
  const size_t hash = key.find('#');
  if (hash == std::string_view::npos) return std::nullopt;
  const std::optional<SlotKind> kind = parse_kind(key.substr(0, hash));
  const std::optional<SiteId> site = parse_site(key.substr(hash + 1));
  if (!kind || !site) return std::nullopt;
  const size_t at = scope.find('@');
  q.kind = *kind;
  q.site = *site;
  q.scope = scope.substr(0, at);
  if (at != std::string_view::npos) q.method = scope.substr(at + 1);
  return q;
}

RangeAnswer range_of(std::span<const uint64_t> words) {
  using namespace slot_word;
  RangeAnswer range;
  range.count = words[kCount];
  range.min = static_cast<int64_t>(words[kMin]);
  range.max = static_cast<int64_t>(words[kMax]);
  const auto sum = static_cast<double>(profile::load_wide(&words[kSum]));
  range.mean = range.count == 0 ? 0 : sum / static_cast<double>(range.count);
  return range;
}

ValuesAnswer values_of(const MethodProfile& m, const Slot& slot) {
  ValuesAnswer answer;
  const std::span<const uint64_t> words = m.words(slot.kind, slot.site);
  answer.range = range_of(words);
  answer.other = words[slot_word::kValueOther];
  if (const Table* table = m.table(slot.kind, slot.site)) {
    for (const auto& [key, entry] : *table) {
      answer.values.push_back({static_cast<int64_t>(key.value), entry.count});
    }
  }
  std::ranges::stable_sort(answer.values, std::greater<>{}, &ValuesAnswer::Value::count);
  return answer;
}

TargetsAnswer targets_of(const MethodProfile& m, const Slot& slot) {
  TargetsAnswer answer;
  answer.other = m.words(slot.kind, slot.site)[slot_word::kTargetOther];
  if (const Table* table = m.table(slot.kind, slot.site)) {
    for (const auto& [key, entry] : *table) {
      answer.targets.push_back({{key.module_key, static_cast<uint32_t>(key.value)}, entry.count});
    }
  }
  std::ranges::stable_sort(answer.targets, std::greater<>{}, &TargetsAnswer::Target::count);
  return answer;
}

bool is_silent(const MethodProfile& m, const Slot& slot) {
  const std::span<const uint64_t> words = m.words(slot.kind, slot.site);
  return words.empty() || (std::ranges::all_of(words, [](uint64_t n) { return n == 0; }) &&
                           m.table(slot.kind, slot.site) == nullptr);
}

ProfileAnswer answer_of(const MethodProfile& m, const Slot& slot) {
  switch (slot.kind) {
    case SlotKind::kRange: return {range_of(m.words(slot.kind, slot.site))};
    case SlotKind::kValue: return {values_of(m, slot)};
    case SlotKind::kCallTarget: return {targets_of(m, slot)};
    default: return {CounterAnswer{m.counts[slot.word], m.estimates[slot.word]}};
  }
}

// Sums the words before they are read, as merge does: the methods have one shape, and the site has
// the same kind in each of them.
MethodProfile united(const std::vector<const MethodProfile*>& methods, const Slot& slot) {
  Profile sum;
  for (const MethodProfile* m : methods) {
    MethodProfile one;
    one.schema.add(slot.kind, slot.site, slot.top);
    const Slot& to = one.schema.slots.front();
    const Slot& from = *m->schema.find(slot.kind, slot.site);
    one.counts.assign(m->counts.begin() + from.word, m->counts.begin() + from.word + to.words);
    one.estimates.assign(m->estimates.begin() + from.word,
                         m->estimates.begin() + from.word + to.words);
    if (const Table* table = m->table(slot.kind, slot.site)) {
      one.tables[{slot.kind, slot.site}] = *table;
    }
    Profile part;
    part.methods.emplace(one.key, std::move(one));
    merge(sum, std::move(part));
  }
  return sum.methods.empty() ? MethodProfile{} : std::move(sum.methods.begin()->second);
}

bool is_code(uint64_t hash, std::string_view asked) {
  return hash != 0 && profile::hex(hash) == asked;
}

bool is_asked(const Question& q, const Profile& p, const InlinedKey& key, const InlinedBody& body) {
  if (key.path.size() != q.path.size() || !is_code(body.code[0], q.scope)) return false;
  for (size_t i = 0; i < q.path.size(); ++i) {
    const bool same =
        key.path[i].site == q.path[i].site && is_code(body.code[i + 1], q.path[i].code);
    if (!same) return false;
  }
  const MethodProfile* root = q.method.empty() ? nullptr : p.find(key.root);
  return q.method.empty() || (root != nullptr && root->name == q.method);
}

// Returns the answer from all bodies that match the question.
std::optional<ProfileAnswer> answer_of_bodies(const Profile& p, const Question& q) {
  InlinedBody sum;
  uint64_t bodies = 0;
  for (const auto& [key, body] : p.inlined) {
    if (!body.check(key).ok() || !is_asked(q, p, key, body)) continue;
    if (!query(body, q.kind, q.site)) continue;
    ++bodies;
    if (q.kind == SlotKind::kBlock) {
      profile::add(sum.blocks[q.site], body.blocks.at(q.site));
    } else {
      const std::pair at{q.kind, q.site};
      const auto [to, fresh] = sum.sites.try_emplace(at, body.sites.at(at));
      if (!fresh) profile::add(q.kind, to->second, body.sites.at(at));
    }
  }
  std::optional<ProfileAnswer> answer = query(sum, q.kind, q.site);
  if (answer) answer->methods = bodies;
  return answer;
}

// Returns the answer from an instrument of another tool.
std::optional<ProfileAnswer> foreign_answer(const ForeignInstrument& i) {
  std::vector<uint64_t> words(i.payload.size() / sizeof(uint64_t));
  for (size_t w = 0; w < words.size(); ++w) {
    words[w] = profile::load<uint64_t>(i.payload, w * sizeof(uint64_t));
  }
  if (i.payload.size() % sizeof(uint64_t) != 0) return std::nullopt;
  if (i.type == "iree.instrument.counter" && words.size() == 1) {
    return ProfileAnswer{CounterAnswer{words[0], words[0]}, 0, 0};
  }
  if (i.type == "iree.instrument.range" && words.size() == slot_words(SlotKind::kRange)) {
    return ProfileAnswer{range_of(words), 0, 0};
  }
  return std::nullopt;
}

void add_answer(const ProfileAnswer& more, std::optional<ProfileAnswer>& sum) {
  if (!sum || sum->what.index() != more.what.index()) {
    if (!sum) sum = more;
    return;
  }
  if (auto* counter = std::get_if<CounterAnswer>(&sum->what)) {
    const auto& from = std::get<CounterAnswer>(more.what);
    add_saturating(counter->count, from.count);
    add_saturating(counter->estimate, from.estimate);
  } else if (auto* range = std::get_if<RangeAnswer>(&sum->what)) {
    const auto& from = std::get<RangeAnswer>(more.what);
    if (from.count == 0) return;
    const auto a = static_cast<double>(range->count), b = static_cast<double>(from.count);
    range->mean = (a * range->mean + b * from.mean) / (a + b);
    range->min = range->count == 0 ? from.min : std::min(range->min, from.min);
    range->max = range->count == 0 ? from.max : std::max(range->max, from.max);
    add_saturating(range->count, from.count);
  }
}

// Returns the instruments for a question, and those that name the parents of its code.
ForeignTables instruments_at(profile::UpfReader& reader, std::string_view stage,
                             std::string_view scope, std::string_view key) {
  const auto asked = [&](const profile::Instrument& i) {
    if (i.scope_hash != scope) return false;
    const bool parent = i.type == kSourceIdType;
    const bool same_stage = i.stage == stage || (parent && i.stage.empty());
    return same_stage && (i.scope_key == key || (parent && i.scope_key.empty()));
  };
  ForeignTables found;
  for (const size_t i : profile::summed_segments(reader)) {
    profile::add_foreign(reader, reader.segments()[i], found, asked);
  }
  return found;
}

std::optional<ProfileAnswer> sum_of(const ForeignTables& found) {
  std::optional<ProfileAnswer> sum;
  for (const ForeignInstrument& i : found.instruments) {
    if (const std::optional<ProfileAnswer> one = foreign_answer(i)) add_answer(*one, sum);
  }
  return sum;
}

// Returns the hash of the code that the code was made from; empty if it is unknown, or if several
// are named. A parent of the asked key or stage comes before one of all keys or stages.
std::string parent_of(const ForeignTables& found) {
  const auto rank = [](const ForeignInstrument& i) {
    return (i.scope_key.empty() ? 0 : 2) + (i.stage.empty() ? 0 : 1);
  };
  int best = -1;
  std::string parent;
  for (const ForeignInstrument& i : found.instruments) {
    if (i.type != kSourceIdType || rank(i) < best) continue;
    const std::string named(reinterpret_cast<const char*>(i.payload.data()), i.payload.size());
    parent = rank(i) > best || named == parent ? named : std::string();
    best = rank(i);
  }
  return parent;
}

}  // namespace

std::optional<ProfileAnswer> query(const Profile& profile, std::string_view stage,
                                   std::string_view scope_hash, std::string_view key) {
  const std::optional<Question> q = parse(scope_hash, key);
  if (!q || stage != kQueryStage) return std::nullopt;
  if (!q->path.empty()) return answer_of_bodies(profile, *q);
  std::vector<const MethodProfile*> found;
  for (const auto& [at, m] : profile.methods) {
    const bool asked =
        profile::hex(m.schema.cfg_hash) == q->scope && (q->method.empty() || q->method == m.name);
    const Slot* slot = asked ? m.schema.find(q->kind, q->site) : nullptr;
    if (slot != nullptr && m.check().ok() && !is_silent(m, *slot)) found.push_back(&m);
  }
  if (found.empty()) return std::nullopt;
  const Slot slot = *found.front()->schema.find(q->kind, q->site);
  const MethodProfile sum = united(found, slot);
  ProfileAnswer answer = answer_of(sum, sum.schema.slots.front());
  answer.methods = found.size();
  return answer;
}

std::optional<ProfileAnswer> query(const MethodProfile& method, SlotKind kind, SiteId site) {
  const Slot* slot = method.schema.find(kind, site);
  if (slot == nullptr || is_silent(method, *slot)) return std::nullopt;
  return answer_of(method, *slot);
}

std::optional<ProfileAnswer> query(const InlinedBody& body, SlotKind kind, SiteId site) {
  if (kind == SlotKind::kBlock) {
    const auto at = body.blocks.find(site);
    if (at == body.blocks.end() || at->second.count == 0) return std::nullopt;
    std::optional<ProfileAnswer> counter(std::in_place);
    counter->what = CounterAnswer{at->second.count, at->second.estimate};
    counter->samples = at->second.samples;
    return counter;
  }
  const auto at = body.sites.find({kind, site});
  if (at == body.sites.end()) return std::nullopt;
  std::optional<ProfileAnswer> answer =
      query(profile::as_method(kind, site, at->second), kind, site);
  if (answer) answer->samples = at->second.samples;
  return answer;
}

std::optional<ProfileAnswer> query(std::span<const std::byte> file, std::string_view stage,
                                   std::string_view scope_hash, std::string_view key) {
  if (stage == kQueryStage) {
    const Result<ProfileFile> read = profile_from_file(file);
    return read.ok() ? query(read->profile, stage, scope_hash, key) : std::nullopt;
  }
  profile::UpfReader reader(file);
  std::set<std::string, std::less<>> seen;  // scopes: parents may form a circle
  std::string scope(scope_hash);
  for (uint32_t changes = 0; changes <= kMostChanges && seen.insert(scope).second; ++changes) {
    const ForeignTables found = instruments_at(reader, stage, scope, key);
    std::optional<ProfileAnswer> answer = sum_of(found);
    if (answer) {
      answer->changes = changes;
      return answer;
    }
    scope = parent_of(found);
    if (scope.empty()) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace uptier
