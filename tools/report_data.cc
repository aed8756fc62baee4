#include "tools/report_data.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "profile/algebra/algebra.h"
#include "profile/data/loop_nest.h"
#include "profile/data/text.h"
#include "tools/merge_messages.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;
using profile::Timeline;

double rounded(long double n) { return static_cast<double>(std::round(n)); }

ordered_json info_json(const ProfileInfo& i) {
  ordered_json modules = ordered_json::array();
  for (uint64_t m : i.modules) modules.push_back(profile::hex(m));
  return {
      {"engine", i.engine},     {"host", i.host},
      {"schedule", i.schedule}, {"time", i.time},
      {"runs", i.runs},         {"weight", static_cast<double>(i.weight) / ProfileInfo::kRunWeight},
      {"interval", i.interval}, {"modules", std::move(modules)}};
}

ordered_json summary_json(const Profile& p) {
  const profile::Summary s = profile::summarize(p);
  ordered_json cuts = ordered_json::array();
  for (const auto& c : s.percentiles) cuts.push_back({c.cutoff, c.sites, c.least});
  return {{"methods", s.methods},
          {"blocks", s.sites},
          {"executed", s.seen},
          {"executions", rounded(s.total)},
          {"percentiles", std::move(cuts)}};
}

ordered_json warnings_json(const ProfileFile& f) {
  ordered_json list = ordered_json::array();
  for (const std::string& w : f.warnings) list.push_back(w);
  if (f.truncated) list.push_back("the file ends early; the part before is shown");
  for (const std::string& what : merge_messages(f.report)) list.push_back(what);
  return list;
}

// Loops of the timed ones, by method and site: parent and location.
struct LoopPlace {
  SiteId parent = 0;
  uint32_t location = 0;
};
using LoopPlaces = std::map<SiteId, LoopPlace>;

// Builds the page's data from a source, table by table.
class Builder {
 public:
  Builder(const ReportSource& source, ReportModule* module)
      : source_(source), module_(module), rows_(source.file.profile, source.timeline) {
    for (const auto& m : source.timeline.methods) {
      row_of_.push_back(rows_.find(m.key));
      loop_counts_[static_cast<size_t>(row_of_.back())] = m.loops;
    }
    for (const auto& l : source.timeline.loops) {
      places_[static_cast<size_t>(row_of_[l.method])][l.site] = {l.parent, l.location};
    }
  }

  ReportData run(size_t listings) {
    ReportData data;
    data.page["name"] = source_.name;
    data.page["info"] = info_json(source_.file.info);
    data.page["warnings"] = warnings_json(source_.file);
    data.page["summary"] = summary_json(source_.file.profile);
    data.page["loops"] = loops();
    data.page["methods"] = methods();
    data.page["sampled_ns"] = source_.file.calls.time.sampled_ns;
    data.page["has_module"] = module_ != nullptr;
    data.page["calls"] = calls();
    data.page["timeline"] = timeline();
    data.page["overlap"] = overlap();
    data.page["lines"] = source_.lines;
    add_parts(listings, data);
    return data;
  }

 private:
  // Returns the places of a method's loops, from the run or else from the module.
  LoopPlaces places(size_t row) const;
  ordered_json loops();
  ordered_json loop_count(size_t row) const;
  ordered_json methods() const;
  SiteId timed_loop(size_t row, const std::vector<SiteId>& parents, SiteId loop) const;
  ordered_json calls() const;
  ordered_json timeline() const;
  ordered_json overlap() const;
  std::vector<bool> hottest(size_t count) const;
  void add_parts(size_t listings, ReportData& data) const;
  bool is_optimized(size_t row) const;

  const ReportSource& source_;
  ReportModule* module_;
  ReportRows rows_;
  std::map<size_t, uint32_t> loop_counts_;     // by row, as the timeline has them
  std::map<size_t, LoopPlaces> places_;        // by row, as the timeline has them
  std::vector<int64_t> row_of_;                // of the timeline's methods
  std::set<std::pair<size_t, SiteId>> timed_;  // loops with cycles
  std::map<size_t, double> cycles_;            // by method, if its loops were timed
};

LoopPlaces Builder::places(size_t row) const {
  const auto known = places_.find(row);
  if (known != places_.end()) return known->second;
  LoopPlaces places;
  if (module_ == nullptr) return places;
  const std::vector<SiteId> parents = module_->loop_parents(*rows_.profile(row));
  for (uint32_t i = 0; i < parents.size(); ++i) places[i + 1] = {parents[i], 0};
  return places;
}

// As `run --loops` does: no loop has more cycles than the one around it.
void settle_cycles(const MethodProfile& m, const std::function<SiteId(SiteId)>& parent_of,
                   std::map<SiteId, Estimate>& timed) {
  std::map<SiteId, uint32_t> place;
  std::vector<profile::NestedLoop> nest;
  for (const auto& [site, cycles] : timed) {
    place[site] = static_cast<uint32_t>(nest.size());
    const uint32_t word = m.schema.find(SlotKind::kLoop, site)->word;
    nest.push_back({cycles, static_cast<double>(m.estimates[word + slot_word::kLoopEntries])});
  }
  for (const auto& [site, at] : place) {
    const auto parent = place.find(parent_of(site));
    if (parent != place.end()) nest[at].within = parent->second;
  }
  profile::settle_nest(nest);
  for (auto& [site, cycles] : timed) cycles = nest[place[site]].cycles;
}

ordered_json Builder::loops() {
  ordered_json list = ordered_json::array();
  for (size_t row = 0; row < rows_.size(); ++row) {
    const MethodProfile* m = rows_.profile(row);
    std::map<SiteId, Estimate> timed;
    for (const Slot& slot : m != nullptr ? m->schema.slots : std::vector<Slot>{}) {
      if (slot.kind != SlotKind::kLoop) continue;
      const auto cycles = m->loop_cycles(slot.site);
      const bool any = m->counts[slot.word + slot_word::kLoopTimed] != 0;
      if (cycles && any && cycles->total > 0) timed.emplace(slot.site, *cycles);
    }
    if (timed.empty()) continue;
    LoopPlaces where = places(row);
    const auto parent_of = [&](SiteId site) {
      SiteId parent = where[site].parent;
      for (size_t up = 0; parent != 0 && !timed.contains(parent); ++up) {
        parent = up < where.size() ? where[parent].parent : 0;
      }
      return parent;
    };
    settle_cycles(*m, parent_of, timed);
    for (const auto& [site, cycles] : timed) {
      const SiteId parent = parent_of(site);
      if (parent == 0) cycles_[row] += cycles.total;
      timed_.emplace(row, site);
      const std::span<const uint64_t> estimates =
          std::span(m->estimates).subspan(m->schema.find(SlotKind::kLoop, site)->word);
      list.push_back({row, site, parent, where[site].location, rounded(cycles.total),
                      rounded(cycles.low), rounded(cycles.high), estimates[slot_word::kLoopEntries],
                      estimates[slot_word::kLoopIterations],
                      m->words(SlotKind::kLoop, site)[slot_word::kLoopTimed]});
    }
  }
  return list;
}

// Returns the number of a method's loops, null if unknown: the site after them is its body's.
ordered_json Builder::loop_count(size_t row) const {
  const auto known = loop_counts_.find(row);
  if (known != loop_counts_.end()) return known->second;
  const MethodProfile* m = rows_.profile(row);
  const jit::Function* f = module_ == nullptr || m == nullptr ? nullptr : module_->find(*m);
  return f == nullptr ? ordered_json(nullptr) : ordered_json(f->loop_count);
}

ordered_json Builder::methods() const {
  const std::map<PathFrame, FrameTime> times = source_.file.calls.time.by_frame();
  ordered_json j;
  for (const char* column :
       {"name", "module", "index", "calls", "sampled", "bursts", "iterations", "interval",
        "executions", "cycles", "loops", "cfg", "behind", "ns", "total_ns"}) {
    j[column] = ordered_json::array();
  }
  for (size_t row = 0; row < rows_.size(); ++row) {
    static const MethodProfile kNothing;
    const MethodProfile* seen = rows_.profile(row);
    const MethodProfile& m = seen != nullptr ? *seen : kNothing;
    const auto cycles = cycles_.find(row);
    j["name"].push_back(rows_.name(row));
    j["module"].push_back(profile::hex(rows_.key(row).module_key));
    j["index"].push_back(rows_.key(row).function_index);
    j["calls"].push_back(m.calls);
    j["sampled"].push_back(m.sampled_calls);
    j["bursts"].push_back(m.bursts);
    j["iterations"].push_back(m.iterations);
    j["interval"].push_back(m.interval);
    j["executions"].push_back(rounded(profile::executions(m)));
    j["cycles"].push_back(cycles == cycles_.end() ? ordered_json(nullptr)
                                                  : ordered_json(rounded(cycles->second)));
    j["loops"].push_back(loop_count(row));
    j["cfg"].push_back(seen == nullptr ? "" : profile::hex(m.schema.cfg_hash));
    j["behind"].push_back(m.behind);
    const auto time = times.find({TimePlace::kMethod, rows_.key(row)});
    j["ns"].push_back(time == times.end() ? 0 : time->second.own_ns);
    j["total_ns"].push_back(time == times.end() ? 0 : time->second.all_ns);
  }
  return j;
}

// Returns the loop itself or the next one outwards that has cycles, 0 where none has. The body of
// the method is a loop if it was timed.
SiteId Builder::timed_loop(size_t row, const std::vector<SiteId>& parents, SiteId loop) const {
  const auto body = static_cast<SiteId>(parents.size());
  if (loop == 0) return timed_.contains({row, body}) ? body : 0;
  while (loop != 0 && !timed_.contains({row, loop})) loop = parents[loop - 1];
  return loop;
}

// Without a module, what indirect calls were seen to reach; in which loop they lie is not known.
ordered_json Builder::calls() const {
  std::map<std::tuple<size_t, SiteId, size_t>, double> sums;
  const auto add = [&](size_t caller, SiteId loop, const MethodKey& key, double count) {
    const int64_t callee = rows_.find(key);
    if (callee >= 0) sums[{caller, loop, static_cast<size_t>(callee)}] += count;
  };
  for (size_t row = 0; row < rows_.size(); ++row) {
    const MethodProfile* m = rows_.profile(row);
    if (m == nullptr) continue;
    if (module_ != nullptr) {
      const std::vector<SiteId> parents = module_->loop_parents(*m);
      for (const auto& c : module_->calls(*m)) {
        add(row, timed_loop(row, parents, c.loop), c.callee, c.count);
      }
      continue;
    }
    for (const auto& [site, table] : m->tables) {
      if (site.first != SlotKind::kCallTarget) continue;
      for (const auto& [key, entry] : table) {
        add(row, 0, {key.module_key, static_cast<uint32_t>(key.value)},
            static_cast<double>(entry.estimate));
      }
    }
  }
  ordered_json list = ordered_json::array();
  for (const auto& [place, count] : sums) {
    const auto& [caller, loop, callee] = place;
    list.push_back({caller, loop, callee, rounded(count)});
  }
  return list;
}

ordered_json Builder::timeline() const {
  const Timeline& t = source_.timeline;
  if (t.empty()) return nullptr;
  ordered_json figures = ordered_json::object();
  for (const auto& f : t.figures) figures[f.name] = f.value;
  ordered_json versions = ordered_json::array(), decisions = ordered_json::array();
  for (const auto& v : t.versions) {
    versions.push_back({row_of_[v.method], static_cast<unsigned>(v.tier),
                        static_cast<unsigned>(v.copy), v.loop, v.from_ns, v.to_ns, v.code_bytes,
                        v.compile_ns, v.inlined});
  }
  std::vector<std::string> verbs;
  for (const auto& d : t.decisions) {
    auto at = std::ranges::find(verbs, d.verb);
    const auto verb = at - verbs.begin();
    if (at == verbs.end()) verbs.push_back(d.verb);
    decisions.push_back(
        {row_of_[d.method], d.at_ns, verb, d.calls, d.samples, d.iterations, d.reason});
  }
  return {{"length", t.length_ns},           {"left_out", t.left_out},
          {"figures", std::move(figures)},   {"verbs", verbs},
          {"versions", std::move(versions)}, {"decisions", std::move(decisions)}};
}

ordered_json Builder::overlap() const {
  if (source_.against_name.empty()) return nullptr;
  const OverlapReport r = compare(source_.file.profile, source_.against);
  ordered_json kinds = ordered_json::array(), methods = ordered_json::array();
  for (const auto& k : r.kinds) kinds.push_back({slot_kind_name(k.kind), k.overlap.value});
  for (const auto& m : r.methods) {
    if (m.share_a == 0 && m.share_b == 0) continue;
    methods.push_back({rows_.find(m.key), m.name, m.value, m.share_a, m.share_b, m.mismatched});
  }
  const Overlap& o = r.program;
  return {{"name", source_.against_name},
          {"kind", slot_kind_name(r.kind)},
          {"value", o.value},
          {"only", {o.only_a, o.only_b}},
          {"mismatched", {o.mismatched_a, o.mismatched_b}},
          {"kinds", std::move(kinds)},
          {"methods", std::move(methods)}};
}

std::vector<bool> Builder::hottest(size_t count) const {
  std::vector<std::pair<long double, size_t>> order;
  for (size_t row = 0; row < rows_.size(); ++row) {
    const MethodProfile* m = rows_.profile(row);
    const long double mass = m == nullptr ? 0 : profile::executions(*m);
    if (mass > 0) order.emplace_back(-mass, row);
  }
  std::ranges::sort(order);
  std::vector<bool> hot(rows_.size());
  for (size_t i = 0; i < std::min(count, order.size()); ++i) hot[order[i].second] = true;
  return hot;
}

// Returns whether a method ran optimized code; without a timeline, true.
bool Builder::is_optimized(size_t row) const {
  if (source_.timeline.versions.empty()) return true;
  return std::ranges::any_of(source_.timeline.versions, [&](const auto& v) {
    return v.tier == Tier::kOptimized && row_of_[v.method] == static_cast<int64_t>(row);
  });
}

void Builder::add_parts(size_t listings, ReportData& data) const {
  const std::vector<bool> hot = hottest(module_ == nullptr ? 0 : listings);
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (row % kPartRows == 0) data.parts.push_back(ordered_json::array());
    ordered_json j = ordered_json::object();
    const MethodProfile* m = rows_.profile(row);
    if (m != nullptr) j["sites"] = sites_json(*m, rows_);
    if (m != nullptr && module_ != nullptr) j["edges"] = module_->edges_json(*m);
    if (hot[row]) j.update(module_->code_json(*m, is_optimized(row)));
    data.parts.back().push_back(std::move(j));
  }
}

}  // namespace

ReportRows::ReportRows(const Profile& profile, const Timeline& timeline) {
  const auto add = [this](const MethodKey& key, const std::string& name, const MethodProfile* m) {
    if (!rows_.emplace(key, keys_.size()).second) return;
    keys_.push_back(key);
    names_.push_back(name.empty() ? "function " + std::to_string(key.function_index) : name);
    profiles_.push_back(m);
  };
  for (const auto& [key, m] : profile.methods) {
    if (m.check().ok()) add(key, m.name, &m);
  }
  for (const auto& m : timeline.methods) add(m.key, m.name, nullptr);
}

int64_t ReportRows::find(const MethodKey& key) const {
  const auto at = rows_.find(key);
  return at == rows_.end() ? -1 : static_cast<int64_t>(at->second);
}

ReportData report_data(const ReportSource& source, ReportModule* module, size_t listings) {
  return Builder(source, module).run(listings);
}

}  // namespace uptier::tools
