#include "object.h"

#include <sys/mman.h>

#include <algorithm>

namespace calc {

int Shape::find(const String* name) const {
  auto at = std::ranges::find(fields, name);
  return at == fields.end() ? -1 : static_cast<int>(at - fields.begin());
}

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

void* Heap::allocate(size_t bytes) {
  bytes = (bytes + 15) & ~size_t{15};
  if (bytes > static_cast<size_t>(end_ - next_)) return nullptr;
  char* p = next_;
  next_ += bytes;
  if (next_ > ready_) prepare();
  return p;
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
  *r = {{shape}, length, capacity, reinterpret_cast<Val*>(r + 1)};
  std::fill_n(r->data, length, fill);
  return r;
}

Closure* Heap::closure(Proto* proto, size_t cells) {
  auto* c = static_cast<Closure*>(allocate(sizeof(Closure) + sizeof(Cell*) * cells));
  if (c == nullptr) return nullptr;
  c->shape = &function_shape;
  c->proto = proto;
  return c;
}

Cell* Heap::cell(Val v) {
  auto* c = static_cast<Cell*>(allocate(sizeof(Cell)));
  if (c != nullptr) c->value = v;
  return c;
}

bool Heap::push(Row* r, Val v) {
  if (r->length == r->capacity) {
    auto* larger = static_cast<Val*>(allocate(sizeof(Val) * r->capacity * 2));
    if (larger == nullptr) return false;
    r->data = std::copy_n(r->data, r->length, larger) - r->length;
    r->capacity *= 2;
  }
  r->data[r->length++] = v;
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
