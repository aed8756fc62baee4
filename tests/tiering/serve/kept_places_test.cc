// The slot of a removed method: the reasons that keep it from being reused, and the memory that is
// released with it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <semaphore>
#include <thread>

#include "tests/support/workshop.h"

namespace uptier::test::kept_places_test {
namespace {

using std::chrono::milliseconds;

// ---- What keeps a slot
// ----------------------------------------------------------------------------

bool counts_in_optimized_code(Workshop& w, MethodId m) {
  for (const MethodReport& r : w.runtime->report().methods) {
    for (const VersionReport& v : r.versions) {
      if (r.method == m && v.tier == Tier::kOptimized && v.copy == Copy::kInstrumented) return true;
    }
  }
  return false;
}

struct Removal {
  Workshop* w;
  MethodId m;
  bool taken;  // whether the slot was reused at once
};
Removal* g_removal = nullptr;

uint64_t remove_now(uint64_t x) {
  Removal& r = *g_removal;
  r.w->remove(r.m);
  r.taken = takes_another(*r.w);
  return x;
}

// The frame goes on in code that calls the stub of the removed method.
TEST(KeptPlaces, a_frame_keeps_the_place_of_what_its_code_calls) {
  Workshop w(full("2"));
  MethodId inner = w.adder(7);
  HostFunction f{"remove_now", reinterpret_cast<const void*>(remove_now), kOne};
  MethodId outer = w.add("outer", kOne, [=](FunctionBuilder& b) {
    Value args[] = {b.param(0)};
    Value x[] = {b.call_host(f, args, 0)};
    b.ret(b.call(inner, kOne, x));
  });
  Removal removal{&w, inner, true};
  g_removal = &removal;
  Outcome trap;
  // On a thread that ends: stale words of its calls on the stack may look like frames.
  std::thread([&] {
    ThreadScope scope(*w.runtime);
    trap = w.call(outer, {1});
  }).join();
  EXPECT_FALSE(removal.taken);
  EXPECT_EQ(trap.trap.code, TrapCode::kNoCode);
  EXPECT_EQ(trap.trap.method, inner);
  EXPECT_TRUE(takes_another(w));
}

// The other thread's stack is unknown; it is known only that no removed method is on it.
TEST(KeptPlaces, a_thread_that_runs_keeps_the_places_of_what_it_may_have_called) {
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
  w.runtime->quiescent();  // declares that stale words on this stack mean nothing
  EXPECT_TRUE(takes_another(w));
}

// Adds host functions as methods until there is no room for their stubs. Returns their number.
uint64_t add_host_methods(Workshop& w) {
  MethodInfo info{{2, 0}, "host", kOne};
  info.host_entry = reinterpret_cast<const void*>(remove_now);
  for (uint64_t n = 0;; ++n, ++info.key.function_index) {
    if (!w.runtime->add_method(w, info)) return n;
  }
}

TEST(KeptPlaces, a_method_that_is_refused_takes_no_place) {
  Options o = full("1000");
  o.code_budget = 65536;
  o.pack_code = false;
  uint64_t room = add_host_methods(*std::make_unique<Workshop>(o));
  ASSERT_LT(room, 999u);
  o.max_methods = room + 1;
  Workshop w(o);
  MethodId m = w.adder(1);
  ASSERT_EQ(add_host_methods(w), room - 1);
  w.remove(m);
  EXPECT_TRUE(takes_another(w));
  EXPECT_EQ(add_host_methods(w), 0u);
}

// A method for which others wait while it is described.
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
  // Begins to describe the method on another thread; with `calls`, by calling it.
  std::thread begin(Workshop& w, MethodId m, bool calls) {
    std::thread t([&w, m, calls] {
      ThreadScope scope(*w.runtime);
      if (calls) {
        w.call(m, {1});
      } else {
        (void)w.runtime->ir(m);
      }
    });
    begun.acquire();
    return t;
  }
};

TEST(KeptPlaces, a_compilation_keeps_the_places_of_what_was_removed_since_it_began) {
  Workshop w(full("2"));
  ThreadScope scope(*w.runtime);
  SlowMethod slow;
  MethodId m = slow.add(w), other = w.adder(1);
  std::thread t = slow.begin(w, m, true);
  w.remove(other);
  EXPECT_FALSE(takes_another(w));
  slow.go_on.release();
  t.join();
  EXPECT_TRUE(takes_another(w));
}

TEST(KeptPlaces, removal_waits_for_the_compilation_of_the_method) {
  Workshop w(full("2"));
  SlowMethod slow;
  MethodId m = slow.add(w);
  std::thread t = slow.begin(w, m, false);
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(50));  // long enough for remove() to return if it did
                                                    // not wait
    slow.go_on.release();
  });
  w.remove(m);
  EXPECT_TRUE(slow.over);
  later.join();
  t.join();
}

// ---- Memory that is released with a slot
// ----------------------------------------------------------

// A method with so many blocks that a few of them fill the counter memory.
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

// Optimized code has its own counters.
TEST(KeptPlaces, counters_come_back_with_their_places) {
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

TEST(KeptPlaces, counters_that_threads_share_go_to_nobody_else) {
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

TEST(KeptPlaces, a_shared_countdown_begins_anew) {
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

// When an unread record is overwritten, its loss is counted in the method's counters, which may
// belong to another method by then.
TEST(KeptPlaces, records_of_a_log_outlive_their_method) {
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

}  // namespace
}  // namespace uptier::test::kept_places_test
