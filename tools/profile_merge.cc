// uptier profile merge: many files into one, one file in memory at a time.
//
// First the headers of all files say which runs they hold, so that none is counted twice whatever
// the order; then each file is mapped, added and let go. So memory holds a sum and a file for each
// thread. Sums do not depend on which thread takes which file.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <thread>

#include "profile/algebra.h"
#include "profile/upf_file.h"
#include "profile/upf_merge.h"
#include "tiering/mapped_file.h"
#include "tools/commands.h"
#include "tools/merge_voters.h"
#include "tools/profile_commands.h"

namespace uptier::tools {
namespace {

using profile::UpfReader;
using profile::UploadFate;
using profile::Weight;

constexpr uint64_t kParts = 1 << 20;
constexpr double kDay = 86400;
constexpr size_t kFilesAThread = 8;

int fail(int code, const std::string& what) {
  std::fprintf(stderr, "uptier: %s\n", what.c_str());
  return code;
}

// One segment of one file.
struct Upload {
  size_t file = 0;
  size_t segment = 0;
  ProfileInfo info;
};

struct Input {
  std::string path;
  double factor = 1;
  bool is_file = false;  // a profile file; else a trace or text, read whole
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
  int scan(const std::string& word);
  int plan();
  void add(size_t file, profile::ProfileSum& sum) const;
  void add_all();
  Weight weight(const Input& input, uint64_t time, profile::Fraction share = {}) const;
  void tell() const;

  const ProfileMergeCommand& command_;
  MergeVoters voters_;
  std::vector<Input> inputs_;
  std::vector<Upload> uploads_;
  std::vector<UploadFate> fates_;
  uint64_t latest_ = 0;
  uint64_t known_ = 0;
  profile::ProfileSum sum_;
};

int Merge::scan(const std::string& word) {
  Input input;
  if (!parse_input(word, input)) return fail(kUsage, word + ": a factor lies in 0..1e6");
  Result<tiering::MappedFile> file = tiering::MappedFile::open(input.path, false);
  if (!file) return fail(kFailed, file.error().message);
  input.is_file = looks_like_profile(file->bytes());
  if (input.is_file) {
    UpfReader reader(file->bytes());
    if (reader.segments().empty() && !file->bytes().empty()) {
      return fail(kCorrupt, input.path + ": no profile file");
    }
    for (size_t i = 0; i < reader.segments().size(); ++i) {
      uploads_.push_back({inputs_.size(), i, reader.segments()[i].info});
      latest_ = std::max(latest_, uploads_.back().info.time);
    }
  }
  inputs_.push_back(std::move(input));
  return kOk;
}

int Merge::plan() {
  std::vector<const ProfileInfo*> infos;
  for (const Upload& u : uploads_) infos.push_back(&u.info);
  fates_ = profile::plan_uploads(infos);
  for (size_t i = 0; i < fates_.size(); ++i) {
    if (fates_[i] == UploadFate::kKnown) ++known_;
    if (fates_[i] != UploadFate::kConflict) continue;
    if (!command_.force) {
      return fail(kFailed, inputs_[uploads_[i].file].path +
                               ": shares some runs with the other files, and has others besides; "
                               "--force counts the shared ones twice");
    }
    fates_[i] = UploadFate::kSummed;
  }
  for (size_t i = 0; i < fates_.size() && voters_.asked(); ++i) {
    const Upload& u = uploads_[i];
    if (fates_[i] == UploadFate::kSummed) voters_.add(inputs_[u.file].path, u.segment, u.info);
  }
  voters_.settle();
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

void Merge::add(size_t index, profile::ProfileSum& sum) const {
  const Input& input = inputs_[index];
  Result<tiering::MappedFile> file = tiering::MappedFile::open(input.path);
  if (!file) return void(fail(kFailed, file.error().message));
  UpfReader reader(file->bytes());
  for (size_t i = 0; i < uploads_.size(); ++i) {
    const Upload& u = uploads_[i];
    bool here = u.file == index && u.segment < reader.segments().size();
    if (!here || fates_[i] != UploadFate::kSummed) continue;
    sum.add(reader, reader.segments()[u.segment],
            weight(input, u.info.time, voters_.share(input.path, u.segment)));
  }
  for (const std::string& w : reader.warnings()) fail(kOk, input.path + ": " + w);
  if (reader.truncated()) fail(kOk, input.path + ": it ends early; what precedes was merged");
}

void Merge::tell() const {
  const MergeReport& r = sum_.report();
  if (known_ != 0) fail(kOk, std::to_string(known_) + " uploads were in others already");
  if (!r.dropped.empty()) {
    fail(kOk,
         std::to_string(r.dropped.size()) + " profiles of methods of other code were left out");
  }
  if (r.saturated != 0) fail(kOk, std::to_string(r.saturated) + " counts stopped at 2^64-1");
}

// Every thread takes each n-th file; what it has comes to the sum at the end.
void Merge::add_all() {
  std::vector<size_t> files;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].is_file) files.push_back(i);
  }
  size_t wanted = command_.threads != 0 ? command_.threads
                                        : std::min<size_t>(std::thread::hardware_concurrency(), 4);
  size_t count = std::clamp<size_t>(files.size() / kFilesAThread, 1, std::max<size_t>(wanted, 1));
  std::vector<profile::ProfileSum> others(count - 1);
  const auto take = [&](size_t first, profile::ProfileSum& sum) {
    for (size_t i = first; i < files.size(); i += count) add(files[i], sum);
  };
  std::vector<std::thread> threads;
  for (size_t t = 1; t < count; ++t) threads.emplace_back(take, t, std::ref(others[t - 1]));
  take(0, sum_);
  for (std::thread& t : threads) t.join();
  for (profile::ProfileSum& other : others) sum_.absorb(other);
}

int Merge::run() {
  for (const std::string& word : command_.files) {
    if (int code = scan(word); code != kOk) return code;
  }
  if (int code = plan(); code != kOk) return code;
  add_all();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].is_file) continue;
    voters_.add_other(inputs_[i].path);
    Result<ProfileFile> other = load_profile(inputs_[i].path);
    if (!other) return fail(kCorrupt, other.error().message);
    for (auto& [key, m] : other->profile.methods) {
      sum_.add(std::move(m), weight(inputs_[i], latest_));
    }
  }
  tell();
  ProfileInfo info = sum_.info();
  Profile profile = sum_.take();
  voters_.finish(profile);
  if (command_.trim != 0) (void)trim(profile, command_.trim);
  if (command_.sparse) (void)profile::without_empty(profile);
  Status s = profile::replace_file(command_.out, profile_to_file(profile, info));
  return s ? kOk : fail(kFailed, s.error().message);
}

}  // namespace

int profile_merge(const ProfileMergeCommand& c) { return Merge(c).run(); }

}  // namespace uptier::tools
