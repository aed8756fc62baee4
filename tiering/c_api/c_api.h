// c_api.h: the handles of the C API, and how its functions fail.
//
// Law: the C API is a layer over include/uptier/*.h. It checks the arguments that C++ trusts
// (handles, ids, counts), so that the classes below are always called correctly. It decides
// nothing.
//
// Each function is a wall (profile/base/wall.h): running out of memory becomes
// UPTIER_RESOURCE_EXHAUSTED. Any other exception of a callback ends the process there, by
// `noexcept`, instead of unwinding through C frames.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "uptier/events.h"
#include "uptier/gather.h"
#include "uptier/policy.h"
#include "uptier/runtime.h"
#include "uptier/thread_safety.h"
#include "uptier/uptier.h"

namespace uptier::tiering {

// Fills `error` (may be null) and returns its status. Nothing is allocated.
uptier_status fail(uptier_error* error, uptier_status status, std::string_view message);
uptier_status fail(uptier_error* error, const Error& e);
uptier_status bad_argument(uptier_error* error, std::string_view message);
// Memory ran out.
uptier_status ran_out(uptier_error* error) noexcept;
uptier_status status_of(ErrorCode code);
// Says whether the runtime belongs to a parent of this process.
bool forked(const uptier_runtime& runtime);
uptier_status fail_forked(uptier_error* error);
// Runtime::report(), except that it throws if memory runs out.
Report report_of(const uptier_runtime& runtime);

// Writes `text` as snprintf would; see "Text" in uptier.h.
uptier_status write_text(std::string_view text, char* buffer, size_t capacity, size_t* length,
                         uptier_error* error);

// Copies the members that the caller has set; `first` is the size of the struct in its first
// version, and members that the caller does not know become 0. The first member is `size`. Returns
// null, or the error; kNewer for a struct of a later version.
inline constexpr const char* kNewer = "the caller was made for a later version of uptier.h";
template <typename T>
const char* read_struct(const T* from, size_t first, T& to) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, size) == 0);
  if (from->size < first) return "its size is too small";
  if (from->size > sizeof(T)) return kNewer;
  to = {};
  assert(first <= sizeof(T));
  std::memcpy(&to, from, from->size);
  return nullptr;
}
// Refuses a struct for the reason that read_struct or write_struct has returned.
uptier_status wrong_struct(const char* name, const char* why, uptier_error* error);
// Writes as much of `from` as the caller's version has, and sets that size.
template <typename T>
const char* write_struct(T& from, size_t first, T* to) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, size) == 0);
  if (to->size < first) return "its size is too small";
  from.size = std::min(to->size, sizeof(T));
  assert(from.size <= to->size && from.size <= sizeof(T));
  std::memcpy(to, &from, from.size);
  return nullptr;
}
// The offset of the end of `member`, for the size of a struct's first version.
#define UPTIER_C_END(type, member) (offsetof(type, member) + sizeof(type::member))

// Converts a signature to C++, or returns an error.
Result<Signature> signature_of(const uptier_signature& s);

// Returns an error text for a wrong number of arguments; empty if the number is right.
std::string wrong_count(size_t given, const Signature& s);

// Converts ids between C and C++: 0 is none, n is number n - 1.
template <typename C, typename Tag>
C to_c(Id<Tag> id) {
  return C{id.valid() ? id.number() + 1 : 0};
}
template <typename Typed, typename C>
Typed from_c(C id) {
  return id.id == 0 ? Typed::none() : Typed(id.id - 1);
}

// A method that C registered: the Host that the runtime asks for the body.
//
// Thread: immutable except `removed`, which is set once.
class CMethod final : public Host {
 public:
  CMethod(uptier_runtime& runtime, const uptier_method_info& info, const uptier_host& host,
          Signature s)
      : runtime_(runtime),
        build_(host.build),
        drop_(host.drop),
        positions_(host.positions),
        resume_(info.host_resume),
        user_(info.user),
        signature_(std::move(s)),
        name_(info.name) {}

  Status build(MethodId m, FunctionBuilder& b) noexcept override;
  SourcePositions positions(MethodId m, uint32_t location) override;
  const void* alias_scope() const noexcept override { return reinterpret_cast<void*>(build_); }
  void gone(MethodId) noexcept override { take_drop()(); }
  // The MethodInfo::host_resume of methods that C registered with one.
  static uint64_t resume(const HostFrame* frame) noexcept;
  // Returns the host's `drop`, to be called with `user`; null if it was taken before.
  struct Drop {
    void (*function)(void*);
    void* user;
    void operator()() const noexcept {
      if (function != nullptr) function(user);
    }
  };
  Drop take_drop() noexcept { return {std::exchange(drop_, nullptr), user_}; }

  bool has_body() const { return build_ != nullptr; }
  const Signature& signature() const { return signature_; }
  const std::string& name() const { return name_; }

  MethodId id;  // set before the method is published
  std::atomic<bool> removed{false};

 private:
  uptier_status call_build(MethodId m, uptier_builder& b, uptier_error& said) noexcept;

  uptier_runtime& runtime_;
  uptier_status (*build_)(void*, uptier_method, uptier_builder*, uptier_error*);
  void (*drop_)(void*);
  void (*positions_)(void*, uptier_method, uint32_t, uptier_position_visitor, void*);
  uint64_t (*resume_)(const uptier_host_frame*);
  void* user_;
  Signature signature_;
  std::string name_;
};

// Methods by id, read without a lock: pages of pointers, published with release. If the runtime
// reuses a place, the place gets the new method's id; the old method is no longer found, and is
// destroyed.
class CMethodTable {
 public:
  explicit CMethodTable(uint64_t max_methods)
      : pages_((max_methods + kPage - 1) / kPage), owned_pages_(pages_.size()) {}

  // Returns a method in service, or null. Thread: any.
  CMethod* find(uptier_method id) const;
  // Adds a method that the runtime knows as `id`; if memory runs out, the caller keeps it. Thread:
  // any.
  void add(MethodId id, std::unique_ptr<CMethod>&& m);
  // Removes methods, all or none; returns false if one of them is not in service. Thread: any.
  bool remove(std::span<const uptier_method> ids, std::vector<CMethod*>& removed);
  // Calls `drop` of every method that was not removed. Unchecked: the runtime is gone, so no other
  // thread uses the table, and a host's function is not called with a lock.
  void drop_all() noexcept UPTIER_UNCHECKED;

 private:
  static constexpr uint32_t kPage = 1024;
  struct Page {
    struct Place {
      std::atomic<uint32_t> number{MethodId::none().number()};  // the number of the method here
      std::atomic<CMethod*> method{nullptr};
    };
    Place places[kPage];
    std::unique_ptr<CMethod> owned[kPage];  // guarded by mutex_
  };

  std::vector<std::atomic<Page*>> pages_;
  CheckedLock<std::mutex> mutex_;
  std::vector<std::unique_ptr<Page>> owned_pages_ UPTIER_GUARDED_BY(mutex_);
};

}  // namespace uptier::tiering

namespace uptier::tiering {

// The C function that receives the library's log. Thread: immutable once a runtime has it.
struct CLog {
  uptier_log_function function = nullptr;
  void* user = nullptr;

  // The Options::log function of a runtime whose log_user is a CLog.
  static void write(void* log, LogLevel level, std::string_view line) noexcept {
    assert(log != nullptr && static_cast<const CLog*>(log)->function != nullptr);
    const auto& to = *static_cast<const CLog*>(log);
    to.function(to.user, static_cast<uptier_log_level>(level), line.data(), line.size());
  }
};

}  // namespace uptier::tiering

struct uptier_options {
  uptier::Options options;
  uptier::tiering::CLog log;
};

namespace uptier::tiering {

// A C policy, as the runtime calls it. Thread: as Policy; immutable.
class CPolicy final : public Policy {
 public:
  explicit CPolicy(const uptier_policy& p) : policy_(p) {}
  Decision decide(const MethodSnapshot& m, const SystemSnapshot& s,
                  const PolicyOptions& o) noexcept override;

 private:
  uptier_policy policy_;
};

// A subscriber of events that C made, and the number of its subscription.
struct CSubscription {
  uint64_t id;
  std::unique_ptr<EventSubscriber> subscriber;
};

// Data that C attached to a runtime.
struct CAttached {
  uint64_t id;                         // for C
  uint64_t data;                       // for Runtime::detach_data; 0 if it is a source
  std::unique_ptr<DataSource> source;  // or null
};

// Refuses a call that a subscriber of events must not make: returns UPTIER_OK, or fills `error`.
uptier_status check_change(const uptier_runtime& runtime, const char* call, uptier_error* error);

// Reads a C struct; returns UPTIER_OK, or fills `error`.
uptier_status read_policy(const uptier_policy* from, uptier_policy& to, uptier_error* error);

}  // namespace uptier::tiering

// Members are destroyed in reverse order: the runtime stops before the things it uses.
struct uptier_runtime {
  explicit uptier_runtime(const uptier::Options& o)
      : counts_fuel(o.fuel != 0), methods(o.max_methods) {}

  const bool counts_fuel;

  uptier::tiering::CLog c_log;
  std::unique_ptr<uptier::TraceSink> sink;
  std::unique_ptr<uptier::Policy> policy;  // or null
  uptier::tiering::CMethodTable methods;
  uptier::CheckedLock<std::mutex> subscribers_mutex;
  std::vector<uptier::tiering::CSubscription> subscribers UPTIER_GUARDED_BY(subscribers_mutex) = {};
  uint64_t last_subscription UPTIER_GUARDED_BY(subscribers_mutex) = 0;
  uptier::CheckedLock<std::mutex> sources_mutex;
  std::vector<uptier::tiering::CAttached> attached UPTIER_GUARDED_BY(sources_mutex) = {};
  uint64_t last_data UPTIER_GUARDED_BY(sources_mutex) = 0;
  std::unique_ptr<uptier::Runtime> runtime;
  uptier::CheckedLock<std::mutex> log_mutex;
  // Read from the runtime, not yet by the caller.
  std::vector<uptier::LogRecord> log UPTIER_GUARDED_BY(log_mutex) = {};
  size_t log_read UPTIER_GUARDED_BY(log_mutex) = 0;  // how many of them the caller has read
};
