// From the tree to bytecode. Registers: parameters, then locals, then what an expression needs
// meanwhile, like a stack.
#include <algorithm>

#include "ast.h"
#include "vm.h"

namespace calc {
namespace {

constexpr int kMaxRegisters = 250;

using Jumps = std::vector<size_t>;  // whose targets are still to come

class Compiler {
 public:
  Compiler(Code& code, std::map<Val, size_t>& constants, const Function& f, Proto& proto)
      : code_(code), constants_(constants), f_(f), proto_(proto) {}

  // Appends the function's code to the program's; the code of the functions inside of it comes
  // first. Returns an error message, or nothing.
  std::string run() {
    proto_.params = static_cast<uint32_t>(f_.params.size());
    for (Local* p : f_.params) p->reg = allocate();
    for (Local* p : f_.params) {
      if (p->captured) emit(line_, Op::kNewCell, p->reg);
    }
    for (const Node* n : f_.body) statement(*n);
    emit(line_, Op::kConst, allocate(), 0, 0, constant(kNilVal));
    emit(line_, Op::kReturn, next_ - 1);
    proto_.begin = static_cast<uint32_t>(code_.instrs.size());
    for (Instr& i : instrs_) {
      if (is_jump(i.op)) i.d += static_cast<int32_t>(proto_.begin);
    }
    code_.instrs.insert(code_.instrs.end(), instrs_.begin(), instrs_.end());
    code_.lines.insert(code_.lines.end(), lines_.begin(), lines_.end());
    proto_.end = static_cast<uint32_t>(code_.instrs.size());
    proto_.registers = static_cast<uint32_t>(most_);
    if (error_.empty() && most_ > kMaxRegisters) {
      error_ = "function " + proto_.name + " needs too many registers";
    }
    return error_;
  }

 private:
  struct Loop {
    Jumps breaks, continues;
  };

  // ---- Code
  size_t emit(int line, Op op, int a = 0, int b = 0, int c = 0, size_t d = 0) {
    instrs_.push_back({op, static_cast<uint8_t>(a), static_cast<uint8_t>(b),
                       static_cast<uint8_t>(c), static_cast<int32_t>(d)});
    lines_.push_back(line_ = line);
    return instrs_.size() - 1;
  }
  void land(const Jumps& jumps) {
    for (size_t j : jumps) instrs_[j].d = static_cast<int32_t>(instrs_.size());
  }
  int allocate() {
    most_ = std::max(most_, next_ + 1);
    return next_++;
  }
  size_t constant(Val v) {
    auto [at, is_new] = constants_.try_emplace(v, code_.constants.size());
    if (is_new) code_.constants.push_back(v);
    return at->second;
  }

  // ---- Statements
  void statement(const Node& n) {
    int keep = temporaries_ = next_;
    switch (n.is) {
      case Node::kBlock:
        for (const Node* kid : n.kids) statement(*kid);
        break;
      case Node::kLet: return let(n);
      case Node::kAssign: assign(n); break;
      case Node::kIf: if_else(n); break;
      case Node::kWhile: while_loop(n); break;
      case Node::kFor: for_loop(n); break;
      case Node::kReturn: emit(n.line, Op::kReturn, any(*n.kids[0])); break;
      case Node::kBreak: loops_.back().breaks.push_back(emit(n.line, Op::kJump)); break;
      case Node::kContinue: loops_.back().continues.push_back(emit(n.line, Op::kJump)); break;
      default: any(n); break;
    }
    next_ = keep;
  }
  // The register of a local is taken until the block ends. A function may capture itself, so a cell
  // is there before its value.
  void let(const Node& n) {
    if (n.kids[0]->is == Node::kGlobal) return assign(n);
    Local& v = *n.kids[0]->local;
    v.reg = allocate();
    if (v.captured) {
      emit(n.line, Op::kConst, v.reg, 0, 0, constant(kNilVal));
      emit(n.line, Op::kNewCell, v.reg);
    }
    assign(n);
  }
  void assign(const Node& n) {
    int keep = next_;
    const Node &place = *n.kids[0], &value = *n.kids[1];
    bool in_register = place.is == Node::kLocal && !place.local->captured;
    if (in_register) return into(value, place.local->reg);
    int b = place.kids.empty() ? 0 : any(*place.kids[0]);
    int c = place.kids.size() < 2 ? 0 : any(*place.kids[1]);
    int v = any(value);
    switch (place.is) {
      case Node::kIndex: emit(n.line, Op::kSetIndex, b, c, v); break;
      case Node::kField: emit(n.line, Op::kSetField, b, v, 0, field(place)); break;
      case Node::kGlobal: emit(n.line, Op::kSetGlobal, v, 0, 0, place.index); break;
      case Node::kCapture: emit(n.line, Op::kSetCapture, v, 0, 0, place.index); break;
      default: emit(n.line, Op::kSetCell, place.local->reg, v); break;
    }
    next_ = keep;
  }
  void if_else(const Node& n) {
    Jumps no, done;
    branch(*n.kids[0], false, no);
    statement(*n.kids[1]);
    if (n.kids.size() == 3) done.push_back(emit(line_, Op::kJump));
    land(no);
    if (n.kids.size() == 3) statement(*n.kids[2]);
    land(done);
  }
  void while_loop(const Node& n) {
    size_t head = instrs_.size();
    Jumps done;
    branch(*n.kids[0], false, done);
    loop_body(*n.kids[1]);
    emit(line_, Op::kLoop, 0, 0, 0, head);
    end_loop(done);
  }
  void for_loop(const Node& n) {
    int a = allocate();
    into(*n.kids[0], a);
    into(*n.kids[1], allocate());
    Jumps done = {emit(n.line, Op::kForPrepare, a)};
    size_t head = instrs_.size();
    n.local->reg = a;
    if (n.local->captured) {
      n.local->reg = allocate();
      emit(n.line, Op::kMove, n.local->reg, a);
      emit(n.line, Op::kNewCell, n.local->reg);
    }
    loop_body(*n.kids[2]);
    emit(n.line, Op::kForLoop, a, 0, 0, head);
    end_loop(done);
  }
  void loop_body(const Node& body) {
    loops_.emplace_back();
    statement(body);
    land(loops_.back().continues);
  }
  void end_loop(const Jumps& done) {
    land(done);
    land(loops_.back().breaks);
    loops_.pop_back();
  }

  // ---- Conditions: jumps when the value is as true as `when`, and goes on otherwise.
  void branch(const Node& n, bool when, Jumps& to) {
    if (n.is == Node::kNot) return branch(*n.kids[0], !when, to);
    int keep = next_;
    if (n.is == Node::kAnd || n.is == Node::kOr) {
      bool one_does = when == (n.is == Node::kOr);
      Jumps over;
      branch(*n.kids[0], one_does ? when : !when, one_does ? to : over);
      branch(*n.kids[1], when, to);
      land(over);
    } else if (n.is == Node::kCompare) {
      const Node& right = *n.kids[1];
      int b = any(*n.kids[0]);
      bool small = right.is_number() && constant(right.value) < 256;
      int c = small ? static_cast<int>(constant(right.value)) : any(right);
      to.push_back(emit(n.line, n.op + ((small ? 2 : 0) + (when ? 0 : 1)), b, c));
    } else {
      to.push_back(emit(n.line, when ? Op::kJumpIf : Op::kJumpUnless, any(n)));
    }
    next_ = keep;
  }

  // ---- Expressions
  // Returns the register that holds the value: a local's own, or a new one.
  int any(const Node& n) {
    if (n.is == Node::kLocal && !n.local->captured) return n.local->reg;
    int a = allocate();
    into(n, a);
    return a;
  }
  // Puts the value into a register.
  void into(const Node& n, int a) {
    int keep = next_;
    switch (n.is) {
      case Node::kConst: emit(n.line, Op::kConst, a, 0, 0, constant(n.value)); break;
      case Node::kLocal:
        if (n.local->captured) {
          emit(n.line, Op::kGetCell, a, n.local->reg);
        } else if (n.local->reg != a) {
          emit(n.line, Op::kMove, a, n.local->reg);
        }
        break;
      case Node::kGlobal: emit(n.line, Op::kGetGlobal, a, 0, 0, n.index); break;
      case Node::kCapture: emit(n.line, Op::kGetCapture, a, 0, 0, n.index); break;
      case Node::kBinary: binary(n, a); break;
      case Node::kNegate: emit(n.line, Op::kNegate, a, any(*n.kids[0])); break;
      case Node::kCompare:
      case Node::kNot: truth(n, a); break;
      case Node::kField: emit(n.line, Op::kGetField, a, any(*n.kids[0]), 0, field(n)); break;
      case Node::kIndex: {
        int array = any(*n.kids[0]), index = any(*n.kids[1]);
        emit(n.line, Op::kGetIndex, a, array, index);
        break;
      }
      case Node::kArray: row(n, a, &array_shape); break;
      case Node::kRecord: row(n, a, n.shape); break;
      case Node::kFunction: emit(n.line, Op::kNewClosure, a, 0, 0, function(n)); break;
      default: on_top(n, a); break;
    }
    next_ = keep;
  }
  void binary(const Node& n, int a) {
    const Node& right = *n.kids[1];
    int b = any(*n.kids[0]);
    if (right.is_number()) {
      emit(n.line, n.op + 1, a, b, 0, constant(right.value));
    } else {
      emit(n.line, n.op, a, b, any(right));
    }
  }
  void truth(const Node& n, int a) {
    Jumps no;
    branch(n, false, no);
    emit(n.line, Op::kConst, a, 0, 0, constant(kTrueVal));
    Jumps done = {emit(n.line, Op::kJump)};
    land(no);
    emit(n.line, Op::kConst, a, 0, 0, constant(kFalseVal));
    land(done);
  }
  // Computes an expression that writes its register before it has read all operands. It gets a
  // register of its own, unless `a` is one.
  void on_top(const Node& n, int a) {
    bool own = a >= temporaries_ && a + 1 == next_;
    int top = own ? a : allocate();
    if (n.is == Node::kAnd || n.is == Node::kOr) {
      into(*n.kids[0], top);
      Jumps over = {emit(n.line, n.is == Node::kOr ? Op::kJumpIf : Op::kJumpUnless, top)};
      into(*n.kids[1], top);
      land(over);
    } else {
      n.is == Node::kCall ? call(n, top) : builtin(n, top);
    }
    if (!own) emit(n.line, Op::kMove, a, top);
  }
  void call(const Node& n, int top) {
    into(*n.kids[0], top);
    for (size_t k = 1; k < n.kids.size(); ++k) into(*n.kids[k], allocate());
    code_.calls.push_back(std::make_unique<CallCache>());
    int count = static_cast<int>(n.kids.size()) - 1;
    emit(n.line, Op::kCall, top, 0, count, code_.calls.size() - 1);
  }
  // print prints one value; d says whether the line ends after it.
  void builtin(const Node& n, int top) {
    auto id = static_cast<int>(n.index), count = static_cast<int>(n.kids.size());
    if (count == 0) emit(n.line, Op::kConst, top, 0, 0, constant(kNilVal));
    for (int k = 0; k < count; ++k) {
      into(*n.kids[static_cast<size_t>(k)], k == 0 ? top : allocate());
    }
    bool prints = n.index == kPrint;
    for (int k = 0; prints && k < count; ++k) {
      emit(n.line, Op::kBuiltin, top + k, id, 1, k + 1 == count);
    }
    if (!prints) emit(n.line, Op::kBuiltin, top, id, count);
  }
  void row(const Node& n, int a, Shape* shape) {
    int first = next_;
    for (const Node* kid : n.kids) into(*kid, allocate());
    code_.shapes.push_back(shape);
    emit(n.line, Op::kNewRow, a, first, next_ - first, code_.shapes.size() - 1);
  }
  size_t field(const Node& n) {
    code_.fields.push_back(std::make_unique<FieldCache>());
    code_.fields.back()->name = as_string(n.value);
    return code_.fields.size() - 1;
  }
  size_t function(const Node& n) {
    code_.protos.push_back(std::make_unique<Proto>());
    Proto& p = *code_.protos.back();
    p.name = n.function->name;
    p.index = static_cast<uint32_t>(code_.protos.size()) - 1;
    for (const Function::Capture& c : n.function->captures) {
      size_t index = c.local ? static_cast<size_t>(c.variable->reg) : c.index;
      p.captures.push_back({c.local, static_cast<uint32_t>(index)});
    }
    std::string wrong = Compiler(code_, constants_, *n.function, p).run();
    if (error_.empty()) error_ = wrong;
    return p.index;
  }

  Code& code_;
  std::map<Val, size_t>& constants_;
  const Function& f_;
  Proto& proto_;
  std::vector<Instr> instrs_ = {};
  std::vector<int> lines_ = {};
  std::vector<Loop> loops_ = {};
  int line_ = 1, next_ = 0, most_ = 0;
  int temporaries_ = 0;  // registers from here on are no local's
  std::string error_ = {};
};

}  // namespace

std::string compile(std::string_view source, Heap& heap, Code& code) {
  Tree tree;
  std::string wrong = parse(source, heap, tree);
  if (!wrong.empty()) return wrong;
  std::map<Val, size_t> constants;
  code.globals = tree.globals;
  code.protos.push_back(std::make_unique<Proto>());
  code.protos[0]->name = "main";
  wrong = Compiler(code, constants, tree.functions[0], *code.protos[0]).run();
  code.seen = std::vector<Seen>(code.instrs.size());
  return wrong;
}

}  // namespace calc
