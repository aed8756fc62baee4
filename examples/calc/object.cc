#include "object.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace calc {

Heap::Heap(size_t limit_bytes) : limit_(limit_bytes) {
  void* p = mmap(nullptr, limit_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) p = nullptr, limit_ = 0;
  base_ = next_ = ready_ = static_cast<char*>(p);
  end_ = base_ + limit_;
}

Heap::~Heap() {
  if (limit_ != 0) munmap(base_, limit_);
}

// Pages are taken as they are used, so a large limit costs nothing by itself; many at a time, which
// costs less than a fault for each.
void Heap::prepare() {
  constexpr ptrdiff_t kAtATime = 1 << 20;
  ptrdiff_t size = std::min(std::max(next_ - ready_, kAtATime), end_ - ready_);
#ifdef MADV_POPULATE_WRITE
  madvise(ready_, static_cast<size_t>(size) & ~size_t{4095}, MADV_POPULATE_WRITE);
#endif
  ready_ += size & ~ptrdiff_t{4095};
  if (ready_ < next_) ready_ = end_;
}

String* Heap::concat(std::string_view a, std::string_view b) {
  auto* s = static_cast<String*>(allocate(sizeof(String) + a.size() + b.size()));
  if (s == nullptr) return nullptr;
  s->shape = &String::kShape;
  s->length = static_cast<uint32_t>(a.size() + b.size());
  std::copy_n(a.data(), a.size(), s->text);
  std::copy_n(b.data(), b.size(), s->text + a.size());
  return s;
}

String* Heap::intern(std::string_view text) {
  auto at = interned_.find(text);
  return at != interned_.end() ? at->second : interned_[std::string(text)] = concat(text, {});
}

Array* Heap::array(uint32_t length, Val fill) {
  auto* a = static_cast<Array*>(allocate(sizeof(Array)));
  if (a == nullptr) return nullptr;
  *a = {{&Array::kShape}, nullptr, length, 0};
  if (!grow(a->data, a->capacity, std::max(length, 4u))) return nullptr;
  std::fill_n(a->data, length, fill);
  return a;
}

Record* Heap::record(Shape* shape) {
  auto* r = static_cast<Record*>(allocate(sizeof(Record)));
  if (r == nullptr) return nullptr;
  r->shape = shape;
  r->more = nullptr;
  r->more_capacity = 0;
  auto fields = static_cast<uint32_t>(shape->fields.size());
  bool fits = fields <= Record::kInline;
  return fits || grow(r->more, r->more_capacity, fields - Record::kInline) ? r : nullptr;
}

Closure* Heap::closure(Proto* proto, size_t cells) {
  auto* c = static_cast<Closure*>(allocate(sizeof(Closure) + sizeof(Cell*) * cells));
  if (c == nullptr) return nullptr;
  c->shape = &Closure::kShape;
  c->proto = proto;
  return c;
}

bool Heap::grow(Val*& data, uint32_t& capacity, uint32_t wanted) {
  auto* larger = static_cast<Val*>(allocate(sizeof(Val) * wanted));
  if (larger == nullptr) return false;
  std::copy_n(data, capacity, larger);
  data = larger;
  capacity = wanted;
  return true;
}

bool Heap::push(Array* a, Val v) {
  if (a->length == a->capacity && !grow(a->data, a->capacity, a->capacity * 2)) return false;
  a->data[a->length++] = v;
  return true;
}

bool Heap::add_field(Record* r, Shape* with, Val v) {
  auto slot = static_cast<uint32_t>(with->fields.size()) - 1;
  bool fits = slot < Record::kInline + r->more_capacity;
  if (!fits && !grow(r->more, r->more_capacity, r->more_capacity * 2 + 4)) return false;
  r->slot(slot) = v;
  r->shape = with;
  return true;
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
