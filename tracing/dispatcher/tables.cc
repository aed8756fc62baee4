#include "tracing/dispatcher/tables.h"

namespace uptier::tracing {

uptier_trace_string Strings::intern(const char* text) {
  if (text == nullptr) return 0;
  const Held lock(mutex_);
  if (auto known = ids_.find(text); known != ids_.end()) return known->second;
  auto owned = std::make_unique<std::string>(text);
  const std::string_view view = *owned;
  // Take the id first: if the emplace throws, the text has no entry in ids_ and is merely interned
  // twice.
  const uptier_trace_string id = texts_.add(std::move(owned)) + 1;
  ids_.emplace(view, id);
  return id;
}

const char* Strings::text(uptier_trace_string id) const noexcept {
  const std::unique_ptr<std::string>* found = id == 0 ? nullptr : texts_.find(id - 1);
  return found == nullptr ? nullptr : (*found)->c_str();
}

uptier_trace_object Objects::intern(std::string_view bytes, uint32_t kind) {
  const Held lock(mutex_);
  if (auto known = ids_.find({kind, bytes}); known != ids_.end()) return known->second;
  auto owned = std::make_unique<Object>(Object{kind, std::string(bytes)});
  const std::string_view view = owned->bytes;
  const uptier_trace_object id = objects_.add(std::move(owned)) + 1;
  ids_.emplace(std::pair(kind, view), id);
  return id;
}

bool Objects::find(uptier_trace_object id, const void** bytes, size_t* size,
                   uint32_t* kind) const noexcept {
  const std::unique_ptr<Object>* found = id == 0 ? nullptr : objects_.find(id - 1);
  if (found == nullptr) return false;
  if (bytes != nullptr) *bytes = (*found)->bytes.data();
  if (size != nullptr) *size = (*found)->bytes.size();
  if (kind != nullptr) *kind = (*found)->kind;
  return true;
}

}  // namespace uptier::tracing
