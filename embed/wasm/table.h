// table.h: tables of function references, and globals.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "embed/wasm/types.h"
#include "embed/wasm/vmctx.h"
#include "uptier/result.h"

namespace uptier::wasm {

// A table. Its size is fixed (table.grow belongs to the part of reference types that the engine
// does not serve), so code keeps its base and size.
//
// Thread: one at a time, with the store it belongs to.
class Table {
 public:
  // Creates a table of `limits.min` null references. Errors: kResourceExhausted past `max_entries`
  // or when memory is refused.
  static Result<std::unique_ptr<Table>> create(const Limits& limits, uint32_t max_entries);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  uint32_t size() const { return size_; }
  const std::optional<uint64_t>& max() const { return max_; }
  std::span<FuncRef> entries() { return {entries_, size_}; }

  bool contains(uint64_t index, uint64_t count) const {
    return index <= size_ && count <= size_ - index;
  }

 private:
  Table() = default;
  FuncRef* entries_ = nullptr;
  uint32_t size_ = 0;
  uint64_t mapped_ = 0;
  std::optional<uint64_t> max_;
};

// A global: its type and the place of its bits, which belongs to an instance or to the store.
struct Global {
  GlobalType type;
  uint64_t* cell = nullptr;

  Val get() const { return {type.type, *cell}; }
  // The value's type must be the global's.
  void set(Val v) const { *cell = v.bits; }
};

}  // namespace uptier::wasm
