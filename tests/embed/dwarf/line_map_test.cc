// Source lines of code: against llvm-symbolizer, and modules that break rules.
#include <algorithm>
#include <cstdio>
#include <set>

#include "embed/wasm/sections.h"
#include "embed/wasm/source_lines.h"
#include "tests/support/tool_dir.h"

namespace uptier::line_map_test {
namespace {

using dwarf::SourceFrame;
using wasm::SourceLines;
using Bytes = std::vector<uint8_t>;

constexpr const char* kModules[] = {"lines4", "lines5", "plain4", "plain5"};

Bytes read_bytes(const std::string& path) {
  const std::string text = test::slurp(path);
  return {text.begin(), text.end()};
}

std::string stored(const std::string& name) {
  return std::string(UPTIER_SOURCE_DIR) + "/tests/fuzz/corpus/dwarf/" + name + ".wasm";
}

// Returns the size of a module's code section.
uint32_t code_size(const Bytes& module) {
  for (wasm::Sections s(module); s.next();) {
    if (s.id() == 10) return static_cast<uint32_t>(s.content().size());
  }
  return 0;
}

// What llvm-symbolizer prints for an address.
std::string symbolized(const SourceLines& lines, uint32_t address) {
  std::string out;
  for (const SourceFrame& f : lines.map().find(address)) {
    out += (f.function.empty() ? "??" : f.function) + "\n" + (f.file.empty() ? "??" : f.file) +
           ":" + std::to_string(f.line) + ":" + std::to_string(f.column) + "\n";
  }
  return (out.empty() ? "??\n??:0:0\n" : out) + "\n";
}

// Returns the content of a section within the module's bytes, so that it can be changed.
std::span<uint8_t> content(Bytes& module, const char* name) {
  const std::span<const uint8_t> found = wasm::find_custom(module, name);
  return {module.data() + (found.data() - module.data()), found.size()};
}

std::string refusal(const Bytes& module) {
  Result<SourceLines> lines = SourceLines::read(module);
  return lines.ok() ? "" : lines.error().message;
}

class LineMap : public test::ToolDir {
 protected:
  // Compares every `step`th address of a module's code. Returns how many have a line.
  size_t compare(const std::string& file, uint32_t step) const {
    const Bytes module = read_bytes(file);
    Result<SourceLines> lines = SourceLines::read(module);
    EXPECT_TRUE(lines.ok()) << file << ": " << lines.error().message;
    if (!lines.ok()) return 0;
    std::string addresses, ours;
    size_t known = 0;
    for (uint32_t at = 0; at < code_size(module); at += step) {
      addresses += std::to_string(at) + "\n";
      ours += symbolized(*lines, at);
      known += lines->map().find(at).empty() ? 0 : 1;
    }
    write_text("addresses", addresses);
    const test::RunResult theirs =
        in_dir("llvm-symbolizer-22 --functions=short --inlines --obj=" + file + " < addresses");
    EXPECT_EQ(theirs.code, 0) << theirs.err;
    EXPECT_TRUE(theirs.out == ours) << file << ": other lines than llvm-symbolizer's";
    return known;
  }
};

TEST_F(LineMap, inlined_calls_lead_to_the_function_that_has_the_code) {
  for (const char* name : {"lines4", "lines5"}) {
    const Bytes module = read_bytes(stored(name));
    Result<SourceLines> lines = SourceLines::read(module);
    ASSERT_TRUE(lines.ok()) << lines.error().message;
    bool found = false;
    for (uint32_t at = 0; at < module.size(); ++at) {
      const std::vector<SourceFrame> frames = lines->at(at);
      if (frames.size() != 3) continue;
      found = true;
      EXPECT_EQ(frames[0], (SourceFrame{"square", "/src/lines.c", 7, frames[0].column}));
      EXPECT_EQ(frames[1], (SourceFrame{"sum", "/src/lines.c", 14, 12}));
      EXPECT_EQ(frames[2], (SourceFrame{"start", "/src/lines.c", 31, 51}));
    }
    EXPECT_TRUE(found) << name;
  }
}

TEST_F(LineMap, places_within_functions_have_linkage_names_first_lines_and_discriminators) {
  const Bytes module = read_bytes(stored("profiling"));
  Result<SourceLines> lines = SourceLines::read(module);
  ASSERT_TRUE(lines.ok()) << lines.error().message;
  std::set<uint32_t> of_loop;
  size_t in_f = 0;
  for (uint32_t at = 0; at < code_size(module); ++at) {
    for (const dwarf::FunctionPlace& p : lines->map().function_places(at)) {
      if (p.function == "_ZN1a1S1fEi") {
        ++in_f;
        EXPECT_EQ(p.first_line, 7u);  // the definition, not the declaration
        EXPECT_TRUE(p.line == 8 || p.line == 7 || p.line == 0) << p.line;
        EXPECT_EQ(p.discriminator, 0u);
      } else {
        EXPECT_EQ(p.function, "start");
        EXPECT_EQ(p.first_line, 12u);
        if (p.line == 13) of_loop.insert(p.discriminator);
      }
    }
  }
  EXPECT_GT(in_f, 5u);
  EXPECT_GT(of_loop.size(), 2u);
}

TEST_F(LineMap, every_address_of_stored_modules_is_llvms) {
  if (!installed("llvm-symbolizer-22")) GTEST_SKIP() << "SKIPPED: llvm-symbolizer-22 is missing";
  for (const char* name : kModules) EXPECT_GT(compare(stored(name), 1), 100u) << name;
}

TEST_F(LineMap, addresses_of_an_example_with_its_library_are_llvms) {
  if (!installed("llvm-symbolizer-22 clang wasm-ld")) {
    GTEST_SKIP() << "SKIPPED: llvm-symbolizer-22, clang or wasm-ld is missing";
  }
  for (const char* flags : {"-O0 -gdwarf-4", "-O2 -gdwarf-5"}) {
    const test::RunResult built =
        in_dir("clang --target=wasm32-wasi -g " + std::string(flags) + " -mbulk-memory " +
               UPTIER_SOURCE_DIR + "/examples/programs/src/strings.c -o strings.wasm -lm");
    if (built.code != 0) GTEST_SKIP() << "SKIPPED: clang cannot build for WASI: " << built.err;
    EXPECT_GT(compare(path("strings.wasm"), 3), 3000u);
  }
}

TEST_F(LineMap, each_refusal_names_the_section_and_the_rule) {
  Bytes module = read_bytes(stored("plain5"));
  EXPECT_EQ(refusal(module), "");
  content(module, ".debug_info")[6] = 4;  // a skeleton unit
  EXPECT_NE(refusal(module).find("split; build without -gsplit-dwarf"), std::string::npos);
  content(module, ".debug_info")[4] = 9;
  EXPECT_EQ(refusal(module),
            ".debug_info at 0x0: DWARF version 9 is not known; use -gdwarf-4 or -gdwarf-5");
  module = read_bytes(stored("plain5"));
  content(module, ".debug_line")[3] = 1;
  EXPECT_EQ(refusal(module),
            ".debug_line at 0x0: the length of a line program goes past the end of the section");
  module = read_bytes(stored("plain5"));
  std::ranges::fill(content(module, ".debug_abbrev"), uint8_t{0x81});
  EXPECT_NE(refusal(module).find(".debug_abbrev at 0x"), std::string::npos);
  EXPECT_EQ(refusal({0, 'a', 's', 'm', 1, 0, 0, 0}),
            "it has no .debug_line section; build it with -g");
}

TEST_F(LineMap, a_module_names_the_file_that_has_its_lines) {
  Bytes module{0, 'a', 's', 'm', 1, 0, 0, 0};
  const std::string section =
      "\x13"
      "external_debug_info"
      "\x08"
      "far.wasm";
  module.push_back(0);
  module.push_back(static_cast<uint8_t>(section.size()));
  module.insert(module.end(), section.begin(), section.end());
  EXPECT_EQ(refusal(module),
            "its debug sections are in another file, \"far.wasm\"; name that file");
}

// Every part of a section from its start is read or refused, and each section is needed.
TEST_F(LineMap, sections_that_end_early_are_refused) {
  for (const char* name : kModules) {
    const Bytes module = read_bytes(stored(name));
    dwarf::Sections whole;
    whole.info = wasm::find_custom(module, ".debug_info");
    whole.abbrev = wasm::find_custom(module, ".debug_abbrev");
    whole.line = wasm::find_custom(module, ".debug_line");
    whole.str = wasm::find_custom(module, ".debug_str");
    whole.line_str = wasm::find_custom(module, ".debug_line_str");
    whole.ranges = wasm::find_custom(module, ".debug_ranges");
    ASSERT_TRUE(dwarf::LineMap::read(whole).ok());
    for (auto section :
         {&dwarf::Sections::info, &dwarf::Sections::abbrev, &dwarf::Sections::line}) {
      for (size_t size = 1; size < (whole.*section).size(); ++size) {
        dwarf::Sections part = whole;
        part.*section = (whole.*section).first(size);
        EXPECT_FALSE(dwarf::LineMap::read(part).ok()) << name << " " << size;
      }
    }
  }
}

// An entry of one byte can have any number of attributes that take no bytes.
TEST_F(LineMap, work_is_limited_by_the_size_of_the_sections) {
  Bytes abbrev{1, 0x11, 1, 0, 0, 2, 0x2e, 0};  // a unit with children; a subprogram
  for (int i = 0; i < 200; ++i) abbrev.insert(abbrev.end(), {0x34, 0x19});
  abbrev.insert(abbrev.end(), {0, 0, 0});
  const auto info_of = [](uint32_t entries) {
    const uint32_t length = 7 + 1 + entries;
    Bytes info{0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 4, 1};
    for (unsigned i = 0; i < 4; ++i) info[i] = static_cast<uint8_t>(length >> (8 * i));
    info.insert(info.end(), entries, 2);
    return info;
  };
  const Bytes line(1);
  for (const uint32_t entries : {1000u, 200'000u}) {
    const Bytes info = info_of(entries);
    dwarf::Sections s;
    s.info = info;
    s.abbrev = abbrev;
    s.line = line;
    const auto map = dwarf::LineMap::read(s);
    ASSERT_EQ(map.ok(), entries == 1000) << entries;
    if (!map.ok()) { EXPECT_EQ(map.error().code, ErrorCode::kResourceExhausted); }
  }
}

TEST_F(LineMap, memory_is_limited_by_the_size_of_the_sections) {
  // A row for each byte: opcode 13 + 14 advances the address by one.
  const auto program_of = [](uint32_t rows) {
    const uint32_t header = 6 + 12 + 2;
    const uint32_t length = 2 + 4 + header + 7 + rows + 5;
    Bytes b{0,  0, 0, 0, 4, 0, header, 0, 0, 0, 1, 1, 1, 0, 14,
            13, 0, 1, 1, 1, 1, 0,      0, 0, 1, 0, 0, 1, 0, 0};
    b.insert(b.end(), {0, 5, 2, 1, 0, 0, 0});
    b.insert(b.end(), rows, 13 + 14);
    b.insert(b.end(), {1, 1, 0, 1, 1});
    for (unsigned i = 0; i < 4; ++i) b[i] = static_cast<uint8_t>(length >> (8 * i));
    return b;
  };
  for (const uint32_t rows : {1000u, 4'000'000u}) {
    const Bytes line = program_of(rows);
    dwarf::Sections s;
    s.line = line;
    const auto map = dwarf::LineMap::read(s);
    ASSERT_EQ(map.ok(), rows == 1000) << (map.ok() ? "" : map.error().message);
    if (map.ok()) {
      EXPECT_EQ(map->lines().rows(), rows + 2);
    } else {
      EXPECT_EQ(map.error().code, ErrorCode::kResourceExhausted);
    }
  }
}

}  // namespace
}  // namespace uptier::line_map_test
