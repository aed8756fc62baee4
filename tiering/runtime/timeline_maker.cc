#include "tiering/runtime/timeline_maker.h"

#include <algorithm>
#include <map>
#include <utility>

#include "jit/code/code_space.h"
#include "tiering/base/clock.h"
#include "tiering/compile/machine_rates.h"
#include "tiering/control/rate_control.h"
#include "tiering/observe/observer.h"
#include "tiering/report/losses.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/report_maker.h"
#include "tiering/saved/saved_profile.h"

namespace uptier::tiering {
namespace {

using profile::Timeline;

uint64_t since(uint64_t start, uint64_t at) { return at > start ? at - start : 0; }

Timeline::Version row_of(const VersionLog::Row& r, uint32_t method, uint64_t born) {
  const Event& v = r.installed;
  Timeline::Version row;
  row.method = method;
  row.tier = v.tier;
  row.copy = v.copy;
  row.loop = v.loop.valid() ? v.loop.index() + uint64_t{1} : 0;
  row.from_ns = since(born, v.at_ns);
  row.to_ns = r.retired_ns == 0 ? 0 : std::max(since(born, r.retired_ns), row.from_ns + 1);
  row.code_bytes = v.bytes;
  row.compile_ns = v.duration_ns;
  row.inlined = v.count;
  return row;
}

// Returns the site of a loop in the schema: LoopId + 1; the whole body comes last.
SiteId loop_site_of(const Method& m, LoopId loop) {
  return (loop.valid() ? loop.index() : m.shape->loop_count) + 1;
}

void add_loop_rows(const Method& m, uint32_t method, Timeline& t) {
  for (const TimedLoop& l : m.shape->timed_loops) {
    bool nested = l.within != UINT32_MAX;
    SiteId parent = nested ? loop_site_of(m, m.shape->timed_loops[l.within].loop) : 0;
    t.loops.push_back({method, loop_site_of(m, l.loop), parent, l.location});
  }
}

void add_losses(const LossReport& l, Timeline& t) {
  each_loss(l, [&](const char* name, uint64_t value) {
    t.figures.push_back({name, static_cast<double>(value)});
  });
}

}  // namespace

Timeline TimelineMaker::timeline_locked() const {
  Timeline t;
  t.length_ns = since(engine_.born_ns, now_ns());
  t.figures = {{"methods_registered", static_cast<double>(engine_.places.methods_seen())},
               {"compile_ns_total", static_cast<double>(engine_.machine->compile_ns_total())},
               {"compile_rate_ns", engine_.machine->compile_ns()},
               {"code_bytes_in_service", static_cast<double>(engine_.space->bytes_in_service())},
               {"code_bytes_freed",
                static_cast<double>(engine_.space->bytes_freed() - engine_.machine->bytes_freed())},
               {"overhead_budget", engine_.options.adaptive ? engine_.options.overhead_budget : 0}};
  if (std::optional<double> share = engine_.rates->spent_share()) {
    t.figures.push_back({"overhead_share", *share});
  }
  add_losses(report_maker_.losses_locked(), t);
  const SavedReport saved = engine_.saved->report();
  t.figures.push_back({"saved_runs", static_cast<double>(saved.runs)});
  t.figures.push_back({"saved_methods", static_cast<double>(saved.methods)});
  t.figures.push_back({"saved_stale", static_cast<double>(saved.stale)});
  t.figures.push_back({"saved_compiled", static_cast<double>(saved.compiled)});
  std::map<MethodId, uint32_t> rows;
  for (const auto& m : engine_.methods.all()) {
    bool unknown = m->versions.empty() && m->flushed->streams.empty() && !m->has_shape();
    if (unknown) continue;
    auto row = static_cast<uint32_t>(t.methods.size());
    rows[m->id] = row;
    t.methods.push_back({m->info.key, m->info.name, m->shape->loop_count});
    for (const VersionLog::Row& r : engine_.versions.of(m->id)) {
      t.versions.push_back(row_of(r, row, engine_.born_ns));
    }
    add_loop_rows(*m, row, t);
  }
  engine_.observer->decisions.kept().each([&](uint64_t number, const LoggedDecision& logged) {
    auto row = rows.find(logged.method);
    if (row == rows.end()) return;
    DecisionRecord d = record_of(logged, number, false);
    t.decisions.push_back({since(engine_.born_ns, logged.at_ns), row->second, d.calls, d.samples,
                           d.loop_iterations, std::move(d.action), std::move(d.reason)});
  });
  fit(t);
  return t;
}

}  // namespace uptier::tiering
