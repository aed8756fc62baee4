#include "object.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace calc {

// Pages are taken when they are touched, so a large limit costs nothing by itself.
Heap::Heap(size_t limit_bytes) : limit_(limit_bytes) {
  void* p = mmap(nullptr, limit_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  base_ = next_ = p == MAP_FAILED ? nullptr : static_cast<char*>(p);
  end_ = base_ == nullptr ? nullptr : base_ + limit_;
}

Heap::~Heap() {
  if (base_ != nullptr) munmap(base_, limit_);
}

String* Heap::string(std::string_view text) { return concat(text, {}); }

String* Heap::concat(std::string_view a, std::string_view b) {
  auto* s = static_cast<String*>(allocate(sizeof(String) + a.size() + b.size()));
  if (s == nullptr) return nullptr;
  s->shape = &string_shape;
  s->length = static_cast<uint32_t>(a.size() + b.size());
  std::memcpy(s->text, a.data(), a.size());
  if (!b.empty()) std::memcpy(s->text + a.size(), b.data(), b.size());
  return s;
}

String* Heap::intern(std::string_view text) {
  auto [at, is_new] = interned_.try_emplace(std::string(text), nullptr);
  if (is_new) at->second = string(text);
  return at->second;
}

Array* Heap::array(uint32_t length) {
  auto* a = static_cast<Array*>(allocate(sizeof(Array)));
  uint32_t capacity = std::max(length, 4u);
  auto* data = static_cast<Val*>(allocate(sizeof(Val) * capacity));
  if (a == nullptr || data == nullptr) return nullptr;
  std::fill_n(data, length, nil());
  a->shape = &array_shape;
  a->data = data;
  a->length = length;
  a->capacity = capacity;
  return a;
}

Record* Heap::record(Shape* shape) {
  auto* r = static_cast<Record*>(allocate(sizeof(Record)));
  if (r == nullptr) return nullptr;
  r->shape = shape;
  r->more = nullptr;
  r->more_capacity = 0;
  auto fields = static_cast<uint32_t>(shape->fields.size());
  if (fields <= Record::kInline) return r;
  r->more_capacity = fields - Record::kInline;
  r->more = static_cast<Val*>(allocate(sizeof(Val) * r->more_capacity));
  return r->more == nullptr ? nullptr : r;
}

Cell* Heap::cell(Val v) {
  auto* c = static_cast<Cell*>(allocate(sizeof(Cell)));
  if (c == nullptr) return nullptr;
  c->shape = &nil_shape_;
  c->value = v;
  return c;
}

Closure* Heap::closure(Proto* proto, uint32_t cells) {
  auto* c = static_cast<Closure*>(allocate(sizeof(Closure) + sizeof(Cell*) * cells));
  if (c == nullptr) return nullptr;
  c->shape = &function_shape;
  c->proto = proto;
  return c;
}

bool Heap::push(Array* a, Val v) {
  if (a->length == a->capacity) {
    uint32_t capacity = a->capacity * 2;
    auto* data = static_cast<Val*>(allocate(sizeof(Val) * capacity));
    if (data == nullptr) return false;
    std::copy_n(a->data, a->length, data);
    a->data = data;
    a->capacity = capacity;
  }
  a->data[a->length++] = v;
  return true;
}

bool Heap::add_field(Record* r, Shape* with, Val v) {
  auto slot = static_cast<uint32_t>(with->fields.size()) - 1;
  if (slot >= Record::kInline + r->more_capacity) {
    uint32_t capacity = r->more_capacity * 2 + 4;
    auto* more = static_cast<Val*>(allocate(sizeof(Val) * capacity));
    if (more == nullptr) return false;
    std::copy_n(r->more, r->more_capacity, more);
    r->more = more;
    r->more_capacity = capacity;
  }
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
