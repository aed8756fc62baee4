// Inputs that are built to be slow: each reader takes time in proportion to the bytes, whatever
// they contain. With four times the bytes, a quadratic reader takes sixteen times as long.
#include <gtest/gtest.h>
#include <time.h>

#include "profile/algebra/match.h"
#include "profile/base/checksum.h"
#include "profile/data/inlined.h"
#include "profile/formats/llvm_text.h"
#include "profile/formats/tsv.h"
#include "profile/formats/tsv_rows.h"
#include "profile/upf/calls.h"
#include "profile/upf/inlined.h"
#include "profile/upf/read.h"
#include "profile/upf/write.h"
#include "tests/support/trace_samples.h"
#include "uptier/profile_file.h"

namespace uptier::profile::upf_hostile_test {
namespace {

constexpr size_t kSmall = 1 << 20;
constexpr double kMost = 9;       // times as long for four times the bytes
constexpr double kSlack = 0.030;  // seconds that a busy machine may add

double seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Returns the shorter of two measured times, in processor time of this thread.
template <typename Input, typename Read>
double time_of(const Input& input, const Read& read) {
  double least = 1e9;
  for (int i = 0; i < 2; ++i) {
    const double begin = seconds();
    read(input);
    least = std::min(least, seconds() - begin);
  }
  return least;
}

// `make` returns an input of about this many bytes.
template <typename Make, typename Read>
void expect_linear(const char* what, const Make& make, const Read& read) {
  double one = 0, two = 0, four = 0;
  // Another process may evict the caches once; a quadratic reader fails every time.
  for (int tries = 0; tries < 3; ++tries) {
    one = time_of(make(kSmall), read);
    two = time_of(make(2 * kSmall), read);
    four = time_of(make(4 * kSmall), read);
    if (four < kMost * one + kSlack) break;
  }
  EXPECT_LT(four, kMost * one + kSlack) << what;
  std::printf("%-40s %8.1f %8.1f %8.1f ms\n", what, 1e3 * one, 1e3 * two, 1e3 * four);
}

void read_file(const Bytes& file) {
  const Result<ProfileFile> read = profile_from_file(file);
  (void)read;
}

Bytes repeated(ByteSpan part, size_t size) {
  Bytes out;
  while (out.size() < size) out.insert(out.end(), part.begin(), part.end());
  return out;
}

Bytes segment_of(uint64_t n, size_t modules = 1) {
  ProfileInfo info;
  info.runs = 1;
  info.uploads = {{n, n}};
  for (size_t i = 0; i < modules; ++i) info.modules.push_back(n + i);
  return uptier::profile_to_file({}, info);
}

void append(ByteSpan part, Bytes& out) { out.insert(out.end(), part.begin(), part.end()); }

TEST(Hostile, tiny_segments_with_a_run_each) {
  expect_linear(
      "tiny segments",
      [](size_t size) {
        Bytes file;
        for (uint64_t n = size; file.size() < size; --n) append(segment_of(n), file);
        return file;
      },
      read_file);
}

TEST(Hostile, many_modules_and_tiny_traces) {
  expect_linear(
      "modules, then tiny traces",
      [](size_t size) {
        Bytes file = segment_of(1, size / 16);
        for (uint64_t n = 0; file.size() < size; ++n) { append(test::write_trace({}, n), file); }
        return file;
      },
      read_file);
}

// Headers with right checksums, each of a record that claims the rest of the file.
Bytes nested_records(uint16_t type, size_t size) {
  Bytes file;
  size = size / 16 * 16;
  for (uint32_t n = 0; file.size() + 64 < size; ++n) {
    const size_t at = file.size();
    append_record(static_cast<UpfKind>(type), n, {}, file);
    const std::span<std::byte> record = std::span(file).subspan(at);
    store<uint64_t>(record, 8, size - at - kIdbHeader);
    store<uint32_t>(record, 16, header_checksum(record));
  }
  file.resize(size);
  return file;
}

TEST(Hostile, records_nested_in_records) {
  for (const uint16_t type : {0x5500, 0x5501, 0x5542, 0x5541, 0x5550}) {
    expect_linear(("nested records of type " + std::to_string(type)).c_str(),
                  [type](size_t size) { return nested_records(type, size); }, read_file);
  }
}

TEST(Hostile, magics_and_claims) {
  Bytes magic(16);
  store<uint32_t>(magic, 0, kIdbMagic);
  for (const uint16_t type : {0x0000, 0x0001, 0x0010, 0x5540, 0x5542, 0x7777}) {
    store<uint16_t>(magic, 4, type);
    for (const uint64_t claim : {uint64_t{0}, uint64_t{1} << 32, ~uint64_t{0}}) {
      store<uint64_t>(magic, 8, claim);
      expect_linear(("claims of type " + std::to_string(type)).c_str(),
                    [&](size_t size) { return repeated(magic, size); }, read_file);
    }
  }
}

// All methods have the same name, which is as long as half of the file.
TEST(Hostile, one_long_name_for_all) {
  const auto make = [](size_t size) {
    Profile p;
    const std::string name(size / 2, 'n');
    for (uint32_t i = 0; i < size / 64; ++i) {
      MethodProfile m;
      m.key = {1, i};
      m.name = name;
      m.schema = Schema::block_schema(1, 7);
      m.counts = {1};
      m.weigh(1);
      p.methods.emplace(m.key, std::move(m));
      if (i > 200) break;
    }
    return uptier::profile_to_file(p, {});
  };
  // Copies of the name for all methods would take two hundred times half of the file.
  const Bytes file = make(kSmall);
  const Result<ProfileFile> read = profile_from_file(file);
  ASSERT_TRUE(read.ok());
  size_t names = 0;
  for (const auto& [key, m] : read->profile.methods) names += m.name.size();
  EXPECT_GT(read->profile.methods.size(), 200u);
  EXPECT_LT(names, 20 * file.size() + (1 << 20));
  ASSERT_FALSE(read->warnings.empty());
  EXPECT_NE(read->warnings.back().find("names"), std::string::npos);
}

TEST(Hostile, bodies_of_many_blocks_are_matched) {
  const auto make = [](size_t size) {
    CodeShape shape;
    const auto blocks = static_cast<SiteId>(size / 64);
    for (SiteId b = 1; b <= blocks; ++b) {
      shape.successors.add_list();
      for (const SiteId to : {b + 1, b + 2}) shape.successors.add(std::min(to, blocks));
    }
    shape.anchors = {{AnchorKind::kCall, 1, 1, 1}};
    return shape;
  };
  expect_linear("matching of many blocks", make, [](const CodeShape& there) {
    CodeShape here = there;
    here.cfg_hash = 1;
    here.successors.add(1);
    const auto schema_of = [](const CodeShape& shape) {
      Schema schema;
      schema.cfg_hash = shape.cfg_hash;
      SiteId edges = 0;
      for (SiteId b = 1; b <= shape.successors.size(); ++b) {
        schema.add(SlotKind::kBlock, b);
        edges += static_cast<SiteId>(shape.successors[b - 1].size());
      }
      for (SiteId e = 1; e <= edges; ++e) schema.add(SlotKind::kEdge, e);
      return schema;
    };
    MethodProfile old;
    old.schema = schema_of(there);
    old.counts.assign(old.schema.words(), 1);
    old.weigh(1);
    MatchReport report;
    (void)match_profile(old, there, schema_of(here), here, report);
    EXPECT_TRUE(report.accepted) << report.text();
    EXPECT_EQ(report.dropped,
              6u);  // the last block, which now has one more edge, and all its edges
  });
}

std::string lines(const std::string& head, const std::string& line, size_t size) {
  std::string text = head;
  while (text.size() < size) text += line;
  return text;
}

TEST(Hostile, rows) {
  const std::string head = std::string(kTsvHead) + "\n";
  const auto read = [](const std::string& text) { (void)profile_from_tsv(text); };
  const char* rows[] = {"1\t1\tf\t1\t1\tblock\t1\tcount\t0\t0\tsum\t1\t1\tv\n",
                        "1\t1\t1;|\t1\t0\tshape\t0\tcode\t0\t0\tgreatest\t0\t0\tv\n",
                        "0\t0\t\t0\t0\tfile\t0\tupload\t1\t1\tsame\t0\t0\tv\n", "\t", "\\"};
  for (const char* row : rows) {
    expect_linear(
        row, [&](size_t size) { return lines(head, row, size); }, read);
  }
  // Methods that claim as many words as a line may.
  expect_linear(
      "slots of many words",
      [&](size_t size) {
        std::string text = head;
        for (uint32_t n = 0; text.size() < size; ++n) {
          text += "1\t" + std::to_string(n) + "\tf\t1\t1\tblock\t1\tslots\t0\t100\tsame\t0\t0\tv\n";
        }
        return text;
      },
      read);
  expect_linear(
      "one shape of many blocks",
      [&](size_t size) {
        return head + "1\t1\t" + lines("", "1 1;", size) +
               "|\t1\t0\tshape\t0\tcode\t0\t0\tgreatest\t0\t0\tv\n";
      },
      read);
}

TEST(Hostile, texts) {
  const auto read = [](const std::string& text) { (void)parse_profile(text); };
  const std::string head = "uptier-profile 1\nmethod 0x1 1 \"f\" {\ncfg 0x1\n";
  for (const char* line : {"{", "}", "\"", "\"\n", "\\", "#", "#\n", "block 1 1\n", "{\n",
                           "call_target 1 other 1 {\n", "~"}) {
    expect_linear((std::string("text of ") + line).c_str(),
                  [&](size_t size) { return lines(head, line, size); }, read);
  }
  expect_linear(
      "many slots, not closed",
      [&](size_t size) {
        std::string text = head;
        for (uint32_t n = 1; text.size() < size; ++n) text += "block " + std::to_string(n) + " 1\n";
        return text;
      },
      read);
  const auto llvm = [](const std::string& text) { (void)profile_from_llvm_text(text); };
  for (const char* line : {"f\n1\n1\n1\n\n", "#\n", "\n", ":ir\n", "f\n1\n500000\n"}) {
    expect_linear((std::string("llvm ") + line).c_str(),
                  [&](size_t size) { return lines(":ir\n", line, size); }, llvm);
  }
}

TEST(Hostile, parts_of_files) {
  const auto fill = [](size_t size) {
    Bytes part(size);
    for (size_t i = 0; i < size; ++i) part[i] = static_cast<std::byte>(i % 3);
    return part;
  };
  for (const UpfKind kind : kCallKinds) {
    expect_linear("calls", fill, [kind](const Bytes& part) {
      CallProfile calls;
      (void)take_call_part(kind, part, calls);
    });
  }
  expect_linear("inlined bodies", fill, [](const Bytes& part) { (void)read_inlined_part(part); });
  expect_linear("sites of inlined bodies", fill,
                [](const Bytes& part) { (void)read_inlined_site_part(part); });
  const auto read_both = [](const InlinedBodies& bodies) {
    uint64_t dropped = 0;
    for (const Bytes& part : inlined_parts(bodies, dropped)) (void)read_inlined_part(part);
    for (const Bytes& part : inlined_site_parts(bodies, dropped))
      (void)read_inlined_site_part(part);
  };
  expect_linear(
      "long paths that differ at their ends",
      [](size_t size) {
        InlinedBodies bodies;
        InlinedKey key{{1, 1}, {}};
        const size_t calls = kMostInlinedCalls, each = 11 * calls;
        for (SiteId i = 0; i < calls; ++i) key.path.push_back({5, {1, 1}});
        for (SiteId i = 0; i < size / each; ++i) {
          key.path.back().site = 1 + i;
          bodies[key] = {std::vector<uint64_t>(calls + 1, 7), {{1, {1, 1, 1}}}};
        }
        return bodies;
      },
      read_both);
  expect_linear(
      "a body of many sites, and one of a site of many targets",
      [](size_t size) {
        InlinedBodies bodies;
        uptier::InlinedBody& many = bodies[{{1, 1}, {{1, {1, 1}}}}];
        many.code = {7, 7};
        for (SiteId i = 1; i < size / 12; ++i) {
          many.sites[{SlotKind::kCounter, i}] = {{1}, {1}, {}, 1};
        }
        uptier::InlinedBody& targets = bodies[{{1, 1}, {{2, {1, 1}}}}];
        targets.code = {7, 7};
        uptier::InlinedSite& site = targets.sites[{SlotKind::kCallTarget, 1}];
        site = {{1}, {1}, {}, 1};
        for (uint64_t i = 0; i < size / 24; ++i) site.table[{1, i}] = {1, 1};
        return bodies;
      },
      read_both);
  expect_linear("timeline", fill, [](const Bytes& part) { (void)read_timeline(part); });
}

TEST(Hostile, traces) {
  const auto read = [](const Bytes& trace) { (void)profile_from_trace(trace); };
  expect_linear(
      "events of a trace, again and again",
      [](size_t size) {
        std::vector<TraceEvent> events;
        const std::vector<TraceEvent> all = test::kinds_events();
        const size_t each = test::write_trace(all).size();
        for (size_t i = 0; i < size / each; ++i)
          events.insert(events.end(), all.begin(), all.end());
        return test::write_trace(events);
      },
      read);
  expect_linear(
      "nested", [](size_t size) { return nested_records(0x5500, size); }, read);
}

}  // namespace
}  // namespace uptier::profile::upf_hostile_test
