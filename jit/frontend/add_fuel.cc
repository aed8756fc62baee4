#include "jit/frontend/add_fuel.h"

namespace uptier::jit {
namespace {

constexpr uint64_t kNoAddress = 0xf0e1'0000'0000'0000;
constexpr uint8_t kFlags = kMemFuel | alias_class(kAliasClasses - 1);

class Counting {
 public:
  Counting(Function& f, Block b) : f_(f), block_(b) {}

  void run() {
    auto& insts = f_.block(block_).insts;
    at_ = 0;
    while (is_mark(f_.inst(insts[at_]))) ++at_;
    loc_ = f_.inst(insts.front()).loc;
    Value word = constant(Type::kRef, kNoAddress);
    Value left = put({.op = Opcode::kLoad, .type = Type::kI64, .flags = kFlags}, {word});
    left = put({.op = Opcode::kSub, .type = Type::kI64}, {left, constant(Type::kI64, 1)});
    put({.op = Opcode::kStore, .type = Type::kI64, .flags = kFlags}, {left, word});
    Value none = put({.op = Opcode::kLtS, .type = Type::kI64}, {left, constant(Type::kI64, 0)});
    put({.op = Opcode::kTrapIf, .aux = static_cast<uint32_t>(TrapCode::kOutOfFuel)}, {none});
  }

 private:
  // Instructions that must stay first in their block.
  static bool is_mark(const Inst& i) {
    if (i.op == Opcode::kLoopHeader) return true;
    return i.op == Opcode::kProbe && i.imm == static_cast<uint64_t>(ProbeKind::kBlock);
  }

  Value constant(Type t, uint64_t bits) {
    return put({.op = Opcode::kConst, .type = t, .imm = bits}, {});
  }

  Value put(Inst i, std::initializer_list<Value> args) {
    i.loc = loc_;
    i.args = f_.make_list(std::vector<Value>(args));
    Type result = Type::kNone;
    if (i.op == Opcode::kLtS) result = Type::kI32;
    if (i.op == Opcode::kConst || i.op == Opcode::kLoad || i.op == Opcode::kSub) result = i.type;
    InstId id = f_.add_inst(i, result);
    if (result != Type::kNone) f_.value(f_.inst(id).result).block = block_;
    auto& insts = f_.block(block_).insts;
    insts.insert(insts.begin() + static_cast<ptrdiff_t>(at_++), id);
    return f_.inst(id).result;
  }

  Function& f_;
  Block block_;
  size_t at_ = 0;
  uint32_t loc_ = 0;
};

}  // namespace

bool is_fuel_access(const Function& f, const Inst& i) {
  Shape shape = info(i.op).shape;
  if (shape != Shape::kLoad && shape != Shape::kStore) return false;
  auto args = f.args(i);
  if (args.empty() || args.back().index() >= f.values.size()) return false;
  InstId base = f.value(args.back()).inst;
  return i.type == Type::kI64 && i.imm == 0 && base.valid() && f.inst(base).op == Opcode::kConst &&
         f.inst(base).imm == kNoAddress;
}

void add_fuel(Function& f) {
  for (Block b : std::vector<Block>(f.layout)) {
    bool header = f.inst(f.block(b).insts.front()).op == Opcode::kLoopHeader;
    if (header || b == f.entry()) Counting(f, b).run();
  }
}

}  // namespace uptier::jit
