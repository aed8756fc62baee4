// Profile files: any bytes are read without harm, and a profile that was read can be written and
// read again.
//
// Each input is fed once as it is and once with repaired checksums, or no mutant would get past
// them.
#include <algorithm>
#include <cstring>

#include "profile/algebra/algebra.h"
#include "profile/algebra/fold_inlined.h"
#include "profile/algebra/match.h"
#include "profile/formats/export.h"
#include "profile/formats/pprof.h"
#include "profile/upf/gathered.h"
#include "profile/upf/read.h"
#include "profile/upf/text_log.h"
#include "profile/upf/write.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/records.h"
#include "uptier/log_text.h"
#include "uptier/profile_file.h"
#include "uptier/profile_query.h"

namespace uptier::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

Profile small_profile(bool tables, uint32_t blocks) {
  MethodProfile m;
  m.key = {0xa1, blocks};
  m.name = "fib";
  m.schema = Schema::block_schema(blocks, 7);
  if (tables) {
    m.schema.add(SlotKind::kCallTarget, 3, 4);
    m.schema.add(SlotKind::kValue, 4, 2);
    m.schema.add(SlotKind::kCounter, 5);
  }
  m.counts.assign(m.schema.words(), 3);
  if (tables) m.tables[{SlotKind::kCallTarget, 3}] = {{{0xb2, 1}, {4, 5}}, {{0xa1, 2}, {1, 1}}};
  m.weigh(2);
  m.calls = 9;
  Profile p;
  p.methods.emplace(m.key, m);
  if (!tables) return p;
  p.inlined[{m.key, {{3, {0xb2, 1}}}}] = {{7, 8}, {{1, {64, 1024, 64}}, {2, {3, 3, 64}}}};
  p.inlined[{m.key, {{3, {0xb2, 1}}, {1, {0xa1, 2}}}}] = {{7, 8, 9}, {{4, {0, 0, 64}}}};
  // An inlined recursive call counts for the method itself.
  InlinedBody& same = p.inlined[{m.key, {{3, m.key}}}];
  same = {{7, 7}, {{1, {64, 1024, 64}}}};
  same.sites[{SlotKind::kCallTarget, 3}] = {{1}, {16}, {{{0xb2, 1}, {63, 1008}}}, 64};
  same.sites[{SlotKind::kValue, 4}] = {
      {4, 30, 0, 5, 9, 1}, {64, 480, 0, 0, 0, 16}, {{{0, 5}, {3, 48}}}, 64};
  same.sites[{SlotKind::kCounter, 5}] = {{2}, {32}, {}, 64};
  return p;
}

profile::Timeline small_timeline() {
  profile::Timeline t;
  t.length_ns = 1000;
  t.figures = {{"compile_ns_total", 77}};
  t.methods = {{{0xa1, 2}, "fib"}};
  t.loops = {{0, 1, 0, 9}, {0, 2, 1, 12}};
  t.versions = {{0, Tier::kOptimized, Copy::kPlain, 0, 10, 0, 64, 20, 1}};
  t.decisions = {{7, 0, 32, 2, 0, "specialize", "hot"}};
  return t;
}

ProfileInfo info_of(uint64_t run) {
  ProfileInfo info;
  info.engine = "fuzz";
  info.time = run;
  info.runs = 1;
  info.modules = {0xa1};
  info.uploads = {{run, run}};
  return info;
}

CallProfile small_calls() {
  CallProfile calls;
  for (uint32_t f = 0; f < 3; ++f) {
    CodeShape& shape = calls.shapes[{0xa1, f}];
    shape.cfg_hash = 7 + f;
    shape.successors = {{2, 3}, {3}, {}};
    shape.anchors = {{AnchorKind::kCall, 5, 1, 4}, {AnchorKind::kLoop, 0, 2 + f % 2, 1}};
    calls.graph[{{0xa1, f}, {0xb2, 1}}] = 100 + f;
    calls.first[{0xa1, f}] = {f, CallProfile::kOneRun};
    calls.time.add({{TimePlace::kMethod, {0xa1, f}}, {TimePlace::kHost, {}}}, 2, 1000 + f);
  }
  return calls;
}

// Data as another tool may leave it.
Bytes small_database() {
  const uint64_t words[] = {2, 10, 0, 4, 6};
  const auto bytes = std::as_bytes(std::span(words));
  profile::StringTableBuilder strings;
  const Bytes table = profile::instrument_table(
      {{"iree.instrument.counter", "flow", "h", "k", "{}", bytes.first(8)},
       {"iree.instrument.range", "flow", "h", "r", "{}", bytes}},
      strings);
  Bytes out;
  profile::append_chunk(out, profile::kIdbFileHeader, 0, {});
  profile::append_chunk(out, profile::kIdbStringTable, 0, strings.content());
  profile::append_chunk(out, profile::kIdbInstrumentTable, 0, table);
  profile::append_chunk(out, profile::kIdbUserData, 0, Bytes(24));
  return out;
}

// Any two shapes can be compared, and the result makes a valid profile.
void feed_calls(const CallProfile& calls) {
  const CodeShape* last = nullptr;
  for (const auto& [key, shape] : calls.shapes) {
    if (last != nullptr && shape.successors.size() < 100 && last->successors.size() < 100) {
      const auto schema_of = [](const CodeShape& s) {
        return Schema::block_schema(static_cast<uint32_t>(s.successors.size()), s.cfg_hash);
      };
      MethodProfile old;
      old.schema = schema_of(*last);
      old.counts.assign(old.schema.words(), 5);
      old.weigh(2);
      profile::MatchReport report;
      const MethodProfile m = profile::match_profile(old, *last, schema_of(shape), shape, report);
      UPTIER_FUZZ_CHECK(m.check().ok());
    }
    last = &shape;
  }
  (void)calls.order();
}

// Folding inlined bodies gives valid methods, and a profile equals itself.
void feed_inlined(const Profile& p) {
  for (const auto& [key, m] : profile::fold_inlined(p).methods) {
    UPTIER_FUZZ_CHECK(m.key == key && m.check().ok());
  }
  const OverlapReport same = compare(p, p);
  UPTIER_FUZZ_CHECK(same.program.value > 1 - 1e-9 && same.program.value <= 1);
  UPTIER_FUZZ_CHECK(!same.inlined || same.inlined->value > 1 - 1e-9);
  size_t size = 0;
  for (const auto& [key, body] : p.inlined) size += key.path.size() * (1 + body.blocks.size());
  if (size > 10'000) return;  // exports write each path once per block
  (void)profile::to_folded(p);
  (void)profile::to_pprof(p, {});
}

// The pieces of a source: a text log, an instrument that names a parent, counters, user data.
Bytes small_source() {
  GatherList list;
  profile::append_text_log(
      {"0x0000000000000007@f", 3, "{} of {x}", {{9, 1, {4, 5}}, {8, 2, {6, 7}}}}, list);
  list.source_id("flow", "h", "", "parent");
  const uint64_t words[] = {1, 2};
  const std::string_view keys[] = {"k", "l"};
  list.counters("flow", "parent", keys, words);
  list.user_data("t", "m", std::as_bytes(std::span(words)));
  Bytes out;
  for (const Piece& p : list.pieces()) {
    const auto* at = static_cast<const std::byte*>(p.data);
    out.insert(out.end(), at, at + p.bytes);
  }
  return out;
}

// Bytes that are accepted from a source are read without a warning, and can be taken away again.
void feed_pieces(const Bytes& source) {
  std::vector<Piece> pieces;
  constexpr size_t kSize = 37;
  for (size_t at = 0; at < source.size(); at += kSize) {
    pieces.push_back({source.data() + at, std::min(kSize, source.size() - at)});
  }
  profile::GatheredSum sum;
  if (!profile::add_pieces(pieces, sum).ok() || sum.empty()) return;  // nothing: not written
  Bytes file = profile::gathered_header(1);
  file.insert(file.end(), source.begin(), source.end());
  Result<ProfileFile> read = profile_from_file(file);
  UPTIER_FUZZ_CHECK(read.ok() && read->warnings.empty());
  ForeignTables rest = read->foreign;
  profile::leave_out(sum, rest);
  UPTIER_FUZZ_CHECK(rest.empty());
}

// A log that is read is written back as the same log.
void feed_logs(const ForeignTables& tables) {
  for (const ForeignInstrument& i : tables.instruments) {
    const Result<profile::TextLog> log = profile::read_text_log(i);
    if (!log.ok()) continue;
    GatherList list;
    profile::append_text_log(*log, list);
    profile::GatheredSum sum;
    UPTIER_FUZZ_CHECK(profile::add_pieces(list.pieces(), sum).ok());
    for (const auto& line : log->lines) (void)log_text(log->format, line.arguments);
  }
}

void feed_bytes(const Bytes& file) {
  feed_pieces(file);
  profile::UpfReader reader(file);
  for (const auto& segment : reader.segments()) {
    (void)reader.log(segment);
    for (const profile::RunRecord& run : profile::latest_runs(reader.runs(segment))) {
      (void)reader.log(run);
      const profile::Timeline t = reader.timeline(run);
      if (t.empty()) continue;
      const Result<profile::Timeline> same = profile::read_timeline(profile::timeline_bytes(t));
      UPTIER_FUZZ_CHECK(same.ok() && profile::timeline_bytes(*same) == profile::timeline_bytes(t));
    }
  }
  const Result<ProfileFile> read = profile_from_file(file);
  if (!read.ok()) return;
  for (const auto& [key, method] : read->profile.methods) {
    UPTIER_FUZZ_CHECK(method.key == key && method.check().ok());
  }
  for (const auto& [key, body] : read->profile.inlined) UPTIER_FUZZ_CHECK(body.check(key).ok());
  (void)profile::summarize(read->profile);
  (void)profile::to_csv(read->profile);
  (void)profile::to_lcov(read->profile);
  (void)profile::to_llvm_text(read->profile);
  feed_calls(read->calls);
  feed_inlined(read->profile);
  feed_logs(read->foreign);
  for (const char* key :
       {"counter#5", "value#4", "call_target#3", "block#1", "3:0x0000000000000007/call_target#3",
        "3:0x0000000000000007/value#4", "3:0x0000000000000008/block#2"}) {
    (void)query(file, kQueryStage, "0x0000000000000007", key);
  }
  (void)query(file, "flow", "h", "k");
  const Bytes again = profile_to_file(*read);
  const Result<ProfileFile> back = profile_from_file(again);
  UPTIER_FUZZ_CHECK(back.ok() && back->warnings.empty() && !back->truncated);
  UPTIER_FUZZ_CHECK(back->info == read->info);
  // A method without a time, because its segment's record of runs was lost, gets the file's time;
  // so another version of its code may become the one that counts.
  const auto has_time = [](const auto& item) { return item.second.time != 0; };
  const bool dated = std::ranges::all_of(read->profile.methods, has_time) &&
                     std::ranges::all_of(read->profile.other_code, has_time);
  if (dated || read->info.time == 0) {
    UPTIER_FUZZ_CHECK(back->profile == read->profile);
  } else {
    UPTIER_FUZZ_CHECK(back->profile.methods.size() == read->profile.methods.size() &&
                      back->profile.other_code.size() == read->profile.other_code.size() &&
                      back->profile.inlined == read->profile.inlined);
  }
  UPTIER_FUZZ_CHECK(back->calls == read->calls && back->foreign == read->foreign);
}

}  // namespace

std::vector<std::string> seeds() {
  const auto text = [](const Bytes& bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const std::string small = text(profile_to_file(small_profile(false, 2), info_of(1)));
  const std::string tables = text(profile_to_file(small_profile(true, 3), info_of(2), "log"));
  const std::string large = text(profile_to_file(small_profile(true, 900), info_of(3)));
  const CallProfile calls = small_calls();
  const std::string full = text(profile::profile_to_file(small_profile(true, 3), info_of(4), "log",
                                                         small_timeline(), &calls));
  const profile::UpfReader reader(std::as_bytes(std::span(full)));
  const std::string later =
      text(profile::profile_to_file(small_profile(true, 3), info_of(5), "more", small_timeline(),
                                    &calls, nullptr, reader.runs(reader.segments().at(0))));
  const std::string others = text(small_database());
  const std::string source = text(small_source());
  const std::string gathered = text(profile::gathered_header(3)) + source;
  const std::string cut = full.substr(0, full.size() / 2) + small;
  return {later,
          small,
          tables,
          large,
          small + tables,
          full,
          text(profile_to_file({}, {})),
          others,
          source,
          tables + gathered,
          cut,
          others + small,
          tables + others};
}

void feed(const std::string& input) {
  const auto bytes = std::as_bytes(std::span(input));
  Bytes file(bytes.begin(), bytes.end());
  feed_bytes(file);
  Bytes mended = file;
  mend(std::span<std::byte>(mended));
  if (mended != file) feed_bytes(mended);
}

void mend_input(std::span<std::byte> input) { mend(input); }

void mutate_input(std::string& input, Random& random) { mutate_record(input, random); }

}  // namespace uptier::fuzz
