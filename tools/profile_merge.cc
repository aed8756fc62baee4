// uptier profile merge: many files into one, one file in memory at a time.
//
// Each file is read once, added and let go, so memory holds a sum and a file for each thread. Sums
// do not depend on which thread takes which file, so each takes the next one. Only where files share runs, or the age of a run
// counts, all of them are looked at before the first is added: then no run is counted twice,
// whatever the order.
//
// A sum that would take much more than the largest file is made range by range (profile/upf/profile_sum.h):
//
//     all files -> sum of the first methods -> written; parts of all files -> the next ones -> ...
//
// so memory holds a range, for all threads together, and for each thread a file, whose groups go as
// they are read. Groups that are written wait in a file (spill.h). The
// sum is made at once, as large as it may be, where the end has to see all of it (a quorum, or methods that are left out by
// name, since calls between them go too), where some file is not made for ranges, and where a file
// becomes another one in between.
#include <fnmatch.h>

#include <malloc.h>
#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <nlohmann/json.hpp>
#include <thread>

#include "profile/algebra/algebra.h"
#include "profile/base/checksum.h"
#include "profile/base/numbers.h"
#include "profile/data/text.h"
#include "profile/upf/file.h"
#include "profile/upf/profile_sum.h"
#include "profile/upf/segment_writer.h"
#include "profile/upf/trace_info.h"
#include "profile/upf/uploads.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/input_file.h"
#include "tools/json_out.h"
#include "tools/merge_messages.h"
#include "tools/merge_said.h"
#include "tools/merge_voters.h"
#include "tools/profile_commands.h"
#include "tools/streams.h"

namespace uptier::tools {
namespace {

using profile::UpfReader;
using profile::UploadFate;
using profile::Weight;

constexpr uint64_t kParts = 1 << 20;
constexpr double kDay = 86400;
constexpr uint64_t kManyBytes = 2 << 20;  // below it, a second thread costs more than it saves
constexpr int kHeapStep = 1 << 20;
constexpr size_t kCacheLine = 64;
constexpr uint64_t kRangeQuarters = 3;     // of the largest file
constexpr uint64_t kLeastRange = 1 << 20;  // what a range may take however small the files are

// One part of one file: a segment, or a trace; traces come after the segments.
struct Upload {
  size_t part = 0;
  ProfileInfo info;  // of a trace no more than its name
  bool ours = true;  // it has methods, and a say
  UploadFate fate = UploadFate::kSummed;
};

struct Input {
  std::string path;
  double factor = 1;
  uint64_t bytes = 0;
  bool is_file = true;            // a profile file or a trace; else text, read whole
  std::vector<Upload> uploads;    // that were planned
  std::vector<std::string> told;  // what is wrong with it
  // From the ranges before:
  std::vector<profile::GroupKeys> keys;  // of the groups of all segments
  InputFile::Identity identity;
};

bool parse_input(const std::string& word, Input& input) {
  size_t at = word.find('@');
  input.path = word;
  if (at == std::string::npos || at == 0) return true;
  double factor = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + at, factor);
  bool number = error == std::errc() && end == word.data() + at;
  if (!number) return true;  // an @ in a name
  input.path = word.substr(at + 1);
  input.factor = factor;
  return factor >= 0 && factor <= 1e6;
}

class Merge {
 public:
  explicit Merge(const ProfileMergeCommand& c) : command_(c), voters_(c.cap, c.quorum, c.by_file) {}
  int run();

 private:
  // The work of one thread.
  struct alignas(kCacheLine) Share {
    profile::ProfileSum sum;
    InputFile file;
    std::vector<UploadId> runs;
    bool changed = false;  // a file is not the one that it was
    std::string error;
    int code = kOk;
    size_t failed = SIZE_MAX;  // the input that this is of
  };

  int parse();
  bool open(Input& input, Share& share) const;
  void add(Input& input, Share& share) const;
  void tell_of(Input& input, const UpfReader& reader) const;
  size_t threads() const;
  int add_all();
  int add_others(profile::ProfileSum& sum);
  int sum_up(const std::optional<profile::MethodKey>& from);
  bool again() const { return ranged_ && from_ != profile::MethodKey{}; }
  bool is_useless() const;
  int write_at_once();
  int write_ranges(bool& written);
  int plan(Share& share);
  Weight weight(const Input& input, uint64_t time, profile::Fraction share = {}) const;
  bool shared_runs() const;
  bool filters() const { return !command_.methods.empty() || !modules_.empty(); }
  void filter(ProfileFile& sum) const;
  void finish(Profile& sum) const;
  void tell(const MergeReport& report);
  int write(const ProfileFile& rest, profile::SegmentWriter& writer);
  int say_json(const std::string& output, uint64_t runs) const;

  const ProfileMergeCommand& command_;
  MergeVoters voters_;
  std::vector<Input> inputs_;
  std::vector<uint64_t> modules_;  // that are wanted; empty: all
  bool planned_ = false;
  bool ranged_ = false;
  profile::MethodKey from_;  // where the range begins
  uint64_t bytes_ = 0;       // of all files
  uint64_t largest_ = 0;     // of them
  uint64_t latest_ = 0;
  uint64_t known_ = 0;
  MergeSaid said_;
  std::deque<Share> shares_;
};

int Merge::parse() {
  if (command_.json && command_.out == kStream) {
    return fail(kUsage, "--json and the profile cannot both go to stdout: give -o a file");
  }
  std::vector<std::string> paths;
  for (const std::string& word : command_.files) {
    Input input;
    if (!parse_input(word, input)) return fail(kUsage, word + ": a factor lies in 0..1e6");
    paths.push_back(input.path);
    inputs_.push_back(std::move(input));
  }
  if (Status s = check_stdin(paths); !s) return fail(kUsage, s.error().message);
  for (Input& input : inputs_) {
    struct stat info {};
    const auto look = [&] { return ::stat(input.path.c_str(), &info) == 0; };
    const bool regular = look() && S_ISREG(info.st_mode);
    if (!regular) input.path = seekable(input.path);
    if (regular || look()) input.bytes = static_cast<uint64_t>(info.st_size);
    bytes_ += input.bytes;
    largest_ = std::max(largest_, input.bytes);
  }
  for (const std::string& key : command_.modules) {
    const std::optional<uint64_t> number = profile::parse_unsigned(key);
    if (!number)
      return fail(kUsage, "--module " + key + ": a key is a number, in the form that show prints");
    modules_.push_back(*number);
  }
  return kOk;
}

// Reads a file; false if it is no profile file, or cannot be read, which the share then says.
bool Merge::open(Input& input, Share& share) const {
  if (Status s = share.file.open(input.path); !s) {
    share.error = s.error().message;
    share.code = kFailed;
    return false;
  }
  input.is_file = looks_like_profile(share.file.bytes()) || is_trace(share.file.bytes());
  return input.is_file;
}

std::vector<Upload> parts_of(const UpfReader& reader) {
  std::vector<Upload> parts;
  for (const UpfReader::Segment& segment : reader.segments()) {
    parts.push_back({parts.size(), segment.info, segment.ours});
  }
  for (const profile::ByteSpan trace : reader.traces()) {
    Upload& part = parts.emplace_back();
    part.part = parts.size() - 1;
    part.info.runs = 1;
    part.info.uploads = {profile::trace_id(trace)};
  }
  return parts;
}

// Says which uploads count, from the heads of all files.
int Merge::plan(Share& share) {
  std::vector<const ProfileInfo*> infos;
  std::vector<std::pair<Upload*, const Input*>> uploads;
  for (Input& input : inputs_) {
    if (!open(input, share)) continue;
    input.uploads = parts_of(UpfReader(share.file.bytes()));
    for (const Upload& u : input.uploads) latest_ = std::max(latest_, u.info.time);
  }
  if (share.code != kOk) return fail(share.code, share.error);
  for (Input& input : inputs_) {
    for (Upload& u : input.uploads) {
      infos.push_back(&u.info);
      uploads.emplace_back(&u, &input);
    }
  }
  const std::vector<UploadFate> fates = profile::plan_uploads(infos);
  for (size_t i = 0; i < fates.size(); ++i) {
    uploads[i].first->fate = fates[i];
    if (fates[i] == UploadFate::kKnown) ++known_;
    if (fates[i] != UploadFate::kConflict) continue;
    if (!command_.force) {
      return fail(kFailed, uploads[i].second->path +
                               ": shares some runs with the other files, but not all; --force "
                               "counts the shared ones twice");
    }
    uploads[i].first->fate = UploadFate::kSummed;
  }
  if (voters_.asked()) {
    for (auto& [u, input] : uploads) {
      if (u->fate == UploadFate::kSummed && u->ours) voters_.add(input->path, u->part, u->info);
    }
    voters_.settle();
  }
  planned_ = true;
  return kOk;
}

Weight Merge::weight(const Input& input, uint64_t time, profile::Fraction share) const {
  bool exact = input.factor == 1 && command_.half_life == 0;
  if (exact) return {share.numerator, share.denominator};
  double factor =
      input.factor * static_cast<double>(share.numerator) / static_cast<double>(share.denominator);
  if (command_.half_life > 0) {
    factor *= std::exp2(-static_cast<double>(latest_ - time) / kDay / command_.half_life);
  }
  if (factor == 1) return {};
  return {static_cast<uint64_t>(std::llround(factor * static_cast<double>(kParts))), kParts};
}

// Prints each problem once: reading for the next range finds some of them again.
void Merge::tell_of(Input& input, const UpfReader& reader) const {
  std::vector<std::string>& told = input.told;
  if (!again()) {
    told = reader.warnings();
    if (reader.truncated()) told.push_back("it ends early; the part before was merged");
    return;
  }
  for (const std::string& what : reader.warnings()) {
    const bool more = told.size() <= UpfReader::kWarnings && std::ranges::count(told, what) == 0;
    if (more) told.push_back(what);
  }
}

void Merge::add(Input& input, Share& share) const {
  if (!open(input, share)) return;
  share.changed = share.changed || (again() && input.identity != share.file.identity());
  if (share.changed) return;
  input.identity = share.file.identity();
  UpfReader reader(share.file.bytes());
  if (ranged_) reader.when_read([&share](profile::ByteSpan group) { share.file.let_go(group); });
  const std::vector<Upload> parts = parts_of(reader);
  const size_t segments = reader.segments().size();
  if (parts.empty() && !share.file.bytes().empty()) {
    share.error = input.path + ": no profile file";
    share.code = kCorrupt;
    return;
  }
  size_t groups = 0;
  for (const UpfReader::Segment& segment : reader.segments()) groups += segment.groups.size();
  if (ranged_ && !again()) input.keys.assign(groups, {});
  std::span<profile::GroupKeys> keys = input.keys;
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t here = ranged_ && i < segments ? reader.segments()[i].groups.size() : 0;
    const std::span<profile::GroupKeys> mine = keys.first(here);
    keys = keys.subspan(here);
    if (i < input.uploads.size() && input.uploads[i].fate != UploadFate::kSummed) continue;
    const ProfileInfo& info = parts[i].info;
    share.runs.insert(share.runs.end(), info.uploads.begin(), info.uploads.end());
    const bool traced = i >= segments;  // and of no age
    const Weight w = weight(input, traced ? latest_ : info.time, voters_.share(input.path, i));
    if (traced) {
      share.sum.add_trace(reader, reader.traces()[i - segments], w);
    } else {
      share.sum.add(reader, reader.segments()[i], w, mine);
    }
  }
  tell_of(input, reader);
}

// Returns the number of threads to use. Large files, which are summed range by range, get one: whenever
// a thread returns pages, the processors of all others are interrupted.
size_t Merge::threads() const {
  const size_t most = std::max<size_t>(inputs_.size(), 1);
  if (command_.threads != 0) return std::min<size_t>(command_.threads, most);
  const bool worth = bytes_ >= kManyBytes && largest_ <= InputFile::kSmall;
  if (!worth) return 1;
  return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, std::min<size_t>(most, 4));
}

// Every thread takes the next file that nobody has; what they have comes to one sum at the end.
int Merge::add_all() {
  shares_.clear();
  shares_.resize(threads());
  const uint64_t range = std::max(kLeastRange, largest_ / 4 * kRangeQuarters) / shares_.size();
  if (ranged_) {
    for (Share& share : shares_) share.sum.limit(from_, range);
  }
  std::atomic<size_t> next = 0;
  const auto take = [&](Share& share) {
    while (share.code == kOk) {
      // Relaxed: what they share was there before they began.
      const size_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= inputs_.size()) break;
      if (inputs_[i].is_file) add(inputs_[i], share);
      if (share.code != kOk) share.failed = i;
    }
    share.file.close();
  };
  // Threads that are refused are done without: std::thread would say so by an exception.
  using Take = decltype(take);
  struct Job {
    const Take& take;
    Share& share;
    pthread_t thread = {};
  };
  std::deque<Job> jobs;
  auto run = [](void* it) -> void* {
    static_cast<Job*>(it)->take(static_cast<Job*>(it)->share);
    return nullptr;
  };
  for (size_t t = 1; t < shares_.size(); ++t) {
    Job& job = jobs.emplace_back(Job{take, shares_[t]});
    if (pthread_create(&job.thread, nullptr, run, &job) == 0) continue;
    jobs.pop_back();
    break;
  }
  take(shares_[0]);
  for (Job& job : jobs) pthread_join(job.thread, nullptr);
  const Share& worst = *std::ranges::min_element(shares_, {}, &Share::failed);
  return worst.code == kOk ? kOk : fail(worst.code, worst.error);
}

// Returns whether some run was read twice.
bool Merge::shared_runs() const {
  std::vector<UploadId> all;
  for (const Share& share : shares_) all.insert(all.end(), share.runs.begin(), share.runs.end());
  std::ranges::sort(all);
  return std::ranges::adjacent_find(all) != all.end();
}

void Merge::tell(const MergeReport& r) {
  for (const Input& input : inputs_) {
    for (const std::string& what : input.told) said_.say(input.path, what);
  }
  if (known_ != 0) said_.say("", std::to_string(known_) + " uploads were already in other files");
  for (const std::string& what : merge_messages(r)) said_.say("", what);
}

int Merge::say_json(const std::string& output, uint64_t runs) const {
  std::vector<std::string> files;
  for (const Input& input : inputs_) files.push_back(input.path);
  return print_json(said_.json(output, files, runs, known_));
}

// The rest is no longer the sum of any runs, so their names are dropped.
void Merge::filter(ProfileFile& sum) const {
  if (!filters()) return;
  (void)profile::leave(sum.profile, [this](const MethodProfile& m) {
    const bool module = modules_.empty() || std::ranges::count(modules_, m.key.module_key) != 0;
    return module && (command_.methods.empty() ||
                      ::fnmatch(command_.methods.c_str(), m.name.c_str(), 0) == 0);
  });
  profile::restrict_to(sum.calls, sum.profile);
  sum.info.uploads.clear();
  sum.foreign = {};
}

// Makes the name that all files with the same bytes share.
std::string piece_name(std::string name, const profile::SegmentPieces& pieces) {
  if (name.find("%H") == name.npos) return name;
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  (void)pieces.each([&state](profile::ByteSpan piece) {  // who writes it says what is wrong
    XXH3_64bits_update(&state, piece.data(), piece.size());
    return 0;
  });
  const std::string hash = profile::hex(XXH3_64bits_digest(&state)).substr(2);
  for (size_t at = name.find("%H"); at != name.npos; at = name.find("%H", at + hash.size())) {
    name.replace(at, 2, hash);
  }
  return name;
}

// Returns the folder for temporary files until the output can be written.
std::string folder_of(const std::string& out) {
  if (out == kStream) {
    const char* folder = std::getenv("TMPDIR");
    return folder != nullptr ? folder : "/tmp";
  }
  const size_t slash = out.rfind('/');
  return slash == out.npos ? "." : out.substr(0, slash + 1);
}

// Other kinds of files are read as a whole for each range: they are small, or are imported first.
int Merge::add_others(profile::ProfileSum& sum) {
  for (const Input& input : inputs_) {
    if (input.is_file) continue;
    if (!again()) voters_.add_other(input.path);
    Result<ProfileFile> other = load_profile(input.path);
    if (!other) return fail(kCorrupt, other.error().message);
    for (auto& [key, m] : other->profile.methods) sum.add(std::move(m), weight(input, latest_));
    for (auto& [at, m] : other->profile.other_code) sum.add(std::move(m), weight(input, latest_));
    if (again()) continue;
    sum.add(std::move(other->profile.inlined), weight(input, latest_));
    sum.add(std::move(other->calls), weight(input, latest_));
  }
  return kOk;
}

// Sums up all files, from a method on if one is given: the first share has the sum.
int Merge::sum_up(const std::optional<profile::MethodKey>& from) {
  ranged_ = from.has_value();
  from_ = from.value_or(profile::MethodKey{});
  if (int code = add_all(); code != kOk) return code;
  if (!planned_ && !again() && shared_runs()) {
    Share head;
    if (int code = plan(head); code != kOk) return code;
    if (int code = add_all(); code != kOk) return code;
  }
  for (const Share& share : shares_) { shares_[0].changed = shares_[0].changed || share.changed; }
  for (size_t t = 1; t < shares_.size(); ++t) shares_[0].sum.absorb(shares_[t].sum);
  return kOk;
}

// Returns whether these files cannot be summed range by range.
bool Merge::is_useless() const {
  return ranged_ && (shares_[0].changed || shares_[0].sum.refuses_ranges());
}

// Writes the rest of a sum, method by method.
void Merge::finish(Profile& sum) const {
  if (command_.trim != 0) (void)trim(sum, command_.trim);
  if (command_.sparse) (void)profile::without_empty(sum);
}

// Adds each method, followed by the profiles of its other code.
void add_methods(const Profile& sum, profile::SegmentWriter& writer) {
  auto other = sum.other_code.begin();
  for (const auto& [key, m] : sum.methods) {
    writer.add(m);
    for (; other != sum.other_code.end() && other->first.first <= key; ++other) {
      writer.add(other->second);
    }
  }
}

int Merge::write(const ProfileFile& rest, profile::SegmentWriter& writer) {
  writer.add(rest.profile.inlined);
  const bool told = !voters_.asked() || rest.foreign.empty();
  if (!told)
    said_.say("", "data of other tools was left out: it does not say which host it comes from");
  if (!voters_.asked()) writer.add(rest.foreign);
  const profile::SegmentPieces pieces = writer.finish(rest.info, {}, {}, &rest.calls, {}, nullptr);
  const std::string name = piece_name(command_.out, pieces);
  if (Status s = write_output(name, pieces); !s) return fail(kFailed, s.error().message);
  return command_.json ? say_json(name, rest.info.runs) : kOk;
}

int Merge::write_at_once() {
  profile::ProfileSum& sum = shares_[0].sum;
  tell(sum.report());
  ProfileFile out;
  out.info = sum.info();
  out.calls = sum.calls();
  out.foreign = sum.foreign();
  out.profile = sum.take();
  voters_.finish(out.profile, out.calls);
  finish(out.profile);
  filter(out);
  profile::SegmentWriter writer(out.info.time);
  add_methods(out.profile, writer);
  return write(out, writer);
}

// Writes the range that is there, and makes the others; false in `written` where that went wrong on
// the way, and nothing was written.
int Merge::write_ranges(bool& written) {
  // Where there is no such file, groups wait in memory.
  Result<profile::Spill> spill = profile::Spill::create(folder_of(command_.out));
  profile::SegmentWriter writer(shares_[0].sum.info().time,
                                spill ? std::optional(std::move(*spill)) : std::nullopt);
  const auto add = [&](MethodProfile method) {
    Profile one;
    one.methods.emplace(method.key, std::move(method));
    finish(one);
    for (const auto& [key, m] : one.methods) writer.add(m);
  };
  profile::ProfileSum& first = shares_[0].sum;
  ProfileFile rest;
  rest.info = first.info();
  rest.calls = first.calls();
  rest.foreign = first.foreign();
  MergeReport report;
  for (bool inlined = true;; inlined = false) {
    profile::ProfileSum& sum = shares_[0].sum;
    report += sum.report();
    const std::optional<profile::MethodKey> end = sum.end();
    sum.drain(add);
    if (inlined) {
      rest.profile.inlined = sum.take().inlined;
      finish(rest.profile);
    }
    if (!end) break;
    if (int code = sum_up(end); code != kOk) return code;
    written = !is_useless();
    if (!written) return kOk;
    if (int code = add_others(shares_[0].sum); code != kOk) return code;
  }
  tell(report);
  return write(rest, writer);
}

int Merge::run() {
  if (int code = parse(); code != kOk) return code;
  if (command_.half_life > 0 || voters_.asked()) {
    Share head;
    if (int code = plan(head); code != kOk) return code;
  }
  const bool by_ranges = command_.quorum == 0 && !filters();
  const auto start = by_ranges ? std::optional(profile::MethodKey{}) : std::nullopt;
  if (int code = sum_up(start); code != kOk) return code;
  if (is_useless()) {
    if (int code = sum_up({}); code != kOk) return code;
  }
  if (int code = add_others(shares_[0].sum); code != kOk) return code;
  if (shares_[0].sum.end()) {
    bool written = true;
    const int code = write_ranges(written);
    if (written || code != kOk) return code;
    if (int again = sum_up({}); again != kOk) return again;
    if (int again = add_others(shares_[0].sum); again != kOk) return again;
  }
  return write_at_once();
}

}  // namespace

int profile_merge(const ProfileMergeCommand& c) {
  // Else the heap of a second thread grows page by page, each by a call of the system.
  ::mallopt(M_TOP_PAD, kHeapStep);
  return Merge(c).run();
}

}  // namespace uptier::tools
