// ast.h: what the parser makes, with every name resolved.
//
//   program    : statement*
//   statement  : let NAME [= e] | fn NAME (params) block | if e block [else if ... | else block]
//              | while e block | for NAME in e .. e block | return [e] | break | continue
//              | e | place = e                       place: NAME, e.NAME, e[e]
//   expression : or, and | == != < <= > >= | + - | * / // % | - not | call, index, field
//              | literals, NAME, fn (params) block, [e, ...], {NAME: e, ...}
//
// What is declared at the top level is global. Any other variable is a local of its function, and
// lives in a Cell when a function inside of it uses it, too.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lexer.h"
#include "vm.h"

namespace calc {

struct FunctionNode;

struct Variable {
  std::string name;
  FunctionNode* owner = nullptr;  // null: a global
  bool captured = false;
  bool constant = false;  // a loop's variable
  int index = 0;          // of the global, or the register
};

enum class NodeKind : uint8_t {
  kNumber,
  kString,
  kNil,
  kTrue,
  kFalse,
  kLocal,
  kGlobal,
  kCapture,
  kFunction,
  kArray,
  kRecord,
  kBinary,
  kNegate,
  kNot,
  kAnd,
  kOr,
  kCall,
  kBuiltin,
  kIndex,
  kField,
  kLet,
  kAssign,
  kExpression,
  kBlock,
  kIf,
  kWhile,
  kFor,
  kReturn,
  kBreak,
  kContinue,
};

struct Node {
  NodeKind kind;
  int line = 0;
  double number = 0;                 // kNumber; kCapture, kBuiltin: index
  std::string text = {};             // kNumber, kString, kField; kBinary: the operator
  Variable* variable = nullptr;      // kLocal, kGlobal, kLet, kFor
  FunctionNode* function = nullptr;  // kFunction
  std::vector<std::unique_ptr<Node>> kids = {};
  std::vector<std::string> names = {};  // kRecord
};
using NodePtr = std::unique_ptr<Node>;

// Where a closure takes a captured variable from: a cell of the function around, or one that it
// has captured itself.
struct Capture {
  Variable* variable;
  int from_outer = -1;  // index among the captures of the function around; -1: its own local
};

struct FunctionNode {
  std::string name;
  int line = 0;
  FunctionNode* outer = nullptr;
  std::vector<Variable*> params = {};
  std::vector<Capture> captures = {};
  NodePtr body = nullptr;
};

struct Program {
  std::vector<std::unique_ptr<FunctionNode>> functions;  // the first is the top level
  std::vector<std::unique_ptr<Variable>> variables;
  int globals = 0;
  std::string error;  // what is wrong, with its line; empty if nothing
};

Program parse(std::string_view source);

}  // namespace calc
