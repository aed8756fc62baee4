// c_api/builder.h: the builder handle of the C API.
//
// It tracks the things that a FunctionBuilder trusts its caller with: the number of values, the
// types of variables, and the state of each block. So misuse is refused before it reaches the
// FunctionBuilder, in every build. The first refusal is final: after it every function does
// nothing.
//
//   Thread: the one that runs the `build` callback.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tiering/c_api/c_api.h"

struct uptier_builder {
  // Lists (cases, slots) are not longer than this, so a wrong count is detected before memory runs
  // out.
  static constexpr size_t kMaxList = 1u << 20;

  struct BlockState {
    bool sealed = false;
    bool begun = false;
  };

  uptier_builder(uptier_runtime& r, uptier::FunctionBuilder& b);

  // Each returns whether the function may continue; `what` is its name, for messages. `enter` is
  // for any function, `enter_block` for those that need a current block, `enter_inst` for those
  // that append to it.
  static bool enter(uptier_builder* b, const char* what);
  static bool enter_block(uptier_builder* b, const char* what);
  static bool enter_inst(uptier_builder* b, const char* what);

  // Remembers the error and returns false.
  bool refuse(std::string_view why);
  // Records that memory ran out; returns the status.
  uptier_status ran_out() noexcept;
  uptier_status status() const;

  bool has(uptier_value v);
  bool has(uptier_block b);
  bool has(uptier_variable x);
  // Accepts a block that can still be jumped to.
  bool has_open(uptier_block b);
  bool is_type(uptier_type t);
  // Accepts an existing operation that has one of the shapes.
  bool is_op(uptier_opcode op, std::initializer_list<uptier::Shape> shapes);
  // Accepts the kind of a probe that a body may request.
  bool is_probe(uptier_probe_kind kind);
  // Converts a list of ids; returns false if one of them is wrong.
  template <typename Typed, typename C>
  bool list(const C* ids, size_t count, std::vector<Typed>& out) {
    if (ids == nullptr && count != 0) return refuse("a list is NULL");
    if (count > kMaxList) return refuse("a list is too long");
    for (size_t i = 0; i < count; ++i) {
      if (!has(ids[i])) return false;
      out.push_back(uptier::tiering::from_c<Typed>(ids[i]));
    }
    return true;
  }
  // Converts an address; returns false if it is wrong. `allowed`: the flags that may be set.
  bool address(const uptier_address& at, uint32_t allowed, uptier::Address& out);

  // Records a new value and returns its id.
  uptier_value made(uptier::Value v);

  uptier_runtime& runtime;
  uptier::FunctionBuilder& builder;
  uptier::Status error;
  const char* what = "";
  uint32_t value_count = 0;
  uint32_t file_count = 0;
  bool current_is_empty = true;
  std::vector<uptier::Type> variables;
  std::vector<BlockState> blocks;
};

// Returns the builder's state, or UPTIER_INVALID_ARGUMENT for a null builder.
inline uptier_status status_of(const uptier_builder* b) {
  return b != nullptr ? b->status() : UPTIER_INVALID_ARGUMENT;
}
