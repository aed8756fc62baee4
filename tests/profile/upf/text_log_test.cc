// Lines of logged text as instruments: what is written is read, and nothing else is believed.
#include "profile/upf/text_log.h"

#include <gtest/gtest.h>

#include "profile/upf/gathered.h"
#include "tests/support/trace_samples.h"

namespace uptier::text_log_test {
namespace {

using profile::Bytes;
using profile::TextLog;

TextLog example() {
  return {
      "0x0000000000000011@f", 6, "{u} of \"{x}\"\\\n\x1f", {{100, 1, {5, 6}}, {200, 2, {7, 8}}}};
}

// Returns the instrument that readers get.
ForeignInstrument written(const TextLog& log) {
  GatherList list;
  profile::append_text_log(log, list);
  EXPECT_EQ(list.problem(), nullptr);
  Bytes file;
  for (const Piece& p : list.pieces()) {
    const auto* at = static_cast<const std::byte*>(p.data);
    file.insert(file.end(), at, at + p.bytes);
  }
  const Result<ProfileFile> read = profile_from_file(file);
  EXPECT_TRUE(read.ok() && read->foreign.instruments.size() == 1);
  return read.ok() ? *read->foreign.instruments.begin() : ForeignInstrument{};
}

std::string refusal(const ForeignInstrument& i) {
  const Result<TextLog> r = profile::read_text_log(i);
  return r.ok() ? "accepted" : r.error().message;
}

TEST(TextLog, what_is_written_is_read) {
  const ForeignInstrument i = written(example());
  EXPECT_EQ(i.type, "iree.instrument.log");
  EXPECT_EQ(i.scope_key, "log#6");
  EXPECT_TRUE(profile::is_text_log(i));
  const Result<TextLog> back = profile::read_text_log(i);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, example());
  const TextLog empty{"", 0, "plain", {{1, 1, {}}}};
  EXPECT_EQ(*profile::read_text_log(written(empty)), empty);
}

TEST(TextLog, records_that_are_truncated_or_lie_are_refused) {
  const ForeignInstrument good = written(example());
  const std::string name = "log 0x0000000000000011@f log#6: ";
  std::set<size_t> ends;
  for (size_t size = 0; size < good.payload.size(); ++size) {
    ForeignInstrument cut = good;
    cut.payload.resize(size);
    if (refusal(cut) == "accepted") {
      ends.insert(size);
    } else {
      EXPECT_NE(refusal(cut).find("the line is cut off"), std::string::npos) << size;
    }
  }
  EXPECT_EQ(ends, (std::set<size_t>{0, 32})) << "whole lines only";
  for (const uint32_t count : {0u, 1u, 3u, ~0u}) {
    ForeignInstrument lies = good;
    profile::store<uint32_t>(lies.payload, 32 + 12, count);
    EXPECT_EQ(refusal(lies),
              name + "byte 32: " + std::to_string(count) + " arguments for a format with 2");
  }
  const auto with = [&](auto change) {
    ForeignInstrument bad = good;
    change(bad);
    return refusal(bad);
  };
  EXPECT_EQ(with([](auto& i) { i.scope_key = "value#6"; }),
            "log 0x0000000000000011@f value#6: the key is not log#SITE");
  EXPECT_EQ(with([](auto& i) { i.scope_key = "log#4294967296"; }),
            "log 0x0000000000000011@f log#4294967296: the key is not log#SITE");
  for (const char* metadata : {"", "{}", "{\"format\":\"a\"b\"}", "{\"format\":\"a\\q\"}",
                               "{\"format\":\"a\\u00\"}", "{\"format\":\"\\u0041\"}"}) {
    EXPECT_EQ(with([&](auto& i) { i.metadata = metadata; }),
              name + "the metadata is not {\"format\":\"...\"}")
        << metadata;
  }
  EXPECT_NE(with([](auto& i) { i.metadata = "{\"format\":\"{s}\"}"; }).find("a placeholder is"),
            std::string::npos);
}

TEST(TextLog, any_bytes_are_read_without_harm) {
  test::Generator generator(5);
  const ForeignInstrument good = written(example());
  size_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    ForeignInstrument bad = good;
    for (uint64_t n = 1 + generator.below(3); n > 0; --n) {
      bad.payload[generator.below(bad.payload.size())] = std::byte(generator.below(256));
      if (generator.below(2) == 0) {
        bad.metadata[generator.below(bad.metadata.size())] =
            static_cast<char>(generator.below(256));
      }
    }
    if (generator.below(3) == 0) bad.payload.resize(generator.below(bad.payload.size()));
    refused += !profile::read_text_log(bad).ok();
  }
  EXPECT_GT(refused, 10'000u);
}

TEST(TextLog, the_latest_logs_are_kept) {
  ForeignTables tables;
  for (uint64_t run = 1; run <= 4; ++run) {
    TextLog log{"s", 1, "x", {}};
    for (uint64_t i = 0; i < 10; ++i) log.lines.push_back({run * 100 + i, 1, {}});
    tables.add(written(log));  // 160 bytes
  }
  ForeignInstrument other{"iree.instrument.log", "vm", "a", "b", "", Bytes(5000)};
  tables.add(other);
  const auto times = [&] {
    std::set<uint64_t> seen;
    for (const ForeignInstrument& i : tables.instruments) {
      if (profile::is_text_log(i)) seen.insert(profile::read_text_log(i)->lines.front().time);
    }
    return seen;
  };
  profile::keep_latest_logs(tables, 640);
  EXPECT_EQ(times(), (std::set<uint64_t>{100, 200, 300, 400}));
  profile::keep_latest_logs(tables, 500);
  EXPECT_EQ(times(), (std::set<uint64_t>{200, 300, 400}));
  profile::keep_latest_logs(tables, 100);
  EXPECT_TRUE(times().empty());
  EXPECT_EQ(tables.instruments.size(), 1u) << "logs of other tools stay";
}

}  // namespace
}  // namespace uptier::text_log_test
