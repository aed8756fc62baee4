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
#include <cmath>

#include "assemble.h"

namespace calc {
namespace {

class Compiler : Assembler {
 public:
  using Assembler::Assembler;

  std::string run() {
    Function main;
    open("main", main);
    while (ok() && peek().kind != Tok::kEnd) statement();
    close();
    code_.globals = static_cast<uint32_t>(globals_.size());
    return error_;
  }

 private:
  // ---- Statements
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
