// Hosts that make and remove methods for ever: places are used again, memory stays where it was, and
// nothing takes a new method for an old one.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <semaphore>
#include <set>
#include <thread>

#include "tests/c_api_world.h"
#include "tests/runtime_host.h"
#include "uptier/builder.h"

namespace uptier::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::steady_clock;

constexpr Type kLong = Type::kI64;
const Signature kOne{{kLong}, kLong};
const Signature kDispatch{{Type::kRef, kLong}, kLong};
const Signature kNext{{kLong}, Type::kRef};

// Methods whose bodies are functions, made and removed by name.
class Workshop : public Host {
 public:
  using Body = std::function<void(FunctionBuilder&)>;

  explicit Workshop(const Options& o, TraceSink* sink = nullptr) {
    Result<std::unique_ptr<Runtime>> r = Runtime::create(o, sink);
    EXPECT_TRUE(r.ok());
    runtime = std::move(*r);
  }
  ~Workshop() override { runtime.reset(); }

  Result<MethodId> try_add(const std::string& name, const Signature& s, Body body) {
    MethodInfo info{{1, next_++}, name, s};
    Result<MethodId> m = Error{ErrorCode::kUnsupported, ""};
    std::lock_guard lock(mutex_);
    m = runtime->add_method(*this, info);
    if (m) bodies_[m->number()] = std::move(body);
    return m;
  }
  // Waits, like a host would, where a compilation under way may still mean all that were removed.
  MethodId add(const std::string& name, const Signature& s, const Body& body) {
    Result<MethodId> m = try_add(name, s, body);
    for (auto end = steady_clock::now() + minutes(1); !m && steady_clock::now() < end;) {
      std::this_thread::sleep_for(milliseconds(1));
      m = try_add(name, s, body);
    }
    if (m) return *m;
    ADD_FAILURE() << m.error().message;
    std::abort();  // compiled code would call what is not there
  }
  // A method that adds a number to its argument.
  MethodId adder(uint64_t n) {
    return add("add" + std::to_string(n), kOne, [n](FunctionBuilder& b) {
      b.ret(b.binary(Opcode::kAdd, b.param(0), b.i64(static_cast<int64_t>(n))));
    });
  }
  // A method of several blocks, so that it has counters: its argument, and `least` at the least.
  MethodId at_least(uint64_t least) {
    return add("least" + std::to_string(least), kOne, [least](FunctionBuilder& b) {
      Value bound = b.i64(static_cast<int64_t>(least));
      Block less = b.create_block(), other = b.create_block();
      b.branch(b.binary(Opcode::kLtU, b.param(0), bound), less, other);
      for (Block block : {less, other}) b.seal(block);
      b.switch_to(less);
      b.ret(bound);
      b.switch_to(other);
      b.ret(b.param(0));
    });
  }
  // A method that calls its first argument with the second one.
  MethodId dispatcher() {
    return add("dispatch", kDispatch, [](FunctionBuilder& b) {
      Value args[] = {b.param(1)};
      b.ret(b.call_indirect(b.param(0), kOne, args));
    });
  }
  void remove(MethodId m) {
    MethodId gone[] = {m};
    runtime->remove_methods(gone);
    std::lock_guard lock(mutex_);
    bodies_.erase(m.number());
  }
  Status build(MethodId m, FunctionBuilder& b) override {
    Body body;
    {
      std::lock_guard lock(mutex_);
      auto at = bodies_.find(m.number());
      if (at == bodies_.end()) return Error{ErrorCode::kNotFound, "it has been removed"};
      body = at->second;
    }
    body(b);
    return {};
  }
  Outcome call(MethodId m, std::vector<uint64_t> args) { return runtime->invoke(m, args); }
  uint64_t address(MethodId m) const {
    return reinterpret_cast<uintptr_t>(runtime->entry_address(m));
  }

  std::unique_ptr<Runtime> runtime;

 private:
  std::mutex mutex_;
  std::map<uint32_t, Body> bodies_;
  uint32_t next_ = 0;
};

// Few places, little code, and all that is decided is done at once.
Options small() {
  return options({{"max_methods", "48"},
                  {"removed_kept", "16"},
                  {"code_budget", "262144"},
                  {"slab_budget", "65536"},
                  {"decisions_kept", "100"},
                  {"workers", "0"},
                  {"policy", "always"},
                  {"interval", "1"},
                  {"measure_rates", "off"}});
}

// ---- Ids ------------------------------------------------------------------------------------------

TEST(LongLife, places_are_used_again_and_ids_are_not) {
  Workshop w(options({{"max_methods", "4"}, {"removed_kept", "0"}}));
  ThreadScope scope(*w.runtime);
  std::set<MethodId> ids;
  MethodId before = MethodId::none();
  for (uint64_t i = 0; i < 1000; ++i) {
    MethodId m = w.adder(i);
    ASSERT_TRUE(m.valid());
    ASSERT_LT(m.index(), 4u);
    ASSERT_TRUE(ids.insert(m).second) << i;
    ASSERT_EQ(w.call(m, {5}).bits, 5 + i);
    // The one before is nobody's id, whoever has its place.
    if (before.valid()) {
      ASSERT_EQ(w.call(before, {5}).trap.code, TrapCode::kBadCall);
      ASSERT_EQ(w.runtime->entry_address(before), nullptr);
      ASSERT_EQ(w.runtime->ir(before).error().code, ErrorCode::kInvalidArgument);
      ASSERT_EQ(w.runtime->error_of(before), "");
      w.remove(before);  // nothing
    }
    w.remove(m);
    before = m;
  }
  EXPECT_EQ(w.runtime->report().methods_registered, 1000u);
  EXPECT_GE(w.runtime->report().losses.methods_forgotten, 990u);
}

TEST(LongLife, all_places_in_service_are_an_error_until_one_is_removed) {
  Workshop w(options({{"max_methods", "4"}}));
  ThreadScope scope(*w.runtime);
  std::vector<MethodId> m;
  for (uint64_t i = 0; i < 4; ++i) m.push_back(w.adder(i));
  Result<MethodId> more = w.try_add("more", kOne, [](FunctionBuilder& b) { b.ret(b.param(0)); });
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(more.error().message, "more: the runtime has max_methods = 4 methods");
  w.remove(m[2]);
  MethodId again = w.adder(9);
  EXPECT_EQ(again.index(), m[2].index());
  EXPECT_EQ(again.generation(), 1u);
  EXPECT_EQ(w.call(again, {1}).bits, 10u);
}

TEST(LongLife, what_was_removed_stays_in_the_report_while_it_is_kept) {
  Workshop w(options({{"removed_kept", "64"}, {"workers", "0"}}));
  ThreadScope scope(*w.runtime);
  for (uint64_t i = 0; i < 500; ++i) {
    MethodId m = w.adder(i);
    ASSERT_EQ(w.call(m, {1}).bits, 1 + i);
    w.remove(m);
  }
  Report r = w.runtime->report();
  std::set<std::string> names;
  for (const MethodReport& m : r.methods) names.insert(m.name);
  for (uint64_t i = 500 - 64; i < 500; ++i) EXPECT_TRUE(names.contains("add" + std::to_string(i)));
  EXPECT_LE(r.methods.size(), 64u + 64u);
  EXPECT_EQ(r.methods.size() + r.losses.methods_forgotten, 500u);
}

TEST(LongLife, a_removed_address_ends_with_a_trap_until_its_place_is_used) {
  Workshop w(options({{"max_methods", "8"}}));
  ThreadScope scope(*w.runtime);
  MethodId dispatch = w.dispatcher();
  MethodId m = w.adder(1);
  uint64_t address = w.address(m);
  ASSERT_EQ(w.call(dispatch, {address, 1}).bits, 2u);
  w.remove(m);
  Outcome trap = w.call(dispatch, {address, 1});
  EXPECT_EQ(trap.trap.code, TrapCode::kNoCode);
  EXPECT_EQ(trap.trap.method, m);
}

// ---- Code that means a removed method -------------------------------------------------------------

// `outer` has the body of `inner` in it. When the place of `inner` is given away, the call that is
// not to be made any more ends with a trap: neither the old body runs nor the new one.
TEST(LongLife, inlined_bodies_go_before_a_place_is_used_again) {
  Options o = small();
  o.max_methods = 4;
  o.removed_kept = 0;
  Workshop w(o);
  ThreadScope scope(*w.runtime);
  MethodId inner = w.adder(7);
  MethodId outer = w.add("outer", kOne, [=](FunctionBuilder& b) {
    Value args[] = {b.param(0)};
    b.ret(b.call(inner, kOne, args));
  });
  for (uint64_t i = 0; i < 300; ++i) ASSERT_EQ(w.call(outer, {i}).bits, i + 7);
  bool inlined = false;
  for (const MethodReport& m : w.runtime->report().methods) {
    for (const VersionReport& v : m.versions) inlined |= v.inlined != 0;
  }
  ASSERT_TRUE(inlined);
  w.remove(inner);
  EXPECT_EQ(w.call(outer, {1}).bits, 8u);  // nobody needs the place
  bool used = false;
  for (uint64_t i = 0; i < 8 && !used; ++i) {
    MethodId m = w.adder(100);
    used = m.index() == inner.index();
    ASSERT_EQ(w.call(m, {1}).bits, 101u);
    if (!used) w.remove(m);
  }
  ASSERT_TRUE(used);
  for (uint64_t i = 0; i < 300; ++i) {
    Outcome trap = w.call(outer, {i});
    ASSERT_EQ(trap.trap.code, TrapCode::kNoCode) << i;
  }
}

// A loop that calls what it is told, and between the calls a function of the host's.
MethodId event_loop(Workshop& w, const HostFunction& next) {
  return w.add("loop", kOne, [next](FunctionBuilder& b) {
    Variable i = b.declare(kLong), sum = b.declare(kLong);
    b.def(i, b.i64(0));
    b.def(sum, b.i64(0));
    Block head = b.create_block(), body = b.create_block(), end = b.create_block();
    b.jump(head);
    b.switch_to(head);
    Variable slots[] = {i, sum};
    b.loop_header(0, slots);
    b.branch(b.binary(Opcode::kLtU, b.use(i), b.param(0)), body, end);
    b.seal(body);
    b.switch_to(body);
    Value number[] = {b.use(i)};
    Value target = b.call_host(next, number, 0);
    b.def(sum, b.binary(Opcode::kAdd, b.use(sum), b.call_indirect(target, kOne, number)));
    b.def(i, b.binary(Opcode::kAdd, b.use(i), b.i64(1)));
    b.jump(head);
    b.seal(head);
    b.seal(end);
    b.switch_to(end);
    b.ret(b.use(sum));
  });
}

// What the host function of event_loop() works with.
struct Events {
  Workshop* w = nullptr;
  MethodId now = MethodId::none();
  uint64_t times = 0;  // that `now` is called before another takes its place
  std::set<uint32_t> places;
  uint64_t made = 0;
};
Events* g_events = nullptr;

// Another method each `times` calls; the one before is removed, for nobody calls it any more.
uint64_t next_event(uint64_t i) {
  Events& e = *g_events;
  if (i % e.times == 0) {
    if (e.now.valid()) e.w->remove(e.now);
    e.now = e.w->adder(1000 * i);
    e.places.insert(e.now.index());
    ++e.made;
  }
  return e.w->address(e.now);
}

// A program whose only call never ends: its frame has inlined what has gone, and is called back.
void run_event_loop(const Options& o, uint64_t count) {
  Workshop w(o);
  Events events{&w, MethodId::none(), 40, {}, 0};
  g_events = &events;
  ThreadScope scope(*w.runtime);
  HostFunction next{"next", reinterpret_cast<const void*>(next_event), kNext};
  MethodId loop = event_loop(w, next);
  uint64_t want = 0;
  for (uint64_t i = 0; i < count; ++i) want += i + 1000 * (i / 40 * 40);
  EXPECT_EQ(w.call(loop, {count}).bits, want);
  EXPECT_EQ(events.made, count / 40);
  EXPECT_LE(events.places.size(), 47u);
}

TEST(LongLife, a_loop_that_never_ends_calls_thousands_of_methods) {
  for (const char* workers : {"0", "1"}) {
    Options o = small();
    ASSERT_TRUE(o.set("workers", workers).ok());
    run_event_loop(o, 80'000);
  }
}

// While a compilation is under way, all places that were left since it began wait for its end, and
// so does the host.
TEST(LongLife, places_come_back_when_a_slow_compilation_ends) {
  Options o = small();
  o.workers = 1;
  ASSERT_TRUE(o.set("stress", "delay=every:5").ok());
  run_event_loop(o, 8'000);
}

// ---- What keeps a place ---------------------------------------------------------------------------

// A runtime with as many places as the test fills, in which all calls are counted.
Options full(const char* places) {
  return options({{"max_methods", places},
                  {"removed_kept", "0"},
                  {"workers", "0"},
                  {"policy", "never"},
                  {"interval", "1"}});
}

bool takes_another(Workshop& w) {
  return w.try_add("another", kOne, [](FunctionBuilder& b) { b.ret(b.param(0)); }).ok();
}

bool counts_in_optimized_code(Workshop& w, MethodId m) {
  for (const MethodReport& r : w.runtime->report().methods) {
    for (const VersionReport& v : r.versions) {
      if (r.method == m && v.tier == Tier::kOptimized && v.copy == Copy::kInstrumented) return true;
    }
  }
  return false;
}

// The same, where all that is decided is done at once, and optimized code is sampled.
Options optimizing(const char* places) {
  Options o = full(places);
  o.policy = PolicyMode::kAlways;
  o.interval = o.optimized_interval = 16;
  o.overhead_budget = 0;  // what a clock decides is not to be asserted
  return o;
}

struct Removal {
  Workshop* w;
  MethodId m;
  bool taken;  // whether the place went to another at once
};
Removal* g_removal = nullptr;

uint64_t remove_now(uint64_t x) {
  Removal& r = *g_removal;
  r.w->remove(r.m);
  r.taken = takes_another(*r.w);
  return x;
}

// The frame goes on in code that calls the stub of what has gone.
TEST(LongLife, a_frame_keeps_the_place_of_what_its_code_calls) {
  Workshop w(full("2"));
  ThreadScope scope(*w.runtime);
  MethodId inner = w.adder(7);
  HostFunction f{"remove_now", reinterpret_cast<const void*>(remove_now), kOne};
  MethodId outer = w.add("outer", kOne, [=](FunctionBuilder& b) {
    Value args[] = {b.param(0)};
    Value x[] = {b.call_host(f, args, 0)};
    b.ret(b.call(inner, kOne, x));
  });
  Removal removal{&w, inner, true};
  g_removal = &removal;
  Outcome trap = w.call(outer, {1});
  EXPECT_FALSE(removal.taken);
  EXPECT_EQ(trap.trap.code, TrapCode::kNoCode);
  EXPECT_EQ(trap.trap.method, inner);
  EXPECT_TRUE(takes_another(w));
}

// What is counted names methods by the addresses of their stubs: in the threads' counters, and in
// what was flushed.
TEST(LongLife, a_table_of_call_targets_keeps_the_places_that_it_names) {
  for (uint64_t calls : {5, 45}) {
    Workshop w(full("2"));
    ThreadScope scope(*w.runtime);
    MethodId dispatch = w.dispatcher();
    MethodId m = w.adder(1);
    for (uint64_t i = 0; i < calls; ++i) {
      ASSERT_EQ(w.call(dispatch, {w.address(m), i}).bits, i + 1);
    }
    w.remove(m);
    EXPECT_FALSE(takes_another(w)) << calls;
    w.runtime->flush();
    Profile p = w.runtime->profile();
    const auto& tables = p.methods.begin()->second.tables;
    ASSERT_EQ(tables.size(), 1u);
    const Table& targets = tables.begin()->second;
    ASSERT_EQ(targets.size(), 1u);
    EXPECT_EQ(targets.begin()->first, (TableKey{1, 1}));
    EXPECT_EQ(targets.begin()->second.count, calls);
  }
}

// So do the counters of optimized code.
TEST(LongLife, optimized_code_names_what_it_calls) {
  Workshop w(optimizing("3"));
  ThreadScope scope(*w.runtime);
  MethodId dispatch = w.dispatcher();
  MethodId often = w.adder(1), seldom = w.at_least(5);
  for (uint64_t i = 0; i < 200'000; ++i) w.call(dispatch, {w.address(often), i});
  ASSERT_TRUE(counts_in_optimized_code(w, dispatch));
  for (uint64_t i = 0; i < 1000; ++i) w.call(dispatch, {w.address(seldom), i});
  w.remove(seldom);
  EXPECT_FALSE(takes_another(w));
}

// What is pinned does not keep others from being forgotten, also of the last that were removed.
TEST(LongLife, places_that_are_kept_stand_in_nobodys_way) {
  Options o = full("3");
  o.removed_kept = 1000;
  Workshop w(o);
  ThreadScope scope(*w.runtime);
  MethodId dispatch = w.dispatcher();
  MethodId named = w.adder(1), other = w.adder(2);
  ASSERT_EQ(w.call(dispatch, {w.address(named), 1}).bits, 2u);
  w.remove(named);
  w.remove(other);
  EXPECT_TRUE(takes_another(w));
}

// Of whose stack nothing is known but that no method that was removed is on it.
TEST(LongLife, a_thread_that_runs_keeps_the_places_of_what_it_may_have_called) {
  Workshop w(full("1"));
  ThreadScope scope(*w.runtime);
  MethodId m = w.adder(1);
  std::binary_semaphore attached{0}, end{0};
  std::thread other([&] {
    ThreadScope here(*w.runtime);
    EXPECT_EQ(w.call(m, {1}).bits, 2u);
    attached.release();
    end.acquire();
  });
  attached.acquire();
  w.remove(m);
  EXPECT_FALSE(takes_another(w));
  end.release();
  other.join();
  EXPECT_TRUE(takes_another(w));
}

// Makes functions of the host's into methods, until there is no room for the code that calls them.
uint64_t add_host_methods(Workshop& w) {
  MethodInfo info{{2, 0}, "host", kOne};
  info.host_entry = reinterpret_cast<const void*>(remove_now);
  info.host_may_trap = true;
  for (uint64_t n = 0;; ++n, ++info.key.function_index) {
    if (!w.runtime->add_method(w, info)) return n;
  }
}

TEST(LongLife, a_method_that_is_refused_takes_no_place) {
  Options o = full("1000");
  o.code_budget = 65536;
  o.pack_code = false;
  uint64_t room = add_host_methods(*std::make_unique<Workshop>(o));
  ASSERT_LT(room, 999u);
  o.max_methods = room + 1;
  Workshop w(o);
  MethodId m = w.adder(1);
  ASSERT_EQ(add_host_methods(w), room);
  w.remove(m);
  ASSERT_EQ(add_host_methods(w), 0u);
  EXPECT_TRUE(takes_another(w));
}

// A method that others wait for while it is described.
struct SlowMethod {
  std::binary_semaphore begun{0}, go_on{0};
  std::atomic<bool> over{false};

  MethodId add(Workshop& w) {
    return w.add("slow", kOne, [this](FunctionBuilder& b) {
      begun.release();
      go_on.acquire();
      b.ret(b.param(0));
      over = true;
    });
  }
  // Begins to describe it, on another thread.
  std::thread begin(Workshop& w, MethodId m) {
    std::thread t([&w, m] {
      ThreadScope scope(*w.runtime);
      w.call(m, {1});
    });
    begun.acquire();
    return t;
  }
};

TEST(LongLife, a_compilation_keeps_the_places_of_what_was_removed_since_it_began) {
  Workshop w(full("2"));
  ThreadScope scope(*w.runtime);
  SlowMethod slow;
  MethodId m = slow.add(w), other = w.adder(1);
  std::thread t = slow.begin(w, m);
  w.remove(other);
  EXPECT_FALSE(takes_another(w));
  slow.go_on.release();
  t.join();
  EXPECT_TRUE(takes_another(w));
}

TEST(LongLife, removal_waits_for_the_compilation_of_the_method) {
  Workshop w(full("2"));
  SlowMethod slow;
  MethodId m = slow.add(w);
  std::thread t = slow.begin(w, m);
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(50));  // that it would have returned by then
    slow.go_on.release();
  });
  w.remove(m);
  EXPECT_TRUE(slow.over);
  later.join();
  t.join();
}

// ---- What goes with a place -----------------------------------------------------------------------

// Of so many blocks that few of them fill the memory for counters.
MethodId blocks_of(Workshop& w, uint64_t least) {
  return w.add("blocks", kOne, [least](FunctionBuilder& b) {
    for (int64_t k = 0; k < 40; ++k) {
      Block here = b.create_block(), on = b.create_block();
      b.branch(b.binary(Opcode::kEq, b.param(0), b.i64(k)), here, on);
      for (Block block : {here, on}) b.seal(block);
      b.switch_to(here);
      b.ret(b.i64(static_cast<int64_t>(least) + k));
      b.switch_to(on);
    }
    b.ret(b.param(0));
  });
}

// Optimized code has counters of its own.
TEST(LongLife, counters_come_back_with_their_places) {
  for (bool optimizes : {false, true}) {
    Options o = optimizes ? optimizing("4") : full("4");
    o.slab_budget = 8192;
    Workshop w(o);
    ThreadScope scope(*w.runtime);
    for (uint64_t i = 0; i < (optimizes ? 12u : 200u); ++i) {
      MethodId m = blocks_of(w, i);
      uint64_t calls = optimizes ? 200'000 : 20;
      for (uint64_t x = 0; x < calls; ++x) { ASSERT_EQ(w.call(m, {x}).bits, x < 40 ? i + x : x); }
      ASSERT_EQ(counts_in_optimized_code(w, m), optimizes);
      w.remove(m);
    }
    EXPECT_EQ(w.runtime->report().losses.slabs_refused, 0u) << optimizes;
  }
}

TEST(LongLife, counters_that_threads_share_go_to_nobody_else) {
  Options o = full("4");
  ASSERT_TRUE(o.set("counters", "interlocked").ok());
  Workshop w(o);
  ThreadScope scope(*w.runtime);
  for (uint64_t i = 0; i < 100; ++i) {
    MethodId m = w.at_least(i);
    for (uint64_t x = i; x < i + 10; ++x) ASSERT_EQ(w.call(m, {x}).bits, x);
    w.remove(m);
  }
}

TEST(LongLife, a_shared_countdown_begins_anew) {
  Options o = full("2");
  o.gap = GapMode::kExact;
  o.interval = 7;
  Workshop w(o);
  ThreadScope scope(*w.runtime);
  for (uint64_t i = 0; i < 50; ++i) {
    MethodId m = w.at_least(i);
    for (uint64_t x = 0; x < 10 + i; ++x) w.call(m, {x});
    w.runtime->flush();
    uint64_t calls = 0;
    for (const MethodReport& r : w.runtime->report().methods) {
      if (r.method == m) calls = r.calls;
    }
    ASSERT_EQ(calls, 10 + i);
    w.remove(m);
  }
}

// A record that is overwritten unread is counted in its method's counters, which may be another's by
// then.
TEST(LongLife, records_of_a_log_outlive_their_method) {
  Options o = full("2");
  o.log_records = 4;
  Workshop w(o);
  ThreadScope scope(*w.runtime);
  auto logs = [&](uint64_t n) {
    return w.add("logs" + std::to_string(n), kOne, [](FunctionBuilder& b) {
      b.probe(ProbeKind::kLog, b.param(0));
      b.ret(b.param(0));
    });
  };
  MethodId m = logs(0);
  for (uint64_t x = 0; x < 4; ++x) ASSERT_EQ(w.call(m, {x}).bits, x);
  w.remove(m);
  MethodId next = logs(1);
  if (next.index() != m.index()) {
    w.remove(next);
    next = logs(2);
  }
  ASSERT_EQ(next.index(), m.index());
  for (uint64_t x = 4; x < 8; ++x) ASSERT_EQ(w.call(next, {x}).bits, x);
  w.runtime->flush();
  for (const MethodReport& r : w.runtime->report().methods) {
    for (const SiteReport& s : r.sites) EXPECT_EQ(s.lost, 0u) << r.name;
  }
  std::vector<LogRecord> log = w.runtime->read_log();
  ASSERT_EQ(log.size(), 8u);
  for (uint64_t x = 0; x < 8; ++x) {
    EXPECT_EQ(log[x].value, x);
    EXPECT_EQ(log[x].method, x < 4 ? m : next) << x;
  }
}

// ---- Memory ---------------------------------------------------------------------------------------

size_t heap_in_use() { return mallinfo2().uordblks; }

// Rounds of a method that is added, called until it is optimized, and removed; all calls go through
// one dispatcher, which guesses whom it calls.
void live(Workshop& w, MethodId dispatch, uint64_t from, uint64_t to) {
  for (uint64_t i = from; i < to; ++i) {
    MethodId m = w.adder(i);
    uint64_t address = w.address(m);
    for (uint64_t x = 0; x < 70; ++x) {
      ASSERT_EQ(w.call(dispatch, {address, x}).bits, x + i) << "round " << i;
    }
    w.remove(m);
  }
}

TEST(LongLife, memory_is_flat_over_thousands_of_methods) {
  Workshop w(small());
  ThreadScope scope(*w.runtime);
  MethodId dispatch = w.dispatcher();
  live(w, dispatch, 0, 1000);
  size_t heap = heap_in_use();
  uint64_t code = w.runtime->report().code_bytes_in_service;
  live(w, dispatch, 1000, 4000);
  size_t grown = heap_in_use() - std::min(heap, heap_in_use());
  EXPECT_LT(grown, 100'000u) << "3000 methods took " << grown << " bytes";
  Report r = w.runtime->report();
  EXPECT_LE(r.code_bytes_in_service, code + 65'536);
  EXPECT_LE(r.methods.size(), 48u);
  EXPECT_EQ(r.decisions.size(), 100u);
  EXPECT_EQ(r.decisions.front().sequence, r.losses.decisions_forgotten + 1);
  EXPECT_EQ(r.losses.slabs_refused, 0u);
  EXPECT_EQ(r.losses.code_refused, 0u);
  EXPECT_EQ(r.methods_registered, 4001u);
}

// ---- Threads --------------------------------------------------------------------------------------

TEST(LongLife, threads_call_while_others_are_removed) {
  Options o = small();
  o.workers = 1;
  Workshop w(o);
  MethodId dispatch = w.dispatcher();
  std::atomic<bool> wrong{false};
  auto run = [&](uint64_t first) {
    ThreadScope scope(*w.runtime);
    for (uint64_t i = 0; i < 1500 && !wrong; ++i) {
      uint64_t n = first + i;
      Result<MethodId> m = w.try_add("m", kOne, [n](FunctionBuilder& b) {
        b.ret(b.binary(Opcode::kAdd, b.param(0), b.i64(static_cast<int64_t>(n))));
      });
      if (!m) {  // others are slow to be quiescent
        w.runtime->quiescent();
        std::this_thread::yield();
        continue;
      }
      for (uint64_t x = 0; x < 40; ++x) {
        if (w.call(dispatch, {w.address(*m), x}).bits != x + n) wrong = true;
      }
      w.remove(*m);
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) threads.emplace_back(run, t * 1'000'000);
  for (std::thread& t : threads) t.join();
  EXPECT_FALSE(wrong);
  EXPECT_GT(w.runtime->report().losses.methods_forgotten, 1000u);
}

// ---- Traces and profiles --------------------------------------------------------------------------

TEST(LongLife, traces_and_profiles_tell_the_methods_of_a_place_apart) {
  CollectingSink sink;
  {
    Workshop w(small(), &sink);
    ThreadScope scope(*w.runtime);
    MethodId dispatch = w.dispatcher();
    live(w, dispatch, 0, 400);
    Profile p = w.runtime->profile();
    for (const auto& [key, m] : p.methods) {
      if (key.function_index == 0) continue;
      EXPECT_LE(m.calls, 70u) << key.function_index;  // some were inlined into the dispatcher
      EXPECT_GT(m.calls, 0u) << key.function_index;
    }
  }
  std::map<uint64_t, std::string> names;
  for (const MethodDetails& d : sink.all<MethodDetails>()) {
    EXPECT_TRUE(names.emplace(d.handle, d.name).second) << d.name << " has the handle of another";
  }
  EXPECT_EQ(names.size(), 401u);
  std::map<uint64_t, uint64_t> calls;
  for (const FlushEvent& f : sink.all<FlushEvent>()) {
    uint64_t& last = calls[f.id];
    EXPECT_GE(f.calls, last);
    last = f.calls;
  }
  for (const auto& [id, last] : calls) {
    if (names[id >> 32] != "dispatch") { EXPECT_LE(last, 70u) << names[id >> 32]; }
  }
}

// ---- Traps of the host ----------------------------------------------------------------------------

uint64_t raising(uint64_t detail) {
  Runtime::raise(TrapCode::kHost, detail);
  return 0;
}

TEST(LongLife, a_trap_of_the_host_names_the_call_that_it_ends) {
  for (const char* tier : {"baseline", "optimized", "auto"}) {
    Workshop w(options({{"tier", tier}, {"workers", "0"}, {"policy", "always"}}));
    ThreadScope scope(*w.runtime);
    HostFunction f{"raising", reinterpret_cast<const void*>(raising), kOne};
    MethodId inner = w.add("inner", kOne, [=](FunctionBuilder& b) {
      b.set_location(40);
      Value x = b.binary(Opcode::kAdd, b.param(0), b.i64(1));
      b.set_location(41);
      Value args[] = {x};
      Value r = b.call_host(f, args, kCallMayTrap);
      b.set_location(42);
      b.ret(r);
    });
    MethodId outer = w.add("outer", kOne, [=](FunctionBuilder& b) {
      b.set_location(7);
      Value args[] = {b.param(0)};
      b.ret(b.call(inner, kOne, args));
    });
    for (uint64_t i = 0; i < 300; ++i) {
      Outcome o = w.call(outer, {i});
      ASSERT_EQ(o.trap.code, TrapCode::kHost);
      ASSERT_EQ(o.trap.detail, i + 1);
      ASSERT_EQ(o.trap.method, inner) << tier << " " << i;
      ASSERT_EQ(o.trap.location, 41u) << tier << " " << i;
    }
    EXPECT_EQ(w.runtime->report().losses.traps_lost, 0u);
  }
}

TEST(LongLife, a_trap_that_nobody_takes_is_counted_and_ends_nothing) {
  Workshop w(options({{"workers", "0"}}));
  ThreadScope scope(*w.runtime);
  Runtime::raise(TrapCode::kHost, 1);  // with no invoke further up
  EXPECT_EQ(w.runtime->report().losses.traps_lost, 1u);
  HostFunction f{"raising", reinterpret_cast<const void*>(raising), kOne};
  MethodId deaf = w.add("deaf", kOne, [=](FunctionBuilder& b) {
    Value args[] = {b.param(0)};
    b.call_host(f, args, 0);
    b.ret(b.param(0));
  });
  MethodId hears = w.add("hears", kOne, [=](FunctionBuilder& b) {
    HostFunction quiet{"quiet", reinterpret_cast<const void*>(+[](uint64_t x) { return x; }), kOne};
    Value args[] = {b.param(0)};
    b.ret(b.call_host(quiet, args, kCallMayTrap));
  });
  EXPECT_EQ(w.call(deaf, {5}).bits, 5u);
  EXPECT_EQ(w.runtime->report().losses.traps_lost, 2u);
  EXPECT_EQ(w.call(hears, {6}).bits, 6u);
}

uint64_t raising_twice(uint64_t detail) {
  Runtime::raise(TrapCode::kHost, detail);
  Runtime::raise(TrapCode::kHost, detail + 1);
  return 0;
}

TEST(LongLife, of_two_traps_at_once_the_later_one_ends_the_call_and_one_is_counted) {
  Workshop w(options({{"workers", "0"}}));
  ThreadScope scope(*w.runtime);
  HostFunction f{"raising_twice", reinterpret_cast<const void*>(raising_twice), kOne};
  MethodId m = w.add("m", kOne, [=](FunctionBuilder& b) {
    Value args[] = {b.param(0)};
    b.ret(b.call_host(f, args, kCallMayTrap));
  });
  EXPECT_EQ(w.call(m, {5}).trap.detail, 6u);
  EXPECT_EQ(w.runtime->report().losses.traps_lost, 1u);
}

// Of the second method in a place, and not of the next trap as well.
TEST(LongLife, a_trap_names_the_method_that_has_gone_and_only_once) {
  Workshop w(full("3"));
  ThreadScope scope(*w.runtime);
  MethodId dispatch = w.dispatcher();
  HostFunction f{"raising", reinterpret_cast<const void*>(raising), kOne};
  MethodId raises = w.add("raises", kOne, [=](FunctionBuilder& b) {
    Value args[] = {b.param(0)};
    b.ret(b.call_host(f, args, kCallMayTrap));
  });
  w.remove(w.adder(1));
  MethodId m = w.adder(2);
  ASSERT_EQ(m.generation(), 1u);
  uint64_t address = w.address(m);
  w.remove(m);
  Outcome gone = w.call(dispatch, {address, 1});
  EXPECT_EQ(gone.trap.code, TrapCode::kNoCode);
  EXPECT_EQ(gone.trap.method, m);
  EXPECT_EQ(w.call(raises, {1}).trap.method, raises);
}

// ---- Threads that end attached --------------------------------------------------------------------

TEST(LongLife, a_thread_that_ends_attached_hands_over_what_it_counted) {
  Workshop w(options({{"workers", "0"}, {"tier", "baseline"}}));
  MethodId m = w.adder(1);
  std::thread([&] {
    ASSERT_TRUE(w.runtime->attach().ok());
    ASSERT_TRUE(w.runtime->attach().ok());
    for (uint64_t i = 0; i < 45; ++i) ASSERT_EQ(w.call(m, {i}).bits, i + 1);
  }).join();
  Report r = w.runtime->report();
  ASSERT_EQ(r.methods.size(), 1u);
  EXPECT_EQ(r.methods[0].calls, 45u);
}

TEST(LongLife, a_thread_that_ends_attached_leaves_all_runtimes) {
  Options o = options({{"workers", "0"}, {"tier", "baseline"}});
  Workshop inner(o), outer(o);
  MethodId m = inner.adder(1), n = outer.adder(2);
  std::thread([&] {
    ASSERT_TRUE(outer.runtime->attach().ok());
    for (uint64_t i = 0; i < 20; ++i) ASSERT_EQ(outer.call(n, {i}).bits, i + 2);
    ASSERT_TRUE(inner.runtime->attach().ok());
    for (uint64_t i = 0; i < 10; ++i) ASSERT_EQ(inner.call(m, {i}).bits, i + 1);
  }).join();
  EXPECT_EQ(inner.runtime->report().methods[0].calls, 10u);
  EXPECT_EQ(outer.runtime->report().methods[0].calls, 20u);
}

TEST(LongLife, what_threads_lost_stays_counted) {
  Workshop w(options({{"workers", "0"}}));
  std::thread([&] {
    ThreadScope scope(*w.runtime);
    Runtime::raise(TrapCode::kHost, 1);
  }).join();
  EXPECT_EQ(w.runtime->report().losses.traps_lost, 1u);
}

// What is kept of them is of one size.
TEST(LongLife, memory_is_flat_over_thousands_of_threads) {
  Workshop w(full("1"));
  MethodId m = w.at_least(5);
  size_t heap = 0;
  for (uint64_t i = 0; i < 1500; ++i) {
    if (i == 500) heap = heap_in_use();
    ThreadScope scope(*w.runtime);  // a thread of the runtime's, whichever of the system's
    ASSERT_EQ(w.call(m, {i + 5}).bits, i + 5);
  }
  size_t grown = heap_in_use() - std::min(heap, heap_in_use());
  EXPECT_LT(grown, 50'000u) << "1000 threads took " << grown << " bytes";
}

// ---- The C API ------------------------------------------------------------------------------------

TEST_F(CApi, methods_come_and_go_for_ever) {
  create({{"max_methods", "8"}, {"removed_kept", "2"}, {"decisions_kept", "10"}});
  std::set<uint32_t> ids;
  int64_t n = 0;
  BodyHost host{[&](uptier_builder* b) {
    uptier_value x = uptier_build_param(b, 0);
    uptier_build_ret(b, uptier_build_binary(b, UPTIER_OP_ADD, x, uptier_build_i64(b, n)));
  }};
  uptier_method before = {};
  for (n = 0; n < 2000; ++n) {
    uptier_method m = add("m", host, signature(1));
    ASSERT_TRUE(ids.insert(m.id).second);
    ASSERT_EQ(invoke(m, {3}), UPTIER_OK);
    ASSERT_EQ(outcome_.bits, static_cast<uint64_t>(3 + n));
    ASSERT_EQ(uptier_runtime_remove_methods(runtime_, &m, 1, &error_), UPTIER_OK);
    ASSERT_EQ(host.drops, n + 1);
    ASSERT_EQ(invoke(m, {3}), UPTIER_INVALID_ARGUMENT);
    ASSERT_EQ(invoke(before, {3}), UPTIER_INVALID_ARGUMENT);
    ASSERT_EQ(uptier_runtime_remove_methods(runtime_, &before, 1, &error_),
              UPTIER_INVALID_ARGUMENT);
    before = m;
  }
  uptier_totals totals = {};
  totals.size = sizeof totals;
  ASSERT_EQ(uptier_runtime_totals(runtime_, &totals, &error_), UPTIER_OK);
  EXPECT_EQ(totals.methods_registered, 2000u);
  EXPECT_GE(totals.methods_forgotten, 1990u);
  EXPECT_LE(totals.decisions, 10u);
}

}  // namespace
}  // namespace uptier::test
