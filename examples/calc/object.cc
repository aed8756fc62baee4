#include "object.h"

#include <algorithm>

#include "trace.h"

namespace calc {
namespace {

// As std::fill_n does, but what there is is copied, which the C library does in wide registers.
void fill_with(Val* to, size_t count, Val v) {
  size_t done = std::min<size_t>(count, 32);
  std::fill_n(to, done, v);
  for (; done < count; done *= 2) std::copy_n(to, std::min(done, count - done), to + done);
}

}  // namespace

int Shape::find(const String* name) const {
  auto at = std::ranges::find(fields, name);
  return at == fields.end() ? -1 : static_cast<int>(at - fields.begin());
}

String* Heap::concat(std::string_view a, std::string_view b) {
  size_t bytes = sizeof(String) + a.size() + b.size();
  auto* s = static_cast<String*>(allocate(bytes));
  if (s == nullptr) return nullptr;
  s->shape = &string_shape;
  s->length = static_cast<uint32_t>(a.size() + b.size());
  std::copy_n(a.data(), a.size(), s->text);
  std::copy_n(b.data(), b.size(), s->text + a.size());
  return s;
}

String* Heap::intern(std::string_view text) {
  auto at = interned_.find(text);
  return at != interned_.end() ? at->second : interned_[std::string(text)] = concat(text, {});
}

Row* Heap::row(Shape* shape, uint32_t length, Val fill) {
  uint32_t capacity = std::max(length, 4u);
  auto* r = static_cast<Row*>(allocate(sizeof(Row) + sizeof(Val) * capacity));
  if (r == nullptr) return nullptr;
  *r = {{shape}, length, capacity, r->inside()};
  fill_with(r->data, capacity, fill);
  return r;
}

Closure* Heap::closure(Proto* proto, size_t cells) {
  size_t bytes = sizeof(Closure) + sizeof(Cell*) * cells;
  auto* c = static_cast<Closure*>(allocate(bytes));
  if (c == nullptr) return nullptr;
  c->shape = &function_shape;
  c->proto = proto;
  std::fill_n(c->cells, cells, nullptr);
  return c;
}

Cell* Heap::cell(Val v) {
  auto* c = static_cast<Cell*>(allocate(sizeof(Cell)));
  if (c != nullptr) c->value = v;
  return c;
}

bool Heap::push(Row* r, Val v) {
  if (r->length == r->capacity) {
    size_t bytes = sizeof(Val) * r->capacity * 2;
    auto* larger = static_cast<Val*>(allocate(bytes));
    if (larger == nullptr) return false;
    std::fill_n(std::copy_n(r->data, r->length, larger), r->length, kNilVal);
    r->data = larger;
    r->capacity *= 2;
  }
  r->data[r->length++] = v;
  return true;
}

uint64_t Heap::collection_begins(size_t in_use) {
  return trace == nullptr ? 0 : trace->begin_collection(in_use);
}

void Heap::collection_ends(uint64_t told, size_t in_use, size_t found_dead) {
  if (told != 0) trace->end_collection(told, in_use, found_dead);
}

void Heap::reach_roots() {
  for (auto& [text, string] : interned_) reach(reinterpret_cast<uintptr_t>(string));
  if (roots) roots();
}

Shape* Heap::with_field(Shape* s, String* name) {
  std::unique_ptr<Shape>& next = s->then[name];
  if (next == nullptr) {
    next = std::make_unique<Shape>(Shape{kRecord, s->fields, {}});
    next->fields.push_back(name);
  }
  return next.get();
}

}  // namespace calc
