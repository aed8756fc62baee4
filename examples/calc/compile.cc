// From text to bytecode in one go: an expression is compiled where it is read. Registers:
// parameters, then locals, then what an expression needs meanwhile, like a stack.
//
//   program    : statement*
//   statement  : let NAME [= e] | fn NAME (params) block | if e block [else if ... | else block]
//              | while e block | for NAME in e .. e block | return [e] | break | continue
//              | e | place = e                       place: NAME, e.NAME, e[e]
//   expression : or, and | == != < <= > >= | + - | * / // % | - not | call, index, field
//              | literals, NAME, fn (params) block, [e, ...], {NAME: e, ...}
//
// What is declared at the top level is global. Any other variable is a local of its function, and
// lives in a Cell when a function inside of it uses it, too. That is known too late, so a program
// is compiled twice: the first time finds out which variables are captured.
#include <algorithm>
#include <cmath>
#include <set>

#include "lexer.h"
#include "vm.h"

namespace calc {
namespace {

constexpr uint32_t kMaxRegisters = 250;

struct Operator {
  int strength;
  Op op;  // != is the opposite of this
};
const std::map<std::string_view, Operator> kOperators = {
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

class Compiler {
 public:
  Compiler(const std::vector<Token>& tokens, Heap& heap, Code& code, std::set<size_t>& captured)
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

  std::string run() {
    Function main;
    open("main", main);
    while (ok() && peek().kind != Tok::kEnd) statement();
    close();
    code_.globals = static_cast<uint32_t>(globals_.size());
    return error_;
  }

 private:
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
  Expr function(const std::string& called) {
    Function f;
    open(called, f);
    expect("(");
    while (ok() && !accept(")")) {
      declare(name(), allocate());
      if (!peek().is(")")) expect(",");
    }
    f.proto->params = f.next;
    if (f.next > kMaxParams) fail("a function has 6 parameters at most");
    for (auto& [param, v] : f.scopes[0]) {
      if (captured(v)) emit(Op::kNewCell, v.reg);
    }
    block();
    close();
    return emit_open(Op::kClosure, 0, 0, f.proto->index);
  }

  // ---- Statements
  void block() {
    expect("{");
    uint32_t keep = f_->next;
    f_->scopes.push_back({});
    while (ok() && !peek().is("}")) statement();
    f_->scopes.pop_back();
    f_->next = keep;
    expect("}");
  }
  void statement() {
    line_ = peek().line;
    if (accept(";")) return;
    if (accept("let")) return let();
    if (peek().is("fn") && tokens_[at_ + 1].kind == Tok::kName) return function_statement();
    uint32_t keep = f_->next;
    if (accept("if")) {
      if_else();
    } else if (accept("while")) {
      while_loop();
    } else if (accept("for")) {
      for_loop();
    } else if (accept("return")) {
      bool nothing = !same_line() || peek().is("}");
      emit(Op::kReturn, put(nothing ? value(kNilVal) : expression()));
    } else if (peek().is("break") || peek().is("continue")) {
      if (f_->loops.empty()) return fail("there is no loop around");
      Function::Loop& loop = f_->loops.back();
      (take().text == "break" ? loop.breaks : loop.continues).push_back(emit(Op::kJump));
    } else {
      assignment();
    }
    f_->next = keep;
  }
  bool is_global(const std::string& called) const {
    return f_->outer == nullptr && f_->scopes.size() == 1 && globals_.contains(called);
  }
  void let() {
    std::string called = name();
    uint32_t keep = f_->next;
    int a = allocate();  // of a local: until the block ends
    put(accept("=") ? expression() : value(kNilVal), a);
    f_->next = keep + 1;
    if (is_global(called)) {
      emit(Op::kSetGlobal, a, 0, 0, static_cast<size_t>(globals_[called]));
      f_->next = keep;
    } else if (captured(declare(called, a))) {
      emit(Op::kNewCell, a);
    }
  }
  // A function's name is declared before its body, which may call it.
  void function_statement() {
    expect("fn");
    std::string called = name();
    uint32_t keep = f_->next;
    int a = allocate();
    if (is_global(called)) {
      put(function(called), a);
      emit(Op::kSetGlobal, a, 0, 0, static_cast<size_t>(globals_[called]));
      f_->next = keep;
      return;
    }
    if (!captured(declare(called, a))) return void(put(function(called), a));
    emit(Op::kNewCell, put(value(kNilVal), a));
    emit(Op::kSetCell, a, put(function(called)));
    f_->next = keep + 1;
  }
  // What reads a place has just been emitted; it is taken back, and becomes what writes it.
  void assignment() {
    Expr place = expression();
    if (!accept("=")) return void(put(place));
    bool last = place.is == Expr::kOpen && place.at + 1 == here();
    Instr i = last ? f_->instrs.back() : Instr{};
    bool writable =
        last && (i.op == Op::kGetIndex || i.op == Op::kGetField || i.op == Op::kGetGlobal ||
                 i.op == Op::kGetCapture || i.op == Op::kGetCell);
    if (!writable && !place.local) return fail("this cannot be assigned to");
    if (place.constant) return fail("a loop's variable is constant");
    if (place.local) return void(put(expression(), place.reg));
    f_->instrs.pop_back();
    f_->lines.pop_back();
    bool element = i.op == Op::kGetIndex, field = i.op == Op::kGetField;
    if (element || field) f_->next = std::max({f_->next, i.b + 1u, i.c + 1u});
    int line = line_, v = put(expression());
    line_ = line;
    auto d = static_cast<size_t>(i.d);
    switch (i.op) {
      case Op::kGetIndex: emit(Op::kSetIndex, i.b, i.c, v); break;
      case Op::kGetField: emit(Op::kSetField, i.b, v, 0, d); break;
      case Op::kGetGlobal: emit(Op::kSetGlobal, v, 0, 0, d); break;
      case Op::kGetCapture: emit(Op::kSetCapture, v, 0, 0, d); break;
      default: emit(Op::kSetCell, i.b, v); break;
    }
  }
  void if_else() {
    Condition c = condition();
    land(c.yes);
    block();
    Jumps done;
    if (peek().is("else")) done.push_back(emit(Op::kJump));
    land(c.no);
    if (!accept("else")) return;
    accept("if") ? if_else() : block();
    land(done);
  }
  void while_loop() {
    uint32_t head = here();
    Condition c = condition();
    land(c.yes);
    f_->loops.push_back({});
    block();
    land(f_->loops.back().continues);
    emit(Op::kLoop, 0, 0, 0, head);
    land(c.no);
    end_loop();
  }
  void for_loop() {
    std::string called = name();
    int line = line_, a = allocate(), limit = allocate();
    expect("in");
    put(expression(), a);
    expect("..");
    put(expression(), limit);
    f_->next = static_cast<uint32_t>(limit) + 1;
    Jumps done = {emit(Op::kForPrepare, a)};
    uint32_t head = here();
    f_->scopes.push_back({});
    Local& v = declare(called, a);
    v.constant = true;
    if (captured(v)) {
      v.reg = allocate();
      emit(Op::kMove, v.reg, a);
      emit(Op::kNewCell, v.reg);
    }
    f_->loops.push_back({});
    block();
    f_->scopes.pop_back();
    land(f_->loops.back().continues);
    line_ = line;
    emit(Op::kForLoop, a, 0, 0, head);
    land(done);
    end_loop();
  }
  void end_loop() {
    land(f_->loops.back().breaks);
    f_->loops.pop_back();
  }

  // ---- Conditions
  Condition condition(int above = 0) {
    Condition left = test();
    while (ok() && strength() > above && strength() <= 2) {
      bool is_or = take().text == "or";
      if (is_or) {  // jumps when it holds, and goes on when not
        left.yes.push_back(flip(left.last()));
        left.no.pop_back();
      }
      land(is_or ? left.no : left.yes);
      Condition right = condition(is_or ? 1 : 2);
      Jumps &kept = is_or ? left.yes : left.no, &all = is_or ? right.yes : right.no;
      all.insert(all.begin(), kept.begin(), kept.end());
      left = right;
    }
    return left;
  }
  uint32_t flip(uint32_t jump) {
    Op& op = f_->instrs[jump].op;
    bool unless = op == Op::kJumpUnless || (op >= Op::kJumpNotLess && op <= Op::kJumpNotEqual) ||
                  (op >= Op::kJumpNotLessK && op <= Op::kJumpNotEqualK);
    int by = op <= Op::kJumpUnless ? 1 : kComparisons;
    op = op + (unless ? -by : by);
    return jump;
  }
  Condition opposite(Condition c) {
    c.yes.push_back(flip(c.last()));
    c.no.pop_back();
    std::swap(c.yes, c.no);
    return c;
  }
  Condition test() {
    uint32_t keep = f_->next;
    bool negated = accept("not");
    if (nested()) {
      expect("(");
      Condition c = condition();
      expect(")");
      return negated ? opposite(c) : c;
    }
    Expr left = unary();
    if (!negated) return comparison(left, keep);
    if (strength() <= 2) return opposite(comparison(left, keep));
    left = emit_open(Op::kNot, put(left));
    f_->next = keep;
    return comparison(left, keep);
  }
  // Whether a bracket here is around a condition, not around an operand.
  bool nested() const {
    int depth = 0;
    for (size_t i = at_; peek().is("(") && i + 1 < tokens_.size(); ++i) {
      depth += tokens_[i].is("(") ? 1 : tokens_[i].is(")") ? -1 : 0;
      const Token& after = tokens_[i + 1];
      if (depth == 0) return after.is("and") || after.is("or") || after.is(")") || after.is("{");
    }
    return false;
  }
  Condition comparison(const Expr& first, uint32_t keep) {
    int b = put(rest(first, keep, 3));
    uint32_t jump = 0;
    if (strength() == 3) {
      const Token& t = take();
      Op op = Op::kJumpNotLess + (kOperators.at(t.text).op - Op::kLess);
      Expr right = expression(3);
      line_ = t.line;
      size_t k = right.number() ? constant(right.k) : 65536;
      bool small = k < 65536;
      int c = small ? static_cast<int>(k & 255) : put(right);
      jump = small ? emit(op + (Op::kJumpLessK - Op::kJumpLess), b, c, static_cast<int>(k >> 8))
                   : emit(op, b, c);
      if (t.text == "!=") flip(jump);
    } else {
      jump = emit(Op::kJumpUnless, b);
    }
    f_->next = keep;
    return {{}, {jump}};
  }

  // ---- Expressions
  Expr expression(int above = 0) {
    uint32_t keep = f_->next;
    Expr left = unary();
    return rest(left, keep, above);
  }
  Expr rest(Expr left, uint32_t keep, int above) {
    while (ok() && strength() > above) {
      const Token& t = take();
      left = kOperators.at(t.text).strength <= 2 ? logic(t, left, keep) : binary(t, left, keep);
    }
    return left;
  }
  Expr logic(const Token& t, const Expr& left, uint32_t keep) {
    Operator o = kOperators.at(t.text);
    int a = put_next(left, keep);
    Jumps over = {emit(o.op, a)};
    put(expression(o.strength), a);
    land(over);
    f_->next = keep + 1;
    return in(a);
  }
  Expr binary(const Token& t, const Expr& left, uint32_t keep) {
    auto [strength, op] = kOperators.at(t.text);
    bool arithmetic = op <= Op::kMod;
    int b = left.number() ? -1 : put(left);
    Expr right = expression(strength);
    line_ = t.line;
    Expr result;
    if (arithmetic && right.number()) {
      if (b < 0) b = put(left);
      result = emit_open(op + (Op::kAddK - Op::kAdd), b, 0, constant(right.k));
    } else if (b < 0 && (op == Op::kAdd || op == Op::kMul)) {
      int c = put(right);
      result = emit_open(op + (Op::kAddK - Op::kAdd), c, 0, constant(left.k));
    } else {
      int c = put(right);
      if (b < 0) b = put(left);
      result = emit_open(op, b, c);
    }
    f_->next = keep;
    if (t.text != "!=") return result;
    result = emit_open(Op::kNot, put(result));
    f_->next = keep;
    return result;
  }
  Expr unary() {
    uint32_t keep = f_->next;
    bool minus = accept("-");
    if (!minus && !accept("not")) return postfix(primary(), keep);
    Expr e = unary();
    if (minus && e.number()) {
      bool whole = is_int(e.k) && as_int(e.k) != 0;
      return value(whole ? of_int(-as_int(e.k)) : of_double(-number(e.k)));
    }
    e = emit_open(minus ? Op::kNeg : Op::kNot, put(e));
    f_->next = keep;
    return e;
  }
  Expr postfix(Expr e, uint32_t keep) {
    while (ok()) {
      int line = peek().line;
      if (accept(".")) {
        code_.caches.push_back(std::make_unique<FieldCache>());
        code_.caches.back()->name = heap_.intern(name());
        int b = put(e);
        line_ = line;
        e = emit_open(Op::kGetField, b, 0, code_.caches.size() - 1);
        f_->next = keep;
      } else if (same_line() && accept("[")) {
        int b = put(e), c = put(expression());
        expect("]");
        line_ = line;
        e = emit_open(Op::kGetIndex, b, c);
        f_->next = keep;
      } else if (same_line() && accept("(")) {
        int first = put_next(e, keep), count = list(")");
        if (count > static_cast<int>(kMaxParams)) fail("a call has 6 arguments at most");
        code_.calls.push_back(std::make_unique<CallCache>());
        line_ = line;
        emit(Op::kCall, first, 0, count, code_.calls.size() - 1);
        f_->next = keep + 1;
        e = in(first);
      } else {
        break;
      }
    }
    return e;
  }
  // Puts expressions into registers one after the other. Returns how many.
  int list(std::string_view end) {
    int count = 0;
    for (; ok() && !accept(end); ++count) {
      element();
      if (!peek().is(end)) expect(",");
    }
    return count;
  }
  void element() {
    uint32_t keep = f_->next;
    int a = allocate();
    put(expression(), a);
    f_->next = keep + 1;
  }
  Expr primary() {
    line_ = peek().line;
    uint32_t keep = f_->next;
    auto first = static_cast<int>(keep);
    if (accept("(")) {
      Expr e = expression();
      expect(")");
      e.local = false;
      return e;
    }
    if (accept("fn")) return function("function");
    if (accept("nil")) return value(kNilVal);
    if (accept("true")) return value(kTrueVal);
    if (accept("false")) return value(kFalseVal);
    if (accept("[")) {
      int count = list("]");
      f_->next = keep;
      return emit_open(Op::kNewArray, first, count);
    }
    if (accept("{")) return record(keep);
    const Token& t = peek();
    if (t.kind == Tok::kNumber) return value(number_value(take()));
    if (t.kind == Tok::kString) return value(of_object(heap_.intern(take().text)));
    if (t.kind != Tok::kName) fail("'" + t.text + "' begins no expression");
    if (t.kind != Tok::kName) return value(kNilVal);
    take();
    for (size_t i = 0; i < kBuiltins.size() && peek().is("("); ++i) {
      if (kBuiltins[i].name == t.text && !globals_.contains(t.text)) return builtin(i, t.line);
    }
    return resolve(t.text);
  }
  // A literal with a point is a double: where it stands, others are likely to be.
  static Val number_value(const Token& t) {
    bool whole = t.text.find('.') == std::string::npos && t.number == std::floor(t.number);
    bool is_int = whole && t.number < 2147483648.0;
    return is_int ? of_int(static_cast<int32_t>(t.number)) : of_double(t.number);
  }
  Expr builtin(size_t index, int line) {
    const Builtin& b = kBuiltins[index];
    uint32_t keep = f_->next;
    auto first = static_cast<int>(keep), id = static_cast<int>(index);
    expect("(");
    int count = list(")");
    line_ = line;
    if (count == 0) allocate();
    if (index == kPrint) {
      for (int k = 0; k < count; ++k) emit(Op::kBuiltin, first + k, id, 1, k + 1 == count);
      if (count == 0) put(value(kNilVal), first);
    } else {
      if (count != static_cast<int>(b.arguments)) {
        fail(std::string(b.name) + " takes " + std::to_string(b.arguments) + " arguments");
      }
      emit(Op::kBuiltin, first, id, count);
    }
    f_->next = keep + 1;
    return in(first);
  }
  Expr record(uint32_t keep) {
    Shape* shape = &heap_.empty_record;
    int count = 0;
    for (; ok() && !accept("}"); ++count) {
      shape = heap_.with_field(shape, heap_.intern(name()));
      expect(":");
      element();
      if (!peek().is("}")) expect(",");
    }
    code_.literals.push_back(shape);
    f_->next = keep;
    return emit_open(Op::kNewRecord, static_cast<int>(keep), count, code_.literals.size() - 1);
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

}  // namespace

std::string compile(std::string_view source, Heap& heap, Code& code) {
  std::vector<Token> tokens;
  std::string wrong = tokenize(source, tokens);
  std::set<size_t> captured;
  Code draft;
  if (wrong.empty()) wrong = Compiler(tokens, heap, draft, captured).run();
  if (wrong.empty()) wrong = Compiler(tokens, heap, code, captured).run();
  code.seen = std::make_unique<std::atomic<uint16_t>[]>(code.instrs.size());
  code.params_seen = std::make_unique<std::atomic<uint16_t>[]>(code.protos.size() * kMaxParams);
  return wrong;
}

}  // namespace calc
