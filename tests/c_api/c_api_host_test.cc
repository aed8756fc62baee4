// Hosts with an interpreter, through the C API: failed guards return to the interpreter, and loops
// leave it.
#include <thread>

#include "tests/support/c_api_world.h"

namespace uptier::test::c_api_host_test {
namespace {

class CApiHost : public CApi {
 protected:
  uptier_method add(uptier_method_info info) {
    uptier_method m = {};
    EXPECT_EQ(uptier_runtime_add_method(runtime_, &info, &m, &error_), UPTIER_OK) << error_.message;
    return m;
  }
};

// ---- Guards -------------------------------------------------------------------------------------

// Adds if x is below 1000; otherwise exits to the interpreter.
void guarded(uptier_builder* b) {
  uptier_value x = uptier_build_param(b, 0), y = uptier_build_param(b, 1);
  const uptier_value slots[] = {y, x};
  uptier_build_frame_state(b, 5, slots, 2);
  uptier_value small = uptier_build_binary(b, UPTIER_OP_LT_S, x, uptier_build_i64(b, 1000));
  uptier_build_guard(b, small, UPTIER_GUARD_TYPE);
  uptier_build_ret(b, uptier_build_binary(b, UPTIER_OP_ADD, x, y));
}

struct Seen {
  BodyHost host;  // must be first: it is the method's user pointer
  uptier_host_frame frame = {};
  uint64_t slots[2] = {};
  bool raises = false;
};

uint64_t resume(const uptier_host_frame* f) {
  auto& seen = *reinterpret_cast<Seen*>(f->user);
  seen.frame = *f;
  std::copy(f->slots, f->slots + f->slot_count, seen.slots);
  if (seen.raises) { EXPECT_EQ(uptier_raise(UPTIER_TRAP_HOST, 9), UPTIER_OK); }
  return f->slots[0] * f->slots[1];
}

TEST_F(CApiHost, a_guard_that_fails_goes_on_in_the_host) {
  for (const char* tier : {"baseline", "optimized"}) {
    create({{"tier", tier}});
    Seen seen{.host = {guarded}};
    uptier_method_info info = info_of("guarded", &seen.host, signature(2));
    info.host_resume = &resume;
    uptier_method m = add(info);
    EXPECT_EQ(invoke(m, {40, 2}), UPTIER_OK);
    EXPECT_EQ(outcome_.bits, 42u);
    EXPECT_EQ(seen.frame.slot_count, 0u);
    EXPECT_EQ(invoke(m, {4000, 2}), UPTIER_OK) << tier;
    EXPECT_EQ(outcome_.bits, 8000u);
    EXPECT_EQ(seen.frame.method.id, m.id);
    EXPECT_EQ(seen.frame.pc, 5u);
    EXPECT_EQ(seen.frame.reason, UPTIER_GUARD_TYPE);
    EXPECT_EQ(seen.slots[0], 2u);
    EXPECT_EQ(seen.slots[1], 4000u);
    seen.raises = true;
    EXPECT_EQ(invoke(m, {4000, 2}), UPTIER_TRAPPED);
    EXPECT_EQ(outcome_.detail, 9u);
    uptier_runtime_destroy(runtime_);  // must be destroyed before its user pointer
    runtime_ = nullptr;
  }
}

TEST_F(CApiHost, without_a_host_to_resume_a_guard_that_fails_is_a_trap) {
  uptier_method m = add(info_of("guarded", &keep({guarded}), signature(2)));
  EXPECT_EQ(invoke(m, {4000, 2}), UPTIER_TRAPPED);
  EXPECT_EQ(outcome_.trap, UPTIER_TRAP_GUARD_FAILED);
}

// ---- Loops --------------------------------------------------------------------------------------

uptier_loop loop_of_sum;

// The sum of 0 .. n-1; slots i and total.
void sum(uptier_builder* b) {
  uptier_variable i = uptier_build_declare(b, UPTIER_TYPE_I64);
  uptier_variable total = uptier_build_declare(b, UPTIER_TYPE_I64);
  uptier_build_def(b, i, uptier_build_i64(b, 0));
  uptier_build_def(b, total, uptier_build_i64(b, 0));
  uptier_block head = uptier_build_create_block(b), body = uptier_build_create_block(b),
               done = uptier_build_create_block(b);
  uptier_build_jump(b, head);
  uptier_build_switch_to(b, head);
  const uptier_variable slots[] = {i, total};
  loop_of_sum = uptier_build_loop_header(b, 1, slots, 2);
  uptier_value more =
      uptier_build_binary(b, UPTIER_OP_LT_U, uptier_build_use(b, i), uptier_build_param(b, 0));
  uptier_build_branch(b, more, body, done);
  uptier_build_switch_to(b, body);
  uptier_build_seal(b, body);
  uptier_build_def(
      b, total,
      uptier_build_binary(b, UPTIER_OP_ADD, uptier_build_use(b, total), uptier_build_use(b, i)));
  uptier_build_def(
      b, i, uptier_build_binary(b, UPTIER_OP_ADD, uptier_build_use(b, i), uptier_build_i64(b, 1)));
  uptier_build_jump(b, head);
  uptier_build_seal(b, head);
  uptier_build_switch_to(b, done);
  uptier_build_seal(b, done);
  uptier_build_ret(b, uptier_build_use(b, total));
}

struct Interpreter {
  uptier_runtime* runtime;
  uptier_method method;
  uint64_t interpreted = 0;
  uint64_t entered = 0;
};
Interpreter* interpreter = nullptr;

extern "C" uint64_t interpret_sum_of_c(uint64_t n) {
  Interpreter& in = *interpreter;
  uint64_t frame[2] = {0, 0};
  int32_t* countdown = nullptr;
  EXPECT_EQ(uptier_runtime_loop_countdown(in.runtime, in.method, &countdown, nullptr), UPTIER_OK);
  while (frame[0] < n) {
    int entered = 0;
    uptier_outcome o = {};
    if (--*countdown <= 0) {
      EXPECT_EQ(uptier_runtime_osr_enter(in.runtime, in.method, uptier_loop{1}, &n, 1, frame,
                                         &entered, &o, nullptr),
                UPTIER_OK);
    }
    if (entered != 0) {
      in.entered++;
      return o.bits;
    }
    in.interpreted++;
    frame[1] += frame[0]++;
  }
  return frame[1];
}

TEST_F(CApiHost, a_loop_of_the_interpreter_is_left_in_the_middle) {
  create({{"workers", "1"}});
  Interpreter in{runtime_, {}};
  interpreter = &in;
  uptier_method_info info = info_of("sum", &keep({sum}), signature(1));
  info.host_entry = reinterpret_cast<uptier_code>(&interpret_sum_of_c);
  in.method = add(info);
  ASSERT_EQ(uptier_runtime_attach(runtime_, &error_), UPTIER_OK);
  constexpr uint64_t kRounds = 400'000'000;
  EXPECT_EQ(invoke(in.method, {kRounds}), UPTIER_OK);
  EXPECT_EQ(outcome_.bits, kRounds * (kRounds - 1) / 2);
  EXPECT_EQ(loop_of_sum.id, 1u);
  EXPECT_EQ(in.entered, 1u);
  EXPECT_LT(in.interpreted, kRounds);
  uptier_runtime_detach(runtime_);
}

// Describes n times 5; slots i, total and step.
void multiples(uptier_builder* b) {
  uptier_variable v[3];
  for (int k = 0; k < 3; ++k) {
    v[k] = uptier_build_declare(b, UPTIER_TYPE_I64);
    uptier_build_def(b, v[k], uptier_build_i64(b, k == 2 ? 5 : 0));
  }
  uptier_block head = uptier_build_create_block(b), done = uptier_build_create_block(b);
  EXPECT_EQ(uptier_build_make_own(b, v, 3), UPTIER_OK);
  uptier_build_jump(b, head);
  uptier_build_switch_to(b, head);
  uptier_build_loop_header(b, 1, v, 3);
  uptier_build_def(
      b, v[1],
      uptier_build_binary(b, UPTIER_OP_ADD, uptier_build_use(b, v[1]), uptier_build_use(b, v[2])));
  uptier_value next =
      uptier_build_binary(b, UPTIER_OP_ADD, uptier_build_use(b, v[0]), uptier_build_i64(b, 1));
  uptier_build_def(b, v[0], next);
  uptier_build_branch(b, uptier_build_binary(b, UPTIER_OP_LT_U, next, uptier_build_param(b, 0)),
                      head, done);
  uptier_build_seal(b, head);
  uptier_build_seal(b, done);
  uptier_build_switch_to(b, done);
  uptier_build_ret(b, uptier_build_use(b, v[1]));
}

// Reaches the loop with a step of 7, which the description does not predict.
extern "C" uint64_t interpret_multiples(uint64_t n) {
  Interpreter& in = *interpreter;
  uint64_t frame[3] = {0, 0, 7};
  while (frame[0] < n) {
    int entered = 0;
    uptier_outcome o = {};
    EXPECT_EQ(uptier_runtime_osr_enter(in.runtime, in.method, uptier_loop{1}, &n, 1, frame,
                                       &entered, &o, nullptr),
              UPTIER_OK);
    if (entered != 0) {
      in.entered++;
      return o.bits;
    }
    frame[0]++;
    frame[1] += frame[2];
  }
  return frame[1];
}

TEST_F(CApiHost, a_slot_with_a_value_of_its_own_is_what_the_frame_says) {
  create({{"stress", "osr=all"}});
  Interpreter in{runtime_, {}};
  interpreter = &in;
  uptier_method_info info = info_of("multiples", &keep({multiples}), signature(1));
  info.host_entry = reinterpret_cast<uptier_code>(&interpret_multiples);
  in.method = add(info);
  ASSERT_EQ(invoke(in.method, {100}), UPTIER_OK);
  EXPECT_EQ(in.entered, 1u);
  EXPECT_EQ(outcome_.bits, 700u);
}

TEST_F(CApiHost, making_values_ones_own_refuses_what_is_no_variable) {
  EXPECT_EQ(uptier_build_make_own(nullptr, nullptr, 0), UPTIER_INVALID_ARGUMENT);
  EXPECT_NE(complaint([](uptier_builder* b) {
              const uptier_variable none[] = {{1}};
              uptier_build_make_own(b, none, 1);
              ret_first(b);
            }),
            "");
  EXPECT_NE(complaint([](uptier_builder* b) {
              uptier_build_make_own(b, nullptr, 1);
              ret_first(b);
            }),
            "");
  EXPECT_EQ(complaint([](uptier_builder* b) {
              uptier_build_make_own(b, nullptr, 0);
              ret_first(b);
            }),
            "");
}

TEST_F(CApiHost, a_countdown_is_the_threads_base_and_the_methods_offset) {
  uptier_method m = add(info_of("sum", &keep({sum}), signature(1)));
  ptrdiff_t offset = 0;
  ASSERT_EQ(uptier_runtime_loop_countdown_offset(runtime_, m, &offset, &error_), UPTIER_OK);
  std::thread([&] {
    ASSERT_EQ(uptier_runtime_attach(runtime_, nullptr), UPTIER_OK);
    int32_t* word = nullptr;
    EXPECT_EQ(uptier_runtime_loop_countdown(runtime_, m, &word, nullptr), UPTIER_OK);
    EXPECT_EQ(reinterpret_cast<char*>(word), static_cast<char*>(uptier_thread_base()) + offset);
    uptier_runtime_detach(runtime_);
  }).join();
  EXPECT_EQ(uptier_runtime_loop_countdown_offset(nullptr, m, &offset, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_loop_countdown_offset(runtime_, m, nullptr, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_loop_countdown_offset(runtime_, {17}, &offset, &error_),
            UPTIER_INVALID_ARGUMENT);
}

TEST_F(CApiHost, loops_are_refused_where_nothing_can_be_entered) {
  uptier_method m = add(info_of("sum", &keep({sum}), signature(1)));
  int32_t* countdown = nullptr;
  int entered = 7;
  uint64_t n = 3, frame[2] = {};
  EXPECT_EQ(uptier_runtime_loop_countdown(runtime_, m, &countdown, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "the thread is not attached");
  EXPECT_EQ(uptier_runtime_osr_enter(runtime_, m, uptier_loop{1}, &n, 1, frame, &entered, nullptr,
                                     &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(entered, 0);
  ASSERT_EQ(uptier_runtime_attach(runtime_, &error_), UPTIER_OK);
  EXPECT_EQ(uptier_runtime_osr_enter(runtime_, m, uptier_loop{0}, &n, 1, frame, &entered, nullptr,
                                     &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_osr_enter(runtime_, m, uptier_loop{1}, &n, 0, frame, &entered, nullptr,
                                     &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_osr_enter(runtime_, m, uptier_loop{1}, &n, 1, frame, &entered, nullptr,
                                     &error_),
            UPTIER_OK);
  EXPECT_EQ(entered, 0);
  uptier_runtime_detach(runtime_);
}

}  // namespace
}  // namespace uptier::test::c_api_host_test
