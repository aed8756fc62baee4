// validate_body.h: whether a function body is valid, without saying why one is not.
//
// Law: what is accepted here is valid WebAssembly of the features that read_module serves. The
// converse does not hold: memory.init and its like, and numbers that are written in more bytes than
// they need to be told apart from broken ones, are left to the library that knows them. So a
// refusal is no verdict, and whoever gets one asks that library, which also has the words for it.
//
// The algorithm is that of the specification's appendix: a stack of types, a stack of open blocks,
// and a bottom that yields any type behind an instruction that does not end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "embed/wasm/code_reader.h"
#include "embed/wasm/module_info.h"

namespace uptier::wasm {

// Validates one body after the other.
//
//   Thread: one at a time. Errors: none. Cost: linear in the bytes of the body.
class BodyValidator {
 public:
  explicit BodyValidator(const ModuleInfo& info) : info_(info) {}

  // Returns whether the body of an own function is accepted. The module's other declarations must
  // be read, and its bytes must reach to the end of the body.
  bool accepts(const FunctionInfo& function);

 private:
  struct Open {
    Op op;
    BlockType type;
    size_t height;       // of the stack below what the block takes
    bool ended = false;  // what follows is never run
  };

  void begin(const FunctionInfo& function);
  void read_locals(const FuncType& type);
  void step();
  void plain(uint8_t code);
  void access(uint8_t code);
  void control(Op op);
  void variable(Op op);
  void call(Op op);
  void constant(Op op);
  void memory(Op op);
  void prefixed_or_wrong(uint8_t code);
  void select();
  void branch_table();

  void open(Op op);
  void otherwise();
  void close();
  void end_path();

  // A wrong step ends the walk.
  void want(bool holds) { fits_ &= holds; }
  void push(Type t) { stack_.push_back(t); }
  void push_all(std::span<const Type> types) {
    for (Type t : types) push(t);
  }
  // Takes a value of the type; kNone takes any. Returns its type, kNone where any would do.
  Type pop(Type wanted);
  void pop_all(std::span<const Type> types) {
    for (size_t n = types.size(); n-- > 0;) pop(types[n]);
  }
  std::span<const Type> label_types(uint32_t depth);

  uint8_t byte();
  uint32_t u32();
  int64_t signed_number(unsigned bits);
  void skip(uint32_t bytes);
  BlockType block_type();

  const ModuleInfo& info_;
  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
  bool fits_ = true;
  std::vector<Type> locals_;
  std::vector<Type> stack_;
  std::vector<Open> open_;
};

}  // namespace uptier::wasm
