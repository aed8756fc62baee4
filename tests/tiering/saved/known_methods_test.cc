// The methods of earlier processes that are compiled ahead of their first call, and their order.
#include "tiering/saved/known_methods.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "uptier/profile_file.h"

namespace uptier::tiering::known_methods_test {
namespace {

constexpr uint64_t kModule = 7;

MethodKey key(uint32_t i) { return {kModule, i}; }

class KnownMethodsTest : public testing::Test {
 protected:
  static constexpr uint32_t kMethods = 8;

  KnownMethodsTest() {
    char name[] = "/tmp/uptier-known-XXXXXX";
    dir_ = mkdtemp(name);
    EXPECT_TRUE(methods_.reserve(kMethods));
  }
  ~KnownMethodsTest() override { std::filesystem::remove_all(dir_); }

  void put_methods(uint32_t with_own_code = UINT32_MAX) {
    for (uint32_t i = 0; i < kMethods; ++i) {
      MethodInfo info;
      info.key = key(i);
      info.own_code = i == with_own_code;
      methods_.put(std::make_unique<Method>(MethodId(i), i + 1, host_, std::move(info)));
    }
  }
  // An earlier process has called a method `calls` times.
  void ran(uint32_t i, uint64_t calls) {
    MethodProfile p;
    p.key = key(i);
    p.schema = Schema::block_schema(1, 1);
    p.counts = p.estimates = {0};
    p.calls = calls;
    profile_.methods[key(i)] = p;
  }
  void was_called(uint32_t i, uint64_t position) {
    calls_.first[key(i)] = {position, CallProfile::kOneRun};
  }
  // Lists the known methods, and returns the order in which they are taken.
  std::vector<uint32_t> order(KnownMethods& known) {
    list(known);
    std::vector<uint32_t> order;
    while (Method* m = known.next([](Method&) { return false; })) order.push_back(m->id.index());
    return order;
  }
  void list(KnownMethods& known) {
    ProfileInfo info = ProfileStore::info_now();
    info.runs = 1;
    info.weight = ProfileInfo::kRunWeight;
    std::string path = dir_ + "/saved.upf";
    std::vector<std::byte> bytes = profile_to_file(profile_, info, {}, nullptr, &calls_);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    ProfileStore store(path);
    ASSERT_EQ(store.report().problem, "");
    known.list(methods_, store, [&](const Method& m) { return m.id.index() != refused_; });
  }

  std::string dir_;
  Host host_;
  MethodTable methods_;
  Profile profile_;
  CallProfile calls_;
  uint32_t refused_ = UINT32_MAX;
};

using Order = std::vector<uint32_t>;

TEST_F(KnownMethodsTest, they_are_listed_once) {
  KnownMethods known;
  EXPECT_TRUE(known.claim_listing());
  EXPECT_FALSE(known.claim_listing());
}

TEST_F(KnownMethodsTest, what_is_hot_comes_first_and_callees_before_those_who_call_them) {
  put_methods();
  ran(0, 300);
  ran(1, 5000);
  ran(2, 4000);
  calls_.graph[{key(1), key(2)}] = 3900;
  KnownMethods known;
  EXPECT_EQ(order(known), (Order{2, 1, 0}));
}

TEST_F(KnownMethodsTest, the_rest_comes_from_the_last_that_was_called_on) {
  put_methods();
  ran(0, 1);  // its first call is not recorded
  ran(1, 256);
  ran(2, 255);
  was_called(2, 5);
  was_called(3, 9);
  was_called(4, 2);
  KnownMethods known;
  EXPECT_EQ(order(known), (Order{1, 3, 2, 4, 0}));
}

TEST_F(KnownMethodsTest, what_was_not_called_before_is_not_listed) {
  put_methods();
  ran(3, 10);
  KnownMethods known;
  EXPECT_EQ(order(known), Order{3});
}

TEST_F(KnownMethodsTest, nor_is_what_has_gone_or_is_not_to_be_compiled_ahead) {
  put_methods(1);
  for (uint32_t i = 0; i < 4; ++i) ran(i, 1000 + i);
  methods_.at(0).removed = true;
  refused_ = 2;
  KnownMethods known;
  EXPECT_EQ(order(known), Order{3});
}

TEST_F(KnownMethodsTest, what_goes_or_is_compiled_meanwhile_is_passed_by) {
  put_methods();
  for (uint32_t i = 0; i < 4; ++i) ran(i, 1000 + i);
  KnownMethods known;
  list(known);
  known.forget(methods_.at(3));
  known.forget(methods_.at(1));
  Method* m = known.next([](Method& m) { return m.id.index() == 2; });
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(m->id.index(), 0u);
  EXPECT_EQ(known.next([](Method&) { return false; }), nullptr);
}

TEST_F(KnownMethodsTest, the_order_of_first_calls_is_told_to_the_next_process) {
  put_methods();
  KnownMethods known;
  for (uint32_t i : {4, 2, 4}) known.note_call(methods_.at(i));
  CallProfile told;
  for (uint32_t i : {2, 3, 4}) known.tell_first_call(methods_.at(i), told);
  EXPECT_EQ(told.order(), (std::vector<MethodKey>{key(4), key(2)}));
  EXPECT_EQ(told.first[key(2)], (FirstCall{1, CallProfile::kOneRun}));
}

TEST_F(KnownMethodsTest, one_that_compiles_ahead_leaves_no_order) {
  put_methods();
  KnownMethods known;
  known.note_call(methods_.at(4));
  known.note_made_ahead();
  CallProfile told;
  known.tell_first_call(methods_.at(4), told);
  EXPECT_TRUE(told.first.empty());
}

}  // namespace
}  // namespace uptier::tiering::known_methods_test
