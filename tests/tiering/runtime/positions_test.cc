// Runtime::positions: where locations lie in the sources, by the table of a body or by its host; and
// the locations that rows of lines give to addresses.
#include <gtest/gtest.h>

#include "tests/support/workshop.h"

namespace uptier::test::positions_test {
namespace {

// Answers for locations from 100 on.
class Positions : public testing::Test {
 protected:
  class Resolving : public Workshop {
   public:
    using Workshop::Workshop;
    SourcePositions positions(MethodId, uint32_t location) override {
      ++asked;
      if (location < 100) return {};
      return {{"host.c", location, 1, "inner"}, {"host.c", 9, 0, ""}};
    }
    std::atomic<int> asked{0};
  };

  // `outer` calls `leaf` at location 7; `leaf` calls the host at location 5.
  void make(std::initializer_list<std::pair<const char*, const char*>> options) {
    Options o;
    for (auto [name, value] : options) ASSERT_TRUE(o.set(name, value).ok()) << name;
    shop_ = std::make_unique<Resolving>(o);
    scope_ = std::make_unique<ThreadScope>(*shop_->runtime);
    leaf_ = shop_->add("leaf", kOne, [this](FunctionBuilder& b) {
      ++described_;
      const FileId file = b.add_file("leaf.calc");
      b.set_location(4);
      Value twice = b.binary(Opcode::kMul, b.param(0), b.i64(2));
      b.set_location(5);
      Value looked = b.call_host(host_function("look", look), {twice});
      b.set_location(104);
      b.ret(b.binary(Opcode::kAdd, looked, b.i64(1)));
      b.add_position(4, {file, 40, 2});
      b.add_position(5, {file, 50, 3});
    });
    outer_ = shop_->add("outer", kOne, [this](FunctionBuilder& b) {
      b.set_location(7);
      Value args[] = {b.param(0)};
      b.ret(b.call(leaf_, kOne, args));
      b.add_position(7, {b.add_file("outer.calc"), 70, 0});
    });
  }
  // Both methods are optimized, and `leaf` is inlined in `outer`.
  void make_optimized() {
    make({{"policy", "always"},
          {"workers", "0"},
          {"flush_first", "1"},
          {"interval", "2"},
          {"overhead_budget", "0"},
          {"measure_rates", "off"},
          {"line_rows", "on"}});
    for (MethodId m : {leaf_, outer_}) {
      for (int i = 0; i < 100; ++i) ASSERT_TRUE(shop_->call(m, {1}).ok());
    }
  }
  SourcePositions at(MethodId m, uint32_t location) const {
    return shop_->runtime->positions(m, location);
  }
  static int64_t look(int64_t n) {
    return_address_ = static_cast<const uint8_t*>(__builtin_return_address(0));
    return n;
  }

  static inline const uint8_t* return_address_ = nullptr;
  std::unique_ptr<Resolving> shop_;
  std::unique_ptr<ThreadScope> scope_;
  MethodId leaf_, outer_;
  int described_ = 0;
};

TEST_F(Positions, come_from_the_table_of_the_body_and_then_from_the_host) {
  make({{"tier", "baseline"}});
  EXPECT_TRUE(at(leaf_, 5).empty()) << "nothing was described yet";
  ASSERT_TRUE(shop_->call(outer_, {1}).ok());
  EXPECT_EQ(at(leaf_, 5), (SourcePositions{{"leaf.calc", 50, 3, ""}}));
  EXPECT_EQ(at(outer_, 7), (SourcePositions{{"outer.calc", 70, 0, ""}}));
  EXPECT_TRUE(at(outer_, 5).empty()) << "a table belongs to one body";
  EXPECT_EQ(at(leaf_, 104), (SourcePositions{{"host.c", 104, 1, "inner"}, {"host.c", 9, 0, ""}}));
  EXPECT_TRUE(at(MethodId::none(), 5).empty());
}

TEST_F(Positions, nobody_is_asked_before_somebody_asks) {
  make({{"tier", "optimized"}});
  ASSERT_TRUE(shop_->call(outer_, {1}).ok());
  EXPECT_EQ(shop_->asked, 0);
  (void)at(leaf_, 5);
  EXPECT_EQ(shop_->asked, 0) << "the table knows it";
  (void)at(leaf_, 6);
  EXPECT_EQ(shop_->asked, 1);
}

// Bodies are described again for each compilation; the first table is kept.
TEST_F(Positions, remain_when_the_body_is_described_again) {
  make_optimized();
  ASSERT_GT(described_, 1);
  EXPECT_EQ(at(leaf_, 4), (SourcePositions{{"leaf.calc", 40, 2, ""}}));
}

TEST_F(Positions, a_removed_method_has_none) {
  make({{"tier", "baseline"}});
  ASSERT_TRUE(shop_->call(outer_, {1}).ok());
  shop_->runtime->remove_methods(std::span(&outer_, 1));
  EXPECT_TRUE(at(outer_, 104).empty());
  EXPECT_EQ(shop_->asked, 0);
}

// Every address of a body has the location of its instruction, inlined bodies included.
TEST_F(Positions, line_rows_give_every_address_a_location) {
  for (const char* tier : {"baseline", "optimized"}) {
    const bool optimized = std::string(tier) == "optimized";
    optimized ? make_optimized() : make({{"tier", tier}, {"line_rows", "on"}});
    ASSERT_TRUE(shop_->call(outer_, {1}).ok());
    std::map<std::pair<uint32_t, uint32_t>, int> seen;  // method, location
    for (int back = -60; back < 40; ++back) {
      const auto place = shop_->runtime->site_at(return_address_ + back);
      if (!place || place->stub) continue;
      const PlaceFrame& f = place->frames[0];
      if (f.location != 0) ++seen[{f.method.number(), f.location}];
    }
    for (uint32_t location : {4u, 5u, 104u}) {
      EXPECT_TRUE((seen.contains({leaf_.number(), location}))) << tier << " " << location;
    }
    const auto call = shop_->runtime->site_at(return_address_ - 1);
    ASSERT_TRUE(call.has_value()) << tier;
    EXPECT_EQ(call->frames[0].location, 5u);
    ASSERT_EQ(call->frames.size(), optimized ? 2u : 1u);
    if (optimized) { EXPECT_EQ(call->frames[1], (PlaceFrame{outer_, call->frames[1].site, 7})); }
    scope_.reset();
    shop_.reset();
  }
}

TEST_F(Positions, without_line_rows_only_calls_have_locations) {
  make({{"tier", "baseline"}});
  ASSERT_TRUE(shop_->call(outer_, {1}).ok());
  EXPECT_EQ(shop_->runtime->site_at(return_address_ - 1)->frames[0].location, 5u);
  EXPECT_EQ(shop_->runtime->site_at(return_address_ + 1)->frames[0].location, 0u);
}

}  // namespace
}  // namespace uptier::test::positions_test
