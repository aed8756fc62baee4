#include "tiering/model/method_table.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace uptier::tiering {

bool MethodTable::reserve(uint32_t capacity) {
  assert(methods_ == nullptr && capacity != 0);  // once, before anything else
  constexpr size_t kBytes = sizeof(*methods_) + sizeof(*ids_) + sizeof(*generations_);
  auto memory = sampler::Reservation::create(capacity * kBytes, "methods");
  if (!memory) return false;
  memory_ = std::move(*memory);
  methods_ = static_cast<std::atomic<Method*>*>(memory_.data());
  ids_ = reinterpret_cast<std::atomic<uint32_t>*>(methods_ + capacity);
  generations_ = ids_ + capacity;
  return true;
}

Method* MethodTable::known(MethodId m) const {
  if (!has_had(m)) return nullptr;
  Method& there = at(m.index());
  return there.id == m ? &there : nullptr;
}

void MethodTable::put(std::unique_ptr<Method> m) {
  uint32_t index = m->id.index();
  assert(methods_ != nullptr && index <= owned_.size());  // places are taken in order
  assert(index == owned_.size() || !serves(index));  // the previous method of the place was taken
                                                     // out
  assert(m->id.generation() >= generations_[index] && m->host_use == HostUse::kServes);
  methods_[index].store(m.get(), std::memory_order_release);  // pairs with at()
  auto& generation = generations_[index];
  generation = std::max<uint32_t>(generation, m->id.generation());
  ids_[index].store(m->id.number(), std::memory_order_release);  // pairs with serves()
  if (index < owned_.size()) {
    owned_[index] = std::move(m);
    return;
  }
  owned_.push_back(std::move(m));
  size_.store(index + 1, std::memory_order_release);  // pairs with size()
}

void MethodTable::take_out(const Method& m) {
  assert(serves(m.id));
  ids_[m.id.index()].store(MethodId::none().number(), std::memory_order_release);
}

}  // namespace uptier::tiering
