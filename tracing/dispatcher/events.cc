#include "tracing/dispatcher/events.h"

#include <algorithm>
#include <cstring>

namespace uptier::tracing {

uptier_trace_event* Events::make(const uptier_trace_payload& given) {
  uptier_trace_payload p = {};
  std::memcpy(&p, &given, std::min(given.size, sizeof p));
  const Key key(strings_.intern(p.file), strings_.intern(p.function), p.line, p.column);
  const uptier_trace_string name = strings_.intern(p.name);
  const bool has_key = std::get<0>(key) != 0 || std::get<1>(key) != 0;
  const Held lock(mutex_);
  if (has_key) {
    if (auto known = by_key_.find(key); known != by_key_.end()) {
      known->second->instances.fetch_add(1, std::memory_order_relaxed);
      return known->second;
    }
  }
  auto owned = std::make_unique<uptier_trace_event>();
  uptier_trace_event* e = owned.get();
  e->id = events_.size() + 1;
  e->name = name;
  std::tie(e->file, e->function, e->line, e->column) = key;
  e->address = p.address;
  if (has_key) by_key_.emplace(key, e);
  try {
    events_.add(std::move(owned));
  } catch (const std::bad_alloc&) {
    if (has_key) by_key_.erase(key);
    throw;
  }
  return e;
}

uptier_trace_event* Events::find(uint64_t id) const noexcept {
  const std::unique_ptr<uptier_trace_event>* found = id == 0 ? nullptr : events_.find(id - 1);
  return found == nullptr ? nullptr : found->get();
}

void Events::payload(const uptier_trace_event& e, uptier_trace_payload& out) const noexcept {
  uptier_trace_payload p = {};
  p.size = out.size;
  p.name = strings_.text(e.name);
  p.file = strings_.text(e.file);
  p.function = strings_.text(e.function);
  p.line = e.line;
  p.column = e.column;
  p.address = e.address;
  std::memcpy(&out, &p, std::min(out.size, sizeof p));
}

void Events::set_metadata(uptier_trace_event& e, uptier_trace_string key,
                          const uptier_trace_value& value) {
  const Held lock(e.mutex);
  auto at = std::ranges::lower_bound(e.metadata, key, {},
                                     &std::pair<uptier_trace_string, uptier_trace_value>::first);
  if (at != e.metadata.end() && at->first == key) {
    at->second = value;
  } else {
    e.metadata.insert(at, {key, value});
  }
}

void Events::each_metadata(const uptier_trace_event& event, uptier_trace_visitor visit,
                           void* user) {
  auto& e = const_cast<uptier_trace_event&>(event);
  std::vector<std::pair<uptier_trace_string, uptier_trace_value>> all;
  {
    const Held lock(e.mutex);
    all = e.metadata;
  }
  for (const auto& [key, value] : all) {
    if (visit(user, key, &value) == 0) return;
  }
}

}  // namespace uptier::tracing
