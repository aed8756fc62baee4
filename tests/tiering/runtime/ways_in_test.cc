// Ways into a runtime other than describing IR: a host's own code for a plan, and a host's
// interpreter whose calls and loops move to compiled code when they are hot.
#include <gtest/gtest.h>

#include <optional>
#include <semaphore>
#include <thread>

#include "tests/support/runtime_host.h"

namespace uptier::test::ways_in_test {
namespace {

// ---- A host's own code ------------------------------------------------------------------------

Runtime* current_runtime = nullptr;
MethodId current_method;

extern "C" uint64_t own_plain(uint64_t x) { return x * 3; }
extern "C" uint64_t own_counting(uint64_t x) {
  current_runtime->counters(current_method)[0] += 1;
  current_runtime->counters(current_method)[1] += x % 2;
  return x * 3;
}
extern "C" uint64_t own_better(uint64_t x) { return x + x + x; }

class OwnHost : public Host {
 public:
  Result<HostCode> compile(const Plan& plan, const MethodProfile& seen) override {
    plans.push_back(plan);
    if (plan.tier == Tier::kOptimized) samples_seen = seen.sampled_calls;
    if (fail) return Error{ErrorCode::kUnsupported, "own compiler: no"};
    const void* entry = plan.tier == Tier::kOptimized      ? (const void*)own_better
                        : plan.copy == Copy::kInstrumented ? (const void*)own_counting
                                                           : (const void*)own_plain;
    return HostCode{entry, 64, new int(static_cast<int>(plans.size()))};
  }
  void release(MethodId, const HostCode& code) noexcept override {
    ++released;
    delete static_cast<int*>(code.owner);
  }

  std::vector<Plan> plans;
  uint64_t samples_seen = 0;
  int released = 0;
  bool fail = false;
};

MethodInfo own_method() {
  MethodInfo info{.key = {7, 1}, .name = "own", .signature = {{Type::kI64}, Type::kI64}};
  info.own_code = true;
  info.own_size = 10;
  info.own_schema = Schema::block_schema(2, 99);
  return info;
}

TEST(OwnCode, host_s_code_is_stubbed_sampled_profiled_promoted_and_given_back) {
  OwnHost host;
  uint64_t made = 0;
  {
    Options o;
    o.workers = 0;
    o.interval = 4;
    auto r = Runtime::create(o);
    ASSERT_TRUE(r.ok());
    Result<MethodId> m = (*r)->add_method(host, own_method());
    ASSERT_TRUE(m.ok());
    current_runtime = r->get();
    current_method = *m;
    ThreadScope scope(**r);
    for (uint64_t i = 0; i < 20000; ++i) { ASSERT_EQ((*r)->invoke(*m, {{i}}).bits, 3 * i); }
    (*r)->flush();
    Profile p = (*r)->profile();
    const MethodProfile* seen = p.find({7, 1});
    ASSERT_NE(seen, nullptr);
    EXPECT_GT(seen->sampled_calls, 10u);
    EXPECT_EQ(seen->count(SlotKind::kBlock, 1), seen->sampled_calls) << "one count a sampled call";
    EXPECT_LT(*seen->count(SlotKind::kBlock, 2), seen->sampled_calls);
    Report report = (*r)->report();
    ASSERT_EQ(report.methods.size(), 1u);
    EXPECT_EQ(report.methods[0].tier, Tier::kOptimized);
    EXPECT_EQ(report.methods[0].calls, 20000u);
    EXPECT_GE(host.plans.size(), 3u);
    EXPECT_EQ(host.plans.back().tier, Tier::kOptimized);
    EXPECT_GT(host.samples_seen, 0u);
    EXPECT_EQ(host.released, 2) << "both baseline copies; no thread runs them";
    made = host.plans.size();
  }
  EXPECT_EQ(host.released, static_cast<int>(made)) << "the runtime's end gives back the rest";
}

TEST(OwnCode, removal_gives_back_what_the_host_made_before_the_host_may_go) {
  OwnHost host;
  Options o;
  o.workers = 0;
  auto r = Runtime::create(o);
  MethodId m = *(*r)->add_method(host, own_method());
  current_runtime = r->get();
  current_method = m;
  ThreadScope scope(**r);
  for (uint64_t i = 0; i < 20000; ++i) { ASSERT_EQ((*r)->invoke(m, {{i}}).bits, 3 * i); }
  (*r)->remove_methods({{m}});
  const auto made = static_cast<int>(host.plans.size());
  EXPECT_GT(made, 1);
  EXPECT_EQ(host.released, made);
  (*r)->quiescent();
  EXPECT_EQ(host.released, made) << "and nothing twice";
}

// The other thread is known only not to call the method.
TEST(OwnCode, removal_gives_back_while_another_thread_runs) {
  OwnHost host;
  Options o;
  o.workers = 0;
  auto r = Runtime::create(o);
  MethodId m = *(*r)->add_method(host, own_method());
  current_runtime = r->get();
  current_method = m;
  std::binary_semaphore attached{0}, end{0};
  std::thread other([&] {
    ThreadScope scope(**r);
    attached.release();
    end.acquire();
  });
  attached.acquire();
  for (uint64_t i = 0; i < 100; ++i) { ASSERT_EQ((*r)->invoke(m, {{i}}).bits, 3 * i); }
  (*r)->remove_methods({{m}});
  EXPECT_GT(host.plans.size(), 0u);
  EXPECT_EQ(host.released, static_cast<int>(host.plans.size()));
  end.release();
  other.join();
}

TEST(OwnCode, refusal_of_better_code_leaves_the_method_in_what_it_has) {
  OwnHost host;
  Options o;
  o.workers = 0;
  auto r = Runtime::create(o);
  ASSERT_TRUE(r.ok());
  Result<MethodId> m = (*r)->add_method(host, own_method());
  current_runtime = r->get();
  current_method = *m;
  ThreadScope scope(**r);
  EXPECT_EQ((*r)->invoke(*m, {{5}}).bits, 15u);
  host.fail = true;
  for (uint64_t i = 0; i < 20000; ++i) ASSERT_EQ((*r)->invoke(*m, {{i}}).bits, 3 * i);
  Report report = (*r)->report();
  EXPECT_EQ(report.methods[0].tier, Tier::kBaseline);
  EXPECT_EQ(report.methods[0].last_error, "own compiler: no");
  EXPECT_GT(report.losses.compiles_failed, 0u);
}

TEST(OwnCode, host_that_answers_nothing_is_an_error_and_no_crash) {
  class Silent : public Host {
  } host;
  auto r = Runtime::create({});
  ASSERT_TRUE(r.ok());
  Result<MethodId> own = (*r)->add_method(host, own_method());
  MethodInfo described = own_method();
  described.own_code = false;
  Result<MethodId> built = (*r)->add_method(host, described);
  for (MethodId m : {*own, *built}) {
    Outcome o = (*r)->invoke(m, {{1}});
    EXPECT_EQ(o.trap.code, TrapCode::kNoCode);
    EXPECT_EQ(o.trap.method, m);
  }
  EXPECT_EQ((*r)->report().losses.compiles_failed, 2u);
}

// ---- An interpreter as Tier::kHost ------------------------------------------------------------

// sum(n, step): slot 0 is i, slot 1 is total. The interpreter and the IR do the same, and both log
// what they do in `effects`, so that a loop entered in the middle must neither repeat nor lose a
// round.
struct Machine {
  Runtime* runtime = nullptr;
  MethodId method;
  uint64_t interpreted = 0;
  uint64_t entered = 0;
  bool trap_at_the_end = false;
  std::vector<uint64_t> effects;
};
Machine* machine = nullptr;

extern "C" void effect(uint64_t i) { machine->effects.push_back(i); }
extern "C" void finish(uint64_t) {
  if (machine->trap_at_the_end) Runtime::raise(TrapCode::kHost, 77);
}

extern "C" uint64_t interpret_sum(uint64_t n, uint64_t step) {
  uint64_t frame[2] = {0, 0};
  int32_t* countdown = machine->runtime->loop_countdown(machine->method);
  while (frame[0] < n) {
    if (--*countdown <= 0) {
      std::optional<Outcome> o =
          machine->runtime->osr_enter(machine->method, LoopId(0), {{n, step}}, frame);
      if (o) {
        ++machine->entered;
        if (!o->ok()) Runtime::raise(o->trap.code, o->trap.detail);
        return o->bits;
      }
    }
    ++machine->interpreted;
    effect(frame[0]);
    frame[1] += frame[0] * step;
    ++frame[0];
  }
  finish(frame[1]);
  return frame[1];
}

class SumHost : public Host {
 public:
  Status build(MethodId, FunctionBuilder& b) override {
    Variable i = b.declare(Type::kI64), total = b.declare(Type::kI64);
    Variable hidden = b.declare(Type::kI64);
    b.def(i, b.i64(0));
    b.def(total, b.i64(0));
    b.def(hidden, b.binary(Opcode::kAdd, b.param(0), b.i64(1)));
    Block head = b.create_block(), body = b.create_block(), done = b.create_block();
    b.jump(head);
    b.switch_to(head);
    const Variable slots[] = {i, total};
    b.loop_header(1, slots);
    b.branch(b.binary(Opcode::kLtU, b.use(i), b.param(0)), body, done);
    b.switch_to(body);
    b.call_host({"effect", (const void*)effect, {{Type::kI64}, Type::kNone}}, {{b.use(i)}});
    b.def(total,
          b.binary(Opcode::kAdd, b.use(total), b.binary(Opcode::kMul, b.use(i), b.param(1))));
    b.def(i, b.binary(Opcode::kAdd, b.use(i), b.i64(1)));
    if (use_hidden) b.def(total, b.binary(Opcode::kXor, b.use(total), b.use(hidden)));
    b.jump(head);
    b.seal(head);
    b.seal(body);
    b.seal(done);
    b.switch_to(done);
    b.call_host({"finish", (const void*)finish, {{Type::kI64}, Type::kNone}}, {{b.use(total)}},
                kCallMayTrap);
    b.ret(b.use(total));
    return {};
  }

  bool use_hidden = false;
};

class InterpretedLoop : public testing::Test {
 protected:
  void start(Options o) {
    auto r = Runtime::create(o);
    ASSERT_TRUE(r.ok()) << r.error().message;
    runtime_ = std::move(*r);
    for (uint32_t k = 0; k < others_; ++k) {
      MethodInfo other;
      other.key = {2, k};
      other.name = "other";
      ASSERT_TRUE(runtime_->add_method(host_, other).ok());
    }
    MethodInfo info{.key = {1, 1},
                    .name = "sum",
                    .signature = {{Type::kI64, Type::kI64}, Type::kI64},
                    .host_entry = (const void*)interpret_sum};
    info.host_may_trap = true;
    Result<MethodId> m = runtime_->add_method(host_, info);
    ASSERT_TRUE(m.ok()) << m.error().message;
    machine_.runtime = runtime_.get();
    machine_.method = *m;
    machine = &machine_;
    scope_.emplace(*runtime_);
  }
  Outcome run(uint64_t n, uint64_t step) {
    machine_.effects.clear();
    return runtime_->invoke(machine_.method, {{n, step}});
  }
  void expect_effects(uint64_t n) {
    ASSERT_EQ(machine_.effects.size(), n);
    for (uint64_t i = 0; i < n; ++i) ASSERT_EQ(machine_.effects[i], i);
  }

  SumHost host_;
  Machine machine_;
  std::unique_ptr<Runtime> runtime_;
  uint32_t others_ = 0;  // methods that are added before it
  std::optional<ThreadScope> scope_;
};

TEST_F(InterpretedLoop, leaves_the_interpreter_in_the_middle_of_its_only_call) {
  Options o;
  o.workers = 0;
  start(o);
  const uint64_t n = 100000;
  EXPECT_EQ(run(n, 5).bits, n * (n - 1) / 2 * 5);
  expect_effects(n);
  EXPECT_EQ(machine_.entered, 1u);
  EXPECT_LT(machine_.interpreted, n / 2);
  Report report = runtime_->report();
  EXPECT_EQ(report.methods[0].osr_entries, 1u);
  EXPECT_EQ(report.losses.compiles_failed, 0u) << report.methods[0].last_error;
}

TEST_F(InterpretedLoop, trap_beyond_the_loop_passes_through_the_interpreter) {
  Options o;
  o.workers = 0;
  start(o);
  machine_.trap_at_the_end = true;
  for (uint64_t n : {10u, 100000u}) {
    Outcome out = run(n, 1);
    EXPECT_EQ(out.trap.code, TrapCode::kHost) << n;
    EXPECT_EQ(out.trap.detail, 77u) << n;
    expect_effects(n);
  }
  EXPECT_EQ(machine_.entered, 1u);
}

TEST_F(InterpretedLoop, calls_leave_tier_host_too) {
  Options o;
  o.workers = 0;
  start(o);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(run(20, 3).bits, 570u);
    expect_effects(20);
  }
  EXPECT_NE(runtime_->report().methods[0].tier, Tier::kHost);
  EXPECT_LT(machine_.interpreted, 100u * 20u);
}

TEST_F(InterpretedLoop, value_that_the_frame_does_not_have_keeps_the_loop_in_the_interpreter) {
  Options o;
  o.workers = 0;
  host_.use_hidden = true;
  start(o);
  const uint64_t n = 30000;
  run(n, 5);
  expect_effects(n);
  EXPECT_EQ(machine_.entered, 0u);
  Report report = runtime_->report();
  EXPECT_NE(report.methods[0].last_error.find("frame state"), std::string::npos)
      << report.methods[0].last_error;
}

TEST_F(InterpretedLoop, fixed_tiers_do_not_interpret) {
  for (TierMode tier : {TierMode::kBaseline, TierMode::kInstrumented, TierMode::kOptimized}) {
    scope_.reset();
    Options o;
    o.tier = tier;
    start(o);
    EXPECT_EQ(run(20000, 1).bits, 20000ull * 19999 / 2);
    expect_effects(20000);
    EXPECT_EQ(machine_.interpreted, 0u);
  }
}

// ---- Countdown words of loops -------------------------------------------------------------------

int32_t* word_of(Runtime& r, MethodId m) {
  return reinterpret_cast<int32_t*>(static_cast<char*>(Runtime::thread_base()) +
                                    r.loop_countdown_offset(m));
}

TEST_F(InterpretedLoop, a_countdown_is_the_threads_base_and_the_methods_offset) {
  start({});
  MethodId m = machine_.method;
  int32_t* shared = word_of(*runtime_, m);
  EXPECT_EQ(shared, runtime_->loop_countdown(m)) << "of threads that are not attached";
  ptrdiff_t offset = runtime_->loop_countdown_offset(m);
  int32_t* seen[2] = {};
  for (int32_t*& word : seen) {
    std::thread([&] {
      ThreadScope scope(*runtime_);
      word = word_of(*runtime_, m);
      EXPECT_EQ(word, runtime_->loop_countdown(m));
      EXPECT_NE(word, shared);
      EXPECT_EQ(offset, runtime_->loop_countdown_offset(m));
      // Ids of no method share another word, which is never due again.
      for (MethodId other : {MethodId::none(), MethodId(12345)}) {
        int32_t* nobodys = word_of(*runtime_, other);
        EXPECT_EQ(nobodys, runtime_->loop_countdown(other));
        EXPECT_NE(nobodys, word);
        *nobodys = 0;
        EXPECT_FALSE(runtime_->osr_enter(other, LoopId(0), {}, nullptr).has_value());
        EXPECT_GT(*nobodys, 1'000'000);
      }
    }).join();
  }
  EXPECT_NE(seen[0], nullptr);
}

TEST_F(InterpretedLoop, a_method_beyond_the_first_65536_has_a_countdown_of_its_own) {
  Options o;
  o.max_methods = 70000;
  others_ = 1 << 16;
  start(o);
  ASSERT_GE(machine_.method.index(), 1u << 16);
  int32_t* word = runtime_->loop_countdown(machine_.method);
  EXPECT_NE(word, runtime_->loop_countdown(MethodId::none()));
  uint64_t args[2] = {20000, 1};
  EXPECT_TRUE(runtime_->invoke(machine_.method, args).ok());
  runtime_->flush();
  EXPECT_GT(runtime_->report().methods.back().loop_iterations, 0u);
  // A host that has only the offset asks now and then, and nothing is counted.
  int32_t* nobodys = word_of(*runtime_, machine_.method);
  EXPECT_EQ(nobodys, runtime_->loop_countdown(MethodId::none()));
  uint64_t frame[2] = {};
  *nobodys = 0;
  runtime_->osr_enter(machine_.method, LoopId(0), args, frame);
  EXPECT_GT(*nobodys, 0);
}

}  // namespace
}  // namespace uptier::test::ways_in_test
