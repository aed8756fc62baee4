// Events through the C API: what subscribers receive, what they may do, and how they end.
#include "tests/support/c_api_world.h"

extern "C" {
struct c_counts {
  uptier_runtime* runtime;
  uptier_subscription self;
  int end_after;
  int records, compiled, installed, gaps, ended;
  uint64_t last;
  int left, evicted, lost_records;
  uint64_t lost, parts, keys;
};
uptier_status c_subscribe(c_counts*, uptier_error*);
uptier_status c_subscribe_code(c_counts*, uptier_error*);
}

namespace uptier::test::c_api_events_test {
namespace {

class CApiEvents : public CApi {
 protected:
  uptier_method square() {
    return add("square", keep({[](uptier_builder* b) {
                 uptier_value x = uptier_build_param(b, 0);
                 uptier_build_ret(b, uptier_build_binary(b, UPTIER_OP_MUL, x, x));
               }}),
               signature(1));
  }
};

TEST_F(CApiEvents, subscribers_in_c_receive_every_number_to_the_end) {
  c_counts all = {}, code = {};
  all.runtime = code.runtime = runtime_;
  ASSERT_EQ(c_subscribe(&all, &error_), UPTIER_OK) << error_.message;
  ASSERT_EQ(c_subscribe_code(&code, &error_), UPTIER_OK) << error_.message;
  EXPECT_NE(all.self.id, code.self.id);
  EXPECT_EQ(invoke(square(), {5}), UPTIER_OK);
  uptier_runtime_destroy(runtime_);
  runtime_ = nullptr;
  EXPECT_GT(all.records, 4);
  EXPECT_EQ(all.gaps, 0);
  EXPECT_EQ(all.ended, 1);
  EXPECT_GE(code.compiled, 1);
  EXPECT_GE(code.installed, 1);
  EXPECT_GE(code.parts, 2u) << "describe, baseline compiler";
  EXPECT_EQ(all.keys, 1u);
  EXPECT_EQ(code.records, 0);
}

TEST_F(CApiEvents, subscriber_may_end_itself_and_only_once) {
  c_counts two = {};
  two.runtime = runtime_;
  two.end_after = 2;
  ASSERT_EQ(c_subscribe(&two, &error_), UPTIER_OK);
  EXPECT_EQ(invoke(square(), {5}), UPTIER_OK);
  EXPECT_EQ(two.records, 2);
  EXPECT_EQ(uptier_runtime_unsubscribe(runtime_, two.self, &error_), UPTIER_NOT_FOUND);
  EXPECT_EQ(uptier_runtime_unsubscribe(runtime_, {}, &error_), UPTIER_NOT_FOUND);
}

TEST_F(CApiEvents, calls_that_change_state_are_refused_in_a_subscriber) {
  struct Tries {
    uptier_runtime* runtime;
    uptier_method method;
    int added;
  } tries = {runtime_, {}, 0};
  const uptier_subscriber s = {
      sizeof s, &tries,
      [](void* user, const uptier_event* e) {
        auto& t = *static_cast<Tries*>(user);
        ++t.added;
        EXPECT_STREQ(e->text, "square");
        const uint64_t arg = 3;
        uptier_method m = e->method;
        EXPECT_EQ(uptier_runtime_remove_methods(t.runtime, &t.method, 1, nullptr),
                  UPTIER_INVALID_ARGUMENT);
        EXPECT_EQ(uptier_runtime_retire_methods(t.runtime, &t.method, 1, nullptr),
                  UPTIER_INVALID_ARGUMENT);
        EXPECT_EQ(uptier_runtime_invoke(t.runtime, m, &arg, 1, nullptr, nullptr),
                  UPTIER_INVALID_ARGUMENT);
        EXPECT_EQ(uptier_runtime_flush(t.runtime), UPTIER_INVALID_ARGUMENT);
        EXPECT_EQ(uptier_runtime_detach(t.runtime), UPTIER_INVALID_ARGUMENT);
      },
      UPTIER_EVENTS_OF(UPTIER_EVENT_ADDED)};
  tries.method = square();
  ASSERT_EQ(uptier_runtime_subscribe(runtime_, &s, nullptr, nullptr, &error_), UPTIER_OK);
  square();
  EXPECT_EQ(tries.added, 1);
  EXPECT_EQ(hosts_[0].drops, 0);
  EXPECT_EQ(invoke(tries.method, {5}), UPTIER_OK);  // still in service
  EXPECT_EQ(outcome_.bits, 25u);
}

// Fails its guard if x is 1000 or more.
void guarded(uptier_builder* b) {
  uptier_value x = uptier_build_param(b, 0);
  uptier_build_frame_state(b, 0, &x, 1);
  uptier_value small = uptier_build_binary(b, UPTIER_OP_LT_S, x, uptier_build_i64(b, 1000));
  uptier_build_guard(b, small, UPTIER_GUARD_TYPE);
  uptier_build_ret(b, x);
}

// Calls another method `n` times.
Body calls(uptier_method callee) {
  return [callee](uptier_builder* b) {
    uptier_variable left = uptier_build_declare(b, UPTIER_TYPE_I64);
    uptier_build_def(b, left, uptier_build_param(b, 0));
    uptier_block head = uptier_build_create_block(b), body = uptier_build_create_block(b),
                 done = uptier_build_create_block(b);
    uptier_build_jump(b, head);
    uptier_build_switch_to(b, head);
    uptier_build_loop_header(b, 0, nullptr, 0);
    uptier_build_branch(b, uptier_build_unary(b, UPTIER_OP_EQZ, uptier_build_use(b, left)), done,
                        body);
    uptier_build_seal(b, body);
    uptier_build_seal(b, done);
    uptier_build_switch_to(b, body);
    uptier_value large = uptier_build_i64(b, 4000);
    uptier_build_call(b, callee, &large, 1);
    uptier_build_def(
        b, left,
        uptier_build_binary(b, UPTIER_OP_SUB, uptier_build_use(b, left), uptier_build_i64(b, 1)));
    uptier_build_jump(b, head);
    uptier_build_seal(b, head);
    uptier_build_switch_to(b, done);
    uptier_build_ret(b, uptier_build_use(b, left));
  };
}

TEST_F(CApiEvents, every_frame_that_leaves_code_is_told_or_counted_as_lost) {
  create({{"tier", "optimized"}});
  c_counts code = {};
  code.runtime = runtime_;
  ASSERT_EQ(c_subscribe_code(&code, &error_), UPTIER_OK) << error_.message;
  uptier_method_info info = info_of("guarded", &keep({guarded}), signature(1));
  info.host_resume = [](const uptier_host_frame* f) { return f->slots[0]; };
  uptier_method callee = {};
  ASSERT_EQ(uptier_runtime_add_method(runtime_, &info, &callee, &error_), UPTIER_OK);
  uptier_method caller = add("caller", keep({calls(callee)}), signature(1));
  // A few are told. Of many at once, some are lost.
  ASSERT_EQ(invoke(caller, {10}), UPTIER_OK);
  ASSERT_EQ(uptier_runtime_flush(runtime_), UPTIER_OK);
  EXPECT_EQ(code.left, 10);
  EXPECT_EQ(code.lost_records, 0);
  ASSERT_EQ(invoke(caller, {100'000}), UPTIER_OK);
  uptier_runtime_destroy(runtime_);
  runtime_ = nullptr;
  EXPECT_GT(code.lost_records, 0);
  EXPECT_EQ(code.left + code.lost, 100'010u);
}

// Some 2 KiB of code.
void large(uptier_builder* b) {
  uptier_value x = uptier_build_param(b, 0);
  for (int i = 0; i < 200; ++i) {
    x = uptier_build_binary(b, UPTIER_OP_MUL, x, uptier_build_param(b, 0));
    x = uptier_build_binary(b, UPTIER_OP_ADD, x, uptier_build_i64(b, i));
  }
  uptier_build_ret(b, x);
}

TEST_F(CApiEvents, methods_that_give_up_their_code_are_told) {
  create({{"code_budget", "65536"}});
  c_counts code = {};
  code.runtime = runtime_;
  ASSERT_EQ(c_subscribe_code(&code, &error_), UPTIER_OK) << error_.message;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(invoke(add("large", keep({large}), signature(1)), {1}), UPTIER_OK);
  }
  uptier_totals totals = {};
  totals.size = sizeof totals;
  ASSERT_EQ(uptier_runtime_totals(runtime_, &totals, &error_), UPTIER_OK) << error_.message;
  uptier_runtime_destroy(runtime_);
  runtime_ = nullptr;
  EXPECT_GT(code.evicted, 0);
  EXPECT_EQ(static_cast<uint64_t>(code.evicted), totals.evictions);
}

TEST_F(CApiEvents, wrong_arguments_are_refused) {
  uptier_subscriber s = {};
  s.size = sizeof s;
  EXPECT_EQ(uptier_runtime_subscribe(runtime_, &s, nullptr, nullptr, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "the subscriber has no receive");
  s.receive = [](void*, const uptier_event*) {};
  s.kinds = UPTIER_EVENTS_OF(UPTIER_EVENT_KIND_COUNT);
  EXPECT_EQ(uptier_runtime_subscribe(runtime_, &s, nullptr, nullptr, &error_), UPTIER_UNSUPPORTED);
  uptier_code_events c = {};
  c.size = sizeof c;
  EXPECT_EQ(uptier_runtime_subscribe_code(runtime_, &c, nullptr, nullptr, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_STREQ(uptier_event_kind_name(UPTIER_EVENT_EVICTED), "evicted");
  EXPECT_STREQ(uptier_event_kind_name(UPTIER_EVENT_KIND_COUNT), "?");
  EXPECT_EQ(sizeof(uptier_event), offsetof(uptier_event, inlined_methods) + sizeof(uint64_t));
  EXPECT_EQ(sizeof(uptier_subscriber), offsetof(uptier_subscriber, kinds) + 8);
}

}  // namespace
}  // namespace uptier::test::c_api_events_test
