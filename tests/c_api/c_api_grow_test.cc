// Structs of the C API that grow: callers compiled for an earlier version of uptier.h pass shorter
// structs, and the bytes after them do not belong to the struct. Also host entries that trap.
#include <cstddef>

#include "tests/support/c_api_world.h"

namespace uptier::test::c_api_grow_test {
namespace {

using CApiGrow = CApi;

// A struct as in an earlier version, followed by arbitrary bytes.
template <typename T, size_t kSize>
struct Earlier {
  explicit Earlier(const T& now) {
    std::memset(bytes, 0xa5, sizeof bytes);
    std::memcpy(bytes, &now, kSize);
    const size_t size = kSize;
    std::memcpy(bytes, &size, sizeof size);
  }
  T* get() { return reinterpret_cast<T*>(bytes); }
  bool is_untouched_behind() const {
    for (size_t i = kSize; i < sizeof bytes; ++i) {
      if (bytes[i] != 0xa5) return false;
    }
    return true;
  }

  alignas(T) unsigned char bytes[sizeof(T) + 16];
};

TEST_F(CApiGrow, an_earlier_method_info_is_taken_and_nothing_behind_it_is_read) {
  BodyHost& host = keep({ret_first});
  // The bytes after it would be an invalid host_may_trap and describes_at_once.
  Earlier<uptier_method_info, offsetof(uptier_method_info, host_may_trap)> info(
      info_of("first", &host, signature(2)));
  uptier_method m = {};
  ASSERT_EQ(uptier_runtime_add_method(runtime_, info.get(), &m, &error_), UPTIER_OK)
      << error_.message;
  EXPECT_EQ(invoke(m, {40, 2}), UPTIER_OK);
  EXPECT_EQ(outcome_.bits, 40u);

  info.get()->size--;
  EXPECT_EQ(uptier_runtime_add_method(runtime_, info.get(), &m, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "uptier_method_info: its size is too small");
  info.get()->size = sizeof(uptier_method_info) + 8;
  EXPECT_EQ(uptier_runtime_add_method(runtime_, info.get(), &m, &error_), UPTIER_UNSUPPORTED);
}

TEST_F(CApiGrow, earlier_totals_are_written_to_their_end_and_no_further) {
  BodyHost& host = keep({ret_first});
  uptier_method m = add("first", host, signature(2));
  for (uint64_t i = 0; i < 100; ++i) ASSERT_EQ(invoke(m, {i, 2}), UPTIER_OK);
  uptier_runtime_flush(runtime_);

  constexpr size_t kTotals = offsetof(uptier_totals, evictions);
  Earlier<uptier_totals, kTotals> all(uptier_totals{});
  ASSERT_EQ(uptier_runtime_totals(runtime_, all.get(), &error_), UPTIER_OK) << error_.message;
  EXPECT_EQ(all.get()->size, kTotals);
  EXPECT_EQ(all.get()->methods_called, 1u);
  EXPECT_EQ(all.get()->trace_events_lost, 0u);
  EXPECT_TRUE(all.is_untouched_behind());
  all.get()->size--;
  EXPECT_EQ(uptier_runtime_totals(runtime_, all.get(), &error_), UPTIER_INVALID_ARGUMENT);

  constexpr size_t kMethod = offsetof(uptier_method_totals, osr_outs);
  Earlier<uptier_method_totals, kMethod> one(uptier_method_totals{});
  ASSERT_EQ(uptier_runtime_method_totals(runtime_, m, one.get(), &error_), UPTIER_OK);
  EXPECT_EQ(one.get()->size, kMethod);
  EXPECT_EQ(one.get()->calls, 100u);
  EXPECT_EQ(one.get()->tier, uptier_tier{UPTIER_TIER_BASELINE});
  EXPECT_TRUE(one.is_untouched_behind());
  one.get()->size--;
  EXPECT_EQ(uptier_runtime_method_totals(runtime_, m, one.get(), &error_), UPTIER_INVALID_ARGUMENT);
}

// From `size`, a caller of a later version learns how much an older library has filled in.
TEST_F(CApiGrow, later_totals_are_written_as_far_as_the_library_knows_them) {
  struct {
    uptier_totals totals = {};
    uint64_t later = 77;
  } out;
  out.totals.size = sizeof out;
  ASSERT_EQ(uptier_runtime_totals(runtime_, &out.totals, &error_), UPTIER_OK);
  EXPECT_EQ(out.totals.size, sizeof out.totals);
  EXPECT_EQ(out.later, 77u);
}

TEST_F(CApiGrow, what_was_registered_and_compiled_but_never_counted_was_not_called) {
  create({{"tier", "baseline"}});  // no samples, so these stay 0
  BodyHost& broken = keep({[](uptier_builder*) {}, UPTIER_UNSUPPORTED, "no such bytecode"});
  uptier_method m = add("broken", broken, signature(1));
  EXPECT_EQ(invoke(m, {1}), UPTIER_TRAPPED);
  uptier_totals all = {};
  all.size = sizeof all;
  ASSERT_EQ(uptier_runtime_totals(runtime_, &all, &error_), UPTIER_OK);
  EXPECT_EQ(all.methods_registered, 1u);
  EXPECT_EQ(all.compiles_failed, 1u);
  EXPECT_EQ(all.methods_called, 0u);
}

// ---- Host entries that trap ---------------------------------------------------------------------

// An interpreter that traps on odd numbers.
extern "C" int64_t half_or_trap(int64_t x) {
  if (x % 2 != 0) {
    EXPECT_EQ(uptier_raise(UPTIER_TRAP_HOST, static_cast<uint64_t>(x)), UPTIER_OK);
    return -1;
  }
  return x / 2;
}

TEST_F(CApiGrow, an_interpreter_raises_and_its_compiled_callers_end_with_it) {
  const uptier_host nothing = {sizeof nothing, nullptr, nullptr, nullptr};
  uptier_method_info info = info_of("half", nullptr, signature(1));
  info.host = &nothing;
  info.host_entry = reinterpret_cast<uptier_code>(half_or_trap);
  info.host_may_trap = 1;
  uptier_method half = {};
  ASSERT_EQ(uptier_runtime_add_method(runtime_, &info, &half, &error_), UPTIER_OK);

  int64_t went_on = 0;  // set by the caller's code after the call
  BodyHost& host = keep({[&](uptier_builder* b) {
    uptier_value x = uptier_build_param(b, 0);
    uptier_value h = uptier_build_call(b, half, &x, 1);
    uptier_address at = {uptier_build_ref(b, &went_on), {0}, 0, 0};
    uptier_build_store(b, UPTIER_OP_STORE, uptier_build_i64(b, 1), at);
    uptier_build_ret(b, h);
  }});
  uptier_method caller = add("caller", host, signature(1));
  EXPECT_EQ(invoke(caller, {7}), UPTIER_TRAPPED);
  EXPECT_EQ(outcome_.trap, uptier_trap{UPTIER_TRAP_HOST});
  EXPECT_EQ(outcome_.detail, 7u);
  EXPECT_EQ(went_on, 0);
  EXPECT_EQ(invoke(caller, {8}), UPTIER_OK);
  EXPECT_EQ(outcome_.bits, 4u);
  EXPECT_EQ(went_on, 1);
  EXPECT_EQ(invoke(half, {9}), UPTIER_TRAPPED);
  EXPECT_EQ(outcome_.detail, 9u);
}

}  // namespace
}  // namespace uptier::test::c_api_grow_test
