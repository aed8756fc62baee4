// Runtime::walk through inlined bodies, bodies that exit to the host's interpreter, and interpreted
// ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/support/workshop.h"
#include "uptier/uptier.h"

namespace uptier::test::walk_bodies_test {
namespace {

std::vector<CallSite> g_seen;  // by the latest look
Runtime* g_runtime = nullptr;

uint64_t look(uint64_t x) {
  std::array<CallSite, 16> all;
  size_t count = g_runtime->walk(all);
  g_seen.assign(all.begin(), all.begin() + static_cast<ptrdiff_t>(count));
  return x;
}

std::vector<std::string> g_names;  // names of methods

// Returns "one@10 two@20 three@30 ": the current calls with their locations, innermost first.
std::string backtrace(Runtime& runtime) {
  std::array<CallSite, 64> sites;
  std::string text;
  for (const CallSite& s : std::span(sites).first(runtime.walk(sites))) {
    text += g_names[s.method.index()] + "@" + std::to_string(s.location) + " ";
  }
  return text;
}

std::string g_text;

uint64_t look_for_text(uint64_t x) {
  g_text = backtrace(*g_runtime);
  return x;
}

// Calls another method, or `look`, at a location.
Workshop::Body calls(MethodId callee, uint32_t location) {
  return [=](FunctionBuilder& b) {
    Value args[] = {b.param(0)};
    b.set_location(location);
    Value r = callee.valid()
                  ? b.call(callee, kOne, args)
                  : b.call_host({"look", reinterpret_cast<const void*>(look), kOne}, args);
    b.set_location(location + 1);
    b.ret(b.binary(Opcode::kAdd, r, b.i64(1)));
  };
}

Options synchronous() { return options({{"workers", "0"}, {"interval", "1"}}); }

constexpr int kEnough = 40'000;

// Returns the number of bodies inlined into the best version of a method.
uint32_t inlined(const Runtime& r, MethodId m) {
  uint32_t most = 0;
  for (const MethodReport& report : r.report().methods) {
    if (report.method != m) continue;
    for (const VersionReport& v : report.versions) {
      if (v.tier == Tier::kOptimized && !v.retired) most = std::max(most, v.inlined);
    }
  }
  return most;
}

TEST(WalkBodies, bodies_that_are_inlined_have_entries_of_their_own) {
  Workshop w(synchronous());
  g_runtime = w.runtime.get();
  ThreadScope scope(*w.runtime);
  MethodId one = w.add("one", kOne, calls(MethodId::none(), 10));
  MethodId two = w.add("two", kOne, calls(one, 20));
  MethodId three = w.add("three", kOne, calls(two, 30));
  const std::vector<CallSite> expected = {{one, 10}, {two, 20}, {three, 30}};
  for (uint64_t i = 0; i < kEnough; ++i) {
    ASSERT_EQ(w.call(three, {i}).bits, i + 3);
    ASSERT_EQ(g_seen, expected) << i;
  }
  EXPECT_EQ(inlined(*w.runtime, three), 2u);
}

TEST(WalkBodies, a_backtrace_has_names_and_locations) {
  Workshop w(synchronous());
  g_runtime = w.runtime.get();
  ThreadScope scope(*w.runtime);
  MethodId one = w.add("one", kOne, [](FunctionBuilder& b) {
    Value args[] = {b.param(0)};
    b.set_location(10);
    b.ret(b.call_host({"look", reinterpret_cast<const void*>(look_for_text), kOne}, args));
  });
  MethodId two = w.add("two", kOne, calls(one, 20));
  MethodId three = w.add("three", kOne, calls(two, 30));
  g_names = {"one", "two", "three"};
  ASSERT_TRUE(w.call(three, {1}).ok());
  EXPECT_EQ(g_text, "one@10 two@20 three@30 ");
}

TEST(WalkBodies, in_C_ids_are_those_of_C) {
  Workshop w(synchronous());
  ThreadScope scope(*w.runtime);
  uptier_site site = {{7}, 7};
  EXPECT_EQ(uptier_call_site(nullptr, &site), 0);
  EXPECT_EQ(uptier_call_site(reinterpret_cast<const void*>(look), &site), 0);
  EXPECT_EQ(site.method.id, 7u);
  EXPECT_EQ(uptier_runtime_walk(nullptr, &site, 1), 0u);
}

TEST(WalkBodies, outside_of_code_there_is_nothing) {
  Workshop w(synchronous());
  g_runtime = w.runtime.get();
  g_seen = {CallSite{}};
  look(0);  // on a thread that is not attached
  EXPECT_TRUE(g_seen.empty());
  ThreadScope scope(*w.runtime);
  g_seen = {CallSite{}};
  look(0);
  EXPECT_TRUE(g_seen.empty());
  EXPECT_EQ(Runtime::call_site(__builtin_return_address(0)), std::nullopt);
}

// ---- Host frames without tables ---------------------------------------------------------------

// Calls the function it is given, like code that a host generates without unwind tables.
asm(R"(
  .pushsection .text
  .type uptier_test_without_tables, @function
uptier_test_without_tables:
  sub $8, %rsp
  call *%rdi
  add $8, %rsp
  ret
  .size uptier_test_without_tables, .-uptier_test_without_tables
  .popsection
)");
extern "C" uint64_t uptier_test_without_tables(uint64_t (*f)());

MethodId g_inner, g_outer;

uint64_t nest_outer(uint64_t x) {
  uint64_t args[] = {x};
  return g_runtime->invoke(g_outer, args).bits;
}
uint64_t invoke_inner() {
  uint64_t args[] = {1};
  return g_runtime->invoke(g_inner, args).bits;
}
uint64_t nest(uint64_t x) { return invoke_inner() + x; }
uint64_t nest_without_tables(uint64_t x) { return uptier_test_without_tables(invoke_inner) + x; }

HostFunction as_host(const char* name, uint64_t (*f)(uint64_t)) {
  return {name, reinterpret_cast<const void*>(f), kOne};
}

TEST(WalkBodies, behind_a_host_frame_without_tables_it_goes_on_at_the_next_invoke) {
  for (const char* tier : {"baseline", "optimized"}) {
    Workshop w(options({{"tier", tier}, {"workers", "0"}}));
    g_runtime = w.runtime.get();
    ThreadScope scope(*w.runtime);
    auto calling = [](HostFunction f, uint32_t location) {
      return [=](FunctionBuilder& b) {
        Value args[] = {b.param(0)};
        b.set_location(location);
        b.ret(b.call_host(f, args, kCallMayTrap));
      };
    };
    MethodId looks = w.add("looks", kOne, calling(as_host("look", look), 10));
    g_inner = looks;
    MethodId hidden = w.add("hidden", kOne, calling(as_host("nest", nest_without_tables), 20));
    ASSERT_EQ(w.call(hidden, {1}).bits, 2u);
    EXPECT_EQ(g_seen, (std::vector<CallSite>{{looks, 10}})) << tier;
    g_outer = hidden;
    MethodId top = w.add("top", kOne, calling(as_host("nest_outer", nest_outer), 30));
    ASSERT_EQ(w.call(top, {1}).bits, 2u);
    EXPECT_EQ(g_seen, (std::vector<CallSite>{{looks, 10}, {top, 30}})) << tier;
    MethodId seen = w.add("seen", kOne, calling(as_host("nest", nest), 40));
    ASSERT_EQ(w.call(seen, {1}).bits, 2u);
    EXPECT_EQ(g_seen, (std::vector<CallSite>{{looks, 10}, {seen, 40}})) << tier;
  }
}

// ---- Exits to the host ------------------------------------------------------------------------

// inner(x) exits to the interpreter if x is a multiple of 5; outer(x) calls it. `entry` is a method
// that the host interprets: it calls outer's entry.
class Leaving : public Host {
 public:
  Leaving() {
    Result<std::unique_ptr<Runtime>> r = Runtime::create(synchronous());
    EXPECT_TRUE(r.ok());
    runtime = std::move(*r);
    g_runtime = runtime.get();
    MethodInfo in{.key = {1, 1}, .name = "inner", .signature = kOne};
    in.host_resume = [](const HostFrame* f) -> uint64_t {
      auto* self = static_cast<Leaving*>(f->host);
      ++self->resumed;
      look(0);
      if (self->raises) Runtime::raise(TrapCode::kHost);
      return f->slots[0] + 100;
    };
    inner = *runtime->add_method(*this, in);
    outer = *runtime->add_method(*this, {.key = {1, 2}, .name = "outer", .signature = kOne});
    MethodInfo entered{.key = {1, 3}, .name = "entry", .signature = kOne};
    static Leaving* self;
    self = this;
    entered.host_entry = reinterpret_cast<const void*>(
        +[](uint64_t x) { return self->runtime->entry<uint64_t(uint64_t)>(self->outer)(x); });
    entered.host_may_trap = true;
    interpreted = *runtime->add_method(*this, entered);
    top = *runtime->add_method(*this, {.key = {1, 4}, .name = "top", .signature = kOne});
  }
  ~Leaving() override { runtime.reset(); }

  Status build(MethodId m, FunctionBuilder& b) override {
    if (m == interpreted) return Error{ErrorCode::kUnsupported, "interpreted"};
    Value args[] = {b.param(0)};
    if (m == inner) {
      b.frame_state(1, args);
      Value rest = b.binary(Opcode::kRemU, b.param(0), b.i64(5));
      b.guard(b.binary(Opcode::kNe, rest, b.i64(0)), GuardReason::kValue);
      b.ret(b.param(0));
      return {};
    }
    b.set_location(m == outer ? 51 : 61);
    b.ret(b.call(m == outer ? inner : interpreted, kOne, args));
    return {};
  }

  std::unique_ptr<Runtime> runtime;
  MethodId inner, outer, interpreted, top;
  int resumed = 0;
  bool raises = false;
};

TEST(WalkBodies, a_body_that_the_host_goes_on_with_has_no_entry_and_its_callers_have) {
  Leaving host;
  ThreadScope scope(*host.runtime);
  const std::vector<CallSite> expected = {{host.outer, 51}};
  auto run = [&](uint64_t x) {
    g_seen.clear();
    uint64_t args[] = {x};
    Outcome o = host.runtime->invoke(host.outer, args);
    bool leaves = x % 5 == 0, raised = leaves && host.raises;
    ASSERT_EQ(o.trap.code, raised ? TrapCode::kHost : TrapCode::kNone);
    ASSERT_EQ(o.bits, raised ? 0 : x + (leaves ? 100 : 0));
    ASSERT_EQ(g_seen, leaves ? expected : std::vector<CallSite>{}) << x;
  };
  for (uint64_t i = 0; i < 10; ++i) run(i);
  for (uint64_t i = 0; i < kEnough; ++i) run(1 + i % 4);
  EXPECT_EQ(inlined(*host.runtime, host.outer), 1u);
  int resumed = host.resumed;
  for (uint64_t i = 0; i < 10; ++i) run(i);
  host.raises = true;
  run(5);
  host.raises = false;
  for (uint64_t i = 0; i < 10; ++i) run(i);
  EXPECT_EQ(host.resumed, resumed + 5);
}

TEST(WalkBodies, what_is_interpreted_has_no_entry) {
  Leaving host;
  ThreadScope scope(*host.runtime);
  const std::vector<CallSite> expected = {{host.outer, 51}, {host.top, 61}};
  for (int i = 0; i < 200; ++i) {
    g_seen.clear();
    uint64_t args[] = {5};
    ASSERT_EQ(host.runtime->invoke(host.top, args).bits, 105u);
    ASSERT_EQ(g_seen, expected) << i;
  }
}

}  // namespace
}  // namespace uptier::test::walk_bodies_test
