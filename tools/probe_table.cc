#include "tools/probe_table.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "jit/code/copy_code.h"
#include "tools/fail.h"
#include "tools/json_out.h"

namespace uptier::tools {
namespace {

constexpr int kRounds = 5;

using Compile = std::function<Result<std::unique_ptr<jit::Code>>(CompileWorld&, MethodId)>;

double processor_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Compiles one function with rows and without. Returns false if it is not compiled.
bool compare(CompileWorld& world, MethodId m, const Compile& compile, int rounds,
             ProbeTableCost& to) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  double least[2] = {kNever, kNever};
  ProbeTableCost::Method method{.name = world.name(m).substr(1)};
  for (int round = 0; round < std::max(rounds, 1); ++round) {
    std::unique_ptr<jit::Code> code[2];
    for (int n = 0; n < 2; ++n) {
      const int with = (n + round) % 2;
      world.have_block_rows(with != 0);
      const double start = processor_seconds();
      auto made = compile(world, m);
      least[with] = std::min(least[with], processor_seconds() - start);
      if (!made) return false;
      code[with] = std::move(*made);
    }
    method.rows = code[1]->tables().probes.size();
    method.row_bytes = method.rows * sizeof(jit::ProbeRow);
    method.code_bytes = code[1]->size();
    method.same &= code[0]->tables().probes.empty() && jit::same_bytes(*code[0], *code[1]);
  }
  to.methods.push_back(std::move(method));
  to.seconds += least[0];
  to.row_seconds += least[1] - least[0];
  return true;
}

Result<ProbeTableCost> costs_of(const char* compiler, const Functions& fs, const Compile& compile,
                                int rounds) {
  auto world = CompileWorld::create(fs, nullptr, kCodeBudget, true);
  if (!world) return world.error();
  if (!(*world)->moves()) {
    return Error{ErrorCode::kUnsupported,
                 "code cannot be compared: this kernel maps no memory twice"};
  }
  ProbeTableCost cost;
  cost.compiler = compiler;
  for (uint32_t i = 0; i < fs.module.functions.size(); ++i) {
    if (!compare(**world, MethodId(i), compile, rounds, cost)) ++cost.failed;
  }
  return cost;
}

double percent(double part, double whole) { return whole == 0 ? 0 : 100 * part / whole; }

nlohmann::ordered_json to_json(const ProbeTableCost& c) {
  nlohmann::ordered_json methods = nlohmann::ordered_json::array();
  for (const ProbeTableCost::Method& m : c.methods) {
    methods.push_back({{"name", m.name},
                       {"rows", m.rows},
                       {"row_bytes", m.row_bytes},
                       {"code_bytes", m.code_bytes},
                       {"same_code", m.same}});
  }
  const ProbeTableCost::Method sum = c.sum();
  return {{"compiler", c.compiler},
          {"failed", c.failed},
          {"rows", sum.rows},
          {"row_bytes", sum.row_bytes},
          {"code_bytes", sum.code_bytes},
          {"seconds_without", c.seconds},
          {"seconds_of_rows", c.row_seconds},
          {"same_code", sum.same},
          {"methods", std::move(methods)}};
}

void print(const std::vector<ProbeTableCost>& costs) {
  std::printf("%-10s %9s %8s %10s %12s %9s %10s %9s\n", "compiler", "functions", "rows",
              "row bytes", "a function", "of code", "compile ms", "of it");
  for (const ProbeTableCost& c : costs) {
    const ProbeTableCost::Method sum = c.sum();
    const auto methods = static_cast<double>(std::max<size_t>(c.methods.size(), 1));
    std::printf("%-10s %9zu %8llu %10llu %10.0f B %7.1f %% %10.2f %7.2f %%\n", c.compiler,
                c.methods.size(), static_cast<unsigned long long>(sum.rows),
                static_cast<unsigned long long>(sum.row_bytes),
                static_cast<double>(sum.row_bytes) / methods,
                percent(static_cast<double>(sum.row_bytes), static_cast<double>(sum.code_bytes)),
                1e3 * (c.seconds + c.row_seconds), 100 * c.share());
    if (c.failed != 0) {
      std::printf("%-10s %9llu not compiled\n", "", static_cast<unsigned long long>(c.failed));
    }
  }
}

}  // namespace

ProbeTableCost::Method ProbeTableCost::sum() const {
  Method sum;
  for (const Method& m : methods) {
    sum.rows += m.rows;
    sum.row_bytes += m.row_bytes;
    sum.code_bytes += m.code_bytes;
    sum.same &= m.same;
  }
  return sum;
}

Result<std::vector<ProbeTableCost>> probe_table_costs(const Functions& functions, int rounds) {
  auto baseline = costs_of(
      "baseline", functions, [](CompileWorld& w, MethodId m) { return w.baseline(m, {}); }, rounds);
  if (!baseline) return baseline.error();
  auto optimized = costs_of(
      "optimized", functions, [](CompileWorld& w, MethodId m) { return w.optimized(m, {}, true); },
      rounds);
  if (!optimized) return optimized.error();
  return std::vector<ProbeTableCost>{std::move(*baseline), std::move(*optimized)};
}

int show_probe_table(const CompileCommand& c, const Functions& functions) {
  auto costs = probe_table_costs(functions, kRounds);
  if (!costs) return fail(kFailed, c.file + ": " + costs.error().message);
  bool same = true;
  for (const ProbeTableCost& cost : *costs) same &= cost.sum().same;
  if (c.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const ProbeTableCost& cost : *costs) list.push_back(to_json(cost));
    const int printed = print_json({{"compilers", std::move(list)}});
    return printed != kOk || same ? printed : int{kFailed};
  }
  print(*costs);
  if (same) {
    std::printf("the code of every function is the same with rows and without\n");
    return kOk;
  }
  for (const ProbeTableCost& cost : *costs) {
    for (const ProbeTableCost::Method& m : cost.methods) {
      if (!m.same)
        fail(kFailed,
             c.file + ": " + m.name + ": its " + cost.compiler + " code differs without rows");
    }
  }
  return kFailed;
}

}  // namespace uptier::tools
