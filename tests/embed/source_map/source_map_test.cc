// Source maps: those of a compiler and those written by hand, and maps that break rules.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "embed/source_map/json_text.h"
#include "embed/wasm/source_lines.h"
#include "tests/support/tool_dir.h"

namespace uptier::source_map_test {
namespace {

using dwarf::SourceFrame;
using testing::HasSubstr;
using wasm::SourceLines;
using Bytes = std::vector<uint8_t>;

std::string stored(const std::string& name) {
  return std::string(UPTIER_SOURCE_DIR) + "/tests/support/lines/" + name;
}

Bytes read_bytes(const std::string& path) {
  const std::string text = test::slurp(path);
  return {text.begin(), text.end()};
}

Result<SourceLines> mapped(const std::string& json, const std::string& folder = "/src") {
  return SourceLines::read_map(read_bytes(stored("as.wasm")), json, folder);
}

std::string refusal(const std::string& json) {
  Result<SourceLines> lines = mapped(json);
  return lines.ok() ? "" : lines.error().message;
}

std::string map_of(const std::string& mappings, const std::string& more = "") {
  return R"({"version":3,"sources":["a.c","/b.c"],)" + more + R"("mappings":")" + mappings + "\"}";
}

// Base64 VLQ.
std::string vlq(int64_t n) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uint64_t bits = n < 0 ? (static_cast<uint64_t>(-n) << 1 | 1) : static_cast<uint64_t>(n) << 1;
  std::string out;
  do {
    const uint64_t d = bits & 31;
    bits >>= 5;
    out += digits[d | (bits != 0 ? 32 : 0)];
  } while (bits != 0);
  return out;
}

// An index map with these maps, each from an offset on.
std::string index_of(const std::vector<std::pair<uint32_t, std::string>>& maps) {
  std::string sections;
  for (const auto& [offset, map] : maps) {
    sections += (sections.empty() ? "" : ",") + std::string(R"({"offset":{"line":0,"column":)") +
                std::to_string(offset) + R"(},"map":)" + map + "}";
  }
  return R"({"version":3,"sections":[)" + sections + "]}";
}

// An independent reader of mappings: offset -> source, line and column from 0; source -1: no place.
std::map<uint32_t, std::array<int64_t, 3>> decoded(const std::string& mappings) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::map<uint32_t, std::array<int64_t, 3>> all;
  std::array<int64_t, 4> sums{};
  size_t field = 0;
  int64_t number = 0;
  unsigned shift = 0;
  for (char c : mappings + ",") {
    if (c == ',') {
      const bool has_place = field == 4;
      all[static_cast<uint32_t>(sums[0])] = {has_place ? sums[1] : -1, sums[2], sums[3]};
      field = 0;
      continue;
    }
    const auto d = static_cast<int64_t>(digits.find(c));
    number |= (d & 31) << shift;
    shift += 5;
    if ((d & 32) != 0) continue;
    sums[field++] += (number & 1) != 0 ? -(number >> 1) : number >> 1;
    number = shift = 0;
  }
  return all;
}

TEST(SourceMap, each_mapping_of_a_compiler_is_found) {
  const std::string json = test::slurp(stored("as.wasm.map"));
  Result<SourceLines> lines = mapped(json);
  ASSERT_TRUE(lines.ok()) << lines.error().message;
  const auto all = decoded(nlohmann::json::parse(json)["mappings"]);
  EXPECT_GT(all.size(), 30u);
  for (const auto& [offset, place] : all) {
    if (place[0] < 0) continue;
    const std::vector<SourceFrame> frames = lines->at(offset);
    ASSERT_EQ(frames.size(), 1u) << offset;
    EXPECT_EQ(frames[0], (SourceFrame{"", "/src/as/lines.ts", static_cast<uint32_t>(place[1] + 1),
                                      static_cast<uint32_t>(place[2] + 1)}));
  }
}

// The map of a compiler, cut into two parts of one module.
TEST(SourceMap, an_index_map_is_its_parts_one_after_the_other) {
  const std::string json = test::slurp(stored("as.wasm.map"));
  Result<SourceLines> whole = mapped(json);
  ASSERT_TRUE(whole.ok());
  const nlohmann::json parsed = nlohmann::json::parse(json);
  const auto all = decoded(parsed["mappings"]);
  const uint32_t cut = std::next(all.begin(), static_cast<long>(all.size() / 2))->first;
  std::string mappings[2];
  std::array<int64_t, 4> before[2] = {};
  before[1][0] = cut;
  for (const auto& [offset, place] : all) {
    const size_t part = offset < cut ? 0 : 1;
    const std::array<int64_t, 4> now = {offset, place[0], place[1], place[2]};
    if (!mappings[part].empty()) mappings[part] += ',';
    const size_t numbers = place[0] < 0 ? 1 : 4;
    for (size_t i = 0; i < numbers; ++i) {
      mappings[part] += vlq(now[i] - before[part][i]);
      before[part][i] = now[i];
    }
  }
  nlohmann::json maps[2] = {parsed, parsed};
  for (size_t part : {0u, 1u}) maps[part]["mappings"] = mappings[part];
  maps[1]["sourceRoot"] = "/elsewhere";
  Result<SourceLines> lines = mapped(index_of({{0, maps[0].dump()}, {cut, maps[1].dump()}}));
  ASSERT_TRUE(lines.ok()) << lines.error().message;
  int first = 0, second = 0;
  for (uint32_t at = 0; at < 2000; ++at) {
    std::vector<SourceFrame> expected = whole->at(at);
    if (at >= cut && !expected.empty() && expected[0].line != 0)
      expected[0].file = "/elsewhere/lines.ts";
    ASSERT_EQ(lines->at(at), expected) << at;
    (at < cut ? first : second) += expected.empty() ? 0 : 1;
  }
  EXPECT_GT(first, 10);
  EXPECT_GT(second, 10);
}

// The bodies of as.wasm begin at 0x5f and lie one after the other.
TEST(SourceMap, a_mapping_ends_with_its_function) {
  const Bytes module = read_bytes(stored("as.wasm"));
  Result<SourceLines> whole = mapped(test::slurp(stored("as.wasm.map")));
  ASSERT_TRUE(whole.ok());
  // One mapping, in the first function.
  const uint32_t first = whole->code_begin() + 4;
  Result<SourceLines> lines = mapped(map_of(vlq(first) + "CKE"));
  ASSERT_TRUE(lines.ok()) << lines.error().message;
  std::vector<uint32_t> with;
  for (uint32_t at = 0; at < module.size(); ++at) {
    if (!lines->at(at).empty()) with.push_back(at);
  }
  ASSERT_FALSE(with.empty());
  EXPECT_EQ(with.front(), first);
  // divide() has 8 bytes, after the count of functions and its own size.
  EXPECT_EQ(with.back() + 1, whole->code_begin() + 2 + 8);
  EXPECT_EQ(lines->at(first)[0], (SourceFrame{"", "/b.c", 6, 3}));
}

TEST(SourceMap, paths_are_joined_and_escapes_are_read) {
  const std::string at = vlq(mapped(test::slurp(stored("as.wasm.map")))->code_begin() + 4);
  const auto file = [&](const std::string& root, const std::string& source) {
    Result<SourceLines> lines =
        mapped("{\"sourceRoot\":" + root + ",\"names\":[{}],\"version\" : 3,\n" + "\"sources\":[" +
               source + "],\"mappings\":\"" + at + "AAA\"}");
    if (!lines.ok()) return lines.error().message;
    return lines->map().lines().path(0);
  };
  EXPECT_EQ(file("null", "\"a.c\""), "/src/a.c");
  EXPECT_EQ(file("\"lib/\"", "\"./a.c\""), "/src/lib/a.c");
  EXPECT_EQ(file("\"/lib\"", "\"a.c\""), "/lib/a.c");
  EXPECT_EQ(file("\"\"", "\"/x/a.c\""), "/x/a.c");
  EXPECT_EQ(file("\"\"", R"("\u00fc\ud83d\ude00\/\"\\.c")"), "/src/\u00fc\U0001F600/\"\\.c");
  EXPECT_EQ(file("\"\"", "null"), "/src");
}

TEST(SourceMap, each_refusal_names_the_place_and_the_rule) {
  EXPECT_EQ(refusal("{"), "JSON at 1: it is not well-formed, or not a source map");
  EXPECT_EQ(refusal("[]"), "JSON at 0: it is not well-formed, or not a source map");
  EXPECT_EQ(refusal(map_of("") + "x"), "JSON at 52: it is not well-formed, or not a source map");
  EXPECT_EQ(refusal(R"({"version":2,"mappings":""})"), "version 2 is not supported; only 3 is");
  EXPECT_EQ(refusal(R"({"version":3,"sections":[]})"), "its source map has no mappings");
  EXPECT_EQ(refusal(R"({"version":2,"sections":[]})"), "version 2 is not supported; only 3 is");
  EXPECT_EQ(refusal(R"({"version":3,"sections":[{"offset":{"line":0,"column":9}}]})"),
            "sections at 25: a section has no map of its own");
  EXPECT_EQ(refusal(index_of({{0, index_of({})}})),
            "sections at 87: there is an index map inside of another");
  EXPECT_EQ(refusal(index_of({{0, map_of("SAAA")}, {9, map_of("AAAA")}})),
            "sections at 121: it begins before the end of the section before it");
  EXPECT_EQ(refusal(map_of("")), "its source map has no mappings");
  EXPECT_EQ(refusal(map_of("AAAA,!")),
            "mappings at 5: a number is not base64 VLQ, or has more than 32 bits");
  EXPECT_EQ(refusal(map_of("AAAAAA")), "mappings at 0: a mapping has more than 5 numbers");
  EXPECT_EQ(refusal(map_of("AAA")), "mappings at 0: a mapping has neither 1, 4 nor 5 numbers");
  EXPECT_EQ(refusal(map_of("AAAA;AAAA")),
            "mappings at 5: a module has only one line, and this is of another");
  EXPECT_EQ(refusal(map_of("EAAA,DAAA")), "mappings at 5: offsets do not ascend");
  EXPECT_EQ(refusal(map_of("AEAA")), "mappings at 0: there is no source with this number");
  EXPECT_EQ(refusal(map_of("AADA")),
            "mappings at 0: a source, line or column is negative or has more than 31 bits");
  EXPECT_THAT(
      refusal(map_of(vlq(100'000) + "AAA")),
      HasSubstr("offset 100000 lies past the end of the module: the map is of another one"));
  EXPECT_EQ(refusal(map_of("AAAA", R"("sources":["\ud800"],)")).substr(0, 4), "JSON");
}

// A long root goes before each of many sources.
TEST(SourceMap, maps_that_would_take_too_much_memory_are_refused) {
  std::string sources = R"("")";
  for (int i = 0; i < 1000; ++i) sources += R"(,"a")";
  Result<SourceLines> lines = mapped(R"({"version":3,"sourceRoot":")" + std::string(500'000, 'r') +
                                     R"(","sources":[)" + sources + R"(],"mappings":"8DAAA"})");
  ASSERT_FALSE(lines.ok());
  EXPECT_EQ(lines.error().code, ErrorCode::kResourceExhausted);
}

TEST(SourceMap, every_text_that_ends_early_is_refused) {
  const std::string json = test::slurp(stored("as.wasm.map"));
  for (size_t size = 0; size < json.size(); ++size) {
    EXPECT_NE(refusal(json.substr(0, size)), "") << size;
  }
}

TEST(SourceMap, the_file_is_beside_the_module_whatever_the_section_says) {
  const auto name = [](const std::string& url) {
    Bytes module{0, 'a', 's', 'm', 1, 0, 0, 0, 0, static_cast<uint8_t>(18 + url.size())};
    for (char c : "\x10sourceMappingURL" + (static_cast<char>(url.size()) + url)) {
      module.push_back(static_cast<uint8_t>(c));
    }
    return wasm::source_map_name(module);
  };
  EXPECT_EQ(name("x.wasm.map"), "x.wasm.map");
  EXPECT_EQ(name("./x.map"), "x.map");
  EXPECT_EQ(name("https://example.org/a/x.map?v=1#2"), "x.map");
  EXPECT_EQ(name("../../etc/passwd"), "passwd");
  EXPECT_EQ(name("/.."), "");
  EXPECT_EQ(name("data:application/json;base64,e30="), "");
  EXPECT_EQ(name(""), "");
}

class SourceMapTool : public test::ToolDir {
 protected:
  SourceMapTool() {
    std::filesystem::copy(stored("as.wasm"), path("as.wasm"));
    std::filesystem::copy(stored("as.wasm.map"), path("as.wasm.map"));
  }
};

TEST_F(SourceMapTool, lines_of_coverage_traps_and_profiles_come_from_it) {
  ASSERT_EQ(tool("run --coverage c.json as.wasm").code, 0);
  const nlohmann::json file = nlohmann::json::parse(test::slurp(path("c.json")))["files"][0];
  EXPECT_TRUE(file["file"].get<std::string>().ends_with("/as/lines.ts")) << file["file"];
  std::map<int, int> lines;
  for (const auto& l : file["lines"]) lines[l[0]] = l[1];
  EXPECT_EQ(
      lines,
      (std::map<int, int>{
          {3, 1}, {7, 1}, {11, 0}, {12, 0}, {16, 1}, {17, 1}, {18, 1}, {19, 1}, {21, 1}, {24, 1}}));
  const test::RunResult trap = tool("run --invoke divide as.wasm 1 0");
  EXPECT_EQ(trap.code, 134);
  EXPECT_THAT(trap.err, testing::ContainsRegex("\n  at divide, .*/as/lines.ts:7:10\n"));
  ASSERT_EQ(tool("run --tier=instrumented --profile p.upf as.wasm").code, 0);
  const test::RunResult show = tool("profile show p.upf --lines --module as.wasm");
  EXPECT_THAT(show.out, testing::ContainsRegex("667 .*/as/lines.ts:3\n"));
}

TEST_F(SourceMapTool, a_map_that_is_missing_or_broken_is_named) {
  write_text("as.wasm.map", "{}");
  const test::RunResult broken = tool("run --coverage c.json as.wasm");
  EXPECT_EQ(broken.code, 1);
  EXPECT_THAT(broken.err,
              HasSubstr("source map as.wasm.map: version 0 is not supported; only 3 is"));
  std::filesystem::remove(path("as.wasm.map"));
  const test::RunResult missing = tool("run --coverage c.json as.wasm");
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("its source map is not beside it: "));
  const test::RunResult trap = tool("run --invoke divide as.wasm 1 0");
  EXPECT_EQ(trap.code, 134);
  EXPECT_THAT(trap.err, HasSubstr("trap: integer divide by zero"));
}

}  // namespace
}  // namespace uptier::source_map_test
