// A hand-made report with a value in every field.
#pragma once

#include <string>

#include "uptier/report.h"

namespace uptier::test {

inline MethodReport sample_method(uint32_t index, std::string name, uint64_t calls) {
  MethodReport m;
  m.method = MethodId(index);
  m.key.module_key = 0xfedcba9876543210;
  m.key.function_index = index + 40;
  m.name = std::move(name);
  m.calls = calls;
  return m;
}

inline Report sample_report() {
  Report r;
  MethodReport main = sample_method(0, "main", 1);
  main.tier = Tier::kBaseline;
  main.loop_iterations = 123'456'789'012;
  main.bursts = 77;
  main.flushes = 9;
  main.osr_entries = 2;
  main.observing = Observing::kLearning;
  main.interval = 64;
  main.error_bound = 0.031;
  main.sites = {
      {SlotKind::kCallTarget,
       12,
       1000,
       {{"leaf", 0, 750, 0.75}, {"main", 0, 200, 0.2}},
       {},
       {},
       0,
       0},
      {SlotKind::kValue, 14, 900, {{"", -7, 300, 1.0 / 3}}, -7, 12, 0, 0},
      {SlotKind::kLog, 15, 800, {}, {}, {}, 0, 3},
      {SlotKind::kRange, 16, 700, {}, -1, 1, 0, 0},
      {SlotKind::kCounter, 17, 20, {}, {}, {}, 0, 0},
      {SlotKind::kGauge, 18, 0, {}, {}, {}, 99, 0},
  };
  main.versions = {
      {Tier::kBaseline, Copy::kPlain, {}, 4096, 1'250'000, true, true},
      {Tier::kBaseline, Copy::kInstrumented, {}, 5000, 1'000'000, true, false},
      {Tier::kOptimized, Copy::kPlain, LoopId(3), 2048, 250'000, false, false},
  };
  main.versions[1].probe_bytes = 320;
  main.versions[1].version = 12;
  MethodReport hot = sample_method(1, "a_name_that_is_longer_than_the_column_is_wide", 2'000'000);
  hot.tier = Tier::kOptimized;
  hot.sampled_calls = 125'000;
  hot.flushes = 17;
  hot.dual_error = 0.0123;
  hot.versions = {{Tier::kOptimized, Copy::kPlain, {}, 64, 10'000, false, false}};
  MethodReport host = sample_method(2, "host_code", 12);
  host.last_error = "host_code: block 3: add.i32: operand 2 is i64";
  r.methods = {main, hot, host};
  r.decisions = {
      {1, MethodId(1), "hot", "keep", "1 samples, 2 needed", 32, 1, 0, 0, ""},
      {2, MethodId(1), "hot", "specialize", "400 us so far, compile 250 us, 4 samples", 64, 4, 0,
       16'666.5, "tier=1"},
      {3, MethodId(0), "main", "recompile osr:3",
       "one call: 900 us so far, compile 500 us, 0 samples", 1, 0, 8192, 1e5, ""},
  };
  r.losses = {1, 2, 3, 22, 4, 5, 6, 8, 13, 14, 15, 16, 18, 19, 20, 17, 7, 9, 23, 21, 10, 11, 12};
  r.stress = {{"osr", 20, 1}, {"guard", 22, 3}};
  r.methods_registered = 5;
  r.code_bytes_in_service = 7112;
  r.code_bytes_freed = 4096;
  r.probe_bytes = 512;
  r.compile_ns_total = 2'510'000;
  r.compile_rate_ns = 412.5;
  r.overhead_share = 0.0087;
  return r;
}

}  // namespace uptier::test
