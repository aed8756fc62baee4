// Code spaces whose bodies share pages and keep their cold parts in a separate area.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <set>
#include <thread>

#include "jit/code/code.h"
#include "jit/code/code_space.h"
#include "jit/x64/code_buffer.h"
#include "tests/support/code_machine.h"

namespace uptier::jit::code_pack_test {
namespace {

constexpr uint64_t kPage = CodeSpace::kPage;

std::unique_ptr<CodeSpace> packed_space(uint64_t budget = 64 * kPage) {
  return test::CodeMachine::take(
      CodeSpace::create({.code_budget = budget, .data_bytes = 100, .packed = true}));
}

// Code that returns `answer`, or 7 * answer by way of its cold part if it is called with 1.
std::unique_ptr<Code> make_answer(CodeSpace& space, uint32_t answer) {
  CodeBuffer b(space);
  Label cold = b.new_label(), back = b.new_label(), table = b.new_label();
  Assembler& a = b.assembler();
  a.mov(x86::eax, imm(answer));
  a.test(x86::edi, x86::edi);
  a.jnz(cold);
  b.bind(back);
  a.ret();
  b.begin_cold();
  b.bind(cold);
  b.trap_row(TrapCode::kUnreachable, {});
  a.imul(x86::eax, x86::eax, imm(7));
  a.imul(x86::eax, b.constant32(1));
  a.lea(x86::rcx, x86::ptr(table));
  a.movsxd(x86::rdx, x86::dword_ptr(x86::rcx));
  a.add(x86::rdx, x86::rcx);
  a.jmp(x86::rdx);
  b.distances(table, {back, cold});
  return test::CodeMachine::take(b.publish(space, 0, MethodId(1)));
}

uint32_t call(const Code& c, uint32_t cold) {
  return reinterpret_cast<uint32_t (*)(uint32_t)>(const_cast<void*>(c.entry()))(cold);
}

TEST(PackedCode, bodies_share_pages_and_cold_parts_lie_far_away) {
  auto space = packed_space();
  std::vector<std::unique_ptr<Code>> codes;
  for (uint32_t i = 0; i < 60; ++i) codes.push_back(make_answer(*space, i));
  std::set<uintptr_t> hot, cold;
  for (uint32_t i = 0; i < 60; ++i) {
    const Code& c = *codes[i];
    EXPECT_EQ(call(c, 0), i);
    EXPECT_EQ(call(c, 1), 7 * i);
    EXPECT_EQ(c.entry(), c.base());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(c.base()) % 64, 0u);
    EXPECT_GE(c.cold_base() - c.base(), static_cast<ptrdiff_t>(64 * kPage));
    hot.insert(reinterpret_cast<uintptr_t>(c.base()) / kPage);
    cold.insert(reinterpret_cast<uintptr_t>(c.cold_base()) / kPage);
  }
  EXPECT_EQ(hot.size(), 1u) << "60 lines are less than a page";
  EXPECT_EQ(cold.size(), 1u);
  EXPECT_EQ(space->bytes_in_service(), 2 * kPage);
}

TEST(PackedCode, addresses_of_both_parts_are_found) {
  auto space = packed_space();
  auto a = make_answer(*space, 1), b = make_answer(*space, 2);
  for (const Code* c : {a.get(), b.get()}) {
    for (uint32_t at = 0; at < c->size(); ++at) {
      EXPECT_EQ(space->owner_of(c->at(at)), c);
      EXPECT_EQ(c->offset_of(c->at(at)), at);
    }
    EXPECT_EQ(space->owner_of(c->base() + c->hot_size()), nullptr);
    ASSERT_EQ(c->tables().traps.size(), 1u);
    EXPECT_EQ(c->tables().traps[0].offset, c->hot_size());
    EXPECT_EQ(c->trap_at(c->cold_base()), &c->tables().traps[0]);
    EXPECT_EQ(c->trap_at(c->base()), nullptr);
  }
  const void* where = b->cold_base();
  b.reset();
  EXPECT_EQ(space->owner_of(where), nullptr);
  EXPECT_EQ(call(*a, 1), 7u) << "its neighbour stays";
}

// The body whose lines are awaited, and how many bodies lie elsewhere before it comes.
uint32_t lives_until(CodeSpace& space, const uint8_t* at) {
  uint32_t lives = 0;
  while (make_answer(space, 9)->base() != at && lives < 1'000) ++lives;
  return lives;
}

// Until all threads have executed a serializing instruction, lines hold int3 and nothing else.
TEST(PackedCode, freed_lines_wait_for_many_others_before_they_are_reused) {
  auto space = packed_space();
  auto a = make_answer(*space, 1);
  auto b = make_answer(*space, 2);
  auto c = make_answer(*space, 3);
  const uint8_t* hole = b->base();
  b.reset();
  // 64 parts wait for one system call; each life frees two, hot and cold.
  EXPECT_EQ(lives_until(*space, hole), 31u);
  EXPECT_EQ(call(*a, 0) + call(*c, 0), 4u);
}

TEST(PackedCode, freed_lines_are_reused_at_once_if_there_are_no_others) {
  auto space = packed_space(2 * kPage);
  std::vector<CodeSpan> all;
  for (auto span = space->allocate(64, true); span.ok(); span = space->allocate(64, true)) {
    all.push_back(std::move(*span));
  }
  ASSERT_EQ(all.size(), 4 * kPage / 64) << "the area has twice the budget";
  const uint8_t* at = all[7].data();
  all.erase(all.begin() + 7);
  auto again = space->allocate(64, true);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->data(), at);
}

TEST(PackedCode, what_is_freed_is_int3_and_taken_again) {
  auto space = packed_space();
  auto a = make_answer(*space, 1), b = make_answer(*space, 2), c = make_answer(*space, 3);
  const uint8_t* hole = b->base();
  uint32_t bytes = b->hot_size();
  b.reset();
  for (uint32_t n = 0; n < bytes; ++n) ASSERT_EQ(hole[n], 0xcc);
  lives_until(*space, hole);  // the last of them had the hole, and has left it to wait
  std::unique_ptr<Code> d;
  for (uint32_t n = 0; n < 200 && (d == nullptr || d->base() != hole); ++n) {
    d.reset();
    d = make_answer(*space, 4);
  }
  EXPECT_EQ(d->base(), hole);
  EXPECT_EQ(call(*a, 0) + call(*c, 0) + call(*d, 1), 1u + 3 + 28);
  a.reset();
  c.reset();
  d.reset();
  EXPECT_EQ(space->bytes_in_service(), 0u);
}

TEST(PackedCode, is_never_writable_and_executable) {
  auto space = packed_space();
  auto a = make_answer(*space, 1);
  auto waits = test::CodeMachine::take(space->allocate(100));
  auto b = make_answer(*space, 2);
  waits = CodeSpan();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    EXPECT_EQ(line.find("rwx"), std::string::npos) << line;
  }
  EXPECT_EQ(call(*a, 0) + call(*b, 0), 3u);
}

// Returns the number of writable mappings of shared memory.
int writable_shares() {
  int n = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) n += line.find(" rw-s ") != std::string::npos;
  return n;
}

TEST(PackedCode, a_forked_child_cannot_write_to_it) {
  int before = writable_shares();
  auto space = packed_space();
  auto a = make_answer(*space, 1);
  EXPECT_EQ(writable_shares(), before + 2) << "a page of hot code, one of cold code";
  pid_t child = fork();
  if (child == 0) _exit(writable_shares());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), before);
}

TEST(PackedCode, is_refused_beyond_the_budget) {
  auto space = packed_space(2 * kPage);
  std::vector<CodeSpan> spans;
  spans.push_back(test::CodeMachine::take(space->allocate(kPage + 1)));
  EXPECT_EQ(space->allocate(2 * kPage).error().code, ErrorCode::kResourceExhausted);
  EXPECT_TRUE(space->allocate(2 * kPage, true).ok());
}

// Other threads publish and free code in the page that this thread executes.
TEST(PackedCode, runs_on_while_neighbours_come_and_go) {
  auto space = packed_space();
  auto stays = make_answer(*space, 5);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0};
  std::thread runner([&] {
    while (!stop.load()) wrong += call(*stays, 0) != 5 || call(*stays, 1) != 35;
  });
  for (uint32_t i = 0; i < 2000; ++i) {
    auto c = make_answer(*space, i);
    wrong += call(*c, 1) != 7 * i;
  }
  stop = true;
  runner.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace uptier::jit::code_pack_test
