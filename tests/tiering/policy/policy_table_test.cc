// The policy's answers, one row each.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/policy_methods.h"

namespace uptier::tiering::policy_table_test {
namespace {

struct Row {
  const char* what;
  std::function<void(MethodSnapshot&, SystemSnapshot&, PolicyOptions&)> change;
  Action action;
  LoopId osr_loop;
  const char* reason;  // a part of the reason
};

// Each row changes one thing of a method whose ten samples show 480 us of work.
const Row kRows[] = {
    {"worth it", [](auto&, auto&, auto&) {}, Action::kSpecialize, {}, "10 samples"},
    {"too little work",
     [](auto& m, auto&, auto&) { m.sampled_work = 20'000; },
     Action::kKeep,
     {},
     "worth it from"},
    {"samples missing",
     [](auto& m, auto&, auto&) { m.samples = 1; },
     Action::kKeep,
     {},
     "1 samples, 2 needed"},
    {"more samples wanted",
     [](auto&, auto&, auto& o) { o.min_samples = 11; },
     Action::kKeep,
     {},
     "10 samples, 11 needed"},
    {"no samples to come",
     [](auto& m, auto&, auto&) {
       m.samples = 0;
       m.calls = 5000;
       m.can_instrument = false;
     },
     Action::kRecompile,
     {},
     "0 samples"},
    {"samples and no more to come",
     [](auto& m, auto&, auto&) { m.can_instrument = false; },
     Action::kSpecialize,
     {},
     "10 samples"},
    {"already optimized",
     [](auto& m, auto&, auto&) { m.tier = Tier::kOptimized; },
     Action::kKeep,
     {},
     "already optimized"},
    {"optimized for another phase",
     [](auto& m, auto&, auto&) { drifted(m); },
     Action::kSpecialize,
     {},
     "drift of 30.0 %"},
    {"optimized for nearly the same",
     [](auto& m, auto&, auto&) {
       drifted(m);
       m.drift = 0.019;
     },
     Action::kKeep,
     {},
     "already optimized"},
    {"drift, but few samples of the version",
     [](auto& m, auto&, auto&) {
       drifted(m);
       m.drift_samples = 255;
     },
     Action::kKeep,
     {},
     "255 samples of the version, 256 needed"},
    {"drift again",
     [](auto& m, auto&, auto&) {
       drifted(m);
       m.drift_versions = 3;
     },
     Action::kKeep,
     {},
     "2048 needed"},
    {"drift again, long after",
     [](auto& m, auto&, auto&) {
       drifted(m);
       m.drift_versions = 3;
       m.drift_samples = 2048;
     },
     Action::kSpecialize,
     {},
     "3 times before"},
    {"drift that costs less than a compilation",
     [](auto& m, auto&, auto&) {
       drifted(m);
       m.version_calls = 10;
     },
     Action::kKeep,
     {},
     "a compilation"},
    {"drift once too often",
     [](auto& m, auto&, auto&) {
       drifted(m);
       m.optimized_versions = 8;
     },
     Action::kKeep,
     {},
     "too often"},
    {"drift, another on its way",
     [](auto& m, auto&, auto&) {
       drifted(m);
       m.optimized_requested = true;
     },
     Action::kKeep,
     {},
     "on its way"},
    {"drift, always, but too early",
     [](auto& m, auto&, auto& o) {
       drifted(m);
       m.drift_samples = 0;
       o.mode = PolicyMode::kAlways;
     },
     Action::kKeep,
     {},
     "0 samples of the version"},
    {"drift, always",
     [](auto& m, auto&, auto& o) {
       drifted(m);
       m.version_calls = 0;
       o.mode = PolicyMode::kAlways;
     },
     Action::kSpecialize,
     {},
     "policy always; drift"},
    {"compiler measured to be slow",
     [](auto&, auto& s, auto&) { s.compile_ns = 3500; },
     Action::kKeep,
     {},
     "worth it from"},
    {"compiler measured to be quick",
     [](auto& m, auto& s, auto&) {
       m.sampled_work = 20'000;
       s.compile_ns = 200;
     },
     Action::kSpecialize,
     {},
     "compile 20 us"},
    {"baseline code measured to be slow",
     [](auto& m, auto& s, auto&) {
       m.sampled_work = 20'000;
       s.baseline_ns = 2;
     },
     Action::kSpecialize,
     {},
     ""},
    {"baseline code measured to be quick",
     [](auto&, auto& s, auto&) { s.baseline_ns = 0.25; },
     Action::kKeep,
     {},
     "worth it from"},
    {"slower than baseline code a while ago",
     [](auto& m, auto&, auto&) { m.slower_calls = m.calls / 16 + 1; },
     Action::kKeep,
     {},
     "optimized code was slower"},
    {"slower than baseline code a while ago, always",
     [](auto& m, auto&, auto& o) {
       m.slower_calls = m.calls / 16 + 1;
       o.mode = PolicyMode::kAlways;
     },
     Action::kKeep,
     {},
     "optimized code was slower"},
    {"slower than baseline code long ago",
     [](auto& m, auto&, auto&) { m.slower_calls = m.calls / 16; },
     Action::kSpecialize,
     {},
     ""},
    {"on its way",
     [](auto& m, auto&, auto&) { m.optimized_requested = true; },
     Action::kKeep,
     {},
     "on its way"},
    {"recompiled too often",
     [](auto& m, auto&, auto&) { m.optimized_versions = 8; },
     Action::kKeep,
     {},
     "too often"},
    {"recompiled less often",
     [](auto& m, auto&, auto&) { m.optimized_versions = 7; },
     Action::kSpecialize,
     {},
     ""},
    {"may not be recompiled",
     [](auto&, auto&, auto& o) { o.max_recompiles = 0; },
     Action::kKeep,
     {},
     "too often"},
    {"failed before", [](auto& m, auto&, auto&) { m.failed = true; }, Action::kKeep, {}, "failed"},
    {"budget spent",
     [](auto&, auto& s, auto&) { s.code_budget_spent = true; },
     Action::kKeep,
     {},
     "budget"},
    {"queue short",
     [](auto&, auto& s, auto&) { s.queue_length = 16; },
     Action::kSpecialize,
     {},
     ""},
    {"queue long",
     [](auto&, auto& s, auto&) { s.queue_length = 32; },
     Action::kKeep,
     {},
     "worth it from"},
    {"no gain", [](auto&, auto&, auto& o) { o.speedup = 1; }, Action::kKeep, {}, "worth it from"},
    {"free compiler", [](auto&, auto&, auto& o) { o.compile_ns = 0; }, Action::kSpecialize, {}, ""},
    {"free running",
     [](auto&, auto&, auto& o) { o.baseline_ns = 0; },
     Action::kKeep,
     {},
     "worth it from"},
    {"slow running",
     [](auto& m, auto&, auto& o) {
       m.sampled_work = 20'000;
       o.baseline_ns = 2;
     },
     Action::kSpecialize,
     {},
     ""},
    {"in a loop, calls short",
     [](auto& m, auto&, auto&) { m.at_loop = LoopId(0); },
     Action::kSpecialize,
     {},
     ""},
    {"in a loop, one call long",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(0);
       m.calls = 1;
     },
     Action::kSpecialize, LoopId(0), "one call"},
    {"in a loop, before the first call was seen to end",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(3);
       m.calls = 0;
     },
     Action::kSpecialize, LoopId(3), "one call"},
    {"calls long, but at the entry",
     [](auto& m, auto&, auto&) { m.calls = 1; },
     Action::kSpecialize,
     {},
     ""},
    {"OSR version on its way",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(0);
       m.calls = 1;
       m.osr_requested = true;
     },
     Action::kKeep,
     {},
     "on its way"},
    {"OSR version ready",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(0);
       m.calls = 1;
       m.osr_ready = true;
     },
     Action::kKeep,
     {},
     "already"},
    {"optimized, but left behind in a long loop",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(0);
       m.calls = 1;
       m.tier = Tier::kOptimized;
       m.optimized_versions = 100;
     },
     Action::kSpecialize, LoopId(0), "one call"},
    {"optimized, a frame of short calls' method left behind for long",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(1);
       m.calls = 1'000'000;
       m.tier = Tier::kOptimized;
       m.behind_work = 375'001;
     },
     Action::kSpecialize, LoopId(1), "left in baseline code: 375 us"},
    {"optimized without samples, a frame left behind: none will come",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(1);
       m.calls = 1'000'000;
       m.samples = 0;
       m.tier = Tier::kOptimized;
       m.behind_work = 375'001;
     },
     Action::kRecompile, LoopId(1), "left in baseline code"},
    {"optimized, a frame left behind for less than a compilation",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(1);
       m.calls = 1'000'000;
       m.tier = Tier::kOptimized;
       m.behind_work = 374'999;
     },
     Action::kKeep,
     {},
     "already optimized"},
    {"in a long loop, an OSR version for another loop",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(0);
       m.calls = 1;
       m.osr_elsewhere = true;
       m.behind_work = 374'999;
     },
     Action::kKeep,
     {},
     "OSR at another loop"},
    {"left behind in a long loop, an OSR version for another loop",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(0);
       m.calls = 1;
       m.osr_elsewhere = true;
       m.behind_work = 375'001;
     },
     Action::kSpecialize, LoopId(0), "left in baseline code: 375 us"},
    {"in a long loop without samples to come",
     [](auto& m, auto&, auto&) {
       m.at_loop = LoopId(0);
       m.calls = 1;
       m.samples = 0;
       m.can_instrument = false;
       m.iterations = 20'000;
     },
     Action::kRecompile, LoopId(0), "one call"},
    {"never",
     [](auto&, auto&, auto& o) { o.mode = PolicyMode::kNever; },
     Action::kKeep,
     {},
     "policy never"},
    {"always, little work",
     [](auto& m, auto&, auto& o) {
       m.sampled_work = 1;
       o.mode = PolicyMode::kAlways;
     },
     Action::kSpecialize,
     {},
     "policy always"},
    {"always, without samples",
     [](auto& m, auto&, auto& o) {
       m.samples = 0;
       m.calls = 1;
       o.mode = PolicyMode::kAlways;
     },
     Action::kRecompile,
     {},
     "policy always"},
    {"always, in any loop",
     [](auto& m, auto&, auto& o) {
       m.at_loop = LoopId(2);
       o.mode = PolicyMode::kAlways;
     },
     Action::kSpecialize, LoopId(2), "policy always"},
    {"always, but optimized",
     [](auto& m, auto&, auto& o) {
       m.tier = Tier::kOptimized;
       o.mode = PolicyMode::kAlways;
     },
     Action::kKeep,
     {},
     "already optimized"},
    {"always, but failed",
     [](auto& m, auto&, auto& o) {
       m.failed = true;
       o.mode = PolicyMode::kAlways;
     },
     Action::kKeep,
     {},
     "failed"},
    {"always, but no budget",
     [](auto&, auto& s, auto& o) {
       s.code_budget_spent = true;
       o.mode = PolicyMode::kAlways;
     },
     Action::kKeep,
     {},
     "budget"},
    {"host code",
     [](auto& m, auto&, auto&) {
       m.tier = Tier::kHost;
       m.calls = 32;
       m.samples = 0;
     },
     Action::kRecompile,
     {},
     "host code, 32 calls"},
    {"host code on its way out",
     [](auto& m, auto&, auto&) {
       m.tier = Tier::kHost;
       m.optimized_requested = true;
     },
     Action::kKeep,
     {},
     "on its way"},
    {"host code for ever",
     [](auto& m, auto&, auto& o) {
       m.tier = Tier::kHost;
       o.mode = PolicyMode::kNever;
     },
     Action::kKeep,
     {},
     "policy never"},
    {"host code that cannot be compiled",
     [](auto& m, auto&, auto&) {
       m.tier = Tier::kHost;
       m.failed = true;
     },
     Action::kKeep,
     {},
     "failed"},
};

TEST(Policy, answers_as_its_table_says) {
  for (const Row& row : kRows) {
    MethodSnapshot m = sampled(480'000);
    SystemSnapshot s;
    PolicyOptions o;
    row.change(m, s, o);
    Decision d = decide(m, s, o);
    EXPECT_STREQ(action_name(d.action), action_name(row.action)) << row.what << ": " << d.reason;
    EXPECT_EQ(d.osr_loop, row.osr_loop) << row.what << ": " << d.reason;
    EXPECT_NE(d.reason.find(row.reason), std::string::npos) << row.what << ": " << d.reason;
    EXPECT_FALSE(d.reason.empty()) << row.what;
  }
}

}  // namespace
}  // namespace uptier::tiering::policy_table_test
