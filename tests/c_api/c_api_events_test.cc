// Events through the C API: what subscribers receive, what they may do, and how they end.
#include "tests/support/c_api_world.h"

extern "C" {
struct c_counts {
  uptier_runtime* runtime;
  uptier_subscription self;
  int end_after;
  int records, compiled, installed, gaps, ended;
  uint64_t last;
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
  EXPECT_EQ(sizeof(uptier_event), offsetof(uptier_event, decision) + sizeof(void*));
  EXPECT_EQ(sizeof(uptier_subscriber), offsetof(uptier_subscriber, kinds) + 8);
}

}  // namespace
}  // namespace uptier::test::c_api_events_test
