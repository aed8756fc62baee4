#include "tiering/saved/profile_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <ctime>

#include "profile/data/inlined.h"
#include "profile/data/text.h"
#include "profile/upf/file.h"
#include "profile/upf/profile_sum.h"
#include "profile/upf/read.h"
#include "profile/upf/uploads.h"
#include "tiering/saved/file_lock.h"

namespace uptier::tiering {
namespace {

std::string host_name() {
  char name[256] = {};
  (void)::gethostname(name, sizeof name - 1);
  std::string host = name;
  std::ranges::replace(host, '/', '_');
  return host;
}

bool exists(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0;
}

std::string expand(const std::string& pattern) {
  return profile::expand_name(
      pattern,
      {static_cast<uint64_t>(::getpid()), host_name(), static_cast<uint64_t>(std::time(nullptr))},
      exists);
}

// Follows a link: its target is read, locked and replaced, and the link stays. A dangling link is
// left alone; saving the profile refuses it.
std::string followed(const std::string& path) {
  struct stat info;
  const bool link = ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
  if (!link) return path;
  const std::unique_ptr<char, decltype(&std::free)> target(::realpath(path.c_str(), nullptr),
                                                           &std::free);
  return target != nullptr ? target.get() : path;
}

}  // namespace

ProfileStore::ProfileStore(const std::string& pattern, uint64_t lock_ms)
    : path_(followed(expand(pattern))), lock_ms_(lock_ms), writer_(path_, lock_ms) {
  report_.file = path_;
  open();
  bool cut = reader_ != nullptr && report_.problem.empty() && reader_->truncated();
  if (cut) {
    // A writer may not have finished the file.
    wait_for_writers(path_, lock_ms_);
    open();
  }
  note_segments();
}

void ProfileStore::open() {
  Result<MappedFile> file = MappedFile::open(path_);
  if (!file) {
    if (file.error().code != ErrorCode::kNotFound) report_.problem = file.error().message;
    return;
  }
  assert(loaded_.empty() && others_ == nullptr);  // nothing has been read from the file yet
  reader_.reset();
  file_ = std::move(*file);
  read_ = {file_.id(), file_.bytes().size()};
  if (file_.bytes().empty()) return;
  if (!looks_like_profile(file_.bytes())) {
    report_.problem = path_ + ": not a profile file; it is neither read nor written";
  }
  reader_ = std::make_unique<profile::UpfReader>(file_.bytes());
}

void ProfileStore::note_segments() {
  if (reader_ == nullptr) return;
  std::vector<const ProfileInfo*> infos;
  for (const auto& s : reader_->segments()) infos.push_back(&s.info);
  std::vector<profile::UploadFate> fates = profile::plan_uploads(infos);
  uint64_t weight = 0, behind = file_.bytes().size();
  for (size_t i = infos.size(); i-- > 0;) {
    const auto& segment = reader_->segments()[i];
    if (infos[i]->runs != 0 && infos[i]->weight == 0 && segment.groups.empty()) {
      ++read_.counted;
      assert(segment.offset <= behind);
      read_.counted_bytes += behind - segment.offset;
    }
    behind = segment.offset;
    if (fates[i] != profile::UploadFate::kSummed) continue;
    summed_.insert(i);
    report_.runs += infos[i]->runs;
    weight += infos[i]->weight;
  }
  assert(fates.size() == infos.size());
  runs_ = std::max(static_cast<double>(weight) / ProfileInfo::kRunWeight, 1.0);
  if (!report_.problem.empty()) return;
  if (!reader_->warnings().empty()) {
    report_.problem = path_ + ": " + reader_->warnings().front();
  } else if (reader_->truncated()) {
    report_.problem = path_ + ": it ends early; the part before is used";
  }
  read_.whole = report_.problem.empty() && summed_.size() == infos.size();
}

void ProfileStore::load_segments(const std::function<bool(std::string_view key)>& wanted,
                                 Profile& into) {
  profile::ProfileSum sum;
  for (size_t i : summed_) {
    const auto& segment = reader_->segments()[i];
    for (const auto& group : segment.groups) {
      if (!wanted(group.key)) continue;
      reader_->read(segment, group, [&](const profile::MethodView& view, std::string_view name) {
        sum.add(view, name);
      });
    }
  }
  Profile read = sum.take();
  into.methods.merge(read.methods);
  into.other_code.merge(read.other_code);
  if (report_.problem.empty() && !reader_->warnings().empty()) {
    report_.problem = path_ + ": " + reader_->warnings().front();
  }
}

// Loads a module the first time that it is requested.
void ProfileStore::load(uint64_t module_key) {
  assert(reader_ != nullptr);
  if (loaded_.contains(module_key)) return;
  const std::string defining = profile::hex(module_key).substr(2) + ";";
  load_segments([&](std::string_view key) { return key.starts_with(defining); }, saved_);
  loaded_.insert(module_key);
}

void ProfileStore::load_others() {
  if (others_ != nullptr) return;
  auto others = std::make_unique<Profile>();
  load_segments([](std::string_view) { return true; }, *others);
  by_name_.clear();  // a part may have failed for lack of memory
  for (const auto& [k, m] : others->methods) {
    auto [entry, added] = by_name_.emplace(m.name, &m);
    if (!added) entry->second = nullptr;
  }
  others_ = std::move(others);
}

const CallProfile& ProfileStore::calls() {
  if (calls_ != nullptr) return *calls_;
  assert(reader_ == nullptr || summed_.size() <= reader_->segments().size());
  auto calls = std::make_unique<CallProfile>();
  if (reader_ != nullptr) {
    for (size_t i : summed_) *calls += reader_->calls(reader_->segments()[i]);
  }
  calls_ = std::move(calls);
  return *calls_;
}

const InlinedBodies& ProfileStore::inlined() {
  if (inlined_ != nullptr) return *inlined_;
  auto inlined = std::make_unique<InlinedBodies>();
  MergeReport report;
  if (reader_ != nullptr) {
    for (size_t i : summed_) {
      profile::add(*inlined, reader_->inlined(reader_->segments()[i]), report);
    }
  }
  inlined_ = std::move(inlined);
  return *inlined_;
}

const CodeShape& ProfileStore::shape(const MethodKey& from) {
  static const CodeShape kUnknown;
  auto at = calls().shapes.find(from);
  return at == calls_->shapes.end() ? kUnknown : at->second;
}

uint32_t ProfileStore::size_of(const MethodKey& key) const {
  const MethodProfile* m = saved_.find(key);
  return m == nullptr ? 0 : m->schema.words();
}

std::optional<ProfileAnswer> ProfileStore::query(std::string_view stage,
                                                 std::string_view scope_hash,
                                                 std::string_view key) {
  if (reader_ == nullptr) return std::nullopt;
  if (stage != kQueryStage) return uptier::query(file_.bytes(), stage, scope_hash, key);
  load_others();
  if (others_->inlined.empty()) others_->inlined = inlined();
  return uptier::query(*others_, stage, scope_hash, key);
}

double ProfileStore::weight(const MethodKey& key) {
  if (reader_ == nullptr) return 0;
  load(key.module_key);
  const MethodProfile* m = saved_.find(key);
  if (m == nullptr) return 0;
  return (static_cast<double>(m->calls) + block_mass(*m)) / runs_;
}

const MethodProfile* ProfileStore::look(const MethodKey& key, const std::string& name,
                                        bool& recovered) {
  recovered = false;
  if (reader_ == nullptr) return nullptr;
  load(key.module_key);
  auto at = saved_.methods.lower_bound({key.module_key, 0});
  bool module_known = at != saved_.methods.end() && at->first.module_key == key.module_key;
  const MethodProfile* found = saved_.find(key);
  if (!module_known) {
    load_others();
    auto other = by_name_.find(name);
    if (other != by_name_.end() && !name.empty()) found = other->second;
  }
  recovered = !module_known;
  return found;
}

bool ProfileStore::knows(const MethodKey& key, const std::string& name) {
  bool recovered = false;
  return look(key, name, recovered) != nullptr;
}

double ProfileStore::mass(const MethodKey& key, const std::string& name) {
  bool recovered = false;
  const MethodProfile* m = look(key, name, recovered);
  return m == nullptr ? 0 : block_mass(*m) / runs_;
}

std::unique_ptr<SavedMethod> ProfileStore::find(const MethodKey& key, const std::string& name,
                                                uint64_t cfg_hash) {
  bool recovered = false;
  const MethodProfile* found = look(key, name, recovered);
  if (found == nullptr) return nullptr;
  if (found->schema.cfg_hash != cfg_hash) {
    const OtherCode& others = (recovered ? *others_ : saved_).other_code;
    auto at = others.find({found->key, cfg_hash});
    if (at != others.end()) found = &at->second;
  }
  auto saved = std::make_unique<SavedMethod>();
  saved->profile = *found;
  saved->from = found->key;
  saved->profile.key = key;
  assert(runs_ >= 1);
  saved->runs = runs_;
  saved->recovered = recovered;
  return saved;
}

ProfileInfo ProfileStore::info_now() {
  ProfileInfo info;
  info.engine = "uptier 0.1.0";
  info.host = host_name();
  info.time = static_cast<uint64_t>(std::time(nullptr));
  info.runs = 1;
  info.weight = ProfileInfo::kRunWeight;
  return info;
}

}  // namespace uptier::tiering
