// Methods of the C API: the table of their ids, adding, removing, and their addresses.
#include "profile/base/wall.h"

#include <cassert>

#include "tiering/c_api/builder.h"
#include "tiering/c_api/c_api.h"

namespace uptier::tiering {

uint64_t CMethod::resume(const HostFrame* f) noexcept {
  auto& m = static_cast<CMethod&>(*f->host);
  assert(m.resume_ != nullptr && m.id == f->method);
  uptier_host_frame frame{to_c<uptier_method>(f->method),
                          f->pc,
                          static_cast<uptier_guard_reason>(f->reason),
                          f->slot_count,
                          f->slots,
                          m.user_};
  return m.resume_(&frame);
}

// If the callback throws, even for lack of memory, the process ends: the exception must not unwind
// through the compiler, and C cannot catch it.
uptier_status CMethod::call_build(MethodId m, uptier_builder& b, uptier_error& said) noexcept {
  assert(build_ != nullptr);
  return build_(user_, to_c<uptier_method>(m), &b, &said);
}

// Asks the C host for the body.
Status CMethod::build(MethodId m, FunctionBuilder& b) noexcept try {
  if (build_ == nullptr) {
    return Error{ErrorCode::kUnsupported, name_ + ": the host has no build function"};
  }
  uptier_builder builder(runtime_, b);
  uptier_error said{UPTIER_OK, ""};
  uptier_status s = call_build(m, builder, said);
  said.message[UPTIER_MESSAGE_SIZE - 1] = 0;
  if (!builder.error) {
    return Error{builder.error.error().code, name_ + ": " + builder.error.error().message};
  }
  if (s == UPTIER_OK) return {};
  bool known = s >= UPTIER_INVALID_ARGUMENT && s <= UPTIER_NOT_FOUND;
  std::string why = said.message[0] != 0 ? said.message : uptier_status_name(s);
  return Error{known ? static_cast<ErrorCode>(s - 1) : ErrorCode::kInvalidInput,
               name_ + ": the host's build failed: " + why};
} catch (const std::exception&) { return out_of_memory("build"); }

namespace {

// What the visitor of a C host fills in. If memory runs out, nothing is known.
struct Visited {
  SourcePositions all;
  bool ran_out = false;

  static void take(void* to, const uptier_position* p) noexcept {
    auto& v = *static_cast<Visited*>(to);
    const auto text = [](const char* s) { return std::string(s == nullptr ? "" : s); };
    if (p == nullptr || v.ran_out) return;
    v.ran_out = !finishes([&] {
      v.all.push_back({text(p->file), p->line, p->column, text(p->function)});
    });
  }
};

}  // namespace

SourcePositions CMethod::positions(MethodId m, uint32_t location) {
  if (positions_ == nullptr) return {};
  Visited visited;
  positions_(user_, to_c<uptier_method>(m), location, &Visited::take, &visited);
  return visited.ran_out ? SourcePositions() : std::move(visited.all);
}

CMethod* CMethodTable::find(uptier_method id) const {
  MethodId m = from_c<MethodId>(id);
  if (!m.valid() || m.index() / kPage >= pages_.size()) return nullptr;
  // Both acquires pair with add().
  const Page* page = pages_[m.index() / kPage].load(std::memory_order_acquire);
  if (page == nullptr) return nullptr;
  const Page::Place& place = page->places[m.index() % kPage];
  if (place.number.load(std::memory_order_acquire) != m.number()) return nullptr;
  CMethod* found = place.method.load(std::memory_order_acquire);
  return found != nullptr && !found->removed.load(std::memory_order_acquire) ? found : nullptr;
}

void CMethodTable::add(MethodId id, std::unique_ptr<CMethod>&& m) {
  Held lock(mutex_);
  m->id = id;
  uint32_t at = id.index() / kPage;
  assert(id.valid() && at < owned_pages_.size() && !m->removed);
  if (owned_pages_[at] == nullptr) {
    owned_pages_[at] = std::make_unique<Page>();
    pages_[at].store(owned_pages_[at].get(), std::memory_order_release);  // pairs with find()
  }
  Page& page = *owned_pages_[at];
  Page::Place& place = page.places[id.index() % kPage];
  assert(place.method == nullptr || place.method.load()->removed);  // the place is free
  place.method.store(m.get(), std::memory_order_release);
  place.number.store(id.number(), std::memory_order_release);
  page.owned[id.index() % kPage] = std::move(m);
}

bool CMethodTable::remove(std::span<const uptier_method> ids, std::vector<CMethod*>& removed) {
  Held lock(mutex_);
  for (uptier_method id : ids) {
    if (find(id) == nullptr) return false;
  }
  assert(removed.empty());
  removed.reserve(ids.size());  // from here on, nothing can run out of memory
  for (uptier_method id : ids) {
    CMethod* m = find(id);
    if (m == nullptr) continue;  // it is listed twice
    m->removed.store(true, std::memory_order_release);
    assert(removed.size() < removed.capacity());
    removed.push_back(m);
  }
  return true;
}

void CMethodTable::drop_all() noexcept {
  for (auto& page : owned_pages_) {
    if (page == nullptr) continue;
    for (auto& m : page->owned) {
      if (m != nullptr) m->take_drop()();
    }
  }
}

namespace {

// Returns the error in the description of a method, or null.
const char* problem(const uptier_method_info& info, const uptier_host& host) {
  if (info.name == nullptr) return "the method's name is NULL";
  if (host.build == nullptr && info.host_entry == nullptr) {
    return "the method has neither build nor host_entry";
  }
  if (info.host_may_trap > 1 || info.describes_at_once > 1) {
    return "uptier_method_info has a number without meaning";
  }
  return nullptr;
}

// Reads both structs, of this version or an earlier one.
uptier_status read(const uptier_method_info* from, uptier_method_info& info, uptier_host& host,
                   uptier_error* error) {
  constexpr size_t kFirstInfo = UPTIER_C_END(uptier_method_info, host_resume);
  constexpr size_t kFirstHost = UPTIER_C_END(uptier_host, drop);
  const char* why = read_struct(from, kFirstInfo, info);
  std::string_view what = "uptier_method_info: ";
  if (why == nullptr) {
    if (info.host == nullptr) return bad_argument(error, "the method's host is NULL");
    why = read_struct(info.host, kFirstHost, host);
    what = "uptier_host: ";
  }
  if (why == nullptr) return UPTIER_OK;
  return fail(error, why == kNewer ? UPTIER_UNSUPPORTED : UPTIER_INVALID_ARGUMENT,
              std::string(what) + why);
}

// Marks all methods as removed, or none: from here on their ids are refused.
uptier_status take_out(uptier_runtime* runtime, const char* call, const uptier_method* methods,
                       size_t count, std::vector<CMethod*>& out, uptier_error* error) {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (forked(*runtime)) return fail_forked(error);
  if (uptier_status bad = check_change(*runtime, call, error); bad != UPTIER_OK) return bad;
  if (methods == nullptr && count != 0) return bad_argument(error, "the methods are NULL");
  if (runtime->methods.remove(std::span(methods, count), out)) return UPTIER_OK;
  return bad_argument(error, "one of the methods is not in service");
}

}  // namespace
}  // namespace uptier::tiering

using namespace uptier;
using namespace uptier::tiering;

extern "C" {

uptier_status uptier_runtime_add_method(uptier_runtime* runtime, const uptier_method_info* info,
                                        uptier_method* out, uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (info == nullptr || out == nullptr) return bad_argument(error, "info or out is NULL");
  uptier_method_info in;
  uptier_host host;
  if (uptier_status bad = read(info, in, host, error); bad != UPTIER_OK) return bad;
  if (const char* why = problem(in, host)) return bad_argument(error, why);
  Result<Signature> s = signature_of(in.signature);
  if (!s) return fail(error, s.error());

  auto method = std::make_unique<CMethod>(*runtime, in, host, *s);
  MethodInfo m{{in.module_key, in.function_index}, in.name, std::move(*s)};
  m.host_entry = reinterpret_cast<const void*>(in.host_entry);
  m.host_may_trap = in.host_may_trap != 0;
  m.describes_at_once = in.describes_at_once != 0;
  if (in.host_resume != nullptr) m.host_resume = &CMethod::resume;
  Result<MethodId> id = runtime->runtime->add_method(*method, std::move(m));
  if (!id) return fail(error, id.error());
  if (!finishes([&] { runtime->methods.add(*id, std::move(method)); })) {
    runtime->runtime->remove_methods(std::span(&*id, 1));
    return ran_out(error);
  }
  *out = to_c<uptier_method>(*id);
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_remove_methods(uptier_runtime* runtime, const uptier_method* methods,
                                            size_t count, uptier_error* error) noexcept try {
  std::vector<CMethod*> removed;
  std::vector<MethodId> ids;
  // Taken before the runtime removes the methods: then their slots may be reused.
  std::vector<CMethod::Drop> drops;
  if (methods != nullptr) {
    ids.reserve(count);
    drops.reserve(count);
  }
  uptier_status s = take_out(runtime, "remove_methods", methods, count, removed, error);
  for (CMethod* m : removed) {
    ids.push_back(m->id);
    drops.push_back(m->take_drop());
  }
  if (s == UPTIER_OK) runtime->runtime->remove_methods(ids);
  for (const CMethod::Drop& drop : drops) drop();
  return s;
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_retire_methods(uptier_runtime* runtime, const uptier_method* methods,
                                            size_t count, uptier_error* error) noexcept try {
  std::vector<CMethod*> retired;
  std::vector<MethodId> ids;
  if (methods != nullptr) ids.reserve(count);
  uptier_status s = take_out(runtime, "retire_methods", methods, count, retired, error);
  for (const CMethod* m : retired) ids.push_back(m->id);
  if (s == UPTIER_OK) runtime->runtime->retire_methods(ids);
  return s;
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_entry(const uptier_runtime* runtime, uptier_method method,
                                   uptier_code* out, uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (out == nullptr) return bad_argument(error, "out is NULL");
  if (runtime->methods.find(method) == nullptr) {
    return bad_argument(error, "the method is not in service");
  }
  MethodId id = from_c<MethodId>(method);
  *out = reinterpret_cast<uptier_code>(const_cast<void*>(runtime->runtime->entry_address(id)));
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(error); }

}  // extern "C"
