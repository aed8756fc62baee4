// The code of "Data of your own in profiles" in docs/embedding.md.
#include <gtest/gtest.h>

#include <filesystem>

#include "profile/upf/text_log.h"
#include "tests/support/program_runs.h"
#include "uptier/log_text.h"
#include "uptier/profile_file.h"
#include "uptier/runtime.h"

namespace uptier::test::gather_guide_test {
namespace {

uint64_t collections = 3;
const std::string hash = "0x0000000000000011";

class CalcData : public uptier::DataSource {
 public:
  std::string_view name() const noexcept override { return "calc"; }
  void gather(uptier::GatherList& list) noexcept override {
    const uptier::GatheredInstrument one{"iree.instrument.counter",
                                         "calc",
                                         hash,
                                         "collections",
                                         "",
                                         list.keep(std::as_bytes(std::span(&collections, 1)))};
    list.instruments({&one, 1});
  }
};

// f(n) of `all` bytes.
class Reader : public Host {
 public:
  uptier::LogFormat format;

  Status build(MethodId, FunctionBuilder& b) noexcept override {
    const Value n = b.param(0), all = b.i64(4096);
    b.log(format, {{n, all}});
    b.ret(n);
    return {};
  }
};

TEST(GatherGuide, its_code_does_what_it_says) {
  const std::string path = "/tmp/uptier-guide-" + std::to_string(::getpid()) + ".upf";
  const std::string symbols = "a b c";
  Options options;
  options.profile = path;
  options.interval = 1;
  options.policy = PolicyMode::kNever;
  options.workers = 0;
  {
    CalcData data;
    Reader reader;
    Result<std::unique_ptr<Runtime>> created = Runtime::create(options);
    ASSERT_TRUE(created.ok());
    Runtime& runtime = **created;
    const Result<uint64_t> attached =
        runtime.attach_data("calc.symbols", "{\"version\":1}", std::as_bytes(std::span(symbols)));
    ASSERT_TRUE(attached.ok());
    ASSERT_TRUE(runtime.attach_data(data).ok());
    reader.format = *runtime.add_log_format("read {u} bytes of {u}");
    MethodInfo info;
    info.name = "read";
    info.signature = {{Type::kI64}, Type::kI64};
    const MethodId m = *runtime.add_method(reader, info);
    EXPECT_EQ(runtime.invoke(m, {{10}}).bits, 10u);
    created->reset();
  }
  const std::string bytes = slurp(path);
  std::filesystem::remove(path);
  const Result<ProfileFile> file = profile_from_file(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(file.ok() && file->warnings.empty());
  EXPECT_EQ(file->foreign.data.size(), 1u);
  const auto count = query(std::as_bytes(std::span(bytes)), "calc", hash, "collections");
  ASSERT_TRUE(count);
  EXPECT_EQ(std::get<CounterAnswer>(count->what).count, 3u);
  size_t logs = 0;
  for (const ForeignInstrument& i : file->foreign.instruments) {
    if (!profile::is_text_log(i)) continue;
    const Result<profile::TextLog> log = profile::read_text_log(i);
    ASSERT_TRUE(log.ok() && log->lines.size() == 1);
    EXPECT_EQ(log_text(log->format, log->lines[0].arguments), "read 10 bytes of 4096");
    ++logs;
  }
  EXPECT_EQ(logs, 1u);
}

}  // namespace
}  // namespace uptier::test::gather_guide_test
