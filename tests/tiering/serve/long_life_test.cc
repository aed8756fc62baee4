// Hosts that make and remove methods forever: slots are reused, memory does not grow, and a new
// method is never taken for an old one.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "tests/support/c_api_world.h"
#include "tests/support/workshop.h"

namespace uptier::test::long_life_test {
namespace {

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
    // The previous id is invalid, whichever method has its slot.
    if (before.valid()) {
      ASSERT_EQ(w.call(before, {5}).trap.code, TrapCode::kBadCall);
      ASSERT_EQ(w.runtime->entry_address(before), nullptr);
      ASSERT_EQ(w.runtime->ir(before).error().code, ErrorCode::kInvalidArgument);
      ASSERT_EQ(w.runtime->error_of(before), "");
      w.remove(before);  // no effect
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

// ---- Code that refers to a removed method
// ---------------------------------------------------------

// `inner` is inlined into `outer`. Once the slot of `inner` is reused, the call that the host
// should not make any more ends with a trap: neither the old body runs nor the new one.
TEST(LongLife, inlined_bodies_go_before_a_place_is_used_again) {
  Options o = small();
  o.max_methods = 4;
  o.removed_kept = 0;
  Workshop w(o);
  ThreadScope scope(*w.runtime);
  MethodId inner = w.adder(7);
  MethodId outer = w.caller_of(inner);
  for (uint64_t i = 0; i < 300; ++i) ASSERT_EQ(w.call(outer, {i}).bits, i + 7);
  bool inlined = false;
  for (const MethodReport& m : w.runtime->report().methods) {
    for (const VersionReport& v : m.versions) inlined |= v.inlined != 0;
  }
  ASSERT_TRUE(inlined);
  w.remove(inner);
  EXPECT_EQ(w.call(outer, {1}).bits, 8u);  // the slot is not needed yet
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

// A loop that calls a host function and then the method that it returned.
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

// The state of event_loop()'s host function.
struct Events {
  Workshop* w = nullptr;
  MethodId now = MethodId::none();
  uint64_t times = 0;  // calls of `now` before it is replaced
  std::set<uint32_t> places;
  uint64_t made = 0;
};
Events* g_events = nullptr;

// Makes a new method every `times` calls and removes the old one, which nobody calls any more.
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

// A program whose only call never ends: its frame has removed methods inlined, and is called back.
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

// While a compilation runs, all slots given up since its start wait for its end, and the host waits
// for the slots.
TEST(LongLife, places_come_back_when_a_slow_compilation_ends) {
  Options o = small();
  o.workers = 1;
  ASSERT_TRUE(o.set("stress", "delay=every:5").ok());
  run_event_loop(o, 8'000);
}

// ---- Memory ---------------------------------------------------------------------------------------

size_t heap_in_use() { return mallinfo2().uordblks; }

// Rounds of a method that is added, called until it is optimized, and removed. All calls go through
// one dispatcher, which speculates on its callee.
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
  o.max_methods = 16;  // fewer than one target table can name
  Workshop w(o);
  MethodId dispatch = w.dispatcher();
  std::atomic<bool> wrong{false};
  auto run = [&](uint64_t first) {
    ThreadScope scope(*w.runtime);
    for (uint64_t made = 0; made < 500 && !wrong;) {
      uint64_t n = first + made;
      Result<MethodId> m = w.try_add("m", kOne, [n](FunctionBuilder& b) {
        b.ret(b.binary(Opcode::kAdd, b.param(0), b.i64(static_cast<int64_t>(n))));
      });
      if (!m) {  // the other threads are slow to become quiescent
        w.runtime->quiescent();
        std::this_thread::yield();
        continue;
      }
      ++made;
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
      EXPECT_LE(m.calls, 70u) << key.function_index;  // some calls were inlined into the dispatcher
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

// The memory kept for ended threads has a fixed size.
TEST(LongLife, memory_is_flat_over_thousands_of_threads) {
  Workshop w(full("1"));
  MethodId m = w.at_least(5);
  size_t heap = 0;
  for (uint64_t i = 0; i < 1500; ++i) {
    if (i == 500) heap = heap_in_use();
    ThreadScope scope(*w.runtime);  // a new thread for the runtime, whichever system thread it is
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
}  // namespace uptier::test::long_life_test
