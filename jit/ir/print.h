// print.h: the text form of functions, which parse.h reads back.
//
//   func @fib(i32) -> i32 [sites 3+2, loops 0, cfg 0x1234] {
//   b0(v0: i32):
//     probe block 1
//     v1 = const.i32 2
//     v2 = lt_s.i32 v0, v1
//     branch v2, b1, b2
//   ...
//     v6 = call @fib(v5) site 4 @12
//   }
//
// The bracket holds numbers that cannot be recomputed once passes have run: block sites + other
// sites, loops, CFG hash. `site 4` is a call's site, `@12` a source location; both are left out if
// 0. A function with inlined bodies lists them at the end of the bracket, each with its parent and
// the site of the call there; instructions of the k-th one have `in k`:
//
//   func @g() [sites 1+1, loops 0, cfg 0x5678, inlined [@fib#0 in 0 site 2 sites 3+2]] {
//     probe block 1 in 1
//
// Values and blocks are numbered as they appear, so
//
//   print(parse(print(f))) == print(f), and parse(print(f)) is f with its numbers made dense.
//
// Floats are the shortest decimal that reads back to the same bits; NaNs are `nan:0x<bits>`.
// Printing never fails and never crashes: broken parts of a Function appear with a `?`.
#pragma once

#include <string>
#include <vector>

#include "jit/ir/function.h"
#include "jit/ir/module.h"

namespace uptier::jit {

// Prints one function as a module of one: calls of itself are `@name`, others `@name#<method>`.
std::string to_text(const Function& f);
std::string to_text(const Module& m);

// Prints "(i32, f64)->i32".
std::string to_text(const Signature& s);

// Prints a constant of the type as in IR text. Ints are signed decimals, refs are hex.
std::string constant_text(Type t, uint64_t bits);

// Prints parts of one function with the numbers of its whole text. Keeps a reference to it.
class Printer {
 public:
  // `m`, if given, is the module that `f` belongs to.
  explicit Printer(const Function& f, const Module* m = nullptr);

  std::string function() const;
  std::string inst(const Inst& i) const;  // without indentation and newline
  std::string value(Value v) const;       // "v7"; "v?12" for a value without a definition
  std::string block(Block b) const;       // "b2"; "b?5" for a block outside the layout

 private:
  void number();
  bool is_listed(InstId i) const { return i.index() < f_.insts.size(); }
  std::span<const Value> values(ValueList l) const;
  std::string value_list(std::span<const Value> vs) const;
  std::string edge(const Edge& e) const;
  std::string address(std::span<const Value> vs, const Inst& i) const;
  std::string operands(const Inst& i) const;
  std::string signature_text(uint32_t index) const;
  std::string call(const Inst& i) const;
  std::string callee(const Inst& i) const;
  std::string edges(const Inst& i) const;
  std::string probe(const Inst& i) const;
  std::string inlined() const;

  const Function& f_;
  const Module* module_;
  std::vector<uint32_t> value_numbers_;
  std::vector<uint32_t> block_numbers_;
};

}  // namespace uptier::jit
