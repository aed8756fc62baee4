// Losses by refused memory are reported. Each allocation of a thread's last flush, and of a
// runtime's end, is refused in turn. Then either the report, the trace and the profile are
// complete, or a counter or the log reports a loss.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "uptier/runtime.h"
#include "uptier/trace.h"
#include "uptier/uptier.h"

extern "C" long fail_allocations_from(long n, char mode);

using namespace uptier;

namespace {

constexpr uint64_t kCalls = 500;

struct Failing {
  long n;
  char mode;
  void check(bool right, const char* what) const {
    if (right) return;
    fail_allocations_from(0, 'o');
    std::fprintf(stderr, "%s, with allocation %ld refused (%c)\n", what, n, mode);
    std::_Exit(1);
  }
};

// next(n) = n + 1.
class Next : public Host {
 public:
  Status build(MethodId, FunctionBuilder& b) override {
    b.ret(b.binary(Opcode::kAdd, b.param(0), b.i64(1)));
    return {};
  }
};

// A sink that allocates nothing.
class Counting : public TraceSink {
 public:
  Status on_event(const TraceEvent& e) override {
    if (const auto* flush = std::get_if<FlushEvent>(&e)) calls = flush->calls;
    if (std::holds_alternative<FirstCallEvent>(e)) ++first_calls;
    return {};
  }
  Status finish(uint64_t trace_events_lost) override {
    lost = trace_events_lost;
    finished = true;
    return {};
  }
  uint64_t calls = 0, first_calls = 0, lost = 0;
  bool finished = false;
};

// The results of a life, and the numbers of allocations in its detach and its end.
struct Life {
  long detach = 0, end = 0;
  uint64_t calls = 0;  // in the report
  LossReport losses;
  Counting trace;
  bool said = false, saved = false;
};

void note_line(void* said, LogLevel, std::string_view) { *static_cast<bool*>(said) = true; }

// `profile`: the file, or "" for none. Allocations fail from f.n on: in the detach or, with `end`,
// in the runtime's end.
Life live(const std::string& profile, const Failing& f, bool end) {
  Life life;
  Options o;
  for (auto [name, value] : {std::pair{"workers", "0"}, {"tier", "instrumented"}}) {
    f.check(o.set(name, value).ok(), name);
  }
  if (!profile.empty()) unlink(profile.c_str());
  o.profile = profile;
  o.log = note_line;
  o.log_user = &life.said;
  Next host;
  Result<std::unique_ptr<Runtime>> r = Runtime::create(o, &life.trace);
  f.check(r.ok() && (*r)->attach().ok(), "create");
  const MethodId next = *(*r)->add_method(host, {{1, 1}, "next", {{Type::kI64}, Type::kI64}});
  for (uint64_t i = 0; i < kCalls; ++i) {
    uint64_t args[] = {i};
    f.check((*r)->invoke(next, args).bits == i + 1, "a result");
  }
  fail_allocations_from(end ? 0 : f.n, f.mode);
  (*r)->detach();
  life.detach = fail_allocations_from(0, 'o');
  const Report report = (*r)->report();
  for (const MethodReport& m : report.methods) life.calls = m.calls;
  life.losses = report.losses;
  fail_allocations_from(end ? f.n : 0, f.mode);
  r->reset();
  life.end = fail_allocations_from(0, 'o');
  struct stat there;
  life.saved = profile.empty() || (stat(profile.c_str(), &there) == 0 && there.st_size > 0);
  return life;
}

void try_all(const std::string& profile, bool end) {
  const Life whole = live(profile, {0, 'o'}, end);
  const long count = end ? whole.end : whole.detach;
  Failing{0, 'o'}.check(whole.calls == kCalls && whole.trace.calls == kCalls && whole.saved &&
                            whole.trace.first_calls == 1 && !whole.said && count > 0,
                        "an undisturbed life");
  int lost = 0;
  for (char mode : {'o', 'a', 's'}) {
    for (long n = 1; n <= count; ++n) {
      const Failing f{n, mode};
      const Life l = live(profile, f, end);
      const uint64_t told = l.losses.flushes_lost + l.losses.trace_events_lost + l.trace.lost;
      f.check(l.trace.finished, "a trace without an end");
      f.check(l.calls == kCalls || l.losses.flushes_lost > 0, "the report lacks calls");
      const bool traced = l.trace.calls == kCalls && l.trace.first_calls == 1;
      f.check(traced || told > 0 || l.said, "the trace lacks events");
      f.check(l.saved || l.said, "the profile is lost");
      lost += l.calls != kCalls || !traced || !l.saved;
    }
  }
  std::printf("%s: %ld allocations, in %d of %ld lives something was lost, and told\n",
              end ? "end" : "detach", count, lost, 3 * count);
  Failing{0, 'o'}.check(lost > 0, "nothing was ever lost: this tests nothing");
}

}  // namespace

int main() {
  const std::string profile = "/tmp/uptier-losses-" + std::to_string(getpid()) + ".upf";
  try_all(profile, false);
  try_all("", true);  // no profile, so that losses are of the trace
  try_all(profile, true);
  unlink(profile.c_str());
  return 0;
}
