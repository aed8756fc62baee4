// The files for llvm-profgen, byte by byte: sections of probes, the ELF file around them, samples as
// text; and how a run becomes their contents.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "profile/formats/md5.h"
#include "profile/formats/probe_elf.h"
#include "profile/formats/probe_sections.h"
#include "profile/formats/probed_run.h"

namespace uptier::probe_files_test {
namespace {

using namespace profile;
using Kind = ImageRow::Kind;

std::string guid(const std::string& name) {
  const uint64_t g = llvm_guid(name);
  return {reinterpret_cast<const char*>(&g), sizeof g};
}
std::string bytes(std::initializer_list<int> list) {
  std::string out;
  for (const int b : list) out += static_cast<char>(b);
  return out;
}

// `top` has a block at 0x1000 and a call at 0x1008; in the call's place a body of `leaf`, with a block
// at 0x1004. The cold part has a block at 0x9000.
ProbedFile sample_file() {
  ProbedFile f;
  f.functions = {{"top", 5}, {"leaf", 6}};
  ProbedCode c;
  c.parts = {{0x1000, std::vector<uint8_t>(16, 0x90)}, {0x9000, std::vector<uint8_t>(4, 0x90)}};
  c.bodies = {{0, 0, 0}, {1, 0, 300}};
  c.probes = {{0x9000, 0, 2, LlvmProbe::kBlock},
              {0x1008, 0, 3, LlvmProbe::kIndirectCall},
              {0x1004, 1, 1, LlvmProbe::kBlock},
              {0x1000, 0, 1, LlvmProbe::kBlock}};
  f.codes.push_back(c);
  return f;
}

TEST(ProbeFiles, each_part_has_a_record_with_inlined_records_in_it) {
  const std::string hot = guid("top") + bytes({2, 1}) +                         // 2 probes, 1 body
                          bytes({1, 0, 0x00, 0x10, 0, 0, 0, 0, 0, 0}) +         // block 1
                          bytes({3, 0x81, 8}) +                                 // call 3
                          bytes({0xac, 0x02}) + guid("leaf") + bytes({1, 0}) +  // at call 300
                          bytes({1, 0x80, 0x7c});                               // 4 bytes before
  const std::string cold = guid("top") + bytes({2, 0}) +
                           bytes({1, 0x20, 0x00, 0x90, 0, 0, 0, 0, 0, 0}) +  // the sentinel
                           bytes({2, 0x80, 0});
  EXPECT_EQ(probe_section(sample_file()), hot + cold);
}

TEST(ProbeFiles, each_function_has_a_description) {
  EXPECT_EQ(probe_desc_section(sample_file()), guid("top") + bytes({5, 0, 0, 0, 0, 0, 0, 0, 3}) +
                                                   "top" + guid("leaf") +
                                                   bytes({6, 0, 0, 0, 0, 0, 0, 0, 4}) + "leaf");
}

template <class T>
T at(const std::string& file, uint64_t offset) {
  T value;
  EXPECT_LE(offset + sizeof value, file.size());
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

TEST(ProbeFiles, code_lies_in_segments_at_its_addresses) {
  ProbedFile f = sample_file();
  f.codes[0].parts[1].address = 0x40000000;
  const std::string elf = to_probe_elf(f);
  const auto h = at<Elf64_Ehdr>(elf, 0);
  EXPECT_EQ(h.e_type, ET_EXEC);
  ASSERT_EQ(h.e_phnum, 2);
  const auto first = at<Elf64_Phdr>(elf, h.e_phoff), second = at<Elf64_Phdr>(elf, h.e_phoff + 56);
  EXPECT_EQ(first.p_vaddr, 0x1000u);
  EXPECT_EQ(first.p_filesz, 16u);
  EXPECT_EQ(first.p_flags, static_cast<uint32_t>(PF_R | PF_X));
  EXPECT_EQ(second.p_vaddr, 0x40000000u);
  EXPECT_EQ(second.p_filesz, 4u);
  EXPECT_EQ(second.p_offset % 4096, second.p_vaddr % 4096);
  EXPECT_EQ(elf.substr(first.p_offset, 16), std::string(16, '\x90'));
}

TEST(ProbeFiles, neighbours_share_a_section_with_int3_between_them) {
  const std::string elf = to_probe_elf(sample_file());
  const auto h = at<Elf64_Ehdr>(elf, 0);
  ASSERT_EQ(h.e_phnum, 1);
  const auto p = at<Elf64_Phdr>(elf, h.e_phoff);
  ASSERT_EQ(p.p_filesz, 0x8004u);
  EXPECT_EQ(elf.substr(p.p_offset + 15, 3), "\x90\xcc\xcc");
  EXPECT_EQ(elf.substr(p.p_offset + 0x7fff, 2), "\xcc\x90");
}

TEST(ProbeFiles, samples_count_for_blocks_and_their_calls) {
  ProbeSamples s;
  s.blocks = {{0x10, FirstInstruction::kOther, {{0x18, 0x1d, 0x50}}},
              {0x20, FirstInstruction::kReturn, {}},
              {0x30, FirstInstruction::kCall, {{0x30, 0x35, 0}}}};
  s.samples = {{{0}, {0x77}, 5}, {{1}, {0x88}, 6}, {{2}, {}, 7}, {{0}, {}, 2}, {{1}, {}, 9}};
  EXPECT_EQ(to_unsymbolized(s),
            "4\n10-10:7\n18-18:7\n20-20:15\n30-30:7\n"
            "1\n18->50:7\n");
  EXPECT_EQ(to_perfscript(s),
            "5\n\t0\n\t77\n 0x10/0x10/P/-/-/0 0x0/0x10/P/-/-/0\n\n"
            "5\n\t0\n\t1d\n\t77\n 0x18/0x50/P/-/-/0\n\n"
            "6\n\t0\n 0x20/0x88/P/-/-/0 0x0/0x20/P/-/-/0\n\n"
            "7\n\t0\n\t35\n 0x30/0x30/P/-/-/0 0x0/0x30/P/-/-/0\n\n"
            "2\n\t0\n 0x10/0x10/P/-/-/0 0x0/0x10/P/-/-/0\n\n"
            "2\n\t0\n\t1d\n 0x18/0x50/P/-/-/0\n\n");
}

CodeImage image(uint64_t version, uint64_t address, bool freed) {
  CodeImage c;
  c.version = version;
  c.freed = freed;
  c.address = address;
  c.cold_address = address + 32;
  c.hot_size = 32;
  c.data_at = 30;
  c.data_end = 32;
  c.bytes.assign(32, 0x90);
  c.bodies = {{0, 0, 0}};
  c.rows = {{8, Kind::kBlock, 1, 0}, {8, Kind::kBlock, 2, 0}, {16, Kind::kContinues, 1, 0}};
  return c;
}

// Three codes at one address: the one in service keeps it.
TEST(ProbedRun, freed_code_makes_way_with_its_samples) {
  CodeImages images;
  images.methods = {{{7, 1}, "f.llvm.1", 9}};
  images.codes = {image(1, 0x1000, true), image(2, 0x1010, true), image(3, 0x1000, false)};
  images.stacks = {{{{0, 20}, {2, 13}}, 1, 4'000}, {{{2, 9}}, 1, 100}};
  const ProbedRun run = probed_run(images);
  EXPECT_EQ(run.displaced, 2u);
  EXPECT_EQ(run.file.functions[0].name, "f_llvm_1");
  EXPECT_EQ(run.file.functions[0].hash, 9u);
  EXPECT_EQ(run.file.codes[2].parts[0].address, 0x1000u);
  EXPECT_EQ(run.file.codes[1].parts[0].address, 0x1040u);  // behind all, on a line of its own
  EXPECT_EQ(run.file.codes[0].parts[0].address, 0x1080u);
  EXPECT_EQ(run.file.codes[0].parts[0].bytes[30], 0xcc);
  // Block 1 goes on where the sample is, and started with block 2.
  EXPECT_EQ(to_unsymbolized(run.samples), "2\n1008-1008:1\n1088-1088:4\n0\n");
  EXPECT_EQ(run.samples.samples[0].callers, (std::vector<uint64_t>{0x100d}));
}

TEST(ProbedRun, sites_without_an_id_are_left_out_with_what_is_inlined_there) {
  CodeImages images;
  images.methods = {{{7, 1}, "f", 0}, {{7, 2}, "g", 0}, {{8, 2}, "g", 0}};
  images.codes = {image(1, 0x1000, false)};
  images.codes[0].bodies = {{0, 0, 0}, {1, 0, 65536}, {2, 1, 1}};
  images.codes[0].rows = {
      {0, Kind::kBlock, 65535, 0}, {4, Kind::kBlock, 1, 1}, {8, Kind::kBlock, 1, 2}};
  const ProbedRun run = probed_run(images);
  EXPECT_EQ(run.left_out, 2u);
  ASSERT_EQ(run.file.codes[0].probes.size(), 1u);
  EXPECT_EQ(run.file.codes[0].probes[0].id, 65535u);
  EXPECT_EQ(run.file.functions[1].name, "g.0000000000000007.2");
  EXPECT_EQ(run.file.functions[1].hash, 1u);  // LLVM has no hash 0
}

}  // namespace
}  // namespace uptier::probe_files_test
