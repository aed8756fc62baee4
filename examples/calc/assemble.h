// assemble.h: what the compiler is made with: tokens, code, registers, names. See compile.cc.
//
// An Expr is a value that has no register yet, if that can wait: a constant may become an operand,
// and an instruction's target is filled in when it is known who wants it (put).
#pragma once

#include <algorithm>
#include <set>

#include "lexer.h"
#include "vm.h"

namespace calc {

inline constexpr uint32_t kMaxRegisters = 250;

struct Operator {
  int strength;
  Op op;  // != is the opposite of this
};
inline const std::map<std::string_view, Operator> kOperators = {
    {"or", {1, Op::kJumpIf}},   {"and", {2, Op::kJumpUnless}},
    {"==", {3, Op::kEqual}},    {"!=", {3, Op::kEqual}},
    {"<", {3, Op::kLess}},      {"<=", {3, Op::kLessEqual}},
    {">", {3, Op::kGreater}},   {">=", {3, Op::kGreaterEqual}},
    {"+", {4, Op::kAdd}},       {"-", {4, Op::kSub}},
    {"*", {5, Op::kMul}},       {"/", {5, Op::kDiv}},
    {"//", {5, Op::kFloorDiv}}, {"%", {5, Op::kMod}}};

using Jumps = std::vector<uint32_t>;  // whose targets are still to come

struct Local {
  int reg;
  size_t number;  // in the order of declarations
  bool constant;  // a loop's variable
};

// The function being compiled.
struct Function {
  Function* outer = nullptr;
  Proto* proto = nullptr;
  std::vector<Instr> instrs = {};
  std::vector<int> lines = {};
  std::vector<std::map<std::string, Local>> scopes = {{}};
  std::vector<size_t> captures = {};  // numbers of the variables
  struct Loop {
    Jumps breaks, continues;
  };
  std::vector<Loop> loops = {};
  uint32_t next = 0, most = 0;  // registers
};

// An expression's value: a constant, in a register, or what an instruction writes to a register
// that is still to be chosen.
struct Expr {
  enum Is : uint8_t { kConst, kReg, kOpen } is;
  Val k = 0;
  int reg = 0;
  uint32_t at = 0;
  bool constant = false;  // kReg: cannot be assigned to
  bool local = false;     // kReg: of a variable

  bool number() const { return is == kConst && is_number(k); }
};

// A condition: code goes on when it holds. `last` is the last jump of `no`.
struct Condition {
  Jumps yes, no;
  uint32_t last() const { return no.back(); }
};

class Assembler {
 public:
  Assembler(const std::vector<Token>& tokens, Heap& heap, Code& code, std::set<size_t>& captured)
      : tokens_(tokens), heap_(heap), code_(code), captured_(captured) {
    // What is declared at the top level may be used in a function further up.
    int depth = 0;
    for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
      depth += tokens_[i].is("{") ? 1 : tokens_[i].is("}") ? -1 : 0;
      bool declares = tokens_[i].is("let") || tokens_[i].is("fn");
      if (depth != 0 || !declares || tokens_[i + 1].kind != Tok::kName) continue;
      globals_.try_emplace(tokens_[i + 1].text, static_cast<int>(globals_.size()));
    }
  }

 protected:
  // ---- Tokens
  const Token& peek() const { return tokens_[at_]; }
  bool ok() const { return error_.empty(); }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool accept(std::string_view s) { return peek().is(s) && (take(), true); }
  void expect(std::string_view s) {
    if (!accept(s)) fail("expected '" + std::string(s) + "', found '" + peek().text + "'");
  }
  std::string name() {
    if (peek().kind != Tok::kName) fail("expected a name, found '" + peek().text + "'");
    return take().text;
  }
  void fail(const std::string& what) {
    if (ok()) error_ = "line " + std::to_string(peek().line) + ": " + what;
    at_ = tokens_.size() - 1;
  }
  bool same_line() const { return at_ > 0 && peek().line == tokens_[at_ - 1].line; }
  int strength() const {
    bool symbol = peek().kind == Tok::kSymbol || peek().kind == Tok::kKeyword;
    auto found = kOperators.find(peek().text);
    return symbol && found != kOperators.end() ? found->second.strength : 0;
  }

  // ---- Code
  uint32_t here() const { return static_cast<uint32_t>(f_->instrs.size()); }
  uint32_t emit(Op op, int a = 0, int b = 0, int c = 0, size_t d = 0) {
    f_->instrs.push_back({op, static_cast<uint8_t>(a), static_cast<uint8_t>(b),
                          static_cast<uint8_t>(c), static_cast<int32_t>(d)});
    f_->lines.push_back(line_);
    return here() - 1;
  }
  void land(const Jumps& jumps) {
    for (uint32_t j : jumps) f_->instrs[j].d = static_cast<int32_t>(here());
  }
  int allocate() {
    f_->most = std::max(f_->most, f_->next + 1);
    return static_cast<int>(f_->next++);
  }
  size_t constant(Val v) {
    auto [at, is_new] = constants_.try_emplace(v, code_.constants.size());
    if (is_new) code_.constants.push_back(v);
    return at->second;
  }
  static Expr in(int reg) { return {.is = Expr::kReg, .reg = reg}; }
  static Expr value(Val k) { return {.is = Expr::kConst, .k = k}; }
  Expr open_at(uint32_t at) { return {.is = Expr::kOpen, .at = at}; }
  Expr emit_open(Op op, int b = 0, int c = 0, size_t d = 0) {
    return open_at(emit(op, 0, b, c, d));
  }
  // Returns the register that holds the value: `wanted`, or if that is -1 one of its own choice.
  int put(const Expr& e, int wanted = -1) {
    if (e.is == Expr::kReg && (wanted < 0 || wanted == e.reg)) return e.reg;
    int a = wanted < 0 ? allocate() : wanted;
    if (e.is == Expr::kConst) emit(Op::kConst, a, 0, 0, constant(e.k));
    if (e.is == Expr::kReg) emit(Op::kMove, a, e.reg);
    if (e.is == Expr::kOpen) f_->instrs[e.at].a = static_cast<uint8_t>(a);
    return a;
  }
  // Puts the value into the first register from `keep` on.
  int put_next(const Expr& e, uint32_t keep) {
    f_->next = keep;
    return put(e, allocate());
  }

  // ---- Names
  Local& declare(const std::string& called, int reg) {
    return f_->scopes.back()[called] = {reg, declared_++, false};
  }
  bool captured(const Local& v) const { return captured_.contains(v.number); }
  static Local* find(Function& f, const std::string& called) {
    for (auto s = f.scopes.rbegin(); s != f.scopes.rend(); ++s) {
      auto found = s->find(called);
      if (found != s->end()) return &found->second;
    }
    return nullptr;
  }
  // Returns the index of a variable of a function further out among the captures of `f`.
  size_t capture(Function& f, const Function& owner, const Local& v) {
    for (size_t i = 0; i < f.captures.size(); ++i) {
      if (f.captures[i] == v.number) return i;
    }
    captured_.insert(v.number);
    bool local = f.outer == &owner;
    size_t from = local ? static_cast<size_t>(v.reg) : capture(*f.outer, owner, v);
    f.captures.push_back(v.number);
    f.proto->captures.push_back({local, static_cast<uint32_t>(from)});
    return f.captures.size() - 1;
  }
  Expr resolve(const std::string& called) {
    for (Function* f = f_; f != nullptr; f = f->outer) {
      Local* v = find(*f, called);
      if (v == nullptr) continue;
      Expr e = f != f_        ? emit_open(Op::kGetCapture, 0, 0, capture(*f_, *f, *v))
               : captured(*v) ? emit_open(Op::kGetCell, v->reg)
                              : Expr{.is = Expr::kReg, .reg = v->reg, .local = true};
      e.constant = v->constant;
      return e;
    }
    auto global = globals_.find(called);
    if (global != globals_.end()) {
      return emit_open(Op::kGetGlobal, 0, 0, static_cast<size_t>(global->second));
    }
    fail("no variable is called '" + called + "'");
    return value(kNilVal);
  }

  // ---- Functions
  void open(const std::string& called, Function& f) {
    f.outer = f_;
    f_ = &f;
    code_.protos.push_back(std::make_unique<Proto>());
    f.proto = code_.protos.back().get();
    f.proto->name = called;
    f.proto->index = static_cast<uint32_t>(code_.protos.size()) - 1;
  }
  // Adds its code to the program's.
  void close() {
    emit(Op::kReturn, put(value(kNilVal)));
    Function& f = *f_;
    f.proto->begin = static_cast<uint32_t>(code_.instrs.size());
    for (Instr& i : f.instrs) {
      if (is_jump(i.op)) i.d += static_cast<int32_t>(f.proto->begin);
      code_.instrs.push_back(i);
    }
    code_.lines.insert(code_.lines.end(), f.lines.begin(), f.lines.end());
    f.proto->end = static_cast<uint32_t>(code_.instrs.size());
    f.proto->registers = f.most;
    if (f.most > kMaxRegisters) fail("function " + f.proto->name + " needs too many registers");
    f_ = f.outer;
  }
  const std::vector<Token>& tokens_;
  Heap& heap_;
  Code& code_;
  std::set<size_t>& captured_;  // variables, by number
  std::string error_;
  size_t at_ = 0;
  int line_ = 1;
  Function* f_ = nullptr;
  size_t declared_ = 0;
  std::map<std::string, int> globals_;
  std::map<Val, size_t> constants_;
};

}  // namespace calc
