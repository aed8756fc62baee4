// Code that is copied to another address of its space: the same, except for its addresses.
#include "jit/code/copy_code.h"

#include <gtest/gtest.h>

#include <array>

#include "jit/x64/code_buffer.h"
#include "tests/support/code_machine.h"

namespace uptier::jit::copy_code_test {
namespace {

// Returns the targets of all fields that refer outside of the body, except poll words: the targets
// of calls and jumps, direct or through memory.
std::vector<const void*> outside_targets(const Code& code) {
  std::vector<const void*> targets;
  for (const PlaceField& f : code.tables().place_fields) {
    if (f.what() != PlaceField::To::kOutside) continue;
    const auto* at = static_cast<const uint8_t*>(code.at(f.offset));
    int32_t distance;
    __builtin_memcpy(&distance, at, sizeof distance);
    targets.push_back(at + sizeof distance + distance);
  }
  return targets;
}

constexpr uint64_t kPage = CodeSpace::kPage;

std::unique_ptr<CodeSpace> make_space(bool moves = true) {
  return test::CodeMachine::take(CodeSpace::create(
      {.code_budget = 64 * kPage, .data_bytes = kPage, .packed = true, .moves = moves}));
}

CodeRoom make_room(CodeSpace& space, uint64_t hot, uint64_t cold) {
  return test::CodeMachine::take(space.reserve(hot, cold, false));
}

std::unique_ptr<Code> make_seven(CodeSpace& space) {
  CodeBuffer b(space);
  b.assembler().mov(x86::eax, imm(7));
  b.assembler().ret();
  return test::CodeMachine::take(b.publish(space, 0, MethodId(1)));
}

// f(0) = outside() * 3; f(1) = the same, by way of the cold part, a table and a constant there and
// back; f(n) with a set poll word = 99, by way of the cold part.
std::unique_ptr<Code> make_all(CodeSpace& space, const void* outside, std::span<PollWord> polls) {
  CodeBuffer b(space);
  Assembler& a = b.assembler();
  Label cold = b.new_label(), back = b.new_label(), polled = b.new_label(), table = b.new_label(),
        end = b.new_label();
  b.compare_word_with_0(&polls[1]);
  a.jne(polled);
  a.cmp(x86::edi, imm(1));
  a.je(cold);
  a.lea(x86::rcx, x86::ptr(table));
  a.movsxd(x86::rdx, x86::dword_ptr(x86::rcx, 4));
  a.add(x86::rdx, x86::rcx);
  a.jmp(x86::rdx);
  b.bind(back);
  b.call_address(outside);
  a.imul(x86::eax, b.constant32(3));
  b.bind(end);
  a.ret();
  b.begin_cold();
  b.bind(cold);
  a.lea(x86::rcx, x86::ptr(table));
  a.movsxd(x86::rdx, x86::dword_ptr(x86::rcx, 8));
  a.add(x86::rdx, x86::rcx);
  a.jmp(x86::rdx);
  Label landing = b.new_label();
  b.bind(landing);
  b.call_address(outside);
  a.imul(x86::eax, b.constant32(3));
  a.jmp(end);
  b.bind(polled);
  b.trap_row(TrapCode::kUnreachable, {});
  a.mov(x86::eax, imm(99));
  a.ret();
  b.distances(table, {cold, back, landing});
  auto code = test::CodeMachine::take(b.publish(space, 0, MethodId(5)));
  code->set_serial(77);
  code->set_polls(polls);
  return code;
}

uint32_t call(const Code& c, uint32_t how) {
  return reinterpret_cast<uint32_t (*)(uint32_t)>(const_cast<void*>(c.entry()))(how);
}

class CopyCode : public testing::Test {
 protected:
  std::unique_ptr<CodeSpace> space = make_space();
  PollWords words{space->data()};
  std::unique_ptr<Code> seven = make_seven(*space);
};

TEST_F(CopyCode, does_what_the_code_does) {
  PollRun polls = words.take(2);
  auto from = make_all(*space, seven->entry(), polls.words());
  ASSERT_EQ(call(*from, 0), 21u);
  ASSERT_EQ(call(*from, 1), 21u);
  // Copies to addresses where the distance between the parts differs, larger and smaller.
  std::unique_ptr<Code> last = std::move(from);
  std::vector<std::unique_ptr<Code>> between;
  std::vector<PollRun> runs;
  for (int round = 0; round < 5; ++round) {
    for (int n = 0; n < 7 * round; ++n) between.push_back(make_seven(*space));
    CodeRoom room = make_room(*space, last->hot_size() + 64, last->size());
    runs.push_back(words.take(2));
    auto copy = test::CodeMachine::take(copy_code(*space, room, *last, runs.back().words()));
    EXPECT_NE(copy->base(), last->base());
    EXPECT_NE(copy->cold_base() - copy->base(), last->cold_base() - last->base());
    EXPECT_EQ(call(*copy, 0), 21u);
    EXPECT_EQ(call(*copy, 1), 21u);
    runs.back().words()[1] = 1;
    EXPECT_EQ(call(*copy, 0), 99u) << "its own word is set";
    EXPECT_EQ(call(*last, 0), round == 0 ? 21u : 99u);
    runs.back().words()[1] = 0;
    EXPECT_EQ(call(*copy, 0), 21u);
    runs.back().words()[1] = round + 1;  // belongs to the previous copy from the next round on
    std::swap(last, copy);
    copy.reset();
    runs.back().words()[1] = 0;
    EXPECT_EQ(call(*last, 1), 21u) << "where it was there is int3 now";
    runs.back().words()[1] = round + 1;
  }
}

TEST_F(CopyCode, says_the_same_of_itself) {
  PollRun polls = words.take(2), others = words.take(2);
  auto from = make_all(*space, seven->entry(), polls.words());
  CodeRoom room = make_room(*space, 4096, 4096);
  auto copy = test::CodeMachine::take(copy_code(*space, room, *from, others.words()));
  EXPECT_EQ(copy->tables(), from->tables());
  EXPECT_EQ(copy->size(), from->size());
  EXPECT_EQ(copy->hot_size(), from->hot_size());
  EXPECT_EQ(copy->method(), MethodId(5));
  EXPECT_EQ(copy->serial(), 77u);
  EXPECT_EQ(copy->polls().data(), others.words().data());
  for (uint32_t at = 0; at < copy->size(); ++at) {
    EXPECT_EQ(space->owner_of(copy->at(at)), copy.get());
    EXPECT_EQ(space->owner_of(from->at(at)), from.get());
  }
  uint32_t trap = from->tables().traps.at(0).offset;
  EXPECT_EQ(copy->trap_at(copy->at(trap)), &copy->tables().traps[0]);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(copy->base()) % CodeSpace::kLine, 0u);
  std::vector<const void*> to = outside_targets(*from), again = outside_targets(*copy);
  EXPECT_EQ(to, (std::vector<const void*>{seven->entry(), seven->entry()}));
  EXPECT_EQ(again, to);
}

TEST_F(CopyCode, bytes_differ_in_the_fields_that_are_listed_and_nowhere_else) {
  PollRun polls = words.take(2), others = words.take(2);
  auto from = make_all(*space, seven->entry(), polls.words());
  std::vector<bool> listed(from->size());
  for (const PlaceField& f : from->tables().place_fields) {
    for (uint32_t i = 0; i < 4; ++i) listed.at(f.offset + i) = true;
  }
  auto pad = make_seven(*space);
  CodeRoom room = make_room(*space, 4096, 8192);
  auto copy = test::CodeMachine::take(copy_code(*space, room, *from, others.words()));
  for (uint32_t at = 0; at < from->size(); ++at) {
    if (listed[at]) continue;
    EXPECT_EQ(*static_cast<const uint8_t*>(copy->at(at)),
              *static_cast<const uint8_t*>(from->at(at)))
        << at;
  }
}

TEST_F(CopyCode, lies_behind_the_copy_before_and_a_room_that_is_full_refuses) {
  CodeRoom room = make_room(*space, 3 * 64, 0);
  uint64_t before = space->bytes_in_service();
  EXPECT_EQ(before, kPage) << "what is reserved is not in service";
  std::vector<std::unique_ptr<Code>> copies;
  for (int n = 0; n < 3; ++n) {
    copies.push_back(test::CodeMachine::take(copy_code(*space, room, *seven, {})));
    EXPECT_EQ(copies.back()->base(), copies[0]->base() + 64 * n);
    EXPECT_EQ(call(*copies.back(), 0), 7u);
  }
  auto refused = copy_code(*space, room, *seven, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
}

TEST_F(CopyCode, what_is_left_of_a_room_is_given_back) {
  const uint8_t* first = nullptr;
  for (int n = 0; n < 10; ++n) {
    CodeRoom room = make_room(*space, 60 * kPage, kPage);
    auto copy = test::CodeMachine::take(copy_code(*space, room, *seven, {}));
    if (first == nullptr) first = copy->base();
    EXPECT_EQ(copy->base(), first + 64 * n)
        << "what was freed waits, the rest of the room does not";
    EXPECT_FALSE(space->reserve(120 * kPage, 0, true).ok()) << "the room is taken";
  }
  EXPECT_TRUE(space->reserve(120 * kPage, 0, true).ok());
  EXPECT_FALSE(space->reserve(64 * kPage, 0, false).ok()) << "beyond the budget";
}

TEST(CopyCodeSpace, code_that_does_not_move_lists_nothing) {
  auto space = make_space(false);
  PollWords words(space->data());
  PollRun polls = words.take(2);
  auto seven = make_seven(*space);
  EXPECT_FALSE(space->moves());
  EXPECT_TRUE(make_all(*space, seven->entry(), polls.words())->tables().place_fields.empty());
  auto own_pages = test::CodeMachine::take(
      CodeSpace::create({.code_budget = 64 * kPage, .data_bytes = kPage, .moves = true}));
  EXPECT_FALSE(own_pages->moves()) << "bodies that share no page have nothing to gain";
  EXPECT_FALSE(own_pages->reserve(64, 0, false).ok());
}

}  // namespace
}  // namespace uptier::jit::copy_code_test
