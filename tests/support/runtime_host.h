// runtime_host.h: a runtime over a module of IR text, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jit/frontend/interpret.h"
#include "jit/frontend/parse.h"
#include "tools/ir_host.h"
#include "uptier/runtime.h"

namespace uptier::test {

// Keeps every event, in order.
class CollectingSink : public TraceSink {
 public:
  Status on_event(const TraceEvent& e) override {
    events.push_back(e);
    return {};
  }
  Status finish(uint64_t) override {
    finished = true;
    return {};
  }
  template <typename E>
  std::vector<E> all() const {
    std::vector<E> found;
    for (const TraceEvent& e : events) {
      if (const E* x = std::get_if<E>(&e)) found.push_back(*x);
    }
    return found;
  }

  std::vector<TraceEvent> events;
  bool finished = false;
};

inline jit::Module parse_or_die(std::string_view text, std::span<const HostFunction> hosts = {}) {
  Result<jit::Module> m = jit::parse_module(text, {.file = "test", .hosts = hosts});
  if (!m) ADD_FAILURE() << m.error().message;
  return m ? std::move(*m) : jit::Module{};
}

// Returns options set by name and value, as on a command line.
inline Options options(std::initializer_list<std::pair<const char*, const char*>> set) {
  Options o;
  for (auto [name, value] : set) {
    Status s = o.set(name, value);
    EXPECT_TRUE(s.ok()) << s.error().message;
  }
  return o;
}

// Returns the counts of a kind of stress; all 0 if it was not requested.
inline StressCount stress_count(const Report& r, std::string_view kind) {
  for (const StressCount& c : r.stress) {
    if (c.kind == kind) return c;
  }
  return {};
}

// sum(n): a loop that adds up 1, 2, ... n.
inline constexpr const char* kSumText = R"(
func @sum(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 0
  jump b1(v1, v1)
b1(v2: i64, v3: i64):
  loop_header 0 pc=0 []
  v4 = const.i64 1
  v5 = add.i64 v2, v4
  v6 = add.i64 v3, v5
  v7 = lt_u.i64 v5, v0
  branch v7, b1(v5, v6), b2
b2:
  return v6
}
)";

// A runtime with the module's functions as its methods; members are destroyed in the right order.
struct IrRuntime {
  jit::Module module;
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<tools::IrHost> host;

  IrRuntime(jit::Module m, const Options& options, TraceSink* sink = nullptr,
            Policy* policy = nullptr)
      : module(std::move(m)) {
    Result<std::unique_ptr<Runtime>> r = Runtime::create(options, sink, policy);
    if (!r) {
      ADD_FAILURE() << r.error().message;
      return;
    }
    runtime = std::move(*r);
    Result<std::unique_ptr<tools::IrHost>> h = tools::IrHost::add(*runtime, module);
    if (!h) {
      ADD_FAILURE() << h.error().message;
      return;
    }
    host = std::move(*h);
  }
  ~IrRuntime() { runtime.reset(); }

  MethodId method(std::string_view name) const { return host->method(module.find(name)); }
  Outcome call(std::string_view name, std::vector<uint64_t> args) {
    return runtime->invoke(method(name), args);
  }
  MethodReport report_of(std::string_view name) const {
    for (const MethodReport& m : runtime->report().methods) {
      if (m.name == name) return m;
    }
    return {};
  }
  // Returns the merged block counts of a method by block site - 1; empty if nothing was flushed.
  std::vector<uint64_t> counts(std::string_view name) const {
    const Profile p = runtime->profile();
    for (const auto& [key, m] : p.methods) {
      if (m.name == name) return m.counts;
    }
    return {};
  }
};

}  // namespace uptier::test
