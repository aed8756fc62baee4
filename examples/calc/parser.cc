// Recursive descent, names resolved on the way.
#include <cmath>
#include <map>

#include "ast.h"

namespace calc {
namespace {

// Binary operators by how tightly they bind.
int strength(const Token& t) {
  static const std::map<std::string_view, int> kStrength = {
      {"or", 1}, {"and", 2}, {"==", 3}, {"!=", 3}, {"<", 3}, {"<=", 3}, {">", 3},
      {">=", 3}, {"+", 4},   {"-", 4},  {"*", 5},  {"/", 5}, {"//", 5}, {"%", 5}};
  if (t.kind != Tok::kSymbol && t.kind != Tok::kKeyword) return 0;
  auto at = kStrength.find(t.text);
  return at == kStrength.end() ? 0 : at->second;
}

class Parser {
 public:
  Parser(std::vector<Token> tokens, Program& p) : tokens_(std::move(tokens)), p_(p) {
    // What a function declares at the top level may be used in a function further up.
    int depth = 0;
    for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
      depth += tokens_[i].is("{") ? 1 : tokens_[i].is("}") ? -1 : 0;
      bool declares = tokens_[i].is("let") || tokens_[i].is("fn");
      if (depth == 0 && declares && tokens_[i + 1].kind == Tok::kName) global(tokens_[i + 1].text);
    }
  }

  void run() {
    function_ = add_function("main", 1);
    function_->body = node(NodeKind::kBlock);
    scopes_.push_back({});
    while (ok() && peek().kind != Tok::kEnd) function_->body->kids.push_back(statement());
  }

 private:
  // ---- Tokens
  const Token& peek() const { return tokens_[at_]; }
  bool ok() const { return p_.error.empty(); }
  bool accept(std::string_view s) {
    if (!peek().is(s)) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view s) {
    if (!accept(s)) fail("expected '" + std::string(s) + "', found '" + peek().text + "'");
  }
  std::string name() {
    if (peek().kind != Tok::kName) fail("expected a name, found '" + peek().text + "'");
    return take().text;
  }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  void fail(const std::string& what) {
    if (ok()) p_.error = "line " + std::to_string(peek().line) + ": " + what;
    at_ = tokens_.size() - 1;
  }
  bool same_line() const { return at_ > 0 && peek().line == tokens_[at_ - 1].line; }

  // ---- Names
  struct Scope {
    std::map<std::string, Variable*> names = {};
    FunctionNode* function = nullptr;
  };
  Variable* add_variable(const std::string& name, FunctionNode* owner) {
    p_.variables.push_back(std::make_unique<Variable>(Variable{.name = name, .owner = owner}));
    return p_.variables.back().get();
  }
  void global(const std::string& name) {
    if (globals_.contains(name)) return;
    globals_[name] = add_variable(name, nullptr);
    globals_[name]->index = p_.globals++;
  }
  bool at_top() const { return function_->outer == nullptr && scopes_.size() == 1; }
  Variable* declare(const std::string& name) {
    if (at_top() && globals_.contains(name)) return globals_[name];
    Variable* v = add_variable(name, function_);
    scopes_.back().names[name] = v;
    scopes_.back().function = function_;
    return v;
  }
  // Returns the index of a variable of a function further out among the captures of `f`.
  int capture(FunctionNode* f, Variable* v) {
    for (size_t i = 0; i < f->captures.size(); ++i) {
      if (f->captures[i].variable == v) return static_cast<int>(i);
    }
    v->captured = true;
    int from_outer = f->outer == v->owner ? -1 : capture(f->outer, v);
    f->captures.push_back({v, from_outer});
    return static_cast<int>(f->captures.size()) - 1;
  }
  NodePtr resolve(const Token& t) {
    NodePtr n = node(NodeKind::kGlobal, t.line);
    for (auto s = scopes_.rbegin(); s != scopes_.rend() && n->variable == nullptr; ++s) {
      auto found = s->names.find(t.text);
      if (found != s->names.end()) n->variable = found->second;
    }
    if (n->variable == nullptr && globals_.contains(t.text)) n->variable = globals_[t.text];
    if (n->variable == nullptr) {
      fail("no variable is called '" + t.text + "'");
    } else if (n->variable->owner == function_) {
      n->kind = NodeKind::kLocal;
    } else if (n->variable->owner != nullptr) {
      n->kind = NodeKind::kCapture;
      n->number = capture(function_, n->variable);
    }
    return n;
  }

  // ---- Statements
  NodePtr node(NodeKind kind, int line = 0) {
    return std::make_unique<Node>(Node{.kind = kind, .line = line == 0 ? peek().line : line});
  }
  NodePtr block() {
    NodePtr n = node(NodeKind::kBlock);
    expect("{");
    scopes_.push_back({});
    while (ok() && !peek().is("}")) n->kids.push_back(statement());
    scopes_.pop_back();
    expect("}");
    return n;
  }
  NodePtr statement() {
    NodePtr n = node(NodeKind::kBlock);
    if (accept(";")) return n;
    if (accept("let")) return let(std::move(n));
    if (peek().is("fn") && tokens_[at_ + 1].kind == Tok::kName) return function_statement();
    if (accept("if")) return if_statement(std::move(n));
    if (accept("while")) {
      n->kind = NodeKind::kWhile;
      n->kids.push_back(expression());
      n->kids.push_back(block());
      return n;
    }
    if (accept("for")) return for_statement(std::move(n));
    if (accept("return")) {
      n->kind = NodeKind::kReturn;
      if (same_line() && !peek().is("}")) n->kids.push_back(expression());
      return n;
    }
    if (accept("break")) return n->kind = NodeKind::kBreak, std::move(n);
    if (accept("continue")) return n->kind = NodeKind::kContinue, std::move(n);
    return expression_statement(std::move(n));
  }
  NodePtr let(NodePtr n) {
    n->kind = NodeKind::kLet;
    std::string called = name();
    n->kids.push_back(accept("=") ? expression() : node(NodeKind::kNil));
    n->variable = declare(called);
    return n;
  }
  NodePtr function_statement() {
    NodePtr n = node(NodeKind::kLet);
    expect("fn");
    std::string called = name();
    n->variable = declare(called);  // before its body, which may call it
    n->kids.push_back(function(called));
    return n;
  }
  NodePtr if_statement(NodePtr n) {
    n->kind = NodeKind::kIf;
    n->kids.push_back(expression());
    n->kids.push_back(block());
    if (!accept("else")) return n;
    if (peek().is("if")) {
      NodePtr inner = node(NodeKind::kIf);
      expect("if");
      n->kids.push_back(if_statement(std::move(inner)));
    } else {
      n->kids.push_back(block());
    }
    return n;
  }
  NodePtr for_statement(NodePtr n) {
    n->kind = NodeKind::kFor;
    std::string called = name();
    expect("in");
    n->kids.push_back(expression());
    expect("..");
    n->kids.push_back(expression());
    scopes_.push_back({});
    n->variable = declare(called);
    n->variable->constant = true;
    n->kids.push_back(block());
    scopes_.pop_back();
    return n;
  }
  NodePtr expression_statement(NodePtr n) {
    NodePtr e = expression();
    n->kind = NodeKind::kExpression;
    if (accept("=")) {
      n->kind = NodeKind::kAssign;
      bool place = e->kind == NodeKind::kLocal || e->kind == NodeKind::kGlobal ||
                   e->kind == NodeKind::kCapture || e->kind == NodeKind::kIndex ||
                   e->kind == NodeKind::kField;
      if (!place) fail("this cannot be assigned to");
      if (e->variable != nullptr && e->variable->constant) fail("a loop's variable is constant");
      n->kids.push_back(std::move(e));
      n->kids.push_back(expression());
      return n;
    }
    n->kids.push_back(std::move(e));
    return n;
  }

  // ---- Expressions
  NodePtr expression(int above = 0) {
    NodePtr left = unary();
    while (ok() && strength(peek()) > above) {
      const Token& op = take();
      NodePtr n = node(NodeKind::kBinary, op.line);
      n->kind = op.text == "and" ? NodeKind::kAnd : op.text == "or" ? NodeKind::kOr : n->kind;
      n->text = op.text;
      n->kids.push_back(std::move(left));
      n->kids.push_back(expression(strength(op)));
      left = std::move(n);
    }
    return left;
  }
  NodePtr unary() {
    NodePtr n = node(NodeKind::kNegate);
    if (!accept("-")) {
      if (!accept("not")) return postfix(primary());
      n->kind = NodeKind::kNot;
    }
    n->kids.push_back(unary());
    if (n->kind == NodeKind::kNegate && n->kids[0]->kind == NodeKind::kNumber) {
      n->kids[0]->number = -n->kids[0]->number;
      return std::move(n->kids[0]);
    }
    return n;
  }
  NodePtr postfix(NodePtr e) {
    while (ok()) {
      NodePtr n = node(NodeKind::kField);
      if (accept(".")) {
        n->text = name();
        n->kids.push_back(std::move(e));
      } else if (same_line() && accept("[")) {
        n->kind = NodeKind::kIndex;
        n->kids.push_back(std::move(e));
        n->kids.push_back(expression());
        expect("]");
      } else if (same_line() && accept("(")) {
        n->kind = NodeKind::kCall;
        n->kids.push_back(std::move(e));
        list(*n, ")");
        if (n->kids.size() > kMaxParams + 1) fail("a call has 6 arguments at most");
      } else {
        return e;
      }
      e = std::move(n);
    }
    return e;
  }
  void list(Node& n, std::string_view end) {
    while (ok() && !accept(end)) {
      n.kids.push_back(expression());
      if (!peek().is(end)) expect(",");
    }
  }
  NodePtr primary() {
    NodePtr n = node(NodeKind::kNumber);
    const Token& t = peek();
    if (accept("(")) {
      n = expression();
      expect(")");
      return n;
    }
    if (peek().is("fn")) {
      expect("fn");
      return function("function");
    }
    if (accept("[")) {
      n->kind = NodeKind::kArray;
      list(*n, "]");
      return n;
    }
    if (accept("{")) return record(std::move(n));
    if (accept("nil")) return n->kind = NodeKind::kNil, std::move(n);
    if (accept("true")) return n->kind = NodeKind::kTrue, std::move(n);
    if (accept("false")) return n->kind = NodeKind::kFalse, std::move(n);
    if (t.kind == Tok::kNumber) {
      n->text = t.text;
      n->number = take().number;
      return n;
    }
    if (t.kind == Tok::kString) {
      n->kind = NodeKind::kString;
      n->text = take().text;
      return n;
    }
    if (t.kind != Tok::kName) fail("'" + t.text + "' begins no expression");
    return t.kind == Tok::kName ? name_or_builtin() : std::move(n);
  }
  NodePtr name_or_builtin() {
    const Token& t = take();
    for (size_t i = 0; i < kBuiltins.size() && peek().is("("); ++i) {
      if (kBuiltins[i].name != t.text || globals_.contains(t.text)) continue;
      NodePtr n = node(NodeKind::kBuiltin, t.line);
      n->number = static_cast<double>(i);
      expect("(");
      list(*n, ")");
      bool fits = i == BuiltinId::kPrint || n->kids.size() == kBuiltins[i].arguments;
      if (!fits) fail(t.text + " takes " + std::to_string(kBuiltins[i].arguments) + " arguments");
      return n;
    }
    return resolve(t);
  }
  NodePtr record(NodePtr n) {
    n->kind = NodeKind::kRecord;
    while (ok() && !accept("}")) {
      n->names.push_back(name());
      expect(":");
      n->kids.push_back(expression());
      if (!peek().is("}")) expect(",");
    }
    return n;
  }

  FunctionNode* add_function(const std::string& called, int line) {
    p_.functions.push_back(std::make_unique<FunctionNode>(
        FunctionNode{.name = called, .line = line, .outer = function_}));
    return p_.functions.back().get();
  }
  NodePtr function(const std::string& called) {
    NodePtr n = node(NodeKind::kFunction);
    FunctionNode* outer = function_;
    function_ = n->function = add_function(called, peek().line);
    scopes_.push_back({});
    expect("(");
    while (ok() && !accept(")")) {
      n->function->params.push_back(declare(name()));
      if (!peek().is(")")) expect(",");
    }
    if (n->function->params.size() > kMaxParams) fail("a function has 6 parameters at most");
    n->function->body = block();
    scopes_.pop_back();
    function_ = outer;
    return n;
  }

  std::vector<Token> tokens_;
  Program& p_;
  size_t at_ = 0;
  FunctionNode* function_ = nullptr;
  std::map<std::string, Variable*> globals_;
  std::vector<Scope> scopes_;
};

}  // namespace

Program parse(std::string_view source) {
  Program p;
  std::vector<Token> tokens;
  p.error = tokenize(source, tokens);
  if (p.error.empty()) Parser(std::move(tokens), p).run();
  return p;
}

}  // namespace calc
