// Four threads call into a runtime whose host traces its functions, which trap, throw, and end the program,
// while code is left and compilations fail and are dropped. Exit code 1: a pair is not whole, or an event is
// missing.
//
//   storm_runtime EVENTS   each thread reports so many events. The environment turns tracing on
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "tests/tracing/storm.h"
#include "tools/runtime_stream.h"
#include "uptier/runtime.h"

namespace uptier::test::storm {
namespace {

// Checks the tasks of a runtime, which are told on any thread.
struct Tasks {
  std::mutex mutex;
  std::set<uint64_t> open;
  uint64_t told = 0, deopts = 0, failures = 0;

  void count(const uptier_trace_event* event) {
    uptier_trace_payload p = {};
    p.size = sizeof p;
    if (uptier_trace->event_payload(event, &p) == 0 || p.name == nullptr) return;
    const std::string_view name = p.name;
    deopts += name.starts_with("deopt");
    failures += name.starts_with("compile failed");
  }
  static void tell(void* user, const uptier_trace_record* r) {
    auto& t = *static_cast<Tasks*>(user);
    const std::lock_guard lock(t.mutex);
    if ((r->type & 1) == 0) {
      ++t.told;
      t.count(r->event);
      if (!t.open.insert(r->instance).second) fault("an instance twice");
    } else if (t.open.erase(r->instance) != 1) {
      fault("a task that ends twice");
    }
  }
};

constexpr int32_t kTurns = 40;

std::atomic<uint64_t> called{0}, trapped{0}, thrown{0}, ended{0};

// What a call of `work` is to do at its turn `at`, other than return.
enum What : int32_t { kNothing, kTrap, kThrow, kEnd, kWhats };

extern "C" int32_t storm_step(int32_t what, int32_t turn) {
  static TracePoint point("step");
  TraceScope scope(stream, UPTIER_TRACE_FUNCTION, point);
  called.fetch_add(1, std::memory_order_relaxed);
  if (turn != kTurns / 2 || what == kNothing) return turn;
  try {
    if (what == kTrap) Runtime::raise(TrapCode::kHost);
    if (what == kEnd) Runtime::raise(TrapCode::kExit, 3);
    if (what == kThrow) throw std::runtime_error("a host function fails");
  } catch (const std::exception&) { Runtime::raise(TrapCode::kHost); }
  return 0;
}

// work(what, _): calls the host's function kTurns times. fails(): its description throws, at first.
class StormHost : public Host {
 public:
  Status build(MethodId m, FunctionBuilder& b) override {
    static TracePoint point("build");
    TraceScope scope(stream, UPTIER_TRACE_FUNCTION, point);
    called.fetch_add(1, std::memory_order_relaxed);
    if (m != work) {
      thrown.fetch_add(1);
      throw std::runtime_error("a description fails");
    }
    const HostFunction step = host_function("storm_step", storm_step);
    Variable i = b.declare(Type::kI32), sum = b.declare(Type::kI32);
    Block loop = b.create_block(), odd = b.create_block(), next = b.create_block(),
          done = b.create_block();
    b.jump(loop);
    b.switch_to(loop);
    b.loop_header();
    b.def(i, b.binary(Opcode::kAdd, b.use(i), b.i32(1)));
    b.def(sum, b.binary(Opcode::kAdd, b.use(sum),
                        b.call_host(step, {b.param(0), b.use(i)}, kCallMayTrap)));
    b.branch(b.binary(Opcode::kAnd, b.use(i), b.i32(1)), odd, next);
    b.switch_to(odd);
    b.def(sum, b.binary(Opcode::kXor, b.use(sum), b.param(1)));
    b.jump(next);
    b.switch_to(next);
    b.branch(b.binary(Opcode::kLtU, b.use(i), b.i32(kTurns)), loop, done);
    b.switch_to(done);
    b.ret(b.use(sum));
    return {};
  }
  MethodId work;
};

void call(Runtime& runtime, MethodId work, MethodId fails, uint64_t events, uint64_t seed) {
  ThreadScope attached(runtime);
  const uint64_t rounds = events / (2 * kTurns);
  for (uint64_t i = 0; i < rounds; ++i) {
    const uint64_t random = (seed + i) * 6364136223846793005u >> 33;
    const int32_t what = random % 5 != 0 ? kNothing : 1 + static_cast<int32_t>(random / 5 % 3);
    const uint64_t args[] = {static_cast<uint32_t>(what), random & 0xff};
    const Outcome o = runtime.invoke(work, args);
    if (o.ok() != (what == kNothing)) fault("a call ended in another way than its host did");
    if (!o.ok()) (o.trap.code == TrapCode::kExit ? ended : trapped).fetch_add(1);
    if (i % 64 == 0 && runtime.invoke(fails, {}).ok()) fault("a call without code returned");
  }
  if (!Nested::open().empty()) fault("a pair is open at the end of its thread");
}

// Compilations are under way and requested when the runtime ends.
bool run_round(uint64_t events, uint64_t seed) {
  Options o;
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"policy", "always"},
           {"interval", "1"},
           {"stress",
            "guard=every:300,osr=every:31,osr_out=every:37,compile=every:5,delay=every:7"}}) {
    if (!o.set(name, value).ok()) return false;
  }
  StormHost host;
  Result<std::unique_ptr<Runtime>> made = Runtime::create(o);
  if (!made) return false;
  Runtime& runtime = **made;
  tools::RuntimeStream told(runtime);
  const Result<MethodId> work =
      runtime.add_method(host, {{1, 0}, "work", {{Type::kI32, Type::kI32}, Type::kI32}});
  const Result<MethodId> fails = runtime.add_method(host, {{1, 1}, "fails", {{}, Type::kI32}});
  if (!work || !fails) return false;
  host.work = *work;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] { call(runtime, *work, *fails, events, 4 * seed + t); });
  }
  for (std::thread& t : threads) t.join();
  return true;
}

}  // namespace
}  // namespace uptier::test::storm

int main(int argc, char** argv) try {
  using namespace uptier::test::storm;
  if (argc != 2 || uptier_trace_init(nullptr) == 0) return 2;
  const uint64_t events = std::strtoull(argv[1], nullptr, 10);
  Nested nested;
  begin(nested);
  Tasks tasks;
  uptier_trace_stream* runtimes = uptier_trace->stream("uptier", 1, 0);
  uptier_trace->subscribe(runtimes, UPTIER_TRACE_TASK, Tasks::tell, &tasks);
  constexpr uint64_t kRounds = 8;
  for (uint64_t r = 0; r < kRounds; ++r) {
    if (!run_round(events / kRounds, r)) return 1;
  }
  std::printf(
      "%llu traps, %llu exits, %llu exceptions; %llu tasks of runtimes, %llu deopts\n",
      static_cast<unsigned long long>(trapped.load()),
      static_cast<unsigned long long>(ended.load()), static_cast<unsigned long long>(thrown.load()),
      static_cast<unsigned long long>(tasks.told), static_cast<unsigned long long>(tasks.deopts));
  const bool all =
      trapped != 0 && ended != 0 && thrown != 0 && tasks.deopts != 0 && tasks.failures != 0;
  if (!all) fault("something that may cut a pair short did not happen");
  if (!tasks.open.empty()) fault("tasks are open at the end");
  return end(nested, called.load(), 0);
} catch (const std::exception& e) {
  std::fprintf(stderr, "storm: %s\n", e.what());
  return 1;
}
