// Measures the cost of a trace point, asleep and with tools that do nothing, and the cost of making
// and finding constructs. Bad news: asleep more than a load and a branch; awake more than 10 ns a
// notification.
//
// trace_budget measures how many events a second a program may tell a tool whose handler takes so
// long, if all of it may take 1 % of the program's processor time. Bad news: fewer than 80,000 with
// 100 ns.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tracing/dispatcher/events.h"
#include "tracing/dispatcher/streams.h"

namespace uptier::tracing {
namespace {

void do_nothing(void*, const uptier_trace_record*) {}

// One dispatcher for all threads of a benchmark, with so many tools that do nothing.
struct Listened {
  Streams streams;
  Stream* stream = streams.stream("bench", 1, 0);

  explicit Listened(int64_t tools) {
    for (int64_t i = 0; i < tools; ++i) {
      streams.subscribe(*stream, UPTIER_TRACE_TASK, do_nothing, this + i);
      streams.subscribe(*stream, UPTIER_TRACE_SIGNAL, do_nothing, this + i);
    }
  }
};

Listened& listened(int64_t tools) {
  static const std::unique_ptr<Listened> all[] = {
      std::make_unique<Listened>(0), std::make_unique<Listened>(1), std::make_unique<Listened>(4)};
  return *all[tools == 0 ? 0 : tools == 1 ? 1 : 2];
}

void trace_asleep(benchmark::State& state) {
  Listened& l = listened(0);
  for (auto _ : state) {
    if (UPTIER_TRACE_ON(l.stream, UPTIER_TRACE_BEGIN(UPTIER_TRACE_SIGNAL))) std::abort();
    benchmark::ClobberMemory();
  }
}
BENCHMARK(trace_asleep);

void trace_notify(benchmark::State& state) {
  Listened& l = listened(state.range(0));
  for (auto _ : state) {
    l.streams.notify(*l.stream, UPTIER_TRACE_BEGIN(UPTIER_TRACE_SIGNAL), nullptr, nullptr, nullptr);
  }
}
BENCHMARK(trace_notify)->ArgName("tools")->Arg(1)->Arg(4)->Threads(1)->Threads(2);

void trace_pair(benchmark::State& state) {
  Listened& l = listened(state.range(0));
  for (auto _ : state) {
    const uint64_t i = l.streams.begin(*l.stream, UPTIER_TRACE_TASK, nullptr, nullptr, nullptr);
    l.streams.end(*l.stream, UPTIER_TRACE_TASK, nullptr, nullptr, i, nullptr);
  }
}
BENCHMARK(trace_pair)->ArgName("tools")->Arg(1)->Threads(1)->Threads(2);

void trace_create(benchmark::State& state) {
  Strings strings;
  auto events = std::make_unique<Events>(strings);
  uptier_trace_payload p = {};
  p.size = sizeof p;
  p.name = "construct";
  p.file = "bench.c";
  for (auto _ : state) {
    ++p.line;
    benchmark::DoNotOptimize(events->make(p));
  }
}
BENCHMARK(trace_create)->Iterations(1000000);

void trace_find(benchmark::State& state) {
  Strings strings;
  auto events = std::make_unique<Events>(strings);
  uptier_trace_payload p = {};
  p.size = sizeof p;
  p.file = "bench.c";
  for (p.line = 1; p.line <= 10000; ++p.line) events->make(p);
  uint64_t id = 0;
  for (auto _ : state) {
    id = id * 7 % 10000 + 1;
    benchmark::DoNotOptimize(events->find(id));
  }
}
BENCHMARK(trace_find);

// ---- The budget

// Work that takes time: each step waits for the one before, and the first one for the last one of
// the work before, so that a handler does not run at the same time as the program around it.
uint64_t last_step = 1;
[[gnu::noinline]] void work(uint64_t steps) {
  uint64_t x = last_step;
  for (uint64_t i = 0; i < steps; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    benchmark::DoNotOptimize(x);
  }
  last_step = x;
}

// Processor time of all threads.
double cpu_ns() {
  timespec t;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

double ns_of_a_step() {
  constexpr uint64_t kSteps = 1 << 20;
  double least = 1e9;
  for (int i = 0; i < 20; ++i) {
    const double begin = cpu_ns();
    work(kSteps);
    least = std::min(least, (cpu_ns() - begin) / kSteps);
  }
  return least;
}

uint64_t steps_of(double ns) {
  static const double step = ns_of_a_step();
  return std::max<uint64_t>(1, static_cast<uint64_t>(ns / step + 0.5));
}

void handle(void* user, const uptier_trace_record*) { work(*static_cast<uint64_t*>(user)); }

// A program with a trace point in its loop. Returns its processor time.
double run_program(Streams& streams, Stream* s, uint64_t events, uint64_t steps_between) {
  const double begin = cpu_ns();
  for (uint64_t i = 0; i < events; ++i) {
    work(steps_between);
    if (UPTIER_TRACE_ON(s, UPTIER_TRACE_BEGIN(UPTIER_TRACE_SIGNAL))) {
      streams.notify(*s, UPTIER_TRACE_BEGIN(UPTIER_TRACE_SIGNAL), nullptr, nullptr, nullptr);
    }
  }
  return cpu_ns() - begin;
}

// Rounds of the program without and with the tool take turns, a millisecond each. The first ones, at
// an overhead of about 20 %, tell the cost of an event. The others have so few events that they cost
// 1 %, and measure that. Counters: overhead (median of the rounds), and events per second of
// processor time, as measured and at exactly 1 %.
void trace_budget(benchmark::State& state) {
  constexpr double kRoundNs = 1e6, kWanted = 0.01;
  const auto handler_ns = static_cast<double>(state.range(0));
  uint64_t handler_steps = steps_of(handler_ns);
  const auto owned = std::make_unique<Streams>();
  Streams& streams = *owned;
  Stream *alone = streams.stream("alone", 1, 0), *heard = streams.stream("heard", 1, 0);
  streams.subscribe(*heard, UPTIER_TRACE_SIGNAL, handle, &handler_steps);

  double period = 5 * (handler_ns + 10), cost = 0;
  for (int i = 0; i < 100; ++i) {
    const auto events = static_cast<uint64_t>(kRoundNs / period);
    const double off = run_program(streams, alone, events, steps_of(period));
    const double on = run_program(streams, heard, events, steps_of(period));
    cost += (on - off) / static_cast<double>(events) / 100;
  }
  period = cost / kWanted;
  const auto events = std::max<uint64_t>(1, static_cast<uint64_t>(kRoundNs / period));
  const uint64_t between = steps_of(period);
  std::vector<double> overheads;
  double on_ns = 0;
  for (auto _ : state) {
    const double off = run_program(streams, alone, events, between);
    const double on = run_program(streams, heard, events, between);
    overheads.push_back(on / off - 1);
    on_ns += on;
  }
  std::ranges::sort(overheads);
  const double overhead = overheads[overheads.size() / 2];
  const double rate = static_cast<double>(events * overheads.size()) / (on_ns / 1e9);
  state.counters["event_ns"] = cost;
  state.counters["overhead_%"] = 100 * overhead;
  state.counters["events/s"] = rate;
  state.counters["events/s_at_1%"] = rate * kWanted / overhead;
}
BENCHMARK(trace_budget)
    ->ArgName("handler_ns")
    ->Arg(10)
    ->Arg(100)
    ->Arg(500)
    ->Arg(2000)
    ->Iterations(500);

}  // namespace
}  // namespace uptier::tracing
