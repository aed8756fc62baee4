// ast.h: a program as a tree, with every name resolved.
//
// A name that is declared at the top level is global. Any other variable is a local of its
// function, and lives in a Cell when a function inside of it uses it, too (captured).
#pragma once

#include <deque>

#include "bytecode.h"

namespace calc {

struct Local {
  bool constant = false;  // a loop's variable
  bool captured = false;
  int reg = -1;  // of the value, or of its cell; see compile.cc
};

struct Node;
struct Function {
  std::string name;
  std::vector<Local*> params = {};
  // Captured variables of the functions around: a local of the next one, or one of its captures.
  struct Capture {
    Local* variable;
    bool local;
    size_t index;
  };
  std::vector<Capture> captures = {};
  std::vector<Node*> body = {};
};

struct Node {
  enum Is : uint8_t {
    // Expressions, with their kids.
    kConst,
    kLocal,
    kGlobal,
    kCapture,
    kBinary,   // left, right: `op` is kAdd or one of those
    kCompare,  // left, right: `op` is kJumpLess or one of those
    kAnd,      // left, right
    kOr,       // left, right
    kNot,      // value
    kNegate,   // value
    kField,    // record; `value` is the name
    kIndex,    // array, index
    kArray,    // elements
    kRecord,   // fields, in the order of `shape`
    kCall,     // function, arguments
    kBuiltin,  // arguments
    kFunction,
    // Statements
    kLet,     // the place, which is a local or a global, the value
    kAssign,  // the place, the value
    kIf,      // condition, then, else (or nothing)
    kWhile,   // condition, body
    kFor,     // from, to, body
    kBlock,
    kReturn,  // value
    kBreak,
    kContinue,
  };
  Is is;
  int line;
  std::vector<Node*> kids = {};
  Op op = {};
  Val value = 0;
  size_t index = 0;        // of a global, a capture, a builtin
  Local* local = nullptr;  // kLocal, kFor
  Shape* shape = nullptr;
  Function* function = nullptr;

  bool is_number() const { return is == kConst && calc::is_number(value); }
};

// Owns its nodes.
struct Tree {
  std::deque<Node> nodes;
  std::deque<Local> locals;
  std::deque<Function> functions;  // the first is the top level
  size_t globals = 0;
};

// Returns the error in a program, with its line, or nothing.
std::string parse(std::string_view source, Heap& heap, Tree& tree);

}  // namespace calc
