// A host's policy, the log of decisions and its replay, through the C API.
#include "tests/support/c_api_world.h"

extern "C" {
struct c_patient {
  uint64_t least, asked, changed;
  uint32_t action;
};
uptier_status c_create_patient(const uptier_options*, c_patient*, uptier_runtime**, uptier_error*);
int c_replay_all(const uptier_decisions*, const uptier_options*, c_patient*, size_t*,
                 uptier_error*);
}

namespace uptier::test::c_api_policy_test {
namespace {

class CApiPolicy : public CApi {
 protected:
  void SetUp() override {
    ASSERT_EQ(uptier_options_create(&options_, &error_), UPTIER_OK);
    set("workers", "0");
    set("measure_rates", "off");
  }
  void TearDown() override {
    uptier_decisions_destroy(log_);
    uptier_options_destroy(options_);
    CApi::TearDown();
  }
  void set(const char* name, const char* value) {
    ASSERT_EQ(uptier_options_set(options_, name, value, &error_), UPTIER_OK) << error_.message;
  }
  // Calls a method `calls` times; returns its tier.
  uptier_tier run(uint64_t calls) {
    EXPECT_EQ(c_create_patient(options_, &patient_, &runtime_, &error_), UPTIER_OK)
        << error_.message;
    BodyHost& host = keep({[](uptier_builder* b) {
      uptier_value x = uptier_build_param(b, 0);
      uptier_build_ret(b, uptier_build_binary(b, UPTIER_OP_MUL, x, x));
    }});
    uptier_method m = add("square", host, signature(1));
    EXPECT_EQ(uptier_runtime_attach(runtime_, &error_), UPTIER_OK);
    for (uint64_t i = 0; i < calls; ++i) EXPECT_EQ(invoke(m, {i}), UPTIER_OK);
    EXPECT_EQ(uptier_runtime_flush(runtime_), UPTIER_OK);
    EXPECT_EQ(uptier_runtime_detach(runtime_), UPTIER_OK);
    uptier_decisions_destroy(log_);
    EXPECT_EQ(uptier_runtime_decisions(runtime_, &log_, &error_), UPTIER_OK);
    uptier_method_totals totals = {};
    totals.size = sizeof totals;
    EXPECT_EQ(uptier_runtime_method_totals(runtime_, m, &totals, &error_), UPTIER_OK);
    return totals.tier;
  }
  uptier_decision_record record(size_t k) {
    uptier_decision_record r = {};
    r.size = sizeof r;
    EXPECT_EQ(uptier_decisions_get(log_, k, &r, &error_), UPTIER_OK) << error_.message;
    return r;
  }

  uptier_options* options_ = nullptr;
  uptier_decisions* log_ = nullptr;
  c_patient patient_ = {};
};

constexpr uint64_t kCalls = 200'000;

TEST_F(CApiPolicy, answer_that_is_left_alone_is_the_librarys) {
  EXPECT_EQ(run(kCalls), UPTIER_TIER_OPTIMIZED);
  EXPECT_GT(patient_.asked, 0u);
  EXPECT_EQ(patient_.changed, 0u);
  size_t replayed = 0;
  EXPECT_EQ(c_replay_all(log_, options_, nullptr, &replayed, &error_), 0) << error_.message;
  EXPECT_GT(replayed, 0u);
}

TEST_F(CApiPolicy, policy_that_waits_keeps_methods_where_they_are_and_its_reason_is_in_the_log) {
  patient_.least = kCalls + 1;
  EXPECT_EQ(run(kCalls), UPTIER_TIER_BASELINE);
  EXPECT_GT(patient_.changed, 0u);
  uint64_t said = 0;
  for (size_t k = 0; k < uptier_decisions_count(log_); ++k) {
    uptier_decision_record r = record(k);
    EXPECT_STREQ(r.method_name, "square");
    said += std::string(r.reason).ends_with(" calls are few");
  }
  EXPECT_EQ(said, patient_.changed);
  // The replay gives the same decisions with the same policy, and others without it.
  size_t replayed = 0;
  EXPECT_EQ(c_replay_all(log_, options_, &patient_, &replayed, &error_), 0) << error_.message;
  EXPECT_EQ(c_replay_all(log_, options_, nullptr, &replayed, &error_), static_cast<int>(said));
}

TEST_F(CApiPolicy, numbers_that_are_no_answer_are_taken_for_keep) {
  for (uint32_t action : {uint32_t{UPTIER_ACTION_ROLL_BACK}, uint32_t{UPTIER_ACTION_BAN}, 77u}) {
    patient_ = {};
    patient_.action = action;
    EXPECT_EQ(run(kCalls), UPTIER_TIER_BASELINE) << action;
    ASSERT_GT(uptier_decisions_count(log_), 0u);
    EXPECT_STREQ(record(0).action, "keep");
    EXPECT_TRUE(std::string(record(0).reason).starts_with("not for a policy: xxx"));
    uptier_runtime_destroy(runtime_);
    runtime_ = nullptr;
  }
}

TEST_F(CApiPolicy, log_outlives_the_runtime_and_has_an_end) {
  run(kCalls);
  uptier_runtime_destroy(runtime_);
  runtime_ = nullptr;
  const size_t count = uptier_decisions_count(log_);
  ASSERT_GT(count, 0u);
  EXPECT_STREQ(record(count - 1).method_name, "square");
  uptier_decision_record r = {};
  r.size = sizeof r;
  EXPECT_EQ(uptier_decisions_get(log_, count, &r, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_decisions_count(nullptr), 0u);
  uptier_decisions_destroy(nullptr);
}

TEST_F(CApiPolicy, what_is_wrong_is_said) {
  uptier_policy none = {};
  none.size = sizeof none;
  EXPECT_EQ(uptier_runtime_create_with_policy(nullptr, nullptr, nullptr, &runtime_, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_create_with_policy(nullptr, nullptr, &none, &runtime_, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "the policy has no decide");
  none.size = sizeof none + 8;
  EXPECT_EQ(uptier_runtime_create_with_policy(nullptr, nullptr, &none, &runtime_, &error_),
            UPTIER_UNSUPPORTED);
  EXPECT_EQ(runtime_, nullptr);

  uptier_decision_record r = {};
  r.size = sizeof r;
  uptier_replayed again = {};
  again.size = sizeof again;
  EXPECT_EQ(uptier_replay(&r, nullptr, nullptr, &again, &error_), UPTIER_INVALID_INPUT);
  r.inputs = "tier=1 nonsense=3";
  EXPECT_EQ(uptier_replay(&r, nullptr, nullptr, &again, &error_), UPTIER_INVALID_INPUT);
  EXPECT_NE(std::string(error_.message).find("nonsense"), std::string::npos) << error_.message;
  EXPECT_STREQ(uptier_action_name(UPTIER_ACTION_SPECIALIZE), "specialize");
  EXPECT_STREQ(uptier_action_name(6), "?");
}

}  // namespace
}  // namespace uptier::test::c_api_policy_test
