#include "mark.h"

#include "vm.h"

namespace calc {

void Marker::object(Object* o) {
  if (arena_.mark(o) && o->shape->kind != kString) open_.push_back(o);
}

void Marker::cell(Cell* c) {
  if (c != nullptr && arena_.mark(c)) value(c->value);
}

void Marker::finish() {
  while (!open_.empty()) {
    Object* o = open_.back();
    open_.pop_back();
    if (o->shape->kind != kFunction) {
      members(*static_cast<Row*>(o));
      continue;
    }
    auto* f = static_cast<Closure*>(o);
    for (size_t k = 0; k < f->proto->captures.size(); ++k) cell(f->cells[k]);
  }
}

void Marker::members(Row& row) {
  bool apart = row.data != row.inside();
  if (apart) arena_.mark(row.data);
  for (uint32_t k = 0; k < row.length; ++k) value(row.data[k]);
}

// Elements that only their address is left of are words of any kind: how many are in use is not
// known.
void Marker::word(uint64_t w) {
  Arena::Chunk c = arena_.find(w >> 48 == kObjectTag >> 48 ? w - kObjectTag : w);
  if (c.start == nullptr) return;
  if (c.holds == Holds::kObject) return object(static_cast<Object*>(c.start));
  if (!arena_.mark(c.start)) return;
  auto* words = static_cast<const uint64_t*>(c.start);
  for (size_t k = 0; k < c.bytes / sizeof *words; ++k) {
    Arena::Chunk o = is_object(words[k]) ? arena_.find(words[k] - kObjectTag) : Arena::Chunk();
    if (o.start != nullptr && o.holds == Holds::kObject) object(static_cast<Object*>(o.start));
  }
}

// AddressSanitizer would object to reading what lies between variables.
[[gnu::no_sanitize("address")]] void Marker::words(const uint64_t* begin, const uint64_t* end) {
  for (const uint64_t* w = begin; w < end; ++w) word(*w);
}

// What callers keep in registers is in this frame; the one below begins under it.
[[gnu::noinline]] void Marker::native_stack(const void* base) {
  __builtin_unwind_init();
  auto below = [&]() __attribute__((noinline)) {
    words(static_cast<const uint64_t*>(__builtin_frame_address(0)),
          static_cast<const uint64_t*>(base));
  };
  below();
  asm volatile("" ::: "memory");  // this frame stays until then
}

// ---- Roots

void Heap::mark_reached() {
  Marker m(*this);
  for (auto& [text, string] : interned_) {
    if (string != nullptr) m.object(string);
  }
  if (roots) roots(m);
  m.finish();
}

// What compiled code and plans refer to lives as long as the program, also where the runtime's
// worker reads it: functions that calls have met, and constants, all of which are interned.
void Vm::mark_roots(Marker& m) const {
  for (Val v : globals) m.value(v);
  for (const auto& c : code.calls) {
    Closure* f = c->first.load(std::memory_order_relaxed);
    if (f != nullptr) m.object(f);
  }
  m.words(stack.get(), top);
  m.native_stack(native_stack_base);
}

}  // namespace calc
