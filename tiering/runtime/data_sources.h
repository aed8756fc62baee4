// DataSources: the sources of data for profile files, and data that hosts have attached.
//
//   attach --> asked at each gathering, in the order of attachment --> detach
//
// One gathering at a time: sources are asked, the caller passes the pieces on, and the sources are
// released. Until then no source can be detached, so borrowed bytes stay. Calls from inside of a
// gathering are refused, because they would wait for themselves.
//
//   Thread: any, without the state mutex.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "profile/upf/gathered.h"
#include "tiering/base/log.h"
#include "tiering/runtime/log_source.h"
#include "tiering/runtime/parent_source.h"
#include "uptier/gather.h"
#include "uptier/result.h"
#include "uptier/thread_safety.h"

namespace uptier::tiering {

struct Engine;

class DataSources {
 public:
  explicit DataSources(const Engine& engine);

  // See uptier/runtime.h.
  Status attach(DataSource& source);
  Result<uint64_t> attach(std::string_view type, std::string_view metadata,
                          std::span<const std::byte> data);
  Result<uint64_t> import(CounterBuffer buffer);
  Status detach(DataSource& source);
  Status detach(uint64_t id);
  // The first format attaches the log.
  Result<LogFormat> add_log_format(std::string_view text);
  const LogFormats& formats() const { return lines_.formats(); }

  // Returns an error if the calling thread is in a gathering, which must not call `call`.
  Status check_outside(const char* call) const;

  // The time from asking the sources to releasing them. May throw std::bad_alloc.
  class Gathering {
   public:
    explicit Gathering(DataSources& sources);
    ~Gathering();
    Gathering(const Gathering&) = delete;
    Gathering& operator=(const Gathering&) = delete;

    const profile::Gathered& data() const { return data_; }

   private:
    void ask(DataSource& source);
    void append(const GatherList& list);

    DataSources& sources_;
    std::vector<DataSource*> asked_;
    profile::Gathered data_;
  };

 private:
  using Mutex = CheckedLock<std::mutex>;
  struct Entry {
    uint64_t id = 0;
    DataSource* source = nullptr;
    std::unique_ptr<DataSource> own;  // of attached data
    bool by_library = false;          // not the host's
  };

  Result<uint64_t> add(Entry entry);
  bool erase(uint64_t id, const DataSource* source);

  const Log& log_;
  LogSource lines_;
  ParentSource parents_;
  Mutex mutex_;
  std::atomic<std::thread::id> gathering_{};  // the thread that holds the mutex for a gathering
  std::vector<Entry> entries_ UPTIER_GUARDED_BY(mutex_);
  uint64_t last_id_ UPTIER_GUARDED_BY(mutex_) = 0;
};

}  // namespace uptier::tiering
