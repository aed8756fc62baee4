#include "embed/wasm/table.h"

#include <sys/mman.h>

#include <string>

namespace uptier::wasm {

Result<std::unique_ptr<Table>> Table::create(const Limits& limits, uint32_t max_entries) {
  std::unique_ptr<Table> t(new Table);
  t->max_ = limits.max;
  if (limits.min > max_entries) {
    return Error{ErrorCode::kResourceExhausted, "a table of " + std::to_string(limits.min) +
                                                    " elements is over the limit of " +
                                                    std::to_string(max_entries)};
  }
  t->size_ = static_cast<uint32_t>(limits.min);
  if (t->size_ == 0) return t;
  // Mapped, not allocated: pages of a large table that nothing fills cost nothing.
  t->mapped_ = uint64_t{t->size_} * sizeof(FuncRef);
  void* p = mmap(nullptr, t->mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) {
    t->mapped_ = 0;
    return Error{ErrorCode::kResourceExhausted,
                 "the system refuses a table of " + std::to_string(limits.min) + " elements"};
  }
  t->entries_ = static_cast<FuncRef*>(p);
  return t;
}

Table::~Table() {
  if (mapped_ != 0) munmap(entries_, mapped_);
}

}  // namespace uptier::wasm
