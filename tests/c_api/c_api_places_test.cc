// Places of addresses through the C API: calls on the stack, and what an address of code belongs to.
#include <array>
#include <vector>

#include "tests/support/c_api_world.h"
#include "tiering/c_api/c_api.h"

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

// Compares images in C with those in C++.
void expect_same(const uptier_code_images& c, const CodeImages& want) {
  ASSERT_EQ(c.size, sizeof c);
  ASSERT_EQ(c.method_count, want.methods.size());
  for (size_t i = 0; i < c.method_count; ++i) {
    const ImagedMethod& m = want.methods[i];
    EXPECT_EQ((ImagedMethod{{c.methods[i].module_key, c.methods[i].function_index},
                            c.methods[i].name,
                            c.methods[i].cfg_hash,
                            c.methods[i].blocks}),
              m);
  }
  ASSERT_EQ(c.code_count, want.codes.size());
  for (size_t i = 0; i < c.code_count; ++i) {
    const uptier_code_image& got = c.codes[i];
    CodeImage now{.version = got.version,
                  .tier = static_cast<Tier>(got.tier),
                  .copy = got.instrumented != 0 ? Copy::kInstrumented : Copy::kPlain,
                  .loop = got.loop == UINT32_MAX ? LoopId::none() : LoopId(got.loop),
                  .freed = got.freed != 0,
                  .address = got.address,
                  .cold_address = got.cold_address,
                  .hot_size = got.hot_size,
                  .data_at = got.data_at,
                  .data_end = got.data_end,
                  .bytes = {got.bytes, got.bytes + got.byte_count},
                  .bodies = {},
                  .rows = {}};
    for (size_t b = 0; b < got.body_count; ++b) {
      now.bodies.push_back({got.bodies[b].method, got.bodies[b].parent, got.bodies[b].site});
    }
    for (size_t r = 0; r < got.row_count; ++r) {
      const uptier_image_row& row = got.rows[r];
      now.rows.push_back({row.offset, static_cast<ImageRow::Kind>(row.kind), row.site, row.body,
                          row.returns, row.callee, row.partial != 0});
    }
    EXPECT_EQ(now, want.codes[i]);
  }
  ASSERT_EQ(c.stack_count, want.stacks.size());
  for (size_t i = 0; i < c.stack_count; ++i) {
    ImagedStack now{{}, c.stacks[i].samples, c.stacks[i].ns};
    for (size_t f = 0; f < c.stacks[i].frame_count; ++f) {
      now.frames.push_back({c.stacks[i].frames[f].code, c.stacks[i].frames[f].offset});
    }
    EXPECT_EQ(now, want.stacks[i]);
  }
  EXPECT_EQ(c.elsewhere, want.elsewhere);
  EXPECT_EQ(c.lost_samples, want.lost_samples);
  EXPECT_EQ(c.lost_codes, want.lost_codes);
  EXPECT_EQ(c.cut_stacks, want.cut_stacks);
}

TEST_F(CApiPlaces, images_of_code_are_those_of_the_runtime_and_outlive_it) {
  create({{"keep_code", "on"}, {"sample_hz", "5000"}, {"tier", "optimized"}});
  BodyHost& leaf_host =
      keep({[](uptier_builder* b) { uptier_build_ret(b, uptier_build_param(b, 0)); }});
  uptier_method leaf = add("leaf", leaf_host, signature(1));
  BodyHost& top_host = keep({[&](uptier_builder* b) {
    uptier_value args[] = {uptier_build_param(b, 0)};
    uptier_build_ret(b, uptier_build_call(b, leaf, args, 1));
  }});
  uptier_method top = add("top", top_host, signature(1));
  ASSERT_EQ(invoke(leaf, {1}), UPTIER_OK);  // a method that was never called is not inlined
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(invoke(top, {1}), UPTIER_OK);
  const uptier_code_images* images = nullptr;
  ASSERT_EQ(uptier_runtime_code_images(runtime_, &images, &error_), UPTIER_OK) << error_.message;
  const CodeImages want = runtime_->runtime->code_images();
  uptier_runtime_destroy(runtime_);
  runtime_ = nullptr;
  expect_same(*images, want);
  ASSERT_GT(images->code_count, 1u);
  bool rows = false, inlined = false;
  for (size_t i = 0; i < images->code_count; ++i) {
    rows |= images->codes[i].row_count != 0;
    inlined |= images->codes[i].body_count > 1;
  }
  EXPECT_TRUE(rows && inlined);
  EXPECT_EQ(images->methods[0].blocks, 1u);
  uptier_code_images_destroy(images);
  uptier_code_images_destroy(nullptr);
}

TEST_F(CApiPlaces, there_are_no_images_without_keep_code) {
  const uptier_code_images* images = nullptr;
  EXPECT_EQ(uptier_runtime_code_images(nullptr, &images, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_code_images(runtime_, nullptr, &error_), UPTIER_INVALID_ARGUMENT);
  ASSERT_EQ(uptier_runtime_code_images(runtime_, &images, &error_), UPTIER_OK);
  EXPECT_EQ(images->code_count + images->method_count + images->stack_count, 0u);
  uptier_code_images_destroy(images);
}

}  // namespace
}  // namespace uptier::test::c_api_places_test
