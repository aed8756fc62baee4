// uptier_runtime_retire_methods: a host keeps everything that a method's frames need until they are
// gone.
#include "tests/support/c_api_world.h"

namespace uptier::test::c_api_retire_test {
namespace {

using CApiRetire = CApi;

struct Guarded {
  uptier_runtime* runtime = nullptr;
  uptier_method method = {};
  bool retires = false;
  int resumed = 0, resumed_late = 0, drops = 0;
};
Guarded* g_guarded = nullptr;

int64_t retire_now(int64_t x) {
  Guarded& g = *g_guarded;
  if (!g.retires) return x;
  EXPECT_EQ(uptier_runtime_retire_methods(g.runtime, &g.method, 1, nullptr), UPTIER_OK);
  EXPECT_EQ(g.drops, 0) << "its frame is above";
  return x;
}

// f(x): retire_now(x), then a guard that x is 7.
uptier_status build_guarded(void*, uptier_method, uptier_builder* b, uptier_error*) {
  const uptier_value x = uptier_build_param(b, 0);
  const uptier_value y = uptier_build_call_host(
      b, "retire_now", reinterpret_cast<uptier_code>(retire_now), signature(1), &x, 1, 0);
  uptier_build_frame_state(b, 1, &y, 1);
  uptier_build_guard(b, uptier_build_binary(b, UPTIER_OP_EQ, y, uptier_build_i64(b, 7)),
                     UPTIER_GUARD_USER);
  uptier_build_ret(b, y);
  return UPTIER_OK;
}

uint64_t resume_guarded(const uptier_host_frame* frame) {
  auto& g = *static_cast<Guarded*>(frame->user);
  ++g.resumed;
  g.resumed_late += g.drops;
  return frame->slots[0] + 100;
}

void drop_guarded(void* user) { ++static_cast<Guarded*>(user)->drops; }

constexpr uptier_host kGuardedHost = {sizeof(uptier_host), build_guarded, drop_guarded, nullptr};

TEST_F(CApiRetire, the_user_of_a_frame_that_leaves_its_code_late_is_still_there) {
  for (uint64_t calls : {0, 500}) {
    create({{"interval", "1"}, {"policy", "always"}});
    Guarded g;
    g_guarded = &g;
    uptier_method_info info = info_of("guarded", nullptr, signature(1));
    info.host = &kGuardedHost;
    info.user = &g;
    info.host_resume = resume_guarded;
    ASSERT_EQ(uptier_runtime_add_method(runtime_, &info, &g.method, &error_), UPTIER_OK);
    g.runtime = runtime_;
    ASSERT_EQ(uptier_runtime_attach(runtime_, &error_), UPTIER_OK);
    for (uint64_t i = 0; i < calls; ++i) ASSERT_EQ(invoke(g.method, {7}), UPTIER_OK);
    g.retires = true;
    ASSERT_EQ(invoke(g.method, {8}), UPTIER_OK) << error_.message;
    EXPECT_EQ(outcome_.bits, 108u);
    EXPECT_EQ(g.resumed, 1);
    EXPECT_EQ(g.resumed_late, 0);
    EXPECT_EQ(uptier_runtime_quiescent(runtime_), UPTIER_OK);
    EXPECT_EQ(g.drops, 1);
    EXPECT_EQ(invoke(g.method, {7}), UPTIER_INVALID_ARGUMENT);
    EXPECT_EQ(uptier_runtime_detach(runtime_), UPTIER_OK);
    uptier_runtime_destroy(runtime_);
    runtime_ = nullptr;
    EXPECT_EQ(g.drops, 1);
  }
}

TEST_F(CApiRetire, ids_are_refused_all_or_none) {
  BodyHost &a = keep({ret_first}), &b = keep({ret_first});
  const uptier_method ids[] = {add("a", a, signature(1)), add("b", b, signature(1))};
  const uptier_method with_unknown[] = {ids[0], {17}};
  EXPECT_EQ(uptier_runtime_retire_methods(runtime_, with_unknown, 2, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(invoke(ids[0], {5}), UPTIER_OK);
  EXPECT_EQ(uptier_runtime_retire_methods(nullptr, ids, 2, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_retire_methods(runtime_, nullptr, 1, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_retire_methods(runtime_, nullptr, 0, &error_), UPTIER_OK);
  EXPECT_EQ(uptier_runtime_retire_methods(runtime_, ids, 1, &error_), UPTIER_OK);
  EXPECT_EQ(a.drops, 1);
  EXPECT_EQ(invoke(ids[0], {5}), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_retire_methods(runtime_, ids, 1, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_remove_methods(runtime_, ids, 2, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(invoke(ids[1], {5}), UPTIER_OK);
  uptier_runtime_destroy(runtime_);
  runtime_ = nullptr;
  EXPECT_EQ(a.drops, 1);
  EXPECT_EQ(b.drops, 1);
}

}  // namespace
}  // namespace uptier::test::c_api_retire_test
