// Measures the cost of a trace point, asleep and with tools that do nothing, and the cost of making
// and finding constructs. Bad news: asleep more than a load and a branch; awake more than 10 ns a
// notification.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

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

}  // namespace
}  // namespace uptier::tracing
