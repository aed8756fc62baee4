// uptier profile merge: many files into one, one file in memory at a time.
//
// Each file is read once, added and let go, so memory holds a sum and a file for each thread. Sums
// do not depend on which thread takes which file. Only where files share runs, or the age of a run
// counts, all of them are looked at before the first is added: then no run is counted twice,
// whatever the order.
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <deque>
#include <thread>

#include "profile/algebra.h"
#include "profile/checksum.h"
#include "profile/formats/text.h"
#include "profile/numbers.h"
#include "profile/upf/file.h"
#include "profile/upf/merge.h"
#include "profile/upf/trace_info.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/input_file.h"
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
constexpr size_t kFirstFiles = 8;
constexpr double kManyBytes = 8 << 20;  // below it, a second thread costs more than it saves

// One part of one file: a segment, or behind all of these a trace.
struct Upload {
  size_t part = 0;
  ProfileInfo info;  // of a trace no more than its name
  bool ours = true;  // it has methods, and a say
  UploadFate fate = UploadFate::kSummed;
};

struct Input {
  std::string path;
  double factor = 1;
  bool is_file = true;            // a profile file or a trace; else text, read whole
  std::vector<Upload> uploads;    // that were planned
  std::vector<std::string> told;  // what is wrong with it
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
  // What one thread does.
  struct Share {
    profile::ProfileSum sum;
    InputFile file;
    std::vector<UploadId> runs;
    uint64_t bytes = 0;  // of the files
    std::string error;
    int code = kOk;
  };

  int parse();
  bool open(Input& input, Share& share) const;
  void add(Input& input, Share& share) const;
  size_t threads(size_t first, uint64_t bytes) const;
  int add_all();
  int plan(Share& share);
  Weight weight(const Input& input, uint64_t time, profile::Fraction share = {}) const;
  bool shared_runs() const;
  void filter(ProfileFile& sum) const;
  void tell() const;

  const ProfileMergeCommand& command_;
  MergeVoters voters_;
  std::vector<Input> inputs_;
  std::vector<uint64_t> modules_;  // that are wanted; empty: all
  bool planned_ = false;
  uint64_t latest_ = 0;
  uint64_t known_ = 0;
  std::deque<Share> shares_;
};

int Merge::parse() {
  std::vector<std::string> paths;
  for (const std::string& word : command_.files) {
    Input input;
    if (!parse_input(word, input)) return fail(kUsage, word + ": a factor lies in 0..1e6");
    paths.push_back(input.path);
    inputs_.push_back(std::move(input));
  }
  if (Status s = check_stdin(paths); !s) return fail(kUsage, s.error().message);
  for (Input& input : inputs_) input.path = seekable(input.path);
  for (const std::string& key : command_.modules) {
    const std::optional<uint64_t> number = profile::parse_unsigned(key);
    if (!number) return fail(kUsage, "--module " + key + ": a key is a number, as show prints it");
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
                               ": shares some runs with the other files, and has others besides; "
                               "--force counts the shared ones twice");
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

void Merge::add(Input& input, Share& share) const {
  if (!open(input, share)) return;
  share.bytes += share.file.bytes().size();
  UpfReader reader(share.file.bytes());
  const std::vector<Upload> parts = parts_of(reader);
  const size_t segments = reader.segments().size();
  if (parts.empty() && !share.file.bytes().empty()) {
    share.error = input.path + ": no profile file";
    share.code = kCorrupt;
    return;
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i < input.uploads.size() && input.uploads[i].fate != UploadFate::kSummed) continue;
    const ProfileInfo& info = parts[i].info;
    share.runs.insert(share.runs.end(), info.uploads.begin(), info.uploads.end());
    const bool traced = i >= segments;  // and of no age
    const Weight w = weight(input, traced ? latest_ : info.time, voters_.share(input.path, i));
    if (traced) {
      share.sum.add_trace(reader, reader.traces()[i - segments], w);
    } else {
      share.sum.add(reader, reader.segments()[i], w);
    }
  }
  input.told = reader.warnings();
  if (reader.truncated()) input.told.push_back("it ends early; what precedes was merged");
}

// How many threads the files behind the first are worth.
size_t Merge::threads(size_t first, uint64_t bytes) const {
  const size_t rest = inputs_.size() - first;
  if (command_.threads != 0) return std::clamp<size_t>(rest, 1, command_.threads);
  const double expected =
      static_cast<double>(bytes) / static_cast<double>(first) * static_cast<double>(rest);
  if (expected < kManyBytes) return 1;
  return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 4);
}

// One thread takes the first files, which say how large the others may be. Then every thread takes
// each n-th file; what they have comes to one sum at the end.
int Merge::add_all() {
  const size_t first = std::min(inputs_.size(), kFirstFiles);
  shares_.clear();
  shares_.emplace_back();
  const auto take = [&](size_t begin, size_t end, size_t step, Share& share) {
    for (size_t i = begin; i < end && share.code == kOk; i += step) {
      if (inputs_[i].is_file) add(inputs_[i], share);
    }
  };
  take(0, first, 1, shares_[0]);
  const size_t count = threads(first, shares_[0].bytes);
  while (shares_.size() < count) shares_.emplace_back();
  std::vector<std::thread> threads;
  for (size_t t = 1; t < count; ++t) {
    threads.emplace_back(take, first + t, inputs_.size(), count, std::ref(shares_[t]));
  }
  take(first, inputs_.size(), count, shares_[0]);
  for (std::thread& t : threads) t.join();
  for (const Share& share : shares_) {
    if (share.code != kOk) return fail(share.code, share.error);
  }
  return kOk;
}

// Whether some run came in twice.
bool Merge::shared_runs() const {
  std::vector<UploadId> all;
  for (const Share& share : shares_) all.insert(all.end(), share.runs.begin(), share.runs.end());
  std::ranges::sort(all);
  return std::ranges::adjacent_find(all) != all.end();
}

void Merge::tell() const {
  for (const Input& input : inputs_) {
    for (const std::string& what : input.told) fail(kOk, input.path + ": " + what);
  }
  const MergeReport& r = shares_[0].sum.report();
  if (known_ != 0) fail(kOk, std::to_string(known_) + " uploads were in others already");
  if (!r.dropped.empty()) {
    fail(kOk,
         std::to_string(r.dropped.size()) + " profiles of methods of other code were left out");
  }
  if (r.saturated != 0) fail(kOk, std::to_string(r.saturated) + " counts stopped at 2^64-1");
}

// What is left is not the sum of any runs.
void Merge::filter(ProfileFile& sum) const {
  if (command_.methods.empty() && modules_.empty()) return;
  (void)profile::leave(sum.profile, [this](const MethodProfile& m) {
    const bool module = modules_.empty() || std::ranges::count(modules_, m.key.module_key) != 0;
    return module && (command_.methods.empty() ||
                      ::fnmatch(command_.methods.c_str(), m.name.c_str(), 0) == 0);
  });
  profile::restrict_to(sum.calls, sum.profile);
  sum.info.uploads.clear();
  sum.foreign = {};
}

// A name that files with the same bytes share, whoever writes them.
std::string name_of(std::string name, profile::ByteSpan bytes) {
  const std::string hash = profile::hex(XXH3_64bits(bytes.data(), bytes.size())).substr(2);
  for (size_t at = name.find("%H"); at != name.npos; at = name.find("%H", at + hash.size())) {
    name.replace(at, 2, hash);
  }
  return name;
}

int Merge::run() {
  if (int code = parse(); code != kOk) return code;
  Share head;
  if (command_.half_life > 0 || voters_.asked()) {
    if (int code = plan(head); code != kOk) return code;
  }
  if (int code = add_all(); code != kOk) return code;
  if (!planned_ && shared_runs()) {
    if (int code = plan(head); code != kOk) return code;
    if (int code = add_all(); code != kOk) return code;
  }
  profile::ProfileSum& sum = shares_[0].sum;
  for (size_t t = 1; t < shares_.size(); ++t) sum.absorb(shares_[t].sum);
  for (Input& input : inputs_) {
    if (input.is_file) continue;
    voters_.add_other(input.path);
    Result<ProfileFile> other = load_profile(input.path);
    if (!other) return fail(kCorrupt, other.error().message);
    for (auto& [key, m] : other->profile.methods) sum.add(std::move(m), weight(input, latest_));
    sum.add(std::move(other->profile.inlined), weight(input, latest_));
    sum.add(std::move(other->calls), weight(input, latest_));
  }
  tell();
  ProfileFile out;
  out.info = sum.info();
  out.calls = sum.calls();
  out.foreign = sum.foreign();
  out.profile = sum.take();
  voters_.finish(out.profile, out.calls);
  if (voters_.asked() && !out.foreign.empty()) {
    fail(kOk, "what other tools have left says of no host what it saw, and was left out");
    out.foreign = {};
  }
  if (command_.trim != 0) (void)trim(out.profile, command_.trim);
  if (command_.sparse) (void)profile::without_empty(out.profile);
  filter(out);
  const std::vector<std::byte> bytes = profile_to_file(out);
  Status s = write_output(name_of(command_.out, bytes), bytes);
  return s ? kOk : fail(kFailed, s.error().message);
}

}  // namespace

int profile_merge(const ProfileMergeCommand& c) { return Merge(c).run(); }

}  // namespace uptier::tools
