// Profile files: any bytes are read without harm, and what is read can be written and read again.
//
// Half of the inputs get their checksums mended, or no mutant would come past them.
#include <cstring>

#include "profile/algebra.h"
#include "profile/export.h"
#include "profile/upf_read.h"
#include "profile/upf_write.h"
#include "tests/fuzz/fuzz.h"
#include "uptier/profile_file.h"

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

// Makes the checksums of every record right whose header still says where it ends.
void mend_checksums(Bytes& file) {
  for (size_t at = 0; file.size() - at >= profile::kRecordHeader;) {
    uint32_t magic = 0;
    uint16_t type = 0;
    uint64_t content = 0;
    std::memcpy(&magic, &file[at], sizeof magic);
    std::memcpy(&type, &file[at + 4], sizeof type);
    std::memcpy(&content, &file[at + 8], sizeof content);
    const size_t room = file.size() - at - profile::kIdbHeader;
    if (magic != profile::kIdbMagic || content > room) return;
    const size_t size = (profile::kIdbHeader + content + 15) / 16 * 16;
    if (size > file.size() - at) return;
    const bool ours = type >= profile::kFirstUpfType && type <= profile::kLastUpfType;
    if ((ours || type == 0) && content >= 16) {
      profile::seal_record(std::span(file).subspan(at, size));
    }
    at += size;
  }
}

void feed_bytes(const Bytes& file) {
  profile::UpfReader reader(file);
  for (const auto& segment : reader.segments()) {
    (void)reader.log(segment);
    const profile::Timeline t = reader.timeline(segment);
    if (t.empty()) continue;
    const Result<profile::Timeline> same = profile::read_timeline(profile::timeline_bytes(t));
    UPTIER_FUZZ_CHECK(same.ok() && profile::timeline_bytes(*same) == profile::timeline_bytes(t));
  }
  const Result<ProfileFile> read = profile_from_file(file);
  if (!read.ok()) return;
  for (const auto& [key, method] : read->profile.methods) {
    UPTIER_FUZZ_CHECK(method.key == key && method.check().ok());
  }
  (void)profile::summarize(read->profile);
  (void)profile::to_csv(read->profile);
  (void)profile::to_lcov(read->profile);
  (void)profile::to_llvm_text(read->profile);
  const Bytes again = profile_to_file(read->profile, read->info);
  const Result<ProfileFile> back = profile_from_file(again);
  UPTIER_FUZZ_CHECK(back.ok() && back->warnings.empty() && !back->truncated);
  UPTIER_FUZZ_CHECK(back->profile == read->profile && back->info == read->info);
}

}  // namespace

std::vector<std::string> seeds() {
  const auto text = [](const Bytes& bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const std::string small = text(profile_to_file(small_profile(false, 2), info_of(1)));
  const std::string tables = text(profile_to_file(small_profile(true, 3), info_of(2), "log"));
  const std::string large = text(profile_to_file(small_profile(true, 900), info_of(3)));
  const std::string timed =
      text(profile::profile_to_file(small_profile(true, 3), info_of(4), "log", small_timeline()));
  return {small, tables, large, small + tables, timed, text(profile_to_file({}, {}))};
}

void feed(const std::string& input) {
  const auto bytes = std::as_bytes(std::span(input));
  Bytes file(bytes.begin(), bytes.end());
  feed_bytes(file);
  mend_checksums(file);
  feed_bytes(file);
}

}  // namespace uptier::fuzz
