// Data of a host and log lines through the C API.
#include <filesystem>

#include "tests/support/c_api_world.h"
#include "tests/support/program_runs.h"
#include "uptier/log_text.h"
#include "uptier/profile_file.h"
#include "uptier/profile_query.h"

namespace uptier::test::c_api_gather_test {
namespace {

class CApiGather : public CApi {
 protected:
  void SetUp() override {
    char name[] = "/tmp/uptier-c-gather-XXXXXX";
    dir_ = mkdtemp(name);
    file_ = dir_ + "/p.upf";
    create({{"profile", file_.c_str()}, {"tier", "instrumented"}, {"policy", "never"}});
  }
  void TearDown() override {
    CApi::TearDown();
    std::filesystem::remove_all(dir_);
  }
  void save() {
    ASSERT_EQ(uptier_runtime_save_profile(runtime_, &error_), UPTIER_OK) << error_.message;
  }
  ProfileFile read() const {
    const std::string text = slurp(file_);
    Result<ProfileFile> f = profile_from_file(std::as_bytes(std::span(text)));
    EXPECT_TRUE(f.ok() && f->warnings.empty());
    return f.ok() ? std::move(*f) : ProfileFile{};
  }
  uint64_t count_of(const char* scope, const char* key) const {
    const std::string text = slurp(file_);
    const auto a = query(std::as_bytes(std::span(text)), "calc", scope, key);
    return a ? std::get<CounterAnswer>(a->what).count : 0;
  }

  std::string dir_, file_;
};

struct Source {
  uint64_t hits = 0;
  int released = 0;
  const char* problem = nullptr;
};
void gather(void* user, uptier_gather_list* list) {
  auto& s = *static_cast<Source*>(user);
  const uptier_gathered_instrument one = {
      "iree.instrument.counter", "calc", "ab", "hits", nullptr, &s.hits, sizeof s.hits};
  uptier_gather_instruments(list, &one, 1);
  uptier_gather_user_data(list, "my.table", "{}", "rows", 4);
  uptier_gather_source_id(list, nullptr, "cd", nullptr, "ab");
  if (s.problem != nullptr) uptier_gather_fail(list, s.problem);
}
void release(void* user) { static_cast<Source*>(user)->released++; }

uptier_data_source as_source(Source& s) {
  return {sizeof(uptier_data_source), &s, "calc", gather, release};
}

TEST_F(CApiGather, a_source_is_asked_at_each_save) {
  Source s{5};
  const uptier_data_source source = as_source(s);
  uptier_data id = {};
  ASSERT_EQ(uptier_runtime_attach_source(runtime_, &source, &id, &error_), UPTIER_OK);
  EXPECT_NE(id.id, 0u);
  save();
  EXPECT_EQ(count_of("ab", "hits"), 5u);
  EXPECT_EQ(count_of("cd", "hits"), 5u) << "by its parent";
  EXPECT_EQ(s.released, 1);
  ASSERT_EQ(read().foreign.data.size(), 1u);
  EXPECT_EQ(read().foreign.data.begin()->data.size(), 4u);
  s.hits = 6;
  save();
  EXPECT_EQ(count_of("ab", "hits"), 6u);
  ASSERT_EQ(uptier_runtime_detach_data(runtime_, id, &error_), UPTIER_OK);
  EXPECT_EQ(uptier_runtime_detach_data(runtime_, id, &error_), UPTIER_NOT_FOUND);
  save();
  EXPECT_EQ(count_of("ab", "hits"), 0u) << "the run no longer has it";
}

TEST_F(CApiGather, data_and_counters_are_attached_in_place) {
  const std::string table(100, 't');
  uint64_t words[2] = {3, 4};
  const char* const keys[2] = {"one", "two"};
  uptier_data data = {}, counters = {};
  ASSERT_EQ(uptier_runtime_attach_data(runtime_, "my.table", nullptr, table.data(), table.size(),
                                       &data, &error_),
            UPTIER_OK);
  ASSERT_EQ(uptier_runtime_import_counters(runtime_, "calc", "new", keys, words, 2, "old",
                                           &counters, &error_),
            UPTIER_OK)
      << error_.message;
  EXPECT_NE(data.id, counters.id);
  words[1] = 40;
  struct Seen {
    const void* table;
    size_t from_table, all;
  } seen = {table.data(), 0, 0};
  uptier_gather_report report = {};
  report.size = sizeof report;
  const auto take = [](void* user, const uptier_piece* pieces, size_t count, uptier_error*) {
    auto& s = *static_cast<Seen*>(user);
    for (size_t i = 0; i < count; ++i) {
      s.all += pieces[i].bytes;
      if (pieces[i].data == s.table) s.from_table += pieces[i].bytes;
    }
    return uptier_status{UPTIER_OK};
  };
  ASSERT_EQ(uptier_runtime_gather(runtime_, take, &seen, &report, &error_), UPTIER_OK);
  EXPECT_EQ(seen.from_table, table.size());
  EXPECT_EQ(report.bytes, seen.all);
  EXPECT_EQ(report.sources, 2u);
  EXPECT_EQ(report.refused, 0u);
  save();
  EXPECT_EQ(count_of("new", "two"), 40u);
  ASSERT_EQ(uptier_runtime_detach_data(runtime_, data, &error_), UPTIER_OK);
  ASSERT_EQ(uptier_runtime_detach_data(runtime_, counters, &error_), UPTIER_OK);
}

TEST_F(CApiGather, lines_of_text_are_saved) {
  uptier_log_format format = {};
  ASSERT_EQ(uptier_runtime_add_log_format(runtime_, "x is {u}", &format, &error_), UPTIER_OK);
  uint32_t index = 9;
  const uptier_method m = add("logs", keep({[&](uptier_builder* b) {
                                const uptier_value x = uptier_build_param(b, 0);
                                EXPECT_EQ(uptier_build_log(b, format, &x, 1, &index), UPTIER_OK);
                                uptier_build_ret(b, x);
                              }}),
                              signature(1));
  ASSERT_EQ(invoke(m, {7}), UPTIER_OK) << error_.message;
  EXPECT_EQ(index, 0u);
  save();
  const ProfileFile f = read();
  ASSERT_EQ(f.foreign.instruments.size(), 1u);
  EXPECT_EQ(f.foreign.instruments.begin()->type, "iree.instrument.log");
  EXPECT_EQ(f.foreign.instruments.begin()->metadata, "{\"format\":\"x is {u}\"}");
  EXPECT_EQ(f.foreign.instruments.begin()->payload.size(), 24u);
}

TEST_F(CApiGather, misuse_is_refused) {
  EXPECT_EQ(uptier_runtime_attach_data(runtime_, nullptr, "", "x", 1, nullptr, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_attach_data(runtime_, "t", "", nullptr, 1, nullptr, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_attach_data(runtime_, "", "", "x", 1, nullptr, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("the type is empty"), std::string::npos);
  Source s;
  uptier_data_source source = as_source(s);
  source.size = 8;
  EXPECT_EQ(uptier_runtime_attach_source(runtime_, &source, nullptr, &error_),
            UPTIER_INVALID_ARGUMENT);
  source = as_source(s);
  source.gather = nullptr;
  EXPECT_EQ(uptier_runtime_attach_source(runtime_, &source, nullptr, &error_),
            UPTIER_INVALID_ARGUMENT);
  const char* const keys[1] = {nullptr};
  uint64_t word = 0;
  EXPECT_EQ(
      uptier_runtime_import_counters(runtime_, "s", "h", keys, &word, 1, nullptr, nullptr, &error_),
      UPTIER_INVALID_ARGUMENT);
  uptier_log_format format = {};
  EXPECT_EQ(uptier_runtime_add_log_format(runtime_, "{s}", &format, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("character 0"), std::string::npos) << error_.message;
  EXPECT_EQ(uptier_runtime_gather(runtime_, nullptr, nullptr, nullptr, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_detach_data(runtime_, {77}, &error_), UPTIER_NOT_FOUND);
}

TEST_F(CApiGather, a_source_that_fails_is_left_out_and_an_error_of_take_is_returned) {
  Source good{1}, bad{2, 0, "no table yet"};
  const uptier_data_source a = as_source(good), b = as_source(bad);
  uptier_data first = {}, second = {};
  ASSERT_EQ(uptier_runtime_attach_source(runtime_, &a, &first, &error_), UPTIER_OK);
  ASSERT_EQ(uptier_runtime_attach_source(runtime_, &b, &second, &error_), UPTIER_OK);
  const auto take = [](void*, const uptier_piece*, size_t, uptier_error* error) {
    std::snprintf(error->message, sizeof error->message, "the pipe is closed");
    return uptier_status{UPTIER_IO};
  };
  EXPECT_EQ(uptier_runtime_gather(runtime_, take, nullptr, nullptr, &error_), UPTIER_IO);
  EXPECT_STREQ(error_.message, "the pipe is closed");
  save();
  EXPECT_EQ(count_of("ab", "hits"), 1u);
  EXPECT_EQ(good.released, 2);
  EXPECT_EQ(bad.released, 2);
  uptier_runtime_detach_data(runtime_, first, &error_);
  uptier_runtime_detach_data(runtime_, second, &error_);
}

}  // namespace
}  // namespace uptier::test::c_api_gather_test
