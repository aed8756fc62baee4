#include "tracing/dispatcher/kinds.h"

namespace uptier::tracing {
namespace {

constexpr const char* kNames[] = {nullptr,  "graph",   "node",     "edge",     "region",
                                  "task",   "barrier", "lock",     "signal",   "transfer",
                                  "thread", "wait",    "function", "metadata", "arguments"};

}  // namespace

Kinds::Kinds() {
  for (size_t i = 0; i < std::size(kNames); ++i) names_[i] = kNames[i];
}

uint32_t Kinds::user(const char* tool, const char* name) {
  const Held lock(mutex_);
  const std::pair<std::string, std::string> key(tool, name);
  if (auto known = users_.find(key); known != users_.end()) return known->second;
  const auto kind = static_cast<uint32_t>(UPTIER_TRACE_FIRST_USER_KIND + users_.size());
  if (kind >= UPTIER_TRACE_KINDS) return 0;
  std::string text = key.first + "." + key.second;
  users_.emplace(key, kind);
  texts_[kind] = std::move(text);
  names_[kind].store(texts_[kind].c_str(), std::memory_order_release);
  return kind;
}

const char* Kinds::name(uint32_t kind) const noexcept {
  return kind < names_.size() ? names_[kind].load(std::memory_order_acquire) : nullptr;
}

}  // namespace uptier::tracing
