// Places of addresses through the C API: calls on the stack, and what an address of code belongs to.
#include <array>
#include <vector>

#include "tests/support/c_api_world.h"

namespace uptier::test::c_api_places_test {
namespace {

struct Seen {
  uptier_runtime* runtime = nullptr;
  std::vector<uptier_site> calls;
  uptier_site caller = {};
  int found = 0;
  uptier_place place = {};
  std::vector<uptier_place_frame> frames;
};
Seen seen;

int64_t look(int64_t x) {
  const void* from = __builtin_return_address(0);
  std::array<uptier_site, 8> calls;
  size_t n = uptier_runtime_walk(seen.runtime, calls.data(), calls.size());
  seen.calls.assign(calls.begin(), calls.begin() + n);
  seen.found = uptier_call_site(from, &seen.caller);
  // The call itself is before the address that it returns to.
  const void* pc = static_cast<const char*>(from) - 1;
  std::array<uptier_place_frame, 8> frames;
  n = uptier_runtime_site_at(seen.runtime, pc, &seen.place, frames.data(), frames.size());
  seen.frames.assign(frames.begin(), frames.begin() + n);
  EXPECT_EQ(uptier_runtime_site_at(seen.runtime, pc, nullptr, nullptr, 0), n);
  return x + 1;
}

using CApiPlaces = CApi;

TEST_F(CApiPlaces, a_host_function_finds_its_callers) {
  seen = {};
  seen.runtime = runtime_;
  BodyHost& inner_host = keep({[](uptier_builder* b) {
    uptier_value args[] = {uptier_build_param(b, 0)};
    uptier_build_set_location(b, 11);
    auto code = reinterpret_cast<uptier_code>(&look);
    uptier_build_ret(b, uptier_build_call_host(b, "look", code, signature(1), args, 1, 0));
  }});
  uptier_method inner = add("inner", inner_host, signature(1));
  BodyHost& outer_host = keep({[&](uptier_builder* b) {
    uptier_value args[] = {uptier_build_param(b, 0)};
    uptier_build_set_location(b, 22);
    uptier_build_ret(b, uptier_build_call(b, inner, args, 1));
  }});
  uptier_method outer = add("outer", outer_host, signature(1));
  ASSERT_EQ(invoke(outer, {41}), UPTIER_OK);
  EXPECT_EQ(outcome_.bits, 42u);
  ASSERT_EQ(seen.calls.size(), 2u);
  EXPECT_EQ(seen.calls[0].method.id, inner.id);
  EXPECT_EQ(seen.calls[0].location, 11u);
  EXPECT_EQ(seen.calls[1].method.id, outer.id);
  EXPECT_EQ(seen.calls[1].location, 22u);
  EXPECT_EQ(seen.found, 1);
  EXPECT_EQ(seen.caller.method.id, inner.id);
  ASSERT_EQ(seen.frames.size(), 1u);
  EXPECT_EQ(seen.frames[0].method.id, inner.id);
  EXPECT_EQ(seen.frames[0].site, 1u);
  EXPECT_EQ(seen.frames[0].location, 11u);
  EXPECT_EQ(seen.place.tier, uptier_tier{UPTIER_TIER_BASELINE});
  EXPECT_EQ(seen.place.stub, 0u);
  EXPECT_NE(seen.place.version, 0u);
  EXPECT_EQ(seen.place.loop, UINT32_MAX);
}

TEST_F(CApiPlaces, an_entry_is_the_stub_of_its_method_and_data_is_no_place) {
  BodyHost& host = keep({[](uptier_builder* b) { uptier_build_ret(b, uptier_build_i64(b, 1)); }});
  uptier_method m = add("one", host, signature(1));
  uptier_code code = nullptr;
  ASSERT_EQ(uptier_runtime_entry(runtime_, m, &code, &error_), UPTIER_OK);
  const auto* entry = reinterpret_cast<const void*>(code);
  uptier_place place = {};
  uptier_place_frame frame = {};
  ASSERT_EQ(uptier_runtime_site_at(runtime_, entry, &place, &frame, 1), 1u);
  EXPECT_EQ(place.stub, 1u);
  EXPECT_EQ(frame.method.id, m.id);
  EXPECT_EQ(uptier_runtime_site_at(runtime_, &place, &place, &frame, 1), 0u);
  EXPECT_EQ(uptier_runtime_site_at(nullptr, entry, &place, &frame, 1), 0u);
  EXPECT_EQ(uptier_runtime_site_at(runtime_, entry, &place, nullptr, 1), 0u);
}

}  // namespace
}  // namespace uptier::test::c_api_places_test
