#include "tiering/saved/profile_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "profile/formats/text.h"
#include "profile/upf/file.h"
#include "profile/upf/merge.h"
#include "profile/upf/read.h"
#include "profile/upf/write.h"

namespace uptier::tiering {
namespace {

constexpr uint64_t kDecayParts = 1 << 20;

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

// The lock of whatever file has the name; an empty one is made where there is none.
class FileLock {
 public:
  explicit FileLock(const std::string& path) {
    for (int tries = 0; tries < 1000 && fd_ < 0 && error_ == 0; ++tries) attempt(path);
    if (fd_ < 0 && error_ == 0) error_ = EBUSY;
  }
  ~FileLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  Status status(const std::string& path) const {
    if (error_ == 0) return {};
    const char* text = strerrordesc_np(error_);
    return Error{ErrorCode::kIo, path + ": cannot lock the file: " + (text ? text : "unknown")};
  }

 private:
  void attempt(const std::string& path) {
    int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0) {
      if (errno != EINTR) error_ = errno;
      return;
    }
    int locked;
    do { locked = ::flock(fd, LOCK_EX); } while (locked != 0 && errno == EINTR);
    if (locked != 0) error_ = errno;
    // Replaced while this waited?
    struct stat mine, now;
    bool same = locked == 0 && ::fstat(fd, &mine) == 0 && ::lstat(path.c_str(), &now) == 0 &&
                mine.st_ino == now.st_ino && mine.st_dev == now.st_dev;
    if (same) {
      fd_ = fd;
    } else {
      ::close(fd);
    }
  }

  int fd_ = -1;
  int error_ = 0;
};

// Brings counts to another schema of the same code: of slots that both have.
void conform(MethodProfile& m, const Schema& schema) {
  MethodProfile to;
  to.schema = schema;
  to.counts.resize(schema.words());
  to.estimates.resize(schema.words());
  for (const Slot& slot : schema.slots) {
    const Slot* from = m.schema.find(slot.kind, slot.site);
    if (from == nullptr) continue;
    std::copy_n(m.counts.begin() + from->word, slot.words, to.counts.begin() + slot.word);
    std::copy_n(m.estimates.begin() + from->word, slot.words, to.estimates.begin() + slot.word);
    auto table = m.tables.find({slot.kind, slot.site});
    if (table != m.tables.end()) to.tables.insert(m.tables.extract(table));
  }
  m.schema = std::move(to.schema);
  m.counts = std::move(to.counts);
  m.estimates = std::move(to.estimates);
  m.tables = std::move(to.tables);
}

double blocks_of(const MethodProfile& p) {
  double sum = 0;
  for (const Slot& slot : p.schema.slots) {
    if (slot.kind == SlotKind::kBlock) sum += static_cast<double>(p.estimates[slot.word]);
  }
  return sum;
}

bool is_empty(const MethodProfile& m) {
  auto none = [](uint64_t count) { return count == 0; };
  return m.calls == 0 && m.iterations == 0 && m.tables.empty() &&
         std::ranges::all_of(m.counts, none);
}

}  // namespace

ProfileStore::ProfileStore(const std::string& pattern) : path_(expand(pattern)) {
  report_.file = path_;
  Result<MappedFile> file = MappedFile::open(path_);
  if (!file) {
    if (file.error().code != ErrorCode::kNotFound) report_.problem = file.error().message;
    return;
  }
  file_ = std::move(*file);
  if (file_.bytes().empty()) return;
  if (!looks_like_profile(file_.bytes())) {
    report_.problem = path_ + ": no profile file; nothing is read of it, nor written to it";
  }
  reader_ = std::make_unique<profile::UpfReader>(file_.bytes());
  std::vector<const ProfileInfo*> infos;
  for (const auto& s : reader_->segments()) infos.push_back(&s.info);
  std::vector<profile::UploadFate> fates = profile::plan_uploads(infos);
  uint64_t weight = 0;
  for (size_t i = 0; i < infos.size(); ++i) {
    if (fates[i] != profile::UploadFate::kSummed) continue;
    summed_.insert(i);
    report_.runs += infos[i]->runs;
    weight += infos[i]->weight;
  }
  runs_ = std::max(static_cast<double>(weight) / ProfileInfo::kRunWeight, 1.0);
  if (!report_.problem.empty()) return;
  if (!reader_->warnings().empty()) {
    report_.problem = path_ + ": " + reader_->warnings().front();
  } else if (reader_->truncated()) {
    report_.problem = path_ + ": it ends early; what precedes is used";
  }
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
  into.methods.merge(sum.take().methods);
  if (report_.problem.empty() && !reader_->warnings().empty()) {
    report_.problem = path_ + ": " + reader_->warnings().front();
  }
}

void ProfileStore::load(uint64_t module_key) {
  const std::string defining = profile::hex(module_key).substr(2) + ";";
  load_segments([&](std::string_view key) { return key.starts_with(defining); }, saved_);
}

void ProfileStore::load_others() {
  if (others_ != nullptr) return;
  others_ = std::make_unique<Profile>();
  load_segments([](std::string_view) { return true; }, *others_);
  for (const auto& [k, m] : others_->methods) {
    auto [entry, added] = by_name_.emplace(m.name, &m);
    if (!added) entry->second = nullptr;
  }
}

const CallProfile& ProfileStore::calls() {
  if (calls_ != nullptr) return *calls_;
  calls_ = std::make_unique<CallProfile>();
  if (reader_ == nullptr) return *calls_;
  for (size_t i : summed_) *calls_ += reader_->calls(reader_->segments()[i]);
  return *calls_;
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
  return uptier::query(*others_, stage, scope_hash, key);
}

double ProfileStore::weight(const MethodKey& key) {
  if (reader_ == nullptr) return 0;
  if (loaded_.insert(key.module_key).second) load(key.module_key);
  const MethodProfile* m = saved_.find(key);
  if (m == nullptr) return 0;
  return (static_cast<double>(m->calls) + blocks_of(*m)) / runs_;
}

const MethodProfile* ProfileStore::look(const MethodKey& key, const std::string& name,
                                        bool& recovered) {
  recovered = false;
  if (reader_ == nullptr) return nullptr;
  if (loaded_.insert(key.module_key).second) load(key.module_key);
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

double ProfileStore::mass(const MethodKey& key, const std::string& name) {
  bool recovered = false;
  const MethodProfile* m = look(key, name, recovered);
  return m == nullptr ? 0 : blocks_of(*m) / runs_;
}

std::unique_ptr<SavedMethod> ProfileStore::find(const MethodKey& key, const std::string& name) {
  bool recovered = false;
  const MethodProfile* found = look(key, name, recovered);
  if (found == nullptr) return nullptr;
  auto saved = std::make_unique<SavedMethod>();
  saved->profile = *found;
  saved->from = found->key;
  saved->profile.key = key;
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

namespace {

// Splits what is saved into what stays and what fades; drops what is of other code.
void sort_out(Profile& saved, const Profile& run, const ProfileStore::Fates& fates, Profile& stay,
              Profile& fade) {
  for (auto& [key, m] : saved.methods) {
    auto fate = fates.find(key);
    bool known = fate != fates.end();
    if (known && fate->second.cfg_hash != m.schema.cfg_hash) continue;
    const MethodProfile* fresh = run.find(key);
    if (fresh != nullptr && fresh->schema != m.schema) conform(m, fresh->schema);
    bool keep = known && fate->second.keep;
    (keep ? stay : fade).methods.emplace(key, std::move(m));
  }
}

// Adds what is saved of calls to those of this run: of callers that stay as it is, of others faded.
// Of what a method's code is, this run knows better; of methods that are gone nothing is kept.
void add_saved_calls(CallProfile saved, const ProfileStore::Fates& fates, uint64_t parts,
                     const Profile& methods, CallProfile& calls) {
  CallProfile stay;
  for (const auto& [call, count] : saved.graph) {
    auto fate = fates.find(call.first);
    if (fate != fates.end() && fate->second.keep) stay.graph.emplace(call, count);
  }
  std::erase_if(saved.graph, [&](const auto& item) { return stay.graph.contains(item.first); });
  std::erase_if(saved.shapes, [&](const auto& item) { return calls.shapes.contains(item.first); });
  saved.scale(parts, kDecayParts);
  calls += stay;
  calls += saved;
  auto gone = [&](const MethodKey& key) { return !methods.methods.contains(key); };
  std::erase_if(calls.shapes, [&](const auto& item) { return gone(item.first); });
  std::erase_if(calls.graph, [&](const auto& item) { return gone(item.first.first); });
  std::erase_if(calls.first, [&](const auto& item) { return gone(item.first); });
}

}  // namespace

Status ProfileStore::save(Profile run, CallProfile calls, const Fates& fates, ProfileInfo info,
                          const std::string& log, const profile::Timeline& timeline, double decay,
                          profile::Sync sync) {
  FileLock lock(path_);
  if (Status s = lock.status(path_); !s) return s;
  Result<MappedFile> file = MappedFile::open(path_);
  if (!file) return file.error();
  Result<ProfileFile> saved = profile_from_file(file->bytes());
  if (!saved) return Error{saved.error().code, path_ + ": left alone: " + saved.error().message};
  // The hash is over what was seen, the time and the process: runs that saw the same stay two.
  struct timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  auto nonce = static_cast<uint64_t>(::getpid()) << 32 ^ static_cast<uint64_t>(now.tv_nsec) ^
               static_cast<uint64_t>(now.tv_sec) << 30;
  info.uploads = {profile::make_upload_id(run, info.time, nonce)};

  auto parts = static_cast<uint64_t>(decay * static_cast<double>(kDecayParts));
  Profile stay, fade;
  sort_out(saved->profile, run, fates, stay, fade);
  (void)scale(fade, parts, kDecayParts);
  std::erase_if(fade.methods, [](const auto& item) { return is_empty(item.second); });
  for (const Profile* part : {&stay, &fade}) merge(run, *part);
  std::erase_if(run.methods, [](const auto& item) { return is_empty(item.second); });
  saved->info.weight = static_cast<uint64_t>(static_cast<double>(saved->info.weight) * decay);
  info += saved->info;
  add_saved_calls(std::move(saved->calls), fates, parts, run, calls);
  // What runs before this one have left is of the file that is still mapped.
  const profile::UpfReader reader(file->bytes());
  std::vector<profile::RunRecord> past;
  for (const auto& segment : reader.segments()) {
    for (const profile::RunRecord& one : reader.runs(segment)) past.push_back(one);
  }
  past = profile::latest_runs(std::move(past));
  return profile::replace_file(
      path_, profile::profile_to_file(run, info, log, timeline, &calls, nullptr, past), sync);
}

}  // namespace uptier::tiering
