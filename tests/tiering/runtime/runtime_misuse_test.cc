// Misuse by hosts (ids, signatures, calls) is refused with a reason.
#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>

#include "tests/support/runtime_host.h"
#include "uptier/builder.h"

namespace uptier::test::runtime_misuse_test {
namespace {

constexpr Type kI64 = Type::kI64;

// A host whose methods are built by functions.
class Bodies : public Host {
 public:
  explicit Bodies(Runtime& r) : runtime_(r) {}

  Result<MethodId> add(const std::string& name, Signature s,
                       std::function<void(FunctionBuilder&)> body, uint64_t module_key = 1) {
    auto index = static_cast<uint32_t>(bodies_.size());
    Result<MethodId> m = runtime_.add_method(*this, {{module_key, index}, name, std::move(s)});
    if (m) bodies_[m->index()] = std::move(body);
    return m;
  }
  Status build(MethodId m, FunctionBuilder& b) override {
    bodies_[m.index()](b);
    return {};
  }

 private:
  Runtime& runtime_;
  std::map<uint32_t, std::function<void(FunctionBuilder&)>> bodies_;
};

struct World {
  // Must be destroyed first.
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<Bodies> host, other;

  explicit World(const Options& o = {}) : runtime(std::move(*Runtime::create(o))) {
    host = std::make_unique<Bodies>(*runtime);
    other = std::make_unique<Bodies>(*runtime);
  }
  ~World() { runtime.reset(); }
};

void add_one(FunctionBuilder& b) { b.ret(b.binary(Opcode::kAdd, b.param(0), b.i64(1))); }

TEST(Misuse, methods_have_types_that_values_can_have) {
  World w;
  auto refused = [&](Signature s, const char* why) {
    Result<MethodId> m = w.host->add("odd", std::move(s), add_one);
    ASSERT_FALSE(m.ok());
    EXPECT_EQ(m.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(m.error().message.find(why), std::string::npos) << m.error().message;
  };
  refused({{kI64}, static_cast<Type>(99)}, "odd: the result is of no known type");
  refused({{kI64, Type::kNone}, kI64}, "parameter 1 is of no type that a value can have");
  refused({{static_cast<Type>(6)}, kI64}, "parameter 0 is of no type");
  refused({std::vector<Type>(kMaxParams + 1, kI64), kI64}, "4097 parameters; 4096 at most");
  EXPECT_TRUE(w.host->add("right", {{kI64}, kI64}, add_one).ok());
}

TEST(Misuse, own_schemas_are_checked_before_anything_is_called) {
  World w;
  MethodInfo info{{1, 1}, "own", {{kI64}, kI64}};
  info.own_code = true;
  info.own_schema.add(SlotKind::kBlock, 1);
  info.own_schema.slots[0].word = 1u << 30;
  Result<MethodId> m = w.runtime->add_method(*w.host, info);
  ASSERT_FALSE(m.ok());
  EXPECT_EQ(m.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(m.error().message.starts_with("own: own_schema: ")) << m.error().message;
  info.own_schema.slots[0].word = 0;
  EXPECT_TRUE(w.runtime->add_method(*w.host, info).ok());
}

TEST(Misuse, threads_whose_stack_is_all_reserve_are_not_attached) {
  World w;
  Status got;
  std::pair<World*, Status*> both{&w, &got};
  pthread_attr_t small;
  pthread_attr_init(&small);
  ASSERT_EQ(pthread_attr_setstacksize(&small, Options().stack_reserve), 0);
  pthread_t thread;
  auto attach = [](void* p) -> void* {
    auto& [world, status] = *static_cast<std::pair<World*, Status*>*>(p);
    *status = world->runtime->attach();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &small, attach, &both), 0);
  pthread_join(thread, nullptr);
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().message.find("stack_reserve"), std::string::npos) << got.error().message;
}

TEST(Misuse, calls_by_another_signature_are_refused_with_both_names) {
  for (const char* tier : {"baseline", "optimized", "auto"}) {
    World w(options({{"tier", tier}}));
    MethodId two = *w.host->add("two", {{kI64, kI64}, kI64}, add_one);
    MethodId caller = *w.host->add("caller", {{kI64}, kI64}, [=](FunctionBuilder& b) {
      Value args[] = {b.param(0)};
      b.ret(b.call(two, {{kI64}, kI64}, args));
    });
    ThreadScope scope(*w.runtime);
    uint64_t args[] = {1};
    EXPECT_EQ(w.runtime->invoke(caller, args).trap.code, TrapCode::kNoCode) << tier;
    EXPECT_EQ(w.runtime->error_of(caller), "caller: calls two by another signature than it has");
    EXPECT_EQ(w.runtime->error_of(two), "");
  }
}

TEST(Misuse, ids_that_were_not_given_out_are_no_methods) {
  World w;
  MethodId known = *w.host->add("known", {{kI64}, kI64}, add_one);
  MethodId unknown(50), none = MethodId::none();
  for (MethodId m : {unknown, none}) {
    EXPECT_EQ(w.runtime->ir(m).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(w.runtime->error_of(m), "");
    EXPECT_EQ(w.runtime->entry_address(m), nullptr);
    uint64_t args[] = {1};
    EXPECT_EQ(w.runtime->invoke(m, args).trap.code, TrapCode::kBadCall);
  }
  MethodId all[] = {unknown, known, none};
  w.runtime->remove_methods(all);
  w.runtime->remove_methods(all);
}

// ---- Alias classes ----------------------------------------------------------------------------

// @root writes 5 to a word, calls a method that writes 7 there, and reads it; each access has its
// own alias class.
uint64_t read_back(World& w, Bodies& callee_host, uint64_t callee_module) {
  Signature one{{Type::kRef}, Type::kNone}, two{{Type::kRef}, kI64};
  MethodId callee = *callee_host.add(
      "callee", one,
      [](FunctionBuilder& b) {
        b.store(Opcode::kStore, b.i64(7), {b.param(0), Value::none(), 0, alias_class(1)});
        b.ret();
      },
      callee_module);
  MethodId root = *w.host->add("root", two, [=](FunctionBuilder& b) {
    Address word{b.param(0), Value::none(), 0, alias_class(2)};
    Value args[] = {b.param(0)};
    b.store(Opcode::kStore, b.i64(5), word);
    b.call(callee, one, args);
    b.ret(b.load(Opcode::kLoad, kI64, word));
  });
  ThreadScope scope(*w.runtime);
  uint64_t word = 0, last = 0;
  uint64_t args[] = {reinterpret_cast<uintptr_t>(&word)};
  for (int n = 0; n < 200; ++n) last = w.runtime->invoke(root, args).bits;
  for (const MethodReport& m : w.runtime->report().methods) {
    if (m.name != "root") continue;
    EXPECT_GT(m.versions.back().inlined, 0u) << "nothing was inlined, so nothing was tried";
  }
  return last;
}

Options eager() {
  return options({{"policy", "always"}, {"workers", "0"}, {"interval", "2"}, {"flush_first", "2"}});
}

TEST(AliasClasses, of_another_host_do_not_count_where_its_code_is_inlined) {
  World w(eager());
  EXPECT_EQ(read_back(w, *w.other, 1), 7u);
}

TEST(AliasClasses, of_another_module_do_not_count_either) {
  World w(eager());
  EXPECT_EQ(read_back(w, *w.host, 2), 7u);
}

// ---- Threads that come and go -------------------------------------------------------------------

// The profile of a method is the same, whichever threads ran it.
TEST(EndedThreads, what_they_have_seen_stays_and_adds_up) {
  constexpr uint64_t kRuns = 40;
  for (const char* mode : {"per_thread", "interlocked"}) {
    Profile seen[2];
    for (bool attached : {true, false}) {
      Options o = options({{"tier", "instrumented"},
                           {"workers", "0"},
                           {"counters", mode},
                           {"adaptive", "off"},
                           // One value table per thread would have more room in total.
                           {"value_versions", "off"}});
      IrRuntime r(parse_or_die(kSumText), o);
      std::optional<ThreadScope> scope;
      if (attached) scope.emplace(*r.runtime);
      for (uint64_t n = 1; n <= kRuns; ++n) { EXPECT_EQ(r.call("sum", {n}).bits, n * (n + 1) / 2); }
      if (attached) r.runtime->flush();
      seen[attached] = r.runtime->profile();
      EXPECT_EQ(r.report_of("sum").calls, kRuns);
      EXPECT_EQ(r.report_of("sum").flushes >= kRuns, !attached);
    }
    const MethodProfile &apart = seen[0].methods.begin()->second,
                        &together = seen[1].methods.begin()->second;
    EXPECT_EQ(apart.counts, together.counts) << mode;
    EXPECT_EQ(apart.estimates, together.estimates) << mode;
    EXPECT_EQ(apart.calls, kRuns);
    EXPECT_EQ(apart.sampled_calls, together.sampled_calls);
    EXPECT_EQ(apart.iterations, together.iterations);
  }
}

}  // namespace
}  // namespace uptier::test::runtime_misuse_test
