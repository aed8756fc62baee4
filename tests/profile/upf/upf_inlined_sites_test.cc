// Malicious versions of the chunk with calls and probes of inlined bodies: each rule of the reader
// is broken alone, and claims without data are not believed.
#include <gtest/gtest.h>

#include <functional>

#include "profile/base/varint.h"
#include "profile/data/inlined.h"
#include "profile/upf/inlined.h"

namespace uptier::profile::upf_inlined_sites_test {
namespace {

// A part with one body, for which a call and a counter are known. All numbers can be changed.
struct Part {
  uint64_t modules = 1, bodies = 1, copies = 1;
  uint64_t root_module = 0;
  uint64_t calls = 1, calls_there = 1, call_site = 5, callee_module = 0, callee = 1;
  uint64_t sites = 2;
  uint64_t kind = static_cast<uint64_t>(SlotKind::kCallTarget), site = 2, samples = 9, other = 2;
  uint64_t entries = 2;
  std::vector<uint64_t> targets = {7, 8};
  uint64_t second_kind = static_cast<uint64_t>(SlotKind::kCounter), second_site = 4, count = 3;
  uint64_t second_entries = 0;
  size_t cut = 0, more = 0;  // bytes removed or added at the end

  Bytes bytes() const {
    Bytes out;
    ByteWriter fixed(out);
    const auto numbers = [&](std::initializer_list<uint64_t> all) {
      for (const uint64_t n : all) append_varint(n, out);
    };
    numbers({modules});
    fixed.u64(0xa1);
    numbers({bodies});
    for (uint64_t i = 0; i < copies; ++i) {
      numbers({root_module, 0, calls});
      for (uint64_t c = 0; c < calls_there; ++c) numbers({call_site, callee_module, callee});
      for (uint64_t c = 0; c <= calls_there; ++c) fixed.u64(1 + c);
      numbers({sites, kind, site, samples, other, 8, entries});
      for (const uint64_t target : targets) {
        fixed.u64(0xa1);
        numbers({target, 5, 20});
      }
      numbers({second_kind, second_site, 9, count, 12, second_entries});
    }
    out.resize(out.size() - cut + more);
    return out;
  }
};

bool is_read(const Part& part) { return read_inlined_site_part(part.bytes()).ok(); }

TEST(UpfInlinedSites, part_of_this_test_is_read) {
  const Result<InlinedBodies> good = read_inlined_site_part(Part().bytes());
  ASSERT_TRUE(good.ok());
  uptier::InlinedBody body{{1, 2}, {}};
  body.sites[{SlotKind::kCallTarget, 2}] = {
      {2}, {8}, {{{0xa1, 7}, {5, 20}}, {{0xa1, 8}, {5, 20}}}, 9};
  body.sites[{SlotKind::kCounter, 4}] = {{3}, {12}, {}, 9};
  EXPECT_EQ(*good, (InlinedBodies{{{{0xa1, 0}, {{5, {0xa1, 1}}}}, body}}));
  uint64_t dropped = 0;
  EXPECT_EQ(inlined_site_parts(*good, dropped), (std::vector<Bytes>{Part().bytes()}));
}

TEST(UpfInlinedSites, each_rule_is_broken_alone) {
  using Break = std::function<void(Part&)>;
  const std::pair<const char*, Break> breaks[] = {
      {"a module that is not listed", [](Part& p) { p.root_module = 1; }},
      {"a callee of one", [](Part& p) { p.callee_module = 1; }},
      {"a function of more than 32 bits", [](Part& p) { p.callee = 1ull << 32; }},
      {"a call of site 0", [](Part& p) { p.call_site = 0; }},
      {"a call site of more than 32 bits", [](Part& p) { p.call_site = (1ull << 32) + 5; }},
      {"no call", [](Part& p) { p.calls = p.calls_there = 0; }},
      {"a body twice", [](Part& p) { p.bodies = p.copies = 2; }},
      {"a kind of 8 bits and more", [](Part& p) { p.kind += 256; }},
      {"a kind that nobody knows", [](Part& p) { p.second_kind = 200; }},
      {"a kind of no words", [](Part& p) { p.kind = 0; }},
      {"a block", [](Part& p) { p.second_kind = static_cast<uint64_t>(SlotKind::kBlock); }},
      {"a loop", [](Part& p) { p.second_kind = static_cast<uint64_t>(SlotKind::kLoop); }},
      {"site 0", [](Part& p) { p.site = 0; }},
      {"a site of more than 32 bits", [](Part& p) { p.site = (1ull << 32) + 2; }},
      {"a site twice",
       [](Part& p) {
         p.second_kind = p.kind;
         p.second_site = p.site;
       }},
      {"a target twice",
       [](Part& p) {
         p.targets = {7, 7};
       }},
      {"a target of more than 32 bits",
       [](Part& p) {
         p.targets = {7, 1ull << 32};
       }},
      {"a table at a counter",
       [](Part& p) {
         std::swap(p.kind, p.second_kind);
         std::swap(p.site, p.second_site);
       }},
      {"an end that is cut", [](Part& p) { p.cut = 1; }},
      {"more behind the end", [](Part& p) { p.more = 1; }},
  };
  for (const auto& [what, change] : breaks) {
    Part part;
    change(part);
    EXPECT_FALSE(is_read(part)) << what;
  }
  EXPECT_FALSE(read_inlined_site_part({}).ok());
}

TEST(UpfInlinedSites, claims_beyond_the_part_are_refused) {
  uint64_t Part::*const claims[] = {&Part::modules, &Part::bodies,  &Part::calls,
                                    &Part::sites,   &Part::entries, &Part::second_entries};
  for (const auto claim : claims) {
    for (const uint64_t n : {uint64_t{3}, uint64_t{1} << 20, uint64_t{1} << 32, uint64_t{1} << 61,
                             UINT64_MAX / 11, UINT64_MAX}) {
      Part part;
      part.*claim = n;
      EXPECT_FALSE(is_read(part)) << n;
    }
  }
}

// Exports write the complete path at each block.
TEST(UpfInlinedSites, paths_are_as_deep_as_the_law_allows) {
  Part part;
  part.calls = part.calls_there = kMostInlinedCalls;
  EXPECT_TRUE(is_read(part));
  part.calls = part.calls_there = kMostInlinedCalls + 1;
  EXPECT_FALSE(is_read(part));
}

}  // namespace
}  // namespace uptier::profile::upf_inlined_sites_test
