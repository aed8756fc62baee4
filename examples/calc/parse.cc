// From text to a tree.
//
//   program    : statement*
//   statement  : let NAME [= e] | fn NAME (params) block | if e block [else if ... | else block]
//              | while e block | for NAME in e .. e block | return [e] | break | continue
//              | e | place = e                       place: NAME, e.NAME, e[e]
//   expression : or, and | == != < <= > >= | + - | * / // % | - not | call, index, field
//              | literals, NAME, fn (params) block, [e, ...], {NAME: e, ...}
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ast.h"
#include "lexer.h"
#include "vm.h"

namespace calc {
namespace {

struct Operator {
  int strength;
  Node::Is is;
  Op op = {};  // != is the opposite of this
};
#define CALC_COMPARISON(name, sign, ...) {#sign, {3, Node::kCompare, Op::kJump##name}},
#define CALC_SIGN(name, sign, strength) {sign, {strength, Node::kBinary, Op::k##name}},
const std::map<std::string_view, Operator> kOperators = {
    {"or", {1, Node::kOr}},
    {"and", {2, Node::kAnd}},
    {"!=", {3, Node::kCompare, Op::kJumpEqual}},
    CALC_COMPARISONS(CALC_COMPARISON) CALC_ARITHMETIC(CALC_SIGN)};

// The names that are known in a function that is being read.
struct Scope {
  Scope* outer;
  Function* function;
  std::vector<std::map<std::string, Local*>> blocks = {{}};
  int loops = 0;

  Local* find(const std::string& name) const {
    for (auto b = blocks.rbegin(); b != blocks.rend(); ++b) {
      if (auto at = b->find(name); at != b->end()) return at->second;
    }
    return nullptr;
  }
};

class Parser {
 public:
  Parser(Heap& heap, Tree& tree) : heap_(heap), tree_(tree) {}

  std::string run(std::string_view source) {
    error_ = tokenize(source, tokens_);
    if (!ok()) return error_;
    find_globals();
    Scope main{nullptr, &tree_.functions.emplace_back(Function{"main"})};
    scope_ = &main;
    while (ok() && peek().kind != Tok::kEnd) main.function->body.push_back(statement());
    return error_;
  }

 private:
  // Finds the global names first: a function may use one that is declared further down.
  void find_globals() {
    int depth = 0;
    for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
      depth += tokens_[i].is("{") ? 1 : tokens_[i].is("}") ? -1 : 0;
      bool declares = tokens_[i].is("let") || tokens_[i].is("fn");
      if (depth != 0 || !declares || tokens_[i + 1].kind != Tok::kName) continue;
      globals_.try_emplace(tokens_[i + 1].text, globals_.size());
    }
    tree_.globals = globals_.size();
  }

  // ---- Tokens
  const Token& peek() const { return tokens_[at_]; }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool ok() const { return error_.empty(); }
  bool accept(std::string_view s) { return peek().is(s) && (take(), true); }
  void expect(std::string_view s) {
    if (!accept(s)) fail("expected '" + std::string(s) + "', found '" + peek().text + "'");
  }
  std::string name() {
    if (peek().kind != Tok::kName) fail("expected a name, found '" + peek().text + "'");
    return take().text;
  }
  // Everything after an error is the end of the program.
  void fail(const std::string& what) {
    if (ok()) error_ = "line " + std::to_string(peek().line) + ": " + what;
    at_ = tokens_.size() - 1;
  }
  bool same_line() const { return at_ > 0 && peek().line == tokens_[at_ - 1].line; }
  Node* node(Node::Is is, int line, std::vector<Node*> kids = {}) {
    return &tree_.nodes.emplace_back(Node{is, line, std::move(kids)});
  }
  Node* constant(int line, Val v) {
    Node* n = node(Node::kConst, line);
    n->value = v;
    return n;
  }

  // ---- Names
  bool at_top() const { return scope_->outer == nullptr && scope_->blocks.size() == 1; }
  Local* declare(const std::string& name) {
    return scope_->blocks.back()[name] = &tree_.locals.emplace_back();
  }
  // Declares a local, or finds the global. Returns the place.
  Node* declaration(const std::string& name, int line) {
    if (!at_top()) declare(name);
    return resolve(name, line);
  }
  Node* resolve(const std::string& name, int line) {
    for (Scope* s = scope_; s != nullptr; s = s->outer) {
      Local* v = s->find(name);
      if (v == nullptr) continue;
      Node* n = node(s == scope_ ? Node::kLocal : Node::kCapture, line);
      n->local = v;
      if (s != scope_) n->index = capture(*scope_, *s, v);
      return n;
    }
    Node* n = node(Node::kGlobal, line);
    auto global = globals_.find(name);
    if (global == globals_.end()) fail("no variable is called '" + name + "'");
    if (ok()) n->index = global->second;
    return n;
  }
  // Returns the index of a variable of a function further out among the captures of `s`.
  size_t capture(Scope& s, const Scope& owner, Local* v) {
    v->captured = true;
    auto& all = s.function->captures;
    auto at = std::ranges::find(all, v, &Function::Capture::variable);
    if (at != all.end()) return static_cast<size_t>(at - all.begin());
    bool local = s.outer == &owner;
    all.push_back({v, local, local ? 0 : capture(*s.outer, owner, v)});
    return all.size() - 1;
  }

  // ---- Statements
  Node* block() {
    Node* n = node(Node::kBlock, peek().line);
    expect("{");
    scope_->blocks.push_back({});
    while (ok() && !peek().is("}")) n->kids.push_back(statement());
    scope_->blocks.pop_back();
    expect("}");
    return n;
  }
  Node* loop_body() {
    ++scope_->loops;
    Node* body = block();
    --scope_->loops;
    return body;
  }
  Node* function(const std::string& called, int line) {
    Node* n = node(Node::kFunction, line);
    n->function = &tree_.functions.emplace_back(Function{called});
    Scope inner{scope_, n->function};
    scope_ = &inner;
    expect("(");
    while (ok() && !accept(")")) {
      n->function->params.push_back(declare(name()));
      if (!peek().is(")")) expect(",");
    }
    if (n->function->params.size() > kMaxParams) fail("a function has 6 parameters at most");
    n->function->body.push_back(block());
    scope_ = inner.outer;
    return n;
  }
  Node* statement() {
    int line = peek().line;
    if (accept(";")) return node(Node::kBlock, line);
    if (accept("let")) return let(line);
    if (peek().is("fn") && tokens_[at_ + 1].kind == Tok::kName) return named_function(line);
    if (accept("if")) return if_else(line);
    if (accept("while")) {
      Node* condition = expression();
      return node(Node::kWhile, line, {condition, loop_body()});
    }
    if (accept("for")) return for_loop(line);
    if (accept("return")) {
      bool nothing = !same_line() || peek().is("}");
      return node(Node::kReturn, line, {nothing ? constant(line, kNilVal) : expression()});
    }
    bool breaks = accept("break");
    if (breaks || accept("continue")) {
      if (scope_->loops == 0) fail("there is no loop around");
      return node(breaks ? Node::kBreak : Node::kContinue, line);
    }
    return assignment(line);
  }
  Node* let(int line) {
    std::string called = name();
    Node* value = accept("=") ? expression() : constant(line, kNilVal);
    return node(Node::kLet, line, {declaration(called, line), value});
  }
  // Its name is declared before its body, which may call it.
  Node* named_function(int line) {
    expect("fn");
    std::string called = name();
    Node* place = declaration(called, line);
    return node(Node::kLet, line, {place, function(called, line)});
  }
  Node* assignment(int line) {
    Node* place = expression();
    if (!accept("=")) return place;
    bool variable = place->is >= Node::kLocal && place->is <= Node::kCapture;
    if (!variable && place->is != Node::kField && place->is != Node::kIndex) {
      fail("this cannot be assigned to");
    } else if (place->local != nullptr && place->local->constant) {
      fail("a loop's variable is constant");
    }
    return node(Node::kAssign, line, {place, expression()});
  }
  Node* if_else(int line) {
    Node* n = node(Node::kIf, line);
    n->kids.push_back(expression());
    n->kids.push_back(block());
    if (accept("else")) n->kids.push_back(accept("if") ? if_else(line) : block());
    return n;
  }
  Node* for_loop(int line) {
    Node* n = node(Node::kFor, line);
    std::string called = name();
    expect("in");
    n->kids.push_back(expression());
    expect("..");
    n->kids.push_back(expression());
    scope_->blocks.push_back({});
    n->local = declare(called);
    n->local->constant = true;
    n->kids.push_back(loop_body());
    scope_->blocks.pop_back();
    return n;
  }

  // ---- Expressions
  int strength() const {
    auto found = kOperators.find(peek().text);
    return peek().kind == Tok::kSymbol && found != kOperators.end() ? found->second.strength : 0;
  }
  Node* expression(int above = 0) {
    Node* left = unary();
    while (ok() && strength() > above) {
      const Token& t = take();
      const Operator& o = kOperators.at(t.text);
      Node* right = expression(o.strength);
      bool swap = left->is_number() && (o.op == Op::kAdd || o.op == Op::kMul);
      if (swap) std::swap(left, right);  // k + x is x + k
      left = node(o.is, t.line, {left, right});
      left->op = o.op;
      if (t.text == "!=") left = node(Node::kNot, t.line, {left});
    }
    return left;
  }
  Node* unary() {
    int line = peek().line;
    if (accept("not")) return node(Node::kNot, line, {unary()});
    if (!accept("-")) return postfix(primary());
    Node* n = unary();
    if (!n->is_number()) return node(Node::kNegate, line, {n});
    bool whole = is_int(n->value) && as_int(n->value) != 0;
    n->value = whole ? of_int(-as_int(n->value)) : of_double(-number(n->value));
    return n;
  }
  Node* postfix(Node* n) {
    while (ok()) {
      int line = peek().line;
      if (accept(".")) {
        n = node(Node::kField, line, {n});
        n->value = of_object(heap_.intern(name()));
      } else if (same_line() && accept("[")) {
        n = node(Node::kIndex, line, {n, expression()});
        expect("]");
      } else if (same_line() && accept("(")) {
        n = list(node(Node::kCall, line, {n}), ")");
        if (n->kids.size() > kMaxParams + 1) fail("a call has 6 arguments at most");
      } else {
        break;
      }
    }
    return n;
  }
  Node* list(Node* n, std::string_view end) {
    while (ok() && !accept(end)) {
      n->kids.push_back(expression());
      if (!peek().is(end)) expect(",");
    }
    return n;
  }
  Node* primary() {
    int line = peek().line;
    if (accept("(")) {
      Node* n = expression();
      expect(")");
      return n;
    }
    if (accept("fn")) return function("function", line);
    if (accept("nil")) return constant(line, kNilVal);
    if (accept("true")) return constant(line, kTrueVal);
    if (accept("false")) return constant(line, kFalseVal);
    if (accept("[")) return list(node(Node::kArray, line), "]");
    if (accept("{")) return record(line);
    if (peek().kind == Tok::kNumber) return constant(line, number_value(take().text));
    if (peek().kind == Tok::kString) return constant(line, of_object(heap_.intern(take().text)));
    if (peek().kind != Tok::kName) fail("'" + peek().text + "' begins no expression");
    std::string called = take().text;
    for (size_t i = 0; ok() && i < kBuiltins.size() && peek().is("("); ++i) {
      if (kBuiltins[i].name == called && !globals_.contains(called)) return builtin(i, line);
    }
    return ok() ? resolve(called, line) : constant(line, kNilVal);
  }
  // A literal with a point is a double: where it stands, others are likely to be.
  static Val number_value(const std::string& text) {
    double d = std::strtod(text.c_str(), nullptr);
    bool is_int = text.find('.') == std::string::npos && d == std::floor(d) && d < 2147483648.0;
    return is_int ? of_int(static_cast<int32_t>(d)) : of_double(d);
  }
  Node* builtin(size_t index, int line) {
    const Builtin& b = kBuiltins[index];
    expect("(");
    Node* n = list(node(Node::kBuiltin, line), ")");
    n->index = index;
    if (index != kPrint && n->kids.size() != b.arguments) {
      fail(std::string(b.name) + " takes " + std::to_string(b.arguments) + " arguments");
    }
    return n;
  }
  Node* record(int line) {
    Node* n = node(Node::kRecord, line);
    n->shape = &heap_.empty_record;
    while (ok() && !accept("}")) {
      n->shape = heap_.with_field(n->shape, heap_.intern(name()));
      expect(":");
      n->kids.push_back(expression());
      if (!peek().is("}")) expect(",");
    }
    return n;
  }

  Heap& heap_;
  Tree& tree_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  std::string error_;
  std::map<std::string, size_t> globals_;
  Scope* scope_ = nullptr;
};

}  // namespace

std::string parse(std::string_view source, Heap& heap, Tree& tree) {
  return Parser(heap, tree).run(source);
}

}  // namespace calc
