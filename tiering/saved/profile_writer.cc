#include "tiering/saved/profile_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <ctime>
#include <set>

#include "profile/algebra/algebra.h"
#include "profile/base/new_file.h"
#include "profile/base/write_all.h"
#include "profile/upf/read.h"
#include "profile/upf/text_log.h"
#include "profile/upf/write.h"
#include "tiering/saved/file_lock.h"

namespace uptier::tiering {

namespace {

constexpr size_t kMostCounted = 7;            // at most so many runs leave their logs next to the
                                              // last one
constexpr uint64_t kCountedBytes = 64 << 10;  // bytes of counted runs that a small file may have
constexpr uint64_t kShare = 2;                // in a large one, 1 / kShare of its other bytes

constexpr uint64_t kLogBytes = 1 << 20;  // of logged text of earlier runs

constexpr uint64_t kDecayParts = 1 << 20;

// The factors of saved counts, in units of 1 / kDecayParts.
struct Parts {
  uint64_t fade = 0;  // of methods that this run has observed, or has not met
  uint64_t stay = 0;  // of methods that it has trusted: as if it had seen the counts of the mean
                      // run
};

// `runs` is the number of runs that the file stands for.
Parts parts_of(double decay, double runs, bool counted_before) {
  assert(decay >= 0 && decay <= 1 && runs >= 1);
  auto parts = [](double share) { return static_cast<uint64_t>(share * kDecayParts); };
  return {parts(decay), parts(decay + (counted_before ? 0 : 1 / runs))};
}

// Says whether a method on the path of an inlined body is known to have other code now.
bool is_of_other_code(const InlinedKey& key, const InlinedBody& body,
                      const std::map<MethodKey, SeenRun::Fate>& fates) {
  const auto differs = [&](const MethodKey& method, uint64_t hash) {
    auto fate = fates.find(method);
    return fate != fates.end() && hash != 0 && fate->second.cfg_hash != hash;
  };
  bool other = differs(key.root, body.code[0]);
  for (size_t i = 0; i < key.path.size(); ++i) {
    other = other || differs(key.path[i].callee, body.code[i + 1]);
  }
  return other;
}

// Splits the saved profile into the part that stays and the part that fades; drops methods with
// other code. Bodies that were inlined into a method are treated like the method.
void sort_out(Profile& saved, const SeenRun& seen, Profile& stay, Profile& fade) {
  // For methods that this run has met, the code is known.
  auto take = [&](const MethodKey& key, MethodProfile& m) {
    auto fate = seen.fates.find(key);
    bool known = fate != seen.fates.end();
    if (known && fate->second.cfg_hash != m.schema.cfg_hash) return;
    bool keep = known && fate->second.keep;
    Profile one;
    one.methods.emplace(key, std::move(m));
    merge(keep ? stay : fade, std::move(one));
  };
  for (auto& [key, m] : saved.methods) take(key, m);
  for (auto& [at, m] : saved.other_code) take(at.first, m);
  for (auto& [key, body] : saved.inlined) {
    if (is_of_other_code(key, body, seen.fates)) continue;
    auto fate = seen.fates.find(key.root);
    bool keep = fate != seen.fates.end() && fate->second.keep;
    (keep ? stay : fade).inlined.emplace(key, std::move(body));
  }
}

// The pieces of data sources that are written after the segment of a run.
std::span<const Piece> pieces_of(const SeenRun& seen) {
  const bool any = seen.data != nullptr && !seen.data->sum.empty();
  return any ? std::span<const Piece>(seen.data->pieces) : std::span<const Piece>();
}

// Returns 0 or an errno.
int write_segment(int fd, profile::ByteSpan segment, std::span<const Piece> data) {
  const int error = profile::write_all(fd, segment);
  return error != 0 ? error : profile::write_pieces(fd, data);
}

// Adds saved calls to those of this run. The calls of callers that stay count as if this run had
// been like the earlier ones; other calls fade. This run knows sizes of code better. It also knows
// positions of first calls better; a position that it did not record stays as saved. For methods
// without a profile only the position of the first call is kept; it fades while they are not met.
void add_saved_calls(CallProfile saved, const Parts& parts, SeenRun& seen) {
  CallProfile& calls = seen.calls;
  CallProfile stay;
  std::map<MethodKey, FirstCall> not_noticed;
  std::set<MethodKey> callers;
  for (const auto& [call, count] : saved.graph) {
    auto fate = seen.fates.find(call.first);
    if (fate == seen.fates.end() || !fate->second.keep) continue;
    stay.graph.emplace(call, count);
    callers.insert(call.first);
  }
  std::erase_if(saved.graph, [&](const auto& item) { return stay.graph.contains(item.first); });
  std::erase_if(saved.shapes, [&](const auto& item) { return calls.shapes.contains(item.first); });
  std::erase_if(calls.graph, [&](const auto& item) { return callers.contains(item.first.first); });
  auto gone = [&](const MethodKey& key) { return !seen.run.methods.contains(key); };
  for (const auto& [key, call] : saved.first) {
    bool met = seen.fates.contains(key) || !gone(key);
    if (met && !calls.first.contains(key)) not_noticed.insert({key, call});
  }
  saved.scale(parts.fade, kDecayParts);
  stay.scale(parts.stay, kDecayParts);
  calls += std::move(stay);
  calls += std::move(saved);
  for (const auto& [key, call] : not_noticed) calls.first[key] = call;
  std::erase_if(calls.shapes, [&](const auto& item) { return gone(item.first); });
  std::erase_if(calls.graph, [&](const auto& item) { return gone(item.first.first); });
}

}  // namespace

Profile ProfileWriter::as_before(const SavedMethod& saved, double decay) {
  Profile p;
  p.methods.emplace(saved.profile.key, saved.profile);
  (void)scale(p, parts_of(decay, saved.runs, false).stay, kDecayParts);
  return p;
}

// The hash covers the data, the time and the process, so two runs with equal data stay distinct.
UploadId ProfileWriter::name_of_run(const Profile& run, uint64_t time) {
  struct timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  auto nonce = static_cast<uint64_t>(::getpid()) << 32 ^ static_cast<uint64_t>(now.tv_nsec) ^
               static_cast<uint64_t>(now.tv_sec) << 30;
  return profile::make_upload_id(run, time, nonce);
}

profile::Bytes ProfileWriter::first_segment(SeenRun seen) {
  seen.info.uploads = {name_of_run(seen.run, seen.info.time)};
  for (auto& [key, m] : seen.run.methods) m.time = seen.info.time;
  (void)profile::without_empty(seen.run);
  return profile::profile_to_file(seen.run, seen.info, seen.log, seen.timeline, &seen.calls);
}

// Leaves out the data that an earlier save of this process has put in the file. Only newer counts
// are added, and the run, which the file already counts, gets its new name.
void ProfileWriter::leave_out_written(SeenRun& seen, ProfileInfo& file) const {
  (void)profile::subtract(seen.run, written_->run);
  (void)profile::subtract(seen.calls, written_->calls);
  assert(written_ != nullptr && seen.info.weight >= written_->weight);
  seen.info.runs = 0;
  seen.info.weight -= written_->weight;
  std::erase(file.uploads, written_->upload);
}

// The same for the data of data sources, whether it is still a segment of its own or was merged.
void ProfileWriter::leave_out_written_data(ProfileFile& file) const {
  if (written_ == nullptr || written_->data.empty()) return;
  const UploadId name{0, written_->data.hash};
  if (std::erase(file.info.uploads, name) == 0) return;
  profile::leave_out(written_->data, file.foreign);
}

// Returns the logs and timelines of earlier runs; they refer to the file, which is still mapped.
std::vector<profile::RunRecord> ProfileWriter::past_runs(profile::UpfReader& reader,
                                                         bool again) const {
  std::vector<profile::RunRecord> past;
  for (const auto& segment : reader.segments()) {
    for (const profile::RunRecord& one : reader.runs(segment)) {
      bool ours = again && one.time == written_->time &&
                  reader.timeline(one).length_ns == written_->length_ns;
      if (!ours) past.push_back(one);
    }
  }
  return profile::latest_runs(std::move(past));
}

Status ProfileWriter::save(SeenRun seen, double decay, profile::Sync sync) {
  FileLock lock(path_, lock_ms_);
  if (Status s = lock.status(); !s) return s;
  Result<MappedFile> file = MappedFile::open(path_);
  if (!file) return file.error();
  Result<ProfileFile> saved = profile_from_file(file->bytes());
  if (!saved) return Error{saved.error().code, path_ + ": left alone: " + saved.error().message};
  UploadId upload = name_of_run(seen.run, seen.info.time);
  seen.info.uploads = {upload};
  for (auto& [key, m] : seen.run.methods) m.time = seen.info.time;
  auto written = std::make_unique<Written>(
      Written{seen.run, seen.calls, upload, seen.info.time, seen.timeline.length_ns});
  if (seen.data != nullptr) written->data = seen.data->sum;
  leave_out_written_data(*saved);
  profile::keep_latest_logs(saved->foreign, kLogBytes);
  // A file that was replaced meanwhile, or rolled back, gets all of it.
  bool again = written_ != nullptr && std::ranges::count(saved->info.uploads, written_->upload);
  if (again) leave_out_written(seen, saved->info);
  // If so, the file's data has already faded for this run.
  bool summed = again && written_->weight != 0;
  if (summed) decay = 1;

  auto weight = static_cast<double>(saved->info.weight);
  Parts parts = parts_of(decay, std::max(weight / ProfileInfo::kRunWeight, 1.0), summed);
  Profile stay, fade;
  sort_out(saved->profile, seen, stay, fade);
  for (auto& [key, m] : stay.methods) m.time = seen.info.time;  // the code of this run is the same
  assert(parts.fade <= kDecayParts);
  (void)scale(fade, parts.fade, kDecayParts);
  (void)scale(stay, parts.stay, kDecayParts);
  (void)profile::without_empty(fade);
  std::erase_if(seen.run.methods,
                [&](const auto& item) { return stay.methods.contains(item.first); });
  std::erase_if(seen.run.inlined,
                [&](const auto& item) { return stay.inlined.contains(item.first); });
  for (Profile* part : {&stay, &fade}) merge(seen.run, std::move(*part));
  (void)profile::without_empty(seen.run);
  saved->info.weight = static_cast<uint64_t>(weight * decay);
  seen.info += saved->info;
  add_saved_calls(std::move(saved->calls), parts, seen);
  profile::UpfReader reader(file->bytes());
  const profile::Bytes segment =
      profile::profile_to_file(seen.run, seen.info, seen.log, seen.timeline, &seen.calls, nullptr,
                               past_runs(reader, again), &saved->foreign);
  const std::span<const Piece> data = pieces_of(seen);
  Status replaced = profile::replace_file(
      path_, [&](int fd) { return write_segment(fd, segment, data); }, sync);
  if (!replaced) {
    lock.take_back();
    return replaced;
  }
  written_ = std::move(written);
  return {};
}

// ---- Runs that are only counted
// --------------------------------------------------------------------

bool ReadFile::takes_more(uint64_t more) const {
  assert(counted_bytes <= bytes);
  uint64_t rest = bytes - counted_bytes;
  return counted < kMostCounted && counted_bytes + more <= std::max(kCountedBytes, rest / kShare);
}

Result<bool> ProfileWriter::count(const SeenRun& seen, const ReadFile& read) {
  bool possible = read.whole && written_ == nullptr && read.takes_more(0);
  if (!possible) return false;
  CallProfile calls;
  calls.time = seen.calls.time;  // no run is like those before in this
  Written written{
      {}, calls, name_of_run(seen.run, seen.info.time), seen.info.time, seen.timeline.length_ns, 0};
  ProfileInfo info = seen.info;
  info.uploads = {written.upload};
  info.weight = 0;
  if (seen.data != nullptr) written.data = seen.data->sum;
  const std::span<const Piece> data = pieces_of(seen);
  profile::Bytes segment = profile::profile_to_file({}, info, seen.log, seen.timeline, &calls);
  FileLock lock(path_, lock_ms_);
  if (Status s = lock.status(); !s) return s.error();
  const uint64_t bytes = segment.size() + (data.empty() ? 0 : seen.data->bytes());
  bool same = lock.file() == read.id && read.takes_more(bytes);
  if (!same) {
    lock.take_back();
    return false;
  }
  if (int error = write_segment(lock.fd(), segment, data); error != 0) {
    return profile::io_error(path_, "cannot write the file", error);
  }
  written_ = std::make_unique<Written>(std::move(written));
  return true;
}

}  // namespace uptier::tiering
