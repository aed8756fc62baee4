// A run that has learnt nothing: the file gets one run more, and nothing is summed or written anew.
//
// Law: what one run of the file is (counts / weight) stays as it was, so the segment that is added
// has no counts and no weight. Where shares have moved by more than a tenth, code has changed or is
// new, or kMostCounted runs have been counted so, a run is summed (save_profile.cc): what the file
// does not say is in it after that many runs at most.
//
// Likeness of a run R and one of the file F, in executions of blocks:
//
//     sum of min(R, F) / max(sum of R, sum of F)       over blocks of methods with the same code
//
// where a method that was taken on trust ran as often as the file says.
#include <algorithm>

#include "profile/base/new_file.h"
#include "profile/base/write_all.h"
#include "profile/upf/write.h"
#include "tiering/saved/file_lock.h"
#include "tiering/saved/profile_store.h"

namespace uptier::tiering {
namespace {

constexpr double kAlike = 0.9;
constexpr size_t kMostCounted = 7;            // as many runs leave their logs beside the last
constexpr uint64_t kCountedBytes = 64 << 10;  // that may stand behind a small file
constexpr uint64_t kShare = 2;                // of a large one, they may take a half

struct Masses {
  double both = 0;
  double here = 0;
  double there = 0;

  double likeness() const {
    double most = std::max(here, there);
    return most == 0 ? 1 : both / most;
  }
};

double common_mass(const MethodProfile& here, const MethodProfile& there, double runs) {
  if (here.schema.cfg_hash != there.schema.cfg_hash) return 0;
  double sum = 0;
  for (const Slot& slot : here.schema.slots) {
    const Slot* other = there.schema.find(slot.kind, slot.site);
    if (slot.kind != SlotKind::kBlock || other == nullptr) continue;
    sum += std::min(static_cast<double>(here.estimates[slot.word]),
                    static_cast<double>(there.estimates[other->word]) / runs);
  }
  return sum;
}

}  // namespace

bool ProfileStore::has_learnt_nothing(const SeenRun& seen) const {
  Masses masses;
  for (const auto& [key, fate] : seen.fates) {
    // Its profile was found under another name.
    bool moved = fate.keep && saved_.find(key) == nullptr;
    if (moved) return false;
  }
  for (const auto& [key, m] : seen.run.methods) {
    if (saved_.find(key) == nullptr) masses.here += block_mass(m);
  }
  for (const auto& [key, saved] : saved_.methods) {
    auto fate = seen.fates.find(key);
    bool met = fate != seen.fates.end();
    if (met && fate->second.cfg_hash != saved.schema.cfg_hash) return false;
    double there = block_mass(saved) / runs_;
    masses.there += there;
    if (met && fate->second.keep) {
      masses.here += there;
      masses.both += there;
    } else if (const MethodProfile* fresh = seen.run.find(key)) {
      masses.here += block_mass(*fresh);
      masses.both += common_mass(*fresh, saved, runs_);
    }
  }
  return masses.likeness() >= kAlike;
}

bool ProfileStore::takes_more(uint64_t bytes) const {
  uint64_t rest = file_.bytes().size() - counted_bytes_;
  return counted_ < kMostCounted &&
         counted_bytes_ + bytes <= std::max(kCountedBytes, rest / kShare);
}

Result<bool> ProfileStore::count(const SeenRun& seen) {
  bool possible = whole_ && written_ == nullptr && takes_more(0);
  if (!possible) return false;
  Written written{
      {}, {}, name_of_run(seen.run, seen.info.time), seen.info.time, seen.timeline.length_ns, 0};
  ProfileInfo info = seen.info;
  info.uploads = {written.upload};
  info.weight = 0;
  profile::Bytes segment = profile::profile_to_file({}, info, seen.log, seen.timeline);
  FileLock lock(path_, lock_ms_);
  if (Status s = lock.status(); !s) return s.error();
  bool same = lock.file() == file_.id() && takes_more(segment.size());
  if (!same) {
    lock.take_back();
    return false;
  }
  if (int error = profile::write_all(lock.fd(), segment); error != 0) {
    return profile::io_error(path_, "cannot write the file", error);
  }
  written_ = std::make_unique<Written>(std::move(written));
  return true;
}

}  // namespace uptier::tiering
