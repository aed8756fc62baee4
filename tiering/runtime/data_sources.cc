#include "tiering/runtime/data_sources.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "profile/base/checksum.h"
#include "profile/base/wall.h"
#include "tiering/base/clock.h"
#include "tiering/runtime/engine.h"
#include "uptier/profile_query.h"

namespace uptier::tiering {
namespace {

// Data that lies in the host's memory.
class AttachedData final : public DataSource {
 public:
  AttachedData(std::string_view type, std::string_view metadata, std::span<const std::byte> data)
      : type_(type), metadata_(metadata), data_(data) {}

  std::string_view name() const noexcept override { return type_; }
  void gather(GatherList& list) noexcept override { list.user_data(type_, metadata_, data_); }

 private:
  std::string type_, metadata_;
  std::span<const std::byte> data_;
};

// A buffer of counters of other code.
class ImportedCounters final : public DataSource {
 public:
  explicit ImportedCounters(CounterBuffer buffer) : buffer_(std::move(buffer)) {
    keys_.assign(buffer_.keys.begin(), buffer_.keys.end());
  }

  std::string_view name() const noexcept override { return buffer_.stage; }
  void gather(GatherList& list) noexcept override {
    list.counters(buffer_.stage, buffer_.scope_hash, keys_, buffer_.words);
    if (buffer_.parent_hash.empty()) return;
    list.source_id(buffer_.stage, buffer_.scope_hash, {}, buffer_.parent_hash);
  }

 private:
  const CounterBuffer buffer_;
  std::vector<std::string_view> keys_;  // views of the buffer's
};

Error invalid(std::string message) {
  return Error{ErrorCode::kInvalidArgument, std::move(message)};
}

// Returns a number that no other gathering has, of this or any other process.
uint64_t new_number(const void* here) {
  static std::atomic<uint64_t> count{0};
  const uint64_t words[] = {static_cast<uint64_t>(std::time(nullptr)), now_ns(),
                            static_cast<uint64_t>(::getpid()), reinterpret_cast<uint64_t>(here),
                            count.fetch_add(1, std::memory_order_relaxed)};
  return XXH3_64bits(words, sizeof words);
}

}  // namespace

DataSources::DataSources(const Engine& engine)
    : log_(engine.log), lines_(engine), parents_(engine) {
  if (!engine.options.profile.empty()) (void)add({0, &parents_, nullptr, true});
}

Status DataSources::check_outside(const char* call) const {
  const bool inside = gathering_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  if (!inside) return {};
  return invalid(std::string(call) + ": refused while data is gathered; call it after that");
}

Result<uint64_t> DataSources::add(Entry entry) {
  const Held lock(mutex_);
  if (std::ranges::count(entries_, entry.source, &Entry::source) != 0) {
    return invalid("attach_data: this source is attached already");
  }
  entry.id = ++last_id_;
  entries_.push_back(std::move(entry));
  return last_id_;
}

Status DataSources::attach(DataSource& source) {
  if (Status s = check_outside("attach_data"); !s) return s;
  const Result<uint64_t> added = add({0, &source, nullptr, false});
  return added ? Status() : added.error();
}

Result<LogFormat> DataSources::add_log_format(std::string_view text) {
  if (Status s = check_outside("add_log_format"); !s) return s.error();
  const Result<LogFormat> made = lines_.formats().add(text);
  if (made) (void)add({0, &lines_, nullptr, true});  // refused if it is attached
  return made;
}

Result<uint64_t> DataSources::attach(std::string_view type, std::string_view metadata,
                                     std::span<const std::byte> data) {
  if (Status s = check_outside("attach_data"); !s) return s.error();
  if (type.empty()) {
    return invalid(
        "attach_data: the type is empty; name it after your program, like my.tool.table");
  }
  auto own = std::make_unique<AttachedData>(type, metadata, data);
  DataSource* source = own.get();
  return add({0, source, std::move(own), false});
}

Result<uint64_t> DataSources::import(CounterBuffer buffer) {
  if (Status s = check_outside("import_counters"); !s) return s.error();
  if (buffer.keys.size() != buffer.words.size()) {
    return invalid("import_counters: " + std::to_string(buffer.keys.size()) + " keys for " +
                   std::to_string(buffer.words.size()) + " words; pass one key for each word");
  }
  if (buffer.stage.empty() || buffer.stage == kQueryStage) {
    return invalid("import_counters: the stage \"" + buffer.stage +
                   "\" cannot be used; name it after the code that counts");
  }
  if (reinterpret_cast<uintptr_t>(buffer.words.data()) % alignof(uint64_t) != 0) {
    return invalid("import_counters: the words are not aligned to 8 bytes");
  }
  auto own = std::make_unique<ImportedCounters>(std::move(buffer));
  DataSource* source = own.get();
  return add({0, source, std::move(own), false});
}

// Removes a source, or, if that is null, the attached data with this number.
bool DataSources::erase(uint64_t id, const DataSource* source) {
  const Held lock(mutex_);
  return std::erase_if(entries_, [&](const Entry& e) {
           return source != nullptr ? e.source == source : e.id == id && e.own != nullptr;
         }) != 0;
}

Status DataSources::detach(DataSource& source) {
  if (Status s = check_outside("detach_data"); !s) return s;
  if (erase(0, &source)) return {};
  return Error{ErrorCode::kNotFound, "detach_data: this source is not attached"};
}

Status DataSources::detach(uint64_t id) {
  if (Status s = check_outside("detach_data"); !s) return s;
  if (erase(id, nullptr)) return {};
  return Error{ErrorCode::kNotFound,
               "detach_data: no data with the number " + std::to_string(id) + " is attached"};
}

// Not checked: the destructor unlocks.
UPTIER_UNCHECKED DataSources::Gathering::Gathering(DataSources& sources) : sources_(sources) {
  sources_.mutex_.lock();
  sources_.gathering_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  // After this, the destructor would not run if something threw.
  const bool asked = finishes([&] {
    sources_.mutex_.known_held();
    asked_.reserve(sources_.entries_.size());
    data_.lists.emplace_back().copy(profile::gathered_header(new_number(this)));
    append(data_.lists.back());
    for (const Entry& e : sources_.entries_) ask(*e.source);
    const auto of_host = [](const Entry& e) { return !e.by_library; };
    data_.sources = static_cast<size_t>(std::ranges::count_if(sources_.entries_, of_host));
    data_.sum.hash = profile::segment_hash(data_.pieces);
  });
  if (!asked) {
    data_.sum = {};
    data_.pieces.clear();
    sources_.log_.say(LogLevel::kWarning, "data of sources is left out: memory ran out");
  }
}

void DataSources::Gathering::append(const GatherList& list) {
  data_.pieces.insert(data_.pieces.end(), list.pieces().begin(), list.pieces().end());
}

void DataSources::Gathering::ask(DataSource& source) {
  GatherList& list = data_.lists.emplace_back();
  asked_.push_back(&source);
  source.gather(list);
  const Status s = list.problem() == nullptr ? profile::add_pieces(list.pieces(), data_.sum)
                                             : Status(invalid(list.problem()));
  if (s) return append(list);
  std::string what =
      "data source \"" + std::string(source.name()) + "\" is left out: " + s.error().message;
  sources_.log_.say(LogLevel::kError, what);
  data_.refused.push_back(std::move(what));
}

// Not checked: the constructor locks.
UPTIER_UNCHECKED DataSources::Gathering::~Gathering() {
  for (DataSource* source : asked_) source->release();
  sources_.gathering_.store({}, std::memory_order_relaxed);
  sources_.mutex_.unlock();
}

}  // namespace uptier::tiering
