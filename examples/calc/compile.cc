// From the tree to bytecode, one function at a time. Registers: parameters, then locals, then what
// an expression needs meanwhile, like a stack.
#include <cmath>
#include <cstdint>
#include <map>

#include "ast.h"
#include "bytecode.h"

namespace calc {
namespace {

constexpr uint32_t kMaxRegisters = 250;

const std::map<std::string, Op> kOperators = {
    {"+", Op::kAdd},     {"-", Op::kSub},    {"*", Op::kMul},           {"/", Op::kDiv},
    {"%", Op::kMod},     {"<", Op::kLess},   {"<=", Op::kLessEqual},    {"//", Op::kFloorDiv},
    {">", Op::kGreater}, {"==", Op::kEqual}, {">=", Op::kGreaterEqual}, {"!=", Op::kEqual}};

class FunctionCompiler {
 public:
  FunctionCompiler(Heap& heap, Code& code, std::map<const FunctionNode*, uint32_t>& indices)
      : heap_(heap), code_(code), indices_(indices) {}

  std::string run(const FunctionNode& f, Proto& p) {
    p.name = f.name;
    p.begin = here();
    p.params = static_cast<uint32_t>(f.params.size());
    for (const Capture& c : f.captures) {
      p.captures.push_back(
          {c.from_outer < 0,
           static_cast<uint32_t>(c.from_outer < 0 ? c.variable->index : c.from_outer)});
    }
    for (Variable* v : f.params) v->index = allocate();
    for (Variable* v : f.params) {
      if (v->captured) emit(Op::kNewCell, v->index);
    }
    statement(*f.body);
    emit(Op::kReturn, constant(allocate(), kNilVal));
    p.end = here();
    p.registers = most_;
    // A captured variable's register may be known only now.
    if (most_ > kMaxRegisters) return "function " + f.name + " needs too many registers";
    return {};
  }

 private:
  // ---- Code
  uint32_t here() const { return static_cast<uint32_t>(code_.instrs.size()); }
  uint32_t emit(Op op, int a = 0, int b = 0, int c = 0, int64_t d = 0) {
    code_.instrs.push_back({op, static_cast<uint8_t>(a), static_cast<uint8_t>(b),
                            static_cast<uint8_t>(c), static_cast<int32_t>(d)});
    code_.lines.push_back(line_);
    return here() - 1;
  }
  void land(const std::vector<uint32_t>& jumps) {
    for (uint32_t j : jumps) code_.instrs[j].d = static_cast<int32_t>(here());
  }
  int allocate() {
    most_ = std::max(most_, next_ + 1);
    return static_cast<int>(next_++);
  }
  int target(int wanted) { return wanted >= 0 ? wanted : allocate(); }

  int64_t add_constant(Val v) {
    auto [at, is_new] = constants_.try_emplace(v, code_.constants.size());
    if (is_new) code_.constants.push_back(v);
    return static_cast<int64_t>(at->second);
  }
  int constant(int to, Val v) {
    emit(Op::kConst, to, 0, 0, add_constant(v));
    return to;
  }
  // A literal with a point is a double: where it stands, others are likely to be.
  static Val number_value(const Node& literal) {
    double n = literal.number;
    bool small = std::fabs(n) < 2147483648.0 && !(n == 0 && std::signbit(n));
    bool whole = literal.text.find('.') == std::string::npos && n == std::floor(n);
    return small && whole ? of_int(static_cast<int32_t>(n)) : of_double(n);
  }
  int64_t cache(const std::string& name) {
    code_.caches.push_back(std::make_unique<FieldCache>());
    code_.caches.back()->name = heap_.intern(name);
    return static_cast<int64_t>(code_.caches.size()) - 1;
  }

  // ---- Expressions. Each returns the register that holds the value: `wanted`, or if that is -1
  // one of its own choice.
  int expression(const Node& n, int wanted = -1) {
    line_ = n.line;
    switch (n.kind) {
      case NodeKind::kNumber: return constant(target(wanted), number_value(n));
      case NodeKind::kString: return constant(target(wanted), of_object(heap_.intern(n.text)));
      case NodeKind::kNil: return constant(target(wanted), kNilVal);
      case NodeKind::kTrue: return constant(target(wanted), kTrueVal);
      case NodeKind::kFalse: return constant(target(wanted), kFalseVal);
      case NodeKind::kLocal: return local(*n.variable, wanted);
      case NodeKind::kGlobal: return out(Op::kGetGlobal, wanted, n.variable->index);
      case NodeKind::kCapture: return out(Op::kGetCapture, wanted, static_cast<int>(n.number));
      case NodeKind::kFunction: return out(Op::kClosure, wanted, indices_.at(n.function));
      case NodeKind::kBinary: return binary(n, wanted);
      case NodeKind::kNegate: return unary(Op::kNeg, n, wanted);
      case NodeKind::kNot: return unary(Op::kNot, n, wanted);
      case NodeKind::kAnd:
      case NodeKind::kOr: return logic(n, wanted);
      case NodeKind::kIndex:
      case NodeKind::kField: return access(n, wanted);
      default: return sequence(n, wanted);
    }
  }
  int out(Op op, int wanted, int64_t d) {
    int a = target(wanted);
    emit(op, a, 0, 0, d);
    return a;
  }
  int local(const Variable& v, int wanted) {
    if (!v.captured && wanted < 0) return v.index;
    int a = target(wanted);
    if (v.captured || a != v.index) emit(v.captured ? Op::kGetCell : Op::kMove, a, v.index);
    return a;
  }
  int unary(Op op, const Node& n, int wanted) {
    uint32_t keep = next_;
    int b = expression(*n.kids[0]);
    next_ = keep;
    int a = target(wanted);
    emit(op, a, b);
    return a;
  }
  int access(const Node& n, int wanted) {
    uint32_t keep = next_;
    int b = expression(*n.kids[0]);
    int c = n.kind == NodeKind::kIndex ? expression(*n.kids[1]) : 0;
    next_ = keep;
    int a = target(wanted);
    line_ = n.line;
    n.kind == NodeKind::kIndex ? emit(Op::kGetIndex, a, b, c)
                               : emit(Op::kGetField, a, b, 0, cache(n.text));
    return a;
  }
  int binary(const Node& n, int wanted) {
    Op op = kOperators.at(n.text);
    bool arithmetic = op <= Op::kMod;
    const Node *left = n.kids[0].get(), *right = n.kids[1].get();
    bool commutes = op == Op::kAdd || op == Op::kMul;
    if (commutes && left->kind == NodeKind::kNumber) std::swap(left, right);
    uint32_t keep = next_;
    int b = expression(*left);
    bool k_form = arithmetic && right->kind == NodeKind::kNumber;
    int c = k_form ? 0 : expression(*right);
    next_ = keep;
    int a = target(wanted);
    line_ = n.line;
    if (k_form) {
      emit(op + (Op::kAddK - Op::kAdd), a, b, 0, add_constant(number_value(*right)));
    } else {
      emit(op, a, b, c);
    }
    if (n.text == "!=") emit(Op::kNot, a, a);
    return a;
  }
  int logic(const Node& n, int wanted) {
    int a = target(wanted);
    // The value goes by a register of its own: `wanted` may be read by the right side.
    uint32_t keep = next_;
    int meanwhile = allocate();
    expression(*n.kids[0], meanwhile);
    uint32_t over = emit(n.kind == NodeKind::kAnd ? Op::kJumpUnless : Op::kJumpIf, meanwhile);
    expression(*n.kids[1], meanwhile);
    land({over});
    emit(Op::kMove, a, meanwhile);
    next_ = keep;
    return a;
  }
  // What takes its operands in registers one after the other.
  int sequence(const Node& n, int wanted) {
    uint32_t keep = next_;
    int first = static_cast<int>(next_);
    if (n.kids.empty()) allocate();
    for (const NodePtr& kid : n.kids) expression(*kid, allocate());
    auto count = static_cast<int>(n.kids.size());
    next_ = keep;
    line_ = n.line;
    if (n.kind == NodeKind::kArray || n.kind == NodeKind::kRecord) {
      int a = target(wanted);
      most_ = std::max(most_, keep + 1);
      n.kind == NodeKind::kArray ? emit(Op::kNewArray, a, first, count)
                                 : emit(Op::kNewRecord, a, first, count, literal(n));
      return a;
    }
    if (n.kind == NodeKind::kCall) {
      code_.calls.push_back(std::make_unique<CallCache>());
      emit(Op::kCall, first, 0, count - 1, static_cast<int64_t>(code_.calls.size()) - 1);
    } else if (static_cast<int>(n.number) == kPrint) {
      for (int k = 0; k < count; ++k) emit(Op::kBuiltin, first + k, kPrint, 1, k + 1 == count);
      if (count == 0) constant(first, kNilVal);
    } else {
      emit(Op::kBuiltin, first, static_cast<int>(n.number), count);
    }
    if (wanted < 0) return allocate();
    if (wanted != first) emit(Op::kMove, wanted, first);
    return wanted;
  }
  int64_t literal(const Node& n) {
    Shape* shape = &heap_.empty_record;
    for (const std::string& name : n.names) shape = heap_.with_field(shape, heap_.intern(name));
    code_.literals.push_back(shape);
    return static_cast<int64_t>(code_.literals.size()) - 1;
  }

  // ---- Conditions: jumps are added to `to`, taken when the condition is `sense`.
  void jump_if(const Node& n, bool sense, std::vector<uint32_t>& to) {
    line_ = n.line;
    if (n.kind == NodeKind::kNot) return jump_if(*n.kids[0], !sense, to);
    if (n.kind == NodeKind::kAnd || n.kind == NodeKind::kOr) {
      bool either = n.kind == NodeKind::kOr;
      if (sense == either) {
        jump_if(*n.kids[0], sense, to);
        return jump_if(*n.kids[1], sense, to);
      }
      std::vector<uint32_t> over;
      jump_if(*n.kids[0], !sense, over);
      jump_if(*n.kids[1], sense, to);
      return land(over);
    }
    bool compares = n.kind == NodeKind::kBinary && kOperators.at(n.text) >= Op::kLess;
    if (compares) return compare(n, sense, to);
    uint32_t keep = next_;
    int a = expression(n);
    next_ = keep;
    to.push_back(emit(sense ? Op::kJumpIf : Op::kJumpUnless, a));
  }
  void compare(const Node& n, bool sense, std::vector<uint32_t>& to) {
    const Node& right = *n.kids[1];
    uint32_t keep = next_;
    int a = expression(*n.kids[0]);
    int64_t k = right.kind == NodeKind::kNumber ? add_constant(number_value(right)) : 65536;
    if (n.text == "!=") sense = !sense;
    Op op = (sense ? Op::kJumpLess : Op::kJumpNotLess) + (kOperators.at(n.text) - Op::kLess);
    int b = k < 65536 ? static_cast<int>(k & 255) : expression(right);
    int c = k < 65536 ? static_cast<int>(k >> 8) : 0;
    next_ = keep;
    line_ = n.line;
    to.push_back(emit(k < 65536 ? op + (Op::kJumpLessK - Op::kJumpLess) : op, a, b, c));
  }

  // ---- Statements
  void statement(const Node& n) {
    line_ = n.line;
    uint32_t keep = next_;
    switch (n.kind) {
      case NodeKind::kBlock:
        for (const NodePtr& kid : n.kids) statement(*kid);
        break;
      case NodeKind::kLet: return let(n);
      case NodeKind::kAssign: assign(n); break;
      case NodeKind::kExpression: expression(*n.kids[0]); break;
      case NodeKind::kIf: if_else(n); break;
      case NodeKind::kWhile: while_loop(n); break;
      case NodeKind::kFor: for_loop(n); break;
      case NodeKind::kReturn:
        emit(Op::kReturn, n.kids.empty() ? constant(allocate(), kNilVal) : expression(*n.kids[0]));
        break;
      case NodeKind::kBreak: breaks_.push_back(emit(Op::kJump)); break;
      case NodeKind::kContinue: continues_.push_back(emit(Op::kJump)); break;
      default: break;
    }
    next_ = keep;
  }
  void let(const Node& n) {
    Variable* v = n.variable;
    if (v->owner == nullptr) {
      uint32_t keep = next_;
      int a = expression(*n.kids[0]);
      next_ = keep;
      emit(Op::kSetGlobal, a, 0, 0, v->index);
      return;
    }
    int a = v->index = allocate();  // until the block ends
    bool recursive = v->captured && n.kids[0]->kind == NodeKind::kFunction;
    if (recursive) emit(Op::kNewCell, constant(a, kNilVal));
    if (!recursive) {
      expression(*n.kids[0], a);
      if (v->captured) emit(Op::kNewCell, a);
      return;
    }
    uint32_t keep = next_;
    emit(Op::kSetCell, a, expression(*n.kids[0]));
    next_ = keep;
  }
  void assign(const Node& n) {
    const Node& place = *n.kids[0];
    const Node& value = *n.kids[1];
    if (place.kind == NodeKind::kLocal && !place.variable->captured) {
      expression(value, place.variable->index);
      return;
    }
    bool inside = place.kind == NodeKind::kIndex || place.kind == NodeKind::kField;
    int object = inside ? expression(*place.kids[0]) : 0;
    int index = place.kind == NodeKind::kIndex ? expression(*place.kids[1]) : 0;
    int a = expression(value);
    line_ = n.line;
    switch (place.kind) {
      case NodeKind::kLocal: emit(Op::kSetCell, place.variable->index, a); break;
      case NodeKind::kGlobal: emit(Op::kSetGlobal, a, 0, 0, place.variable->index); break;
      case NodeKind::kCapture:
        emit(Op::kSetCapture, a, 0, 0, static_cast<int>(place.number));
        break;
      case NodeKind::kIndex: emit(Op::kSetIndex, object, index, a); break;
      default: emit(Op::kSetField, object, a, 0, cache(place.text)); break;
    }
  }
  void if_else(const Node& n) {
    std::vector<uint32_t> otherwise, done;
    jump_if(*n.kids[0], false, otherwise);
    statement(*n.kids[1]);
    if (n.kids.size() > 2) done.push_back(emit(Op::kJump));
    land(otherwise);
    if (n.kids.size() > 2) statement(*n.kids[2]);
    land(done);
  }
  void while_loop(const Node& n) {
    std::vector<uint32_t> breaks = std::move(breaks_), continues = std::move(continues_);
    breaks_.clear(), continues_.clear();
    uint32_t head = here();
    jump_if(*n.kids[0], false, breaks_);
    statement(*n.kids[1]);
    land(continues_);
    emit(Op::kLoop, 0, 0, 0, head);
    land(breaks_);
    breaks_ = std::move(breaks), continues_ = std::move(continues);
  }
  void for_loop(const Node& n) {
    std::vector<uint32_t> breaks = std::move(breaks_), continues = std::move(continues_);
    breaks_.clear(), continues_.clear();
    int a = allocate(), limit = allocate();
    expression(*n.kids[0], a);
    expression(*n.kids[1], limit);
    breaks_.push_back(emit(Op::kForPrepare, a));
    uint32_t head = here();
    n.variable->index = n.variable->captured ? allocate() : a;
    if (n.variable->captured) {
      emit(Op::kMove, n.variable->index, a);
      emit(Op::kNewCell, n.variable->index);
    }
    statement(*n.kids[2]);
    land(continues_);
    line_ = n.line;
    emit(Op::kForLoop, a, 0, 0, head);
    land(breaks_);
    breaks_ = std::move(breaks), continues_ = std::move(continues);
  }

  Heap& heap_;
  Code& code_;
  std::map<const FunctionNode*, uint32_t>& indices_;
  std::map<Val, size_t> constants_;
  std::vector<uint32_t> breaks_, continues_;
  uint32_t next_ = 0, most_ = 0;
  int line_ = 0;
};

}  // namespace

std::string compile(const Program& program, Heap& heap, Code& code) {
  std::map<const FunctionNode*, uint32_t> indices;
  for (const auto& f : program.functions) {
    indices[f.get()] = static_cast<uint32_t>(code.protos.size());
    code.protos.push_back(std::make_unique<Proto>());
    code.protos.back()->index = indices[f.get()];
  }
  // A function is compiled after the one around it, which has given registers to what it captures.
  for (const auto& f : program.functions) {
    FunctionCompiler c(heap, code, indices);
    std::string wrong = c.run(*f, *code.protos[indices[f.get()]]);
    if (!wrong.empty()) return "line " + std::to_string(f->line) + ": " + wrong;
  }
  code.globals = static_cast<uint32_t>(program.globals);
  code.seen = std::make_unique<std::atomic<uint16_t>[]>(code.instrs.size());
  code.params_seen = std::make_unique<std::atomic<uint16_t>[]>(code.protos.size() * kMaxParams);
  return {};
}

}  // namespace calc
