#include "uptier/options.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace uptier::options_test {
namespace {

constexpr uint64_t kAllOnes = UINT64_MAX;

std::string env_name(const std::string& field) {
  std::string name = "UPTIER_";
  for (char c : field) name += static_cast<char>(std::toupper(c));
  return name;
}

// Sets an environment variable for a scope.
class Environment {
 public:
  Environment(const std::string& name, const std::string& value) : name_(name) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() { unsetenv(name_.c_str()); }
  Environment(const Environment&) = delete;

 private:
  std::string name_;
};

void expect_error(const Status& s, ErrorCode code, const std::vector<std::string>& parts) {
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().code, code);
  for (const std::string& part : parts) {
    EXPECT_NE(s.error().message.find(part), std::string::npos) << s.error().message;
  }
}

std::vector<const char*> names_of(TierMode) {
  return {"auto", "baseline", "instrumented", "optimized"};
}
std::vector<const char*> names_of(PolicyMode) { return {"auto", "always", "never"}; }
std::vector<const char*> names_of(FindMode) { return {"counts", "samples", "both"}; }
std::vector<const char*> names_of(SampleEngine) { return {"task_clock", "cpu_timer"}; }
std::vector<const char*> names_of(GapMode) { return {"random", "fixed", "prime", "exact"}; }
std::vector<const char*> names_of(FlowMode) { return {"edges", "blocks"}; }
std::vector<const char*> names_of(CounterMode) {
  return {"per_thread", "interlocked", "scalable", "racing", "dual"};
}

// A row of the table: texts that must be accepted, with their values; texts that must be refused;
// and values that check() must refuse.
template <typename T>
struct Row {
  std::string name;
  T Options::*field;
  double low, high;
  bool any_number = false;  // every uint64_t is legal

  std::vector<std::pair<std::string, T>> good() const {
    std::vector<std::pair<std::string, T>> texts;
    if constexpr (std::is_enum_v<T>) {
      for (const char* n : names_of(T{})) texts.emplace_back(n, static_cast<T>(texts.size()));
    } else if constexpr (std::is_same_v<T, bool>) {
      for (const char* t : {"1", "true", "on"}) texts.emplace_back(t, true);
      for (const char* t : {"0", "false", "off"}) texts.emplace_back(t, false);
    } else if constexpr (std::is_same_v<T, double>) {
      double middle = low + (high - low) / 3;
      for (double v : {low, high, middle}) texts.emplace_back(format(v), v);
    } else {
      uint64_t top = any_number ? kAllOnes : static_cast<uint64_t>(high);
      auto bottom = static_cast<uint64_t>(low);
      for (uint64_t v : {bottom, top, bottom + (top - bottom) / 3}) {
        texts.emplace_back(std::to_string(v), v);
      }
    }
    return texts;
  }
  std::vector<std::string> bad() const {
    std::vector<std::string> texts = {"", " ", "x", "1x", "-1", "automatic", "1 ", "Auto", "ON"};
    if constexpr (std::is_same_v<T, double>) {
      for (const char* t : {"nan", "inf", "-inf", "1e999", "2.0.0"}) texts.push_back(t);
      texts.push_back(format(high * 1.01));
      if (low > 0) texts.push_back(format(low * 0.99));
    } else {
      for (const char* t : {"1.5", "0x10", "+1", "99999999999999999999"}) texts.push_back(t);
    }
    if constexpr (std::is_same_v<T, uint64_t>) {
      if (low > 0) texts.push_back(std::to_string(static_cast<uint64_t>(low) - 1));
      if (!any_number) texts.push_back(std::to_string(static_cast<uint64_t>(high) + 1));
    }
    return texts;
  }
  std::vector<T> out_of_range() const {
    if constexpr (std::is_enum_v<T>) {
      return {static_cast<T>(names_of(T{}).size()), static_cast<T>(255)};
    } else if constexpr (std::is_same_v<T, bool>) {
      return {};
    } else if constexpr (std::is_same_v<T, double>) {
      return {high * 1.01, low - 0.01, std::nan(""), HUGE_VAL};
    } else {
      std::vector<T> values;
      if (low > 0) values.push_back(static_cast<T>(low) - 1);
      if (!any_number) values.push_back(static_cast<T>(high) + 1);
      return values;
    }
  }
  static std::string format(double v) {
    char text[64];
    snprintf(text, sizeof text, "%.17g", v);
    return text;
  }
};

// Calls `f` with each row of the table.
template <typename F>
void for_each_row(F f) {
#define X(kind, field, fallback, low, high, unit, reason)                            \
  f(Row<decltype(Options::field)>{#field, &Options::field, static_cast<double>(low), \
                                  static_cast<double>(high),                         \
                                  static_cast<double>(high) == static_cast<double>(kAllOnes)});
  UPTIER_OPTIONS(X)
#undef X
}

TEST(Options, defaults_are_legal) {
  EXPECT_TRUE(Options().check().ok());
  auto o = Options::from_env();
  ASSERT_TRUE(o.ok());
  EXPECT_EQ(o->table(), Options().table());
}

TEST(Options, defaults_are_those_of_the_table) {
  const Options o;
#define X(kind, field, fallback, low, high, unit, reason) \
  EXPECT_TRUE(o.field == static_cast<decltype(o.field)>(fallback)) << #field;
  UPTIER_OPTIONS(X)
#undef X
  EXPECT_EQ(o.stress, "");
}

TEST(Options, every_row_takes_what_its_range_allows) {
  for_each_row([](const auto& row) {
    for (const auto& [text, value] : row.good()) {
      Options o;
      Status s = o.set(row.name, text);
      ASSERT_TRUE(s.ok()) << s.error().message;
      EXPECT_EQ(o.*row.field, value) << row.name << " " << text;
      EXPECT_TRUE(o.check().ok()) << row.name << " " << text;
    }
  });
}

TEST(Options, every_row_refuses_what_its_range_does_not_allow_and_keeps_its_value) {
  for_each_row([](const auto& row) {
    for (const std::string& text : row.bad()) {
      Options o;
      SCOPED_TRACE(row.name + " \"" + text + "\"");
      expect_error(o.set(row.name, text), ErrorCode::kInvalidArgument,
                   {row.name, "\"" + text + "\""});
      EXPECT_TRUE(o.*row.field == Options().*row.field);
    }
  });
}

TEST(Options, check_finds_every_field_that_is_out_of_range) {
  int found = 0;
  for_each_row([&](const auto& row) {
    for (auto value : row.out_of_range()) {
      Options o;
      o.*row.field = value;
      SCOPED_TRACE(row.name);
      expect_error(o.check(), ErrorCode::kInvalidArgument, {row.name});
      ++found;
    }
  });
  EXPECT_GT(found, 30);
}

TEST(Options, message_says_what_is_legal) {
  Options o;
  expect_error(o.set("interval", "0"), ErrorCode::kInvalidArgument,
               {"interval", "\"0\"", "a whole number from 1 to 134217728"});
  expect_error(o.set("flush_growth", "0.5"), ErrorCode::kInvalidArgument,
               {"flush_growth", "\"0.5\"", "a number from 1 to 1024"});
  expect_error(o.set("gap", "odd"), ErrorCode::kInvalidArgument,
               {"gap", "\"odd\"", "one of random fixed prime exact"});
  expect_error(o.set("perf_map", "maybe"), ErrorCode::kInvalidArgument,
               {"perf_map", "\"maybe\"", "on or off"});
}

TEST(Options, sizes_have_suffixes_and_are_shown_with_them) {
  Options o;
  EXPECT_TRUE(o.set("code_budget", "16M").ok());
  EXPECT_EQ(o.code_budget, 16u << 20);
  EXPECT_TRUE(o.set("ring_bytes=64k").ok());
  EXPECT_EQ(o.ring_bytes, 64u << 10);
  EXPECT_TRUE(o.set("max_stack", "1G").ok());
  EXPECT_EQ(o.max_stack, 1u << 30);
  EXPECT_TRUE(o.set("slab_budget", "5000").ok());
  EXPECT_EQ(o.slab_budget, 5000u);
  for (const char* wrong :
       {"2G", "M", "64MB", "-1M", "1.5M", " 64M", "64 M", "64T", "18446744073709551615G"}) {
    expect_error(o.set("code_budget", wrong), ErrorCode::kInvalidArgument,
                 {"code_budget", "a size from 64K to 1G, in bytes, K, M or G"});
  }
  EXPECT_EQ(o.code_budget, 16u << 20);
  expect_error(o.set("interval", "1K"), ErrorCode::kInvalidArgument, {"a whole number"});
  for (const char* value : {"16M ", "64K ", "1G ", "5000 ", "256K "}) {
    EXPECT_NE(o.table().find(std::string(" ") + value), std::string::npos) << value;
  }
  EXPECT_EQ(o.changes(),
            "code_budget=16777216 slab_budget=5000 ring_bytes=65536 max_stack=1073741824");
}

TEST(Options, unknown_name_is_not_found) {
  Options o;
  for (const char* name : {"", "Interval", "interval ", "intervals", "UPTIER_INTERVAL"}) {
    expect_error(o.set(name, "1"), ErrorCode::kNotFound, {"\"" + std::string(name) + "\""});
  }
}

TEST(Options, stress_plan_is_checked_when_it_is_set_and_by_check) {
  Options o;
  EXPECT_TRUE(o.set("stress", "osr=all,copy=every:3").ok());
  EXPECT_EQ(o.stress, "osr=all,copy=every:3");
  expect_error(o.set("stress", "osr=sometimes"), ErrorCode::kInvalidArgument, {"osr=sometimes"});
  EXPECT_EQ(o.stress, "osr=all,copy=every:3");
  EXPECT_TRUE(o.set("stress", "").ok());
  EXPECT_EQ(o.stress, "");
  o.stress = "loop=all";
  expect_error(o.check(), ErrorCode::kInvalidArgument, {"loop=all"});
}

TEST(Options, every_row_is_read_from_the_environment) {
  for_each_row([](const auto& row) {
    for (const auto& [text, value] : row.good()) {
      Environment set(env_name(row.name), text);
      auto o = Options::from_env();
      ASSERT_TRUE(o.ok()) << o.error().message;
      EXPECT_EQ((*o).*row.field, value) << row.name << " " << text;
    }
    Environment set(env_name(row.name), "nonsense");
    auto o = Options::from_env();
    ASSERT_FALSE(o.ok()) << row.name;
    EXPECT_NE(o.error().message.find(row.name), std::string::npos) << o.error().message;
  });
}

TEST(Options, environment_sets_several_at_once_and_the_stress_plan) {
  Environment interval("UPTIER_INTERVAL", "7"), gap("UPTIER_GAP", "prime");
  Environment stress("UPTIER_STRESS", "code=at:5"), other("UPTIER_UNKNOWN", "1");
  auto o = Options::from_env();
  ASSERT_TRUE(o.ok());
  EXPECT_EQ(o->interval, 7u);
  EXPECT_EQ(o->gap, GapMode::kPrime);
  EXPECT_EQ(o->stress, "code=at:5");
  EXPECT_EQ(o->burst, Options().burst);
  Environment wrong("UPTIER_STRESS", "code=never");
  EXPECT_FALSE(Options::from_env().ok());
}

TEST(Options, table_prints_every_row_with_value_unit_reason_range_and_variable) {
  Options o;
  o.interval = 12345;
  o.gap = GapMode::kPrime;
  o.flush_growth = 1.25;
  o.perf_map = true;
  const std::string table = o.table();
  auto shows = [&](const std::string& part) { return table.find(part) != std::string::npos; };
  int rows = 0;
#define X(kind, field, fallback, low, high, unit, reason) \
  ++rows;                                                 \
  EXPECT_TRUE(shows("\n" #field " ")) << #field;          \
  EXPECT_TRUE(shows(unit)) << #field;                     \
  EXPECT_TRUE(shows(reason)) << #field;                   \
  EXPECT_TRUE(shows("; " + env_name(#field) + "\n")) << #field;
  UPTIER_OPTIONS(X)
#undef X
  for (const char* value :
       {"12345", "prime", "1.25", "on", "a whole number from 1 to 1073741824",
        "\nstress             off ", "UPTIER_STRESS", "\nopt_range          all ",
        "UPTIER_OPT_RANGE", "\ntime_loops         all ", "UPTIER_TIME_LOOPS",
        "\nprofile            none ", "UPTIER_PROFILE", "\nlisten             off ",
        "UPTIER_LISTEN"}) {
    EXPECT_TRUE(shows(value)) << value;
  }
  int lines = 0;
  std::istringstream in(table);
  for (std::string line; std::getline(in, line); ++lines) EXPECT_LE(line.size(), 160u) << line;
  EXPECT_EQ(lines, 2 * rows + 6 + 2);  // 6 texts of one line each, and 2 headings
}

TEST(Options, the_table_has_research_options_after_all_others) {
  const std::string table = Options().table();
  const size_t research = table.find("-- options for research\n");
  ASSERT_TRUE(table.starts_with("-- options for embedders\n"));
  ASSERT_NE(research, std::string::npos);
#define X(kind, field, fallback, low, high, unit, reason) \
  EXPECT_LT(table.find("\n" #field " "), research) << #field;
  UPTIER_EMBEDDER_OPTIONS(X)
#undef X
#define X(kind, field, fallback, low, high, unit, reason) \
  EXPECT_GT(table.find("\n" #field " "), research) << #field;
  UPTIER_RESEARCH_OPTIONS(X)
#undef X
  EXPECT_LT(table.find("\nprofile "), research);
  EXPECT_GT(table.find("\nstress "), research);
}

TEST(Options, table_shows_a_stress_plan_of_any_length) {
  Options o;
  for (int i = 0; i < 100; ++i) o.stress += (i == 0 ? "" : ",") + std::string("osr=at:12345");
  ASSERT_TRUE(o.check().ok());
  std::string table = o.table();
  EXPECT_NE(table.find(o.stress), std::string::npos);
  EXPECT_EQ(table.back(), '\n');
}

TEST(Options, an_assignment_sets_a_field) {
  Options o;
  ASSERT_TRUE(o.set("interval=7").ok());
  EXPECT_EQ(o.interval, 7u);
  ASSERT_TRUE(o.set("stress=osr=all").ok());
  EXPECT_EQ(o.stress, "osr=all");
  expect_error(o.set("interval"), ErrorCode::kInvalidArgument, {"NAME=VALUE", "interval"});
  expect_error(o.set("no_such=1"), ErrorCode::kNotFound, {"no_such"});
}

}  // namespace
}  // namespace uptier::options_test
