#include "jit/code/code_space.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <set>
#include <thread>

#include "jit/code/code.h"
#include "jit/code/code_registry.h"
#include "jit/x64/code_buffer.h"
#include "tests/support/code_machine.h"

namespace uptier::jit::code_space_test {
namespace {

constexpr uint64_t kPage = CodeSpace::kPage;

std::unique_ptr<CodeSpace> make_space(uint64_t budget = 64 * kPage, uint32_t data = 100) {
  return test::CodeMachine::take(CodeSpace::create({.code_budget = budget, .data_bytes = data}));
}

std::unique_ptr<Code> make_answer(CodeSpace& space, uint32_t answer) {
  CodeBuffer b(space);
  b.assembler().mov(x86::eax, imm(answer));
  b.assembler().ret();
  return test::CodeMachine::take(b.publish(space, 0, MethodId(1)));
}

uint32_t call(const void* code) {
  return reinterpret_cast<uint32_t (*)()>(const_cast<void*>(code))();
}

// Returns the permissions of the mapping that holds `p`, e.g. "r-xp".
std::string permissions(const void* p) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t from, to;
    char perms[8];
    if (sscanf(line.c_str(), "%lx-%lx %7s", &from, &to, perms) != 3) continue;
    auto a = reinterpret_cast<uintptr_t>(p);
    if (from <= a && a < to) return perms;
  }
  return "none";
}

TEST(CodeSpace, runs_what_was_published) {
  auto space = make_space();
  auto code = make_answer(*space, 42);
  EXPECT_EQ(call(code->entry()), 42u);
  EXPECT_EQ(code->method(), MethodId(1));
}

TEST(CodeSpace, never_maps_pages_writable_and_executable) {
  auto space = make_space();
  auto span = test::CodeMachine::take(space->allocate(10));
  EXPECT_EQ(permissions(span.data()), "rw-p");
  ASSERT_TRUE(space->publish(span).ok());
  EXPECT_EQ(permissions(span.data()), "r-xp");
  const void* where = span.data();
  span = CodeSpan();
  EXPECT_EQ(permissions(where), "---p");
  EXPECT_EQ(permissions(space->data().data()), "rw-p");
  auto code = make_answer(*space, 1);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    EXPECT_EQ(line.find("rwx"), std::string::npos) << line;
  }
}

TEST(CodeSpace, fills_what_is_left_of_a_page_with_traps) {
  auto space = make_space();
  auto code = make_answer(*space, 7);
  auto* page =
      reinterpret_cast<const uint8_t*>(reinterpret_cast<uintptr_t>(code->base()) & ~(kPage - 1));
  for (const uint8_t* p = page; p < page + kPage; ++p) {
    bool inside = p >= code->base() && p < code->base() + code->size();
    if (!inside) { ASSERT_EQ(*p, 0xcc); }
  }
}

TEST(CodeSpace, starts_small_bodies_in_different_cache_lines_of_their_pages) {
  auto space = make_space();
  std::set<uintptr_t> starts;
  std::vector<CodeSpan> spans;
  for (int i = 0; i < 40; ++i) {
    spans.push_back(test::CodeMachine::take(space->allocate(100)));
    uintptr_t start = reinterpret_cast<uintptr_t>(spans.back().data()) % kPage;
    EXPECT_EQ(start % 64, 0u);
    starts.insert(start);
  }
  EXPECT_EQ(starts.size(), 40u);
  EXPECT_EQ(space->bytes_in_service(), 40 * kPage);
}

TEST(CodeSpace, uses_no_page_more_for_the_sake_of_cache_lines) {
  auto space = make_space();
  for (uint32_t size : {1u, 63u, 4000u, 4096u, 4097u, 8191u}) {
    for (int i = 0; i < 70; ++i) {
      auto span = test::CodeMachine::take(space->allocate(size));
      EXPECT_EQ(space->bytes_in_service(), (size + kPage - 1) / kPage * kPage);
      uintptr_t start = reinterpret_cast<uintptr_t>(span.data()) % kPage;
      EXPECT_LE(start + size, (size + kPage - 1) / kPage * kPage);
    }
  }
}

TEST(CodeSpace, finds_the_owner_of_an_address) {
  auto space = make_space();
  auto code = make_answer(*space, 1);
  EXPECT_EQ(space->owner_of(code->base()), code.get());
  EXPECT_EQ(space->owner_of(code->base() + code->size() - 1), code.get());
  EXPECT_EQ(space->owner_of(code->base() + code->size()), nullptr);
  EXPECT_EQ(space->owner_of(&space), nullptr);
  EXPECT_EQ(space->owner_of(space->data().data()), nullptr);
  const void* where = code->base();
  code.reset();
  EXPECT_EQ(space->owner_of(where), nullptr);
}

TEST(CodeSpace, refuses_beyond_its_budget_and_recovers) {
  auto space = make_space(3 * kPage);
  auto a = test::CodeMachine::take(space->allocate(2 * kPage));
  EXPECT_EQ(space->allocate(kPage + 1).error().code, ErrorCode::kResourceExhausted);
  auto b = test::CodeMachine::take(space->allocate(kPage));
  EXPECT_FALSE(space->allocate(1).ok());
  a = CodeSpan();
  EXPECT_TRUE(space->allocate(2 * kPage).ok());
  EXPECT_EQ(space->bytes_freed(), 4 * kPage);
}

TEST(CodeSpace, joins_freed_neighbours) {
  auto space = make_space(4 * kPage);
  std::vector<CodeSpan> spans;
  for (int i = 0; i < 4; ++i) spans.push_back(test::CodeMachine::take(space->allocate(kPage)));
  const uint8_t* first = spans[0].data();
  // The region is twice the budget. Holes must merge into one run, in whatever order they were
  // freed.
  for (int i : {1, 3, 0, 2}) spans[i] = CodeSpan();
  auto whole = test::CodeMachine::take(space->allocate(4 * kPage));
  EXPECT_EQ(whole.data(), first);
}

TEST(CodeSpace, reuses_pages_of_freed_code) {
  auto space = make_space(1 * kPage);
  for (uint32_t i = 0; i < 200; ++i) {
    auto code = make_answer(*space, i);
    EXPECT_EQ(call(code->entry()), i);
  }
  EXPECT_EQ(space->bytes_in_service(), 0u);
}

TEST(CodeSpace, releases_all_code_at_once) {
  for (bool packed : {false, true}) {
    auto space = test::CodeMachine::take(
        CodeSpace::create({.code_budget = 64 * kPage, .data_bytes = 100, .packed = packed}));
    std::vector<std::unique_ptr<Code>> codes;
    for (uint32_t i = 0; i < 20; ++i) codes.push_back(make_answer(*space, i));
    space->data()[0] = 7;
    space->release_all();
    for (const auto& c : codes) {
      EXPECT_EQ(permissions(c->entry()).substr(0, 3), "---") << packed;
      EXPECT_EQ(space->owner_of(c->entry()), nullptr) << packed;
    }
    EXPECT_EQ(space->bytes_in_service(), 0u);
    EXPECT_EQ(space->data()[0], 7);
    EXPECT_FALSE(space->allocate(1).ok());
    codes.clear();
    EXPECT_EQ(space->bytes_in_service(), 0u);
  }
}

TEST(CodeSpace, fails_the_allocation_that_it_is_told_to_fail) {
  auto space = make_space();
  space->fail_allocation(2);
  EXPECT_TRUE(space->allocate(1).ok());
  EXPECT_EQ(space->allocate(1).error().code, ErrorCode::kResourceExhausted);
  EXPECT_TRUE(space->allocate(1).ok());
  EXPECT_EQ(space->failures_forced(), 1u);
}

TEST(CodeSpace, refuses_a_region_that_rel32_cannot_span) {
  EXPECT_EQ(CodeSpace::create({.code_budget = 1ull << 31, .data_bytes = 4096}).error().code,
            ErrorCode::kInvalidArgument);
}

TEST(CodeRegistry, finds_code_of_every_registered_space) {
  auto a = make_space(), b = make_space();
  auto in_a = make_answer(*a, 1), in_b = make_answer(*b, 2);
  EXPECT_EQ(find_code(in_a->base()), nullptr);
  {
    auto ra = test::CodeMachine::take(CodeRegistration::add(*a, &a));
    auto rb = test::CodeMachine::take(CodeRegistration::add(*b, &b));
    EXPECT_EQ(find_code(in_a->base()), in_a.get());
    EXPECT_EQ(find_code(in_b->base()), in_b.get());
    EXPECT_EQ(trap_exit_for(in_b->base()), &b);
    EXPECT_TRUE(in_code(in_a->base()));
    EXPECT_FALSE(in_code(&a));
  }
  EXPECT_EQ(find_code(in_b->base()), nullptr);
}

TEST(CodeRegistry, is_bounded) {
  auto space = make_space();
  std::vector<CodeRegistration> all;
  for (;;) {
    auto r = CodeRegistration::add(*space, nullptr);
    if (!r.ok()) {
      EXPECT_EQ(r.error().code, ErrorCode::kResourceExhausted);
      break;
    }
    all.push_back(std::move(r).value());
    ASSERT_LE(all.size(), CodeRegistration::kMaxSpaces);
  }
  all.pop_back();
  EXPECT_TRUE(CodeRegistration::add(*space, nullptr).ok());
}

TEST(CodeRegistry, serves_readers_while_spaces_and_bodies_come_and_go) {
  auto shared = make_space();
  auto registered = test::CodeMachine::take(CodeRegistration::add(*shared, nullptr));
  auto stays = make_answer(*shared, 5);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!stop.load()) wrong += find_code(stays->base()) != stays.get();
  });
  auto work = [&](uint32_t salt) {
    for (uint32_t i = 0; i < 150; ++i) {
      auto body = make_answer(*shared, i + salt);
      wrong += call(body->entry()) != i + salt || find_code(body->base()) != body.get();
      auto own = make_space();
      auto own_registration = test::CodeMachine::take(CodeRegistration::add(*own, nullptr));
      auto own_body = make_answer(*own, i);
      wrong += find_code(own_body->base()) != own_body.get();
    }
  };
  std::thread other(work, 1000);
  work(2000);
  other.join();
  stop = true;
  reader.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(CodeBuffer, keeps_the_first_error_until_it_is_published) {
  auto space = make_space();
  CodeBuffer b(*space);
  b.assembler().jmp(Label(12345));
  b.assembler().ret();
  EXPECT_FALSE(b.status().ok());
  auto r = b.publish(*space, 0, MethodId(0));
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(space->bytes_in_service(), 0u);
}

TEST(CodeBuffer, refuses_a_label_that_was_never_bound) {
  auto space = make_space();
  CodeBuffer b(*space);
  b.assembler().jmp(b.new_label());
  EXPECT_EQ(b.publish(*space, 0, MethodId(0)).error().code, ErrorCode::kInvalidInput);
}

TEST(CodeBuffer, places_constants_and_traps_behind_the_body) {
  auto space = make_space();
  CodeBuffer b(*space);
  b.assembler().movss(x86::xmm0, b.constant32(1));
  b.assembler().jo(b.trap_label(TrapCode::kIntegerOverflow, 9));
  b.assembler().jz(b.trap_label(TrapCode::kIntegerOverflow, 9));
  b.assembler().andps(x86::xmm0, b.constant128(2, 3));
  b.assembler().movss(x86::xmm1, b.constant32(1));
  b.trap_now(TrapCode::kUnreachable, 4);
  auto code = test::CodeMachine::take(b.publish(*space, 0, MethodId(0)));
  ASSERT_EQ(code->tables().traps.size(), 2u);
  const auto& rows = code->tables().traps;
  EXPECT_EQ(rows[0].code, TrapCode::kUnreachable);
  EXPECT_EQ(rows[1], (TrapRow{rows[0].offset + 2, TrapCode::kIntegerOverflow, 9}));
  uint32_t pool = (rows[1].offset + 2 + 15) & ~15u;
  EXPECT_EQ(code->size(), pool + 16 + 4);
  EXPECT_EQ(code->trap_at(code->at(rows[1].offset)), &rows[1]);
  EXPECT_EQ(code->trap_at(code->at(rows[1].offset + 1)), nullptr);
  EXPECT_EQ(code->trap_at(code->base() - 1), nullptr);
}

TEST(CodeBuffer, answers_which_site_an_address_belongs_to) {
  auto space = make_space();
  CodeBuffer b(*space);
  b.assembler().nop();
  b.probe_row(1);
  b.assembler().nop();
  b.probe_row(2);
  b.probe_row(3);
  b.assembler().nop();
  auto code = test::CodeMachine::take(b.publish(*space, 0, MethodId(0)));
  EXPECT_EQ(code->site_at(code->at(0)), 0u);
  EXPECT_EQ(code->site_at(code->at(1)), 1u);
  EXPECT_EQ(code->site_at(code->at(2)), 3u);
  EXPECT_EQ(code->site_at(code->at(3)), 0u);
}

}  // namespace
}  // namespace uptier::jit::code_space_test
