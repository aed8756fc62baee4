// The code that calls reach, and the handling of code that is taken out of service.
#include "tiering/serve/in_service.h"

#include "tests/support/owners.h"

namespace uptier::tiering::in_service_test {
namespace {

using test::Owners;

TEST(InService, calls_go_to_the_best_that_is_in_service) {
  Owners o;
  Method& m = o.method();
  o.in_service.link_locked(m);
  EXPECT_EQ(o.in_service.current_entry(m), nullptr);
  Version &plain = o.add(0, Tier::kBaseline), &optimized = o.add(0, Tier::kOptimized);
  m.plain = &plain;
  o.in_service.link_locked(m);
  EXPECT_EQ(o.in_service.current_entry(m), plain.entry);
  m.optimized = &optimized;
  o.in_service.link_locked(m);
  EXPECT_EQ(o.in_service.current_entry(m), optimized.entry);
  optimized.retired = true;
  o.in_service.link_locked(m);
  EXPECT_EQ(o.in_service.current_entry(m), plain.entry);
}

TEST(InService, a_guard_counts_while_its_window_is_open) {
  Owners o;
  Method& m = o.method();
  Version &general = o.add(0, Tier::kOptimized), &guarded = o.add(0, Tier::kOptimized);
  guarded.general = &general;
  char counted = 0;
  guarded.guard.counted = &counted;
  m.optimized = &guarded;
  m.value_versions.own().in_window = true;
  o.in_service.link_locked(m);
  EXPECT_EQ(o.in_service.current_entry(m), &counted);
  m.value_versions.own().in_window = false;
  o.in_service.link_locked(m);
  EXPECT_EQ(o.in_service.current_entry(m), guarded.entry);
}

TEST(InService, where_every_call_is_counted_the_copy_is_called_once_there_is_something_beside_it) {
  Options all;
  all.interval = 1;
  Owners o(all);
  Method& m = o.method();
  Version &plain = o.add(0, Tier::kBaseline),
          &copy = o.add(0, Tier::kBaseline, Copy::kInstrumented);
  m.instrumented = &copy;
  o.in_service.link_locked(m);
  EXPECT_EQ(o.in_service.current_entry(m), nullptr)
      << "threads without counters have nothing to run";
  m.plain = &plain;
  o.in_service.link_locked(m);
  EXPECT_EQ(o.in_service.current_entry(m), copy.entry);
}

TEST(InService, a_second_chance_keeps_the_code_and_has_calls_ask) {
  Owners o;
  Method& m = o.method();
  EXPECT_FALSE(o.in_service.relink(m)) << "it has its calls";
  Version& plain = o.add(0, Tier::kBaseline);
  m.plain = &plain;
  o.in_service.link_locked(m);
  o.in_service.touch(o.method(1));
  o.in_service.unlink_locked(m);
  EXPECT_EQ(o.in_service.current_entry(m), nullptr);
  EXPECT_FALSE(plain.retired);
  EXPECT_TRUE(o.in_service.relink(m));
  EXPECT_EQ(o.in_service.current_entry(m), plain.entry);
  EXPECT_GT(m.last_active, o.method(1).last_active) << "it was called";
  EXPECT_FALSE(o.in_service.relink(m));
}

TEST(InService, a_method_without_code_gets_no_second_chance) {
  Owners o;
  o.in_service.unlink_locked(o.method());
  EXPECT_FALSE(o.method().unlinked);
}

TEST(InService, frames_of_what_is_given_up_are_called_back) {
  Owners o;
  o.describe_loops(0, 2);
  Version& v = o.add(0, Tier::kOptimized);
  o.in_service.give_up(v, OsrOut::kNewer);
  EXPECT_TRUE(v.retired);
  EXPECT_EQ(Owners::words(v), (std::vector<uint32_t>{2, 2}));
  o.in_service.give_up(v, OsrOut::kAnywhere);
  EXPECT_EQ(Owners::words(v), (std::vector<uint32_t>{3, 3}));
  o.in_service.give_up(v, OsrOut::kObserve);
  EXPECT_EQ(Owners::words(v), (std::vector<uint32_t>{3, 3})) << "the stronger word stands";
}

TEST(InService, a_callee_that_is_optimized_calls_back_the_frames_of_those_who_reach_its_stub) {
  Owners o;
  o.describe_loops(0, 1);
  Version &caller = o.add(0, Tier::kOptimized), &gone = o.add(0, Tier::kOptimized);
  caller.by_stub = gone.by_stub = {MethodId(1)};
  o.in_service.watch_callees(caller);
  o.in_service.watch_callees(gone);
  o.in_service.forget_caller_locked(gone);
  EXPECT_FALSE(caller.outdated);
  Version& callee = o.add(1, Tier::kOptimized);
  o.method(1).optimized = &callee;
  o.in_service.tell_callers(o.method(1));
  EXPECT_TRUE(caller.outdated);
  EXPECT_EQ(Owners::words(caller), std::vector<uint32_t>{2});
  EXPECT_FALSE(gone.outdated);
  // Code that was compiled meanwhile is told at once.
  Version& late = o.add(0, Tier::kOptimized);
  late.by_stub = {MethodId(1)};
  o.in_service.watch_callees(late);
  EXPECT_TRUE(late.outdated);
}

TEST(InService,
     a_version_for_a_loop_takes_the_place_of_the_one_before_and_calls_back_older_frames) {
  Owners o;
  o.describe_loops(0, 2);
  Method& m = o.method();
  Version &outdated = o.add(0, Tier::kOptimized), &current = o.add(0, Tier::kOptimized);
  outdated.outdated = true;
  Version &before = o.add(0, Tier::kOptimized), &now = o.add(0, Tier::kOptimized);
  before.osr_loop = now.osr_loop = LoopId(1);
  o.in_service.replace_osr(m, before);
  EXPECT_EQ(m.shape->osr[1].load(), &before);
  o.in_service.replace_osr(m, now);
  EXPECT_EQ(m.shape->osr[1].load(), &now);
  EXPECT_EQ(m.shape->osr[0].load(), nullptr);
  EXPECT_TRUE(before.retired);
  EXPECT_EQ(m.shape->osr_versions[1], 2u);
  EXPECT_EQ(Owners::words(outdated), (std::vector<uint32_t>{2, 2}));
  EXPECT_EQ(Owners::words(before), (std::vector<uint32_t>{2, 2})) << "it was retired for this one";
  EXPECT_EQ(Owners::words(current), (std::vector<uint32_t>{0, 0}));
  Version& host = o.add(0, Tier::kOptimized);
  host.osr_loop = LoopId(1);
  host.from_host = true;
  o.in_service.replace_osr(m, host);
  EXPECT_EQ(m.shape->osr_from_host[1].load(), &host);
  EXPECT_EQ(m.shape->osr[1].load(), &now);
  EXPECT_EQ(m.shape->osr_versions[1], 2u);
}

TEST(InService, a_new_optimized_version_for_calls_has_the_others_given_up) {
  Owners o;
  o.describe_loops(0, 1);
  Method& m = o.method();
  Version &old = o.add(0, Tier::kOptimized), &of_loop = o.add(0, Tier::kOptimized),
          &plain = o.add(0, Tier::kBaseline), &enterable = o.add(0, Tier::kBaseline),
          &now = o.add(0, Tier::kOptimized);
  of_loop.osr_loop = LoopId(0);
  enterable.enterable = true;
  o.in_service.retire_optimized_before(m, now);
  o.in_service.retire_baseline(m);
  EXPECT_TRUE(old.retired);
  EXPECT_TRUE(plain.retired);
  EXPECT_FALSE(of_loop.retired);
  EXPECT_FALSE(enterable.retired);
  EXPECT_FALSE(now.retired);
}

TEST(InService, what_a_trial_times_stays) {
  Owners o;
  Method& m = o.method();
  Version &plain = o.add(0, Tier::kBaseline), &old = o.add(0, Tier::kOptimized),
          &now = o.add(0, Tier::kOptimized);
  Trial of_plain(plain, now, 4, 1, true), of_old(old, now, 4, 1, false);
  m.optimizing.own().trial = &of_plain;
  o.in_service.retire_baseline(m);
  EXPECT_FALSE(plain.retired);
  m.optimizing.own().trial = &of_old;
  o.in_service.retire_optimized_before(m, now);
  EXPECT_FALSE(old.retired);
  m.optimizing.own().trial = nullptr;
}

TEST(InService, what_is_withdrawn_is_reached_by_nobody_and_is_free_when_nobody_runs_it) {
  Owners o;
  o.describe_loops(0, 1);
  Method& m = o.method();
  Version &optimized = o.add(0, Tier::kOptimized), &loop = o.add(0, Tier::kOptimized),
          &thunk = o.add(0, Tier::kHost);
  m.optimized = &optimized;
  loop.osr_loop = LoopId(0);
  o.in_service.replace_osr(m, loop);
  o.in_service.link_locked(m);
  m.copy_asked = m.shape->osr_asked[0] = true;
  o.in_service.evict_locked(m);
  EXPECT_EQ(o.losses.evictions, 1u);
  EXPECT_EQ(o.in_service.current_entry(m), nullptr);
  EXPECT_EQ(m.optimized.load(), nullptr);
  EXPECT_EQ(m.shape->osr[0].load(), nullptr);
  EXPECT_FALSE(m.copy_asked);
  EXPECT_FALSE(m.shape->osr_asked[0]);
  EXPECT_TRUE(m.wants_optimized) << "when it is called again";
  EXPECT_FALSE(thunk.retired) << "it is the way to the host's interpreter";
  EXPECT_FALSE(optimized.freed);
  o.in_service.reclaim_locked();
  EXPECT_TRUE(optimized.freed);
  EXPECT_TRUE(loop.freed);
  EXPECT_EQ(m.holds, 1u);
}

TEST(InService, code_that_means_a_place_is_withdrawn_and_its_frames_leave_it) {
  Owners o;
  for (uint32_t i = 0; i < Owners::kMethods; ++i) o.describe_loops(i, 1);
  Version &means = o.add(0, Tier::kOptimized), &beside = o.add(0, Tier::kOptimized),
          &other = o.add(1, Tier::kOptimized), &retired = o.add(2, Tier::kOptimized),
          &serves = o.add(2, Tier::kOptimized);
  means.refers_to = retired.refers_to = {3};
  other.refers_to = {2};
  o.method(0).optimized = &beside;
  o.method(1).optimized = &other;
  o.method(2).optimized = &serves;
  retired.retired = true;
  o.in_service.withdraw_what_refers_to_locked({false, false, false, true});
  EXPECT_EQ(o.method(0).optimized.load(), nullptr) << "all its code goes, as if it were evicted";
  EXPECT_TRUE(beside.retired);
  EXPECT_EQ(o.method(1).optimized.load(), &other);
  EXPECT_EQ(o.method(2).optimized.load(), &serves) << "what means it is out of service";
  EXPECT_EQ(Owners::words(means), std::vector<uint32_t>{3});
  EXPECT_EQ(Owners::words(retired), std::vector<uint32_t>{3}) << "frames may be in it";
  EXPECT_EQ(Owners::words(other), std::vector<uint32_t>{0});
}

TEST(InService, of_many_freed_versions_the_oldest_are_forgotten) {
  Owners o;
  Method& m = o.method();
  Version& serves = o.add(0, Tier::kBaseline);
  m.plain = &serves;
  while (m.versions.size() < kVersionsKept + kVersionsKept / 4) {
    o.add(0, Tier::kOptimized).freed = true;
  }
  m.versions.back()->freed = false;
  o.in_service.note_version(m, *m.versions.back());
  EXPECT_EQ(m.versions.size(), kVersionsKept);
  EXPECT_EQ(m.versions.front().get(), &serves);
  EXPECT_EQ(o.losses.versions_forgotten, kVersionsKept / 4);
}

}  // namespace
}  // namespace uptier::tiering::in_service_test
