// Runtime::site_at: maps an address of compiled code to its version, body and block.
#include <gtest/gtest.h>

#include "tests/support/workshop.h"

namespace uptier::test::site_at_test {
namespace {

// `outer` calls `leaf` at location 7; `leaf` calls the host at location 5, in its block 2 (of 3).
class SiteAt : public testing::Test {
 protected:
  void make(std::initializer_list<std::pair<const char*, const char*>> options) {
    Options o;
    for (auto [name, value] : options) ASSERT_TRUE(o.set(name, value).ok()) << name;
    shop_ = std::make_unique<Workshop>(o);
    scope_ = std::make_unique<ThreadScope>(*shop_->runtime);
    leaf_ = shop_->add("leaf", kOne, [](FunctionBuilder& b) {
      Block asks = b.create_block(), done = b.create_block();
      b.branch(b.unary(Opcode::kEqz, b.param(0)), done, asks);
      b.seal(asks);
      b.seal(done);
      b.switch_to(asks);
      b.set_location(5);
      b.ret(b.call_host(host_function("look", look), {b.param(0)}));
      b.switch_to(done);
      b.ret(b.param(0));
    });
    outer_ = shop_->add("outer", kOne, [this](FunctionBuilder& b) {
      b.set_location(7);
      Value args[] = {b.param(0)};
      b.ret(b.call(leaf_, kOne, args));
    });
  }
  // Returns the place of the call in the host function's caller.
  std::optional<CodePlace> place() {
    EXPECT_TRUE(shop_->call(outer_, {1}).ok());
    return shop_->runtime->site_at(static_cast<const uint8_t*>(return_address_) - 1);
  }
  static int64_t look(int64_t n) {
    return_address_ = __builtin_return_address(0);
    return n;
  }

  static inline const void* return_address_ = nullptr;
  std::unique_ptr<Workshop> shop_;
  std::unique_ptr<ThreadScope> scope_;
  MethodId leaf_, outer_;
};

TEST_F(SiteAt, baseline_code_is_of_its_own_method) {
  make({{"tier", "baseline"}});
  std::optional<CodePlace> at = place();
  ASSERT_TRUE(at.has_value());
  EXPECT_FALSE(at->stub);
  EXPECT_EQ(at->tier, Tier::kBaseline);
  EXPECT_EQ(at->copy, Copy::kPlain);
  EXPECT_NE(at->version, 0u);
  ASSERT_EQ(at->frames.size(), 1u);
  EXPECT_EQ(at->frames[0], (PlaceFrame{leaf_, 2, 5}));
}

TEST_F(SiteAt, inlined_bodies_have_frames_of_their_own) {
  make({{"policy", "always"},
        {"workers", "0"},
        {"flush_first", "1"},
        {"interval", "2"},
        {"overhead_budget", "0"},
        {"measure_rates", "off"}});
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(shop_->call(leaf_, {1}).ok());  // so that its counts
                                                // are known
  for (int i = 0; i < 100; ++i) (void)place();
  std::optional<CodePlace> at = place();
  ASSERT_TRUE(at.has_value());
  EXPECT_EQ(at->tier, Tier::kOptimized);
  ASSERT_EQ(at->frames.size(), 2u);
  EXPECT_EQ(at->frames[0], (PlaceFrame{leaf_, 2, 5}));
  EXPECT_EQ(at->frames[1].method, outer_);
  EXPECT_NE(at->frames[1].site, 0u);
  EXPECT_EQ(at->frames[1].location, 7u);
}

TEST_F(SiteAt, without_the_probe_table_only_the_method_is_known) {
  make({{"tier", "baseline"}, {"probe_table", "off"}});
  std::optional<CodePlace> at = place();
  ASSERT_TRUE(at.has_value());
  ASSERT_EQ(at->frames.size(), 1u);
  EXPECT_EQ(at->frames[0], (PlaceFrame{leaf_, 0, 5}));
  EXPECT_EQ(shop_->runtime->report().probe_bytes, 0u);
}

TEST_F(SiteAt, instrumented_copies_need_their_rows) {
  make({{"tier", "instrumented"}, {"probe_table", "off"}});
  std::optional<CodePlace> at = place();
  ASSERT_TRUE(at.has_value());
  EXPECT_EQ(at->frames[0], (PlaceFrame{leaf_, 2, 5}));
  EXPECT_GT(shop_->runtime->report().probe_bytes, 0u);
}

TEST_F(SiteAt, images_of_code_need_the_probe_table) {
  Options o;
  ASSERT_TRUE(o.set("keep_code", "on").ok() && o.set("probe_table", "off").ok());
  Status s = o.check();
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().message,
            "option keep_code: images of code need its rows; turn probe_table on");
}

TEST_F(SiteAt, copies_are_told_apart) {
  make({{"tier", "instrumented"}});
  std::optional<CodePlace> at = place();
  ASSERT_TRUE(at.has_value());
  EXPECT_EQ(at->copy, Copy::kInstrumented);
}

TEST_F(SiteAt, stubs_and_foreign_addresses) {
  make({{"tier", "baseline"}});
  ASSERT_TRUE(place().has_value());
  std::optional<CodePlace> at = shop_->runtime->site_at(shop_->runtime->entry_address(leaf_));
  ASSERT_TRUE(at.has_value());
  EXPECT_TRUE(at->stub);
  EXPECT_EQ(at->frames, (std::vector<PlaceFrame>{{leaf_, 0, 0}}));
  EXPECT_FALSE(shop_->runtime->site_at(nullptr).has_value());
  EXPECT_FALSE(shop_->runtime->site_at(reinterpret_cast<const void*>(&look)).has_value());
}

TEST_F(SiteAt, code_that_was_freed_is_nothing) {
  make({{"tier", "baseline"}});
  ASSERT_TRUE(place().has_value());
  shop_->remove(outer_);
  shop_->remove(leaf_);
  shop_->runtime->flush();
  EXPECT_FALSE(shop_->runtime->site_at(return_address_).has_value());
}

}  // namespace
}  // namespace uptier::test::site_at_test
