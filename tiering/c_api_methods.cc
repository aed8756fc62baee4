// Methods of the C API: the table behind their ids, coming, going, and their addresses.
#include "tiering/c_api.h"

namespace uptier::tiering {

void CMethod::drop() noexcept {
  if (drop_ != nullptr) drop_(user_);
  drop_ = nullptr;
}

uint64_t CMethod::resume(const HostFrame* f) noexcept {
  auto& m = static_cast<CMethod&>(*f->host);
  uptier_host_frame frame{to_c<uptier_method>(f->method),
                          f->pc,
                          static_cast<uptier_guard_reason>(f->reason),
                          f->slot_count,
                          f->slots,
                          m.user_};
  return m.resume_(&frame);
}

CMethod* CMethodTable::find(uptier_method id) const {
  MethodId m = from_c<MethodId>(id);
  if (!m.valid() || m.index() / kPage >= pages_.size()) return nullptr;
  // Both acquires pair with add().
  const Page* page = pages_[m.index() / kPage].load(std::memory_order_acquire);
  if (page == nullptr) return nullptr;
  CMethod* found = page->methods[m.index() % kPage].load(std::memory_order_acquire);
  return found != nullptr && !found->removed.load(std::memory_order_acquire) ? found : nullptr;
}

void CMethodTable::add(MethodId id, std::unique_ptr<CMethod> m) {
  std::lock_guard lock(mutex_);
  m->id = id;
  uint32_t at = id.index() / kPage;
  if (owned_pages_[at] == nullptr) {
    owned_pages_[at] = std::make_unique<Page>();
    pages_[at].store(owned_pages_[at].get(), std::memory_order_release);  // pairs with find()
  }
  owned_pages_[at]->methods[id.index() % kPage].store(m.get(), std::memory_order_release);
  owned_.push_back(std::move(m));
}

bool CMethodTable::remove(std::span<const uptier_method> ids, std::vector<CMethod*>& removed) {
  std::lock_guard lock(mutex_);
  for (uptier_method id : ids) {
    if (find(id) == nullptr) return false;
  }
  for (uptier_method id : ids) {
    CMethod* m = find(id);
    if (m == nullptr) continue;  // named twice
    m->removed.store(true, std::memory_order_release);
    removed.push_back(m);
  }
  return true;
}

void CMethodTable::drop_all() noexcept {
  for (auto& m : owned_) m->drop();
}

namespace {

// Returns what is wrong with the description of a method, or null.
const char* problem(const uptier_method_info& info) {
  if (info.name == nullptr) return "the method's name is NULL";
  if (info.host == nullptr) return "the method's host is NULL";
  if (info.host->size < sizeof(uptier_host)) return "uptier_host::size is too small";
  if (info.host->build == nullptr && info.host_entry == nullptr) {
    return "the method has neither build nor host_entry";
  }
  return nullptr;
}

}  // namespace
}  // namespace uptier::tiering

using namespace uptier;
using namespace uptier::tiering;

extern "C" {

uptier_status uptier_runtime_add_method(uptier_runtime* runtime, const uptier_method_info* info,
                                        uptier_method* out, uptier_error* error) noexcept {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (info == nullptr || out == nullptr) return bad_argument(error, "info or out is NULL");
  if (info->size < sizeof *info) {
    return bad_argument(error, "uptier_method_info::size is too small");
  }
  if (const char* why = problem(*info)) return bad_argument(error, why);
  if (info->size > sizeof *info || info->host->size > sizeof *info->host) {
    return fail(error, UPTIER_UNSUPPORTED, "the caller was made for a later version of uptier.h");
  }
  Result<Signature> s = signature_of(info->signature);
  if (!s) return fail(error, s.error());

  auto method = std::make_unique<CMethod>(*runtime, *info, *s);
  MethodInfo m{{info->module_key, info->function_index}, info->name, std::move(*s)};
  m.host_entry = reinterpret_cast<const void*>(info->host_entry);
  if (info->host_resume != nullptr) m.host_resume = &CMethod::resume;
  Result<MethodId> id = runtime->runtime->add_method(*method, std::move(m));
  if (!id) return fail(error, id.error());
  runtime->methods.add(*id, std::move(method));
  *out = to_c<uptier_method>(*id);
  return UPTIER_OK;
}

uptier_status uptier_runtime_remove_methods(uptier_runtime* runtime, const uptier_method* methods,
                                            size_t count, uptier_error* error) noexcept {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (methods == nullptr && count != 0) return bad_argument(error, "the methods are NULL");
  std::vector<CMethod*> removed;
  if (!runtime->methods.remove(std::span(methods, count), removed)) {
    return bad_argument(error, "one of the methods is not in service");
  }
  std::vector<MethodId> ids;
  for (const CMethod* m : removed) ids.push_back(m->id);
  runtime->runtime->remove_methods(ids);
  for (CMethod* m : removed) m->drop();
  return UPTIER_OK;
}

uptier_status uptier_runtime_entry(const uptier_runtime* runtime, uptier_method method,
                                   uptier_code* out, uptier_error* error) noexcept {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (out == nullptr) return bad_argument(error, "out is NULL");
  if (runtime->methods.find(method) == nullptr) {
    return bad_argument(error, "the method is not in service");
  }
  MethodId id = from_c<MethodId>(method);
  *out = reinterpret_cast<uptier_code>(const_cast<void*>(runtime->runtime->entry_address(id)));
  return UPTIER_OK;
}

}  // extern "C"
