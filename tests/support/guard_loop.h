// guard_loop.h: a host with an interpreter, and a method whose speculation fails now and then.
//
//   sum(n, every): total = 0; for i in 0..n: total += i % every == 0 ? 2 * i : i
//
// The description speculates that i is not a multiple of `every`. If it is one, the guard exits to
// the interpreter, which does that iteration and goes on with the loop; from there it may enter
// compiled code again.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tests/support/runtime_host.h"
#include "uptier/runtime.h"

namespace uptier::test {

class GuardLoop : public Host {
 public:
  static constexpr uint64_t kTrapDetail = 77;

  explicit GuardLoop(const Options& options, bool at_once = false) { start(options, at_once); }
  ~GuardLoop() override {
    scope_.reset();
    runtime_.reset();
  }

  Runtime& runtime() { return *runtime_; }
  MethodId method() const { return method_; }
  Outcome run(uint64_t n, uint64_t every) {
    depth = 0;  // a trap drops the interpreter's frames
    return runtime_->invoke(method_, {{reinterpret_cast<uintptr_t>(this), n, every}});
  }
  MethodReport report() {
    runtime_->flush();
    for (const MethodReport& m : runtime_->report().methods) {
      if (m.method == method_) return m;
    }
    return {};
  }
  static uint64_t expected(uint64_t n, uint64_t every) {
    uint64_t total = 0;
    for (uint64_t i = 0; i < n; ++i) total += i % every == 0 ? 2 * i : i;
    return total;
  }

  Status build(MethodId, FunctionBuilder& b) override {
    ++builds;
    iterations_at_build = std::min(iterations_at_build, interpreted);
    if (refuses) return Error{ErrorCode::kUnsupported, "sum: not described"};
    Variable i = b.declare(Type::kI64), total = b.declare(Type::kI64);
    Value n = b.param(1), every = b.param(2);
    b.def(i, b.i64(0));
    b.def(total, b.i64(0));
    Block head = b.create_block(), body = b.create_block(), done = b.create_block();
    b.jump(head);
    b.switch_to(head);
    const Variable slots[] = {i, total};
    b.loop_header(1, slots);
    b.branch(b.binary(Opcode::kLtU, b.use(i), n), body, done);
    b.seal(body);
    b.seal(done);
    b.switch_to(body);
    Value wrong = wrong_slot ? b.i64(1) : b.use(total);
    b.frame_state(2, {{b.use(i), wrong, n, every}});
    b.guard(b.binary(Opcode::kNe, b.binary(Opcode::kRemU, b.use(i), every), b.i64(0)),
            GuardReason::kValue);
    b.def(total, b.binary(Opcode::kAdd, b.use(total), b.use(i)));
    b.def(i, b.binary(Opcode::kAdd, b.use(i), b.i64(1)));
    b.jump(head);
    b.seal(head);
    b.switch_to(done);
    b.ret(b.use(total));
    return {};
  }

  // Settings, for use before the first call.
  bool refuses = false;
  bool wrong_slot = false;
  uint32_t loop = 0;               // the loop number that the interpreter passes to osr_enter
  uint64_t traps_at = UINT64_MAX;  // the iteration at which it raises a trap
  // Results.
  int builds = 0;
  uint64_t iterations_at_build = UINT64_MAX;
  uint64_t interpreted = 0;  // iterations
  uint64_t entered = 0;      // by osr_enter
  uint64_t resumed = 0;
  uint64_t depth = 0, deepest = 0;  // of interpreters that took a frame over; depth is the current
                                    // nesting

 private:
  void start(const Options& options, bool at_once) {
    auto r = Runtime::create(options);
    ASSERT_TRUE(r.ok()) << r.error().message;
    runtime_ = std::move(*r);
    MethodInfo info{.key = {1, 1},
                    .name = "sum",
                    .signature = {{Type::kRef, Type::kI64, Type::kI64}, Type::kI64}};
    info.host_entry = reinterpret_cast<const void*>(&GuardLoop::enter);
    info.host_resume = &GuardLoop::resume;
    info.host_may_trap = true;
    info.describes_at_once = at_once;
    Result<MethodId> m = runtime_->add_method(*this, info);
    ASSERT_TRUE(m.ok()) << m.error().message;
    method_ = *m;
    scope_.emplace(*runtime_);
  }

  static uint64_t enter(GuardLoop* self, uint64_t n, uint64_t every) {
    return self->interpret(n, every, 0, 0, true);
  }
  static uint64_t resume(const HostFrame* f) {
    auto* self = static_cast<GuardLoop*>(f->host);
    ++self->resumed;
    EXPECT_EQ(f->pc, 2u);
    EXPECT_EQ(f->slot_count, 4u);
    self->deepest = std::max(self->deepest, ++self->depth);
    uint64_t r = self->interpret(f->slots[2], f->slots[3], f->slots[0], f->slots[1], false);
    --self->depth;
    return r;
  }
  uint64_t interpret(uint64_t n, uint64_t every, uint64_t i, uint64_t total, bool at_head) {
    int32_t* countdown = runtime_->loop_countdown(method_);
    for (uint64_t frame[2] = {i, total};; at_head = true) {
      if (at_head) {
        if (--*countdown <= 0) {
          uint64_t args[] = {reinterpret_cast<uintptr_t>(this), n, every};
          if (auto o = runtime_->osr_enter(method_, LoopId(loop), args, frame)) {
            ++entered;
            if (!o->ok()) Runtime::raise(o->trap.code, o->trap.detail);
            return o->bits;
          }
        }
        if (frame[0] >= n) return frame[1];
      }
      if (frame[0] >= traps_at) {
        Runtime::raise(TrapCode::kHost, kTrapDetail);
        return 0;
      }
      ++interpreted;
      frame[1] += frame[0] % every == 0 ? 2 * frame[0] : frame[0];
      ++frame[0];
    }
  }

  std::unique_ptr<Runtime> runtime_;
  std::optional<ThreadScope> scope_;
  MethodId method_;
};

}  // namespace uptier::test
