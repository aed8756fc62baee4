// Four threads that do everything at once. Prints what was told, and exits with 1 if a pair is not whole
// or an event is missing. The environment turns tracing on (uptier_trace_init).
//
//   storm tools EVENTS LIBRARY   two threads notify; one subscribes and unsubscribes; one loads and
//                                unloads a tool
//   storm runtime EVENTS         four threads call into a runtime whose host traces its functions, which
//                                trap, throw, and end the program, while code is left and compilations
//                                fail and are dropped
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tools/runtime_stream.h"
#include "uptier/runtime.h"
#include "uptier/trace_scope.h"

using namespace uptier;

namespace {

std::atomic<uint64_t> faults{0};

void fault(const char* what) {
  if (faults.fetch_add(1) < 10) std::fprintf(stderr, "storm: %s\n", what);
}

// Checks the pairs of the stream "storm": each end is on the thread of its begin, inner ones first.
struct Nested {
  std::atomic<uint64_t> begun{0}, ended{0}, marks{0};

  static std::vector<uint64_t>& open() {
    static thread_local std::vector<uint64_t> instances;
    return instances;
  }
  static void tell(void* user, const uptier_trace_record* r) {
    auto& n = *static_cast<Nested*>(user);
    if (r->instance == 0) {
      n.marks.fetch_add(1, std::memory_order_relaxed);
    } else if ((r->type & 1) == 0) {
      n.begun.fetch_add(1, std::memory_order_relaxed);
      open().push_back(r->instance);
    } else {
      n.ended.fetch_add(1, std::memory_order_relaxed);
      if (open().empty() || open().back() != r->instance) return fault("an end without its begin");
      open().pop_back();
    }
  }
};

// Checks the tasks of a runtime, which are told on any thread.
struct Tasks {
  std::mutex mutex;
  std::set<uint64_t> open;
  uint64_t told = 0;

  static void tell(void* user, const uptier_trace_record* r) {
    auto& t = *static_cast<Tasks*>(user);
    const std::lock_guard lock(t.mutex);
    if ((r->type & 1) == 0) {
      ++t.told;
      if (!t.open.insert(r->instance).second) fault("an instance twice");
    } else if (t.open.erase(r->instance) != 1) {
      fault("a task that ends twice");
    }
  }
};

uptier_trace_stream* stream;

// ---- Tools that come and go ---------------------------------------------------------------------

void notify(uint64_t events) {
  static TracePoint outer("outer"), inner("inner");
  for (uint64_t i = 0; i < events / 2; ++i) {
    TraceScope a(stream, UPTIER_TRACE_FUNCTION, outer);
    UPTIER_TRACE_NOTIFY(stream, UPTIER_TRACE_SIGNAL, nullptr, nullptr, nullptr);
    TraceScope b(stream, UPTIER_TRACE_FUNCTION, inner);
    if (i % 4096 == 0) uptier_trace->stream(("extra " + std::to_string(i / 4096)).c_str(), 1, 0);
  }
  if (!Nested::open().empty()) fault("a pair is open at the end of its thread");
}

// A tool that must not be called after it was unsubscribed.
struct Visitor {
  std::atomic<uint64_t> calls{0};
  std::atomic<bool> gone{false};
  static void tell(void* user, const uptier_trace_record*) {
    auto& v = *static_cast<Visitor*>(user);
    if (v.gone.load()) fault("called after it was unsubscribed");
    v.calls.fetch_add(1);
  }
};

uint64_t visit(const std::atomic<bool>& stop) {
  uint64_t rounds = 0;
  for (; !stop.load(); ++rounds) {
    auto v = std::make_unique<Visitor>();
    if (uptier_trace->subscribe(stream, UPTIER_TRACE_FUNCTION, Visitor::tell, v.get()) == 0) {
      fault("not subscribed");
    }
    while (v->calls.load() < 20 && !stop.load()) std::this_thread::yield();
    if (uptier_trace->unsubscribe(stream, UPTIER_TRACE_FUNCTION, Visitor::tell, v.get()) == 0) {
      fault("not unsubscribed");
    }
    v->gone.store(true);
  }
  return rounds;
}

uint64_t load(const char* library, const std::atomic<bool>& stop) {
  uint64_t rounds = 0;
  for (; !stop.load(); ++rounds) {
    void* tool = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (tool == nullptr) {
      fault(::dlerror());
      return rounds;
    }
    const auto init = reinterpret_cast<uptier_trace_subscriber_init_fn>(
        ::dlsym(tool, UPTIER_TRACE_SUBSCRIBER_INIT));
    const auto finish = reinterpret_cast<uptier_trace_subscriber_finish_fn>(
        ::dlsym(tool, UPTIER_TRACE_SUBSCRIBER_FINISH));
    if (init(uptier_trace, "") == 0) fault("a tool did not start");
    std::this_thread::yield();
    finish();
    ::dlclose(tool);
  }
  return rounds;
}

int run_tools(uint64_t events, const char* library) {
  std::atomic<bool> stop{false};
  uint64_t visits = 0, loads = 0;
  std::thread visitor([&] { visits = visit(stop); }), loader([&] { loads = load(library, stop); });
  std::thread one([&] { notify(events); }), two([&] { notify(events); });
  one.join();
  two.join();
  stop.store(true);
  visitor.join();
  loader.join();
  std::printf("%llu visits, %llu loads\n", static_cast<unsigned long long>(visits),
              static_cast<unsigned long long>(loads));
  if (visits < 10 || loads < 10) fault("too few tools came and went");
  return 0;
}

// ---- A runtime ----------------------------------------------------------------------------------

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
           {"stress", "guard=every:300,osr=every:31,osr_out=every:37,compile=every:5,delay=every:7"}}) {
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

int run_runtime(uint64_t events) {
  constexpr uint64_t kRounds = 8;
  for (uint64_t r = 0; r < kRounds; ++r) {
    if (!run_round(events / kRounds, r)) return 1;
  }
  std::printf("%llu traps, %llu exits, %llu exceptions\n",
              static_cast<unsigned long long>(trapped.load()),
              static_cast<unsigned long long>(ended.load()),
              static_cast<unsigned long long>(thrown.load()));
  if (trapped == 0 || ended == 0 || thrown == 0) fault("nothing went wrong");
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const bool tools = argc == 4 && std::strcmp(argv[1], "tools") == 0;
  if (!tools && !(argc == 3 && std::strcmp(argv[1], "runtime") == 0)) return 2;
  if (uptier_trace_init(nullptr) == 0) return 2;
  const uint64_t events = std::strtoull(argv[2], nullptr, 10);
  stream = uptier_trace->stream("storm", 1, 0);
  uptier_trace_stream* runtimes = uptier_trace->stream("uptier", 1, 0);
  Nested nested;
  Tasks tasks;
  uptier_trace->subscribe(stream, UPTIER_TRACE_FUNCTION, Nested::tell, &nested);
  uptier_trace->subscribe(stream, UPTIER_TRACE_SIGNAL, Nested::tell, &nested);
  uptier_trace->subscribe(runtimes, UPTIER_TRACE_TASK, Tasks::tell, &tasks);
  if ((tools ? run_tools(events, argv[3]) : run_runtime(events)) != 0) return 1;
  const uint64_t begun = nested.begun, expected = tools ? 2 * events : called.load();
  std::printf("%llu pairs, %llu marks, %llu tasks of runtimes\n",
              static_cast<unsigned long long>(begun),
              static_cast<unsigned long long>(nested.marks.load()),
              static_cast<unsigned long long>(tasks.told));
  if (begun != expected || nested.ended != expected) fault("pairs are missing");
  if (tools && nested.marks != events) fault("marks are missing");
  if (!tools && tasks.told == 0) fault("no tasks of the runtime");
  if (!tasks.open.empty()) fault("tasks are open at the end");
  if (uptier_trace_finish() != 0) fault("events were lost");
  return faults == 0 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "storm: %s\n", e.what());
  return 1;
}
