// c_api.h: what the handles of the C API hold, and how its functions fail.
//
// Law: the C API is a shell over include/uptier/*.h. It checks what C++ takes on trust (handles,
// ids, counts), so that the classes below it are only ever called rightly, and it decides nothing.
//
// Each function is a wall (profile/base/wall.h): memory that is refused is UPTIER_RESOURCE_EXHAUSTED. What
// else a callback throws ends the process there, by `noexcept`, instead of unwinding through frames of
// C.
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

#include "uptier/policy.h"
#include "uptier/runtime.h"
#include "uptier/uptier.h"

namespace uptier::tiering {

// Fills `error` (may be null) and returns its status. Nothing is allocated.
uptier_status fail(uptier_error* error, uptier_status status, std::string_view message);
uptier_status fail(uptier_error* error, const Error& e);
uptier_status bad_argument(uptier_error* error, std::string_view message);
// Memory was refused.
uptier_status ran_out(uptier_error* error) noexcept;
uptier_status status_of(ErrorCode code);
// Whether the runtime is that of the parent of this process.
bool forked(const uptier_runtime& runtime);
uptier_status fail_forked(uptier_error* error);
// Runtime::report(), which throws where memory is refused instead of saying nothing.
Report report_of(const uptier_runtime& runtime);

// Writes `text` as snprintf would; see "Text" in uptier.h.
uptier_status write_text(std::string_view text, char* buffer, size_t capacity, size_t* length,
                         uptier_error* error);

// Copies what the caller of a version since `first` (the size that the struct was published with)
// has set; members that it does not know are 0. Its first member is `size`. Returns what is wrong,
// or null; kNewer for a struct of a later version.
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
// Writes as much of `from` as the caller knows, and how much that is.
template <typename T>
const char* write_struct(T& from, size_t first, T* to) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, size) == 0);
  if (to->size < first) return "its size is too small";
  from.size = std::min(to->size, sizeof(T));
  assert(from.size <= to->size && from.size <= sizeof(T));
  std::memcpy(to, &from, from.size);
  return nullptr;
}
// What a struct was published with ends behind `member`.
#define UPTIER_C_END(type, member) (offsetof(type, member) + sizeof(type::member))

// Returns the signature in C++, or what is wrong with it.
Result<Signature> signature_of(const uptier_signature& s);

// Says how far a number of arguments is from what a signature wants; empty when it is that.
std::string wrong_count(size_t given, const Signature& s);

// Ids of C and C++: 0 is none, n is number n - 1.
template <typename C, typename Tag>
C to_c(Id<Tag> id) {
  return C{id.valid() ? id.number() + 1 : 0};
}
template <typename Typed, typename C>
Typed from_c(C id) {
  return id.id == 0 ? Typed::none() : Typed(id.id - 1);
}

// A method that C registered, as the host that the runtime asks for its body.
//
// Thread: immutable but for `removed`, which is set once.
class CMethod final : public Host {
 public:
  CMethod(uptier_runtime& runtime, const uptier_method_info& info, const uptier_host& host,
          Signature s)
      : runtime_(runtime),
        build_(host.build),
        drop_(host.drop),
        resume_(info.host_resume),
        user_(info.user),
        signature_(std::move(s)),
        name_(info.name) {}

  Status build(MethodId m, FunctionBuilder& b) noexcept override;
  const void* alias_scope() const noexcept override { return reinterpret_cast<void*>(build_); }
  void gone(MethodId) noexcept override { take_drop()(); }
  // MethodInfo::host_resume of a method that C registered with one.
  static uint64_t resume(const HostFrame* frame) noexcept;
  // Returns the host's `drop`, to be called with `user`; null when it was taken before.
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
  uint64_t (*resume_)(const uptier_host_frame*);
  void* user_;
  Signature signature_;
  std::string name_;
};

// Methods by id, read without a lock: pages of pointers, published with release. A place that the
// runtime gives to a new method has the id of that one, so the old one is not found any more and
// goes.
class CMethodTable {
 public:
  explicit CMethodTable(uint64_t max_methods)
      : pages_((max_methods + kPage - 1) / kPage), owned_pages_(pages_.size()) {}

  // Returns a method in service, or null. Thread: any.
  CMethod* find(uptier_method id) const;
  // Takes a method that the runtime knows as `id`, and leaves it to the caller where memory is
  // refused. Thread: any.
  void add(MethodId id, std::unique_ptr<CMethod>&& m);
  // Takes methods out, all or none; false when one of them is not in service. Thread: any.
  bool remove(std::span<const uptier_method> ids, std::vector<CMethod*>& removed);
  // Calls `drop` of every method that was not removed.
  void drop_all() noexcept;

 private:
  static constexpr uint32_t kPage = 1024;
  struct Page {
    struct Place {
      std::atomic<uint32_t> number{MethodId::none().number()};  // of the method that is there
      std::atomic<CMethod*> method{nullptr};
    };
    Place places[kPage];
    std::unique_ptr<CMethod> owned[kPage];  // guarded by mutex_
  };

  std::vector<std::atomic<Page*>> pages_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Page>> owned_pages_;
};

}  // namespace uptier::tiering

namespace uptier::tiering {

// Where the library's log goes in C. Thread: immutable once a runtime has it.
struct CLog {
  uptier_log_function function = nullptr;
  void* user = nullptr;

  // Options::log of a runtime whose log_user is a CLog.
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

// A policy of C's, as the runtime asks it. Thread: as Policy; immutable.
class CPolicy final : public Policy {
 public:
  explicit CPolicy(const uptier_policy& p) : policy_(p) {}
  Decision decide(const MethodSnapshot& m, const SystemSnapshot& s,
                  const PolicyOptions& o) noexcept override;

 private:
  uptier_policy policy_;
};

// Reads what C has passed; UPTIER_OK, or why not, in `error`.
uptier_status read_policy(const uptier_policy* from, uptier_policy& to, uptier_error* error);

}  // namespace uptier::tiering

// Members go in reverse order: the runtime stops before what it uses.
struct uptier_runtime {
  explicit uptier_runtime(const uptier::Options& o)
      : counts_fuel(o.fuel != 0), methods(o.max_methods) {}

  const bool counts_fuel;

  uptier::tiering::CLog c_log;
  std::unique_ptr<uptier::TraceSink> sink;
  std::unique_ptr<uptier::Policy> policy;  // or null
  uptier::tiering::CMethodTable methods;
  std::unique_ptr<uptier::Runtime> runtime;
  std::mutex log_mutex;                     // guards what follows
  std::vector<uptier::LogRecord> log = {};  // taken from the runtime, not yet by the caller
  size_t log_read = 0;                      // how many of them are
};
