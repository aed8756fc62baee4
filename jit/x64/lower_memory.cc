#include "jit/ir/fuel_flag.h"
#include "jit/ir/semantics.h"
#include "jit/x64/address.h"
#include "jit/x64/lower_impl.h"

namespace uptier::jit::x64 {
namespace {

TrapCode trap_of(const Inst& access) {
  return access.flags & kMemTraps ? TrapCode::kOutOfBoundsMemory : TrapCode::kNone;
}

Extension extension_of(Opcode load) {
  switch (load) {
    case Opcode::kLoad8S: return Extension::kSign8;
    case Opcode::kLoad8U: return Extension::kZero8;
    case Opcode::kLoad16S: return Extension::kSign16;
    case Opcode::kLoad16U: return Extension::kZero16;
    case Opcode::kLoad32S: return Extension::kSign32;
    case Opcode::kLoad32U: return Extension::kZero32;
    default: return Extension::kNone;
  }
}

}  // namespace

const Inst* Lowering::foldable_load(Value v) const {
  const Inst* i = def(v);
  if (!i || info(i->op).shape != Shape::kLoad || use_count_[v.index()] != 1) return nullptr;
  if (f_.value(v).block != block_) return nullptr;
  InstId id = f_.value(v).inst;
  if (folded_[id.index()]) return nullptr;
  uint32_t after = color_[id.index()] + ((i->flags & kMemTraps) ? 1 : 0);
  return after == current_color_ ? i : nullptr;
}

// Adds the operands of an address: [base + index + disp]. An offset that exceeds the displacement
// goes to a register. The operands are the last in the list.
void Lowering::add_address(const Inst& access, Role role) {
  if (is_fuel(access)) return;  // no base: see Emitter::memory()
  AddressParts parts = take_apart(f_, access);
  int64_t offset = parts.offset;
  // If operations were folded into the address, it is a further use of their operand, so a load of
  // that operand is not folded.
  if (parts.taken) ++use_count_[parts.index.index()];
  Vreg base = use(parts.base);
  Vreg index_vreg = parts.index.valid() ? use(parts.index) : Vreg::none();
  if (offset > INT32_MAX) {
    MInst far;  // index + offset, or the offset alone
    Vreg sum = new_vreg(Type::kI64);
    far.op = MOp::kConst;
    far.d = 0;
    far.imm = static_cast<uint64_t>(offset);
    far.operands_at = static_cast<uint32_t>(m_.operands.size());
    far.operand_count = 1;
    m_.operands.push_back({.vreg = sum, .role = Role::kDef});
    group_.push_back(far);
    if (index_vreg.valid()) {
      Vreg both = new_vreg(Type::kI64);
      MInst lea;
      lea.op = MOp::kLea;
      lea.d = 0;
      lea.base = 1;
      lea.index = 2;
      lea.operands_at = static_cast<uint32_t>(m_.operands.size());
      lea.operand_count = 3;
      m_.operands.push_back({.vreg = both, .role = Role::kDef});
      m_.operands.push_back({.vreg = sum});
      m_.operands.push_back({.vreg = index_vreg});
      group_.push_back(lea);
      sum = both;
    }
    index_vreg = sum;
    offset = 0;
  }
  cur_.disp = static_cast<int32_t>(offset);
  cur_.base = add(base, role, Policy::kReg);
  if (!index_vreg.valid()) return;
  cur_.index = add(index_vreg, role, Policy::kReg);
  cur_.scale = parts.scale;
}

void Lowering::fold_memory(const Inst& load, Role role, Form form) {
  folded_[f_.value(load.result).inst.index()] = true;
  cur_.form = form;
  cur_.trap = trap_of(load);
  if (cur_.trap != TrapCode::kNone) cur_.loc = load.origin();
  add_address(load, role);
}

void Lowering::add_source(Value v, Role role, bool allow_imm) {
  bool is_fp = is_float(f_.type_of(v));
  if (auto c = constant_of(v)) {
    auto small = is_fp ? std::nullopt : imm_of(v);
    if (allow_imm && small) {
      cur_.form = Form::kRI;
      cur_.imm = static_cast<uint64_t>(static_cast<int64_t>(*small));
      return;
    }
    if (is_fp || is_wide_value(v)) {
      cur_.form = Form::kRC;
      cur_.imm = *c;
      return;
    }
  }
  const Inst* load = foldable_load(v);
  if (load && load->op == Opcode::kLoad) return fold_memory(*load, role, Form::kRM);
  cur_.form = Form::kRR;
  use_b(v, Policy::kAny, role);
}

void Lowering::lower_load(const Inst& i) {
  bool fp = is_float(i.type);
  begin(fp ? MOp::kFLoad : MOp::kLoad, access_size(i.op, i.type), i.origin());
  cur_.sub = static_cast<uint8_t>(extension_of(i.op));
  cur_.to = static_cast<uint8_t>(i.type);
  cur_.trap = trap_of(i);
  cur_.form = Form::kRM;
  def_d(i.result);
  add_address(i, Role::kUse);
  emit();
}

void Lowering::lower_store(const Inst& i) {
  if (lower_alu_store(i)) return;
  Value v = f_.args(i)[0];
  bool fp = is_float(i.type);
  unsigned size = access_size(i.op, i.type);
  begin(fp ? MOp::kFStore : MOp::kStore, size, i.origin());
  cur_.trap = trap_of(i);
  auto c = constant_of(v);
  if (c && fp) {  // store the bits from a general register or an immediate
    cur_.op = MOp::kStore;
    fp = false;
  }
  bool wide = size == 8;
  auto fits = [&](uint64_t bits) {
    auto s = static_cast<int64_t>(bits);
    return !wide || (s >= INT32_MIN && s <= INT32_MAX);
  };
  if (c && fits(*c)) {
    cur_.form = Form::kMI;
    cur_.imm = *c;
  } else if (c && is_float(i.type)) {
    begin(MOp::kFStore, size, i.origin());
    cur_.trap = trap_of(i);
    cur_.form = Form::kMR;
    use_a(v, Policy::kReg);
  } else {
    cur_.form = Form::kMR;
    use_a(v, Policy::kReg);
  }
  add_address(i, Role::kUse);
  emit();
}

void Lowering::lower_bulk(const Inst& i) {
  auto args = f_.args(i);
  Vreg source = use(args[0]), to = use(args[1]), count = use(args[2]);
  begin(MOp::kBulk, static_cast<unsigned>(i.imm), i.origin());
  cur_.sub = static_cast<uint8_t>(i.op);
  cur_.trap = trap_of(i);
  Reg from = i.op == Opcode::kCopy ? kRsi : kRax;
  cur_.a = add(source, Role::kUse, Policy::kFixed, Location::reg(from));
  cur_.b = add(to, Role::kUse, Policy::kFixed, Location::reg(kRdi));
  cur_.x = add(count, Role::kUse, Policy::kFixed, Location::reg(kRcx));
  emit();
}

// store(p, load(p) op v) is one instruction if both accesses may trap, or neither.
bool Lowering::lower_alu_store(const Inst& i) {
  if (i.op != Opcode::kStore || !is_int(i.type)) return false;
  Value sum = f_.args(i)[0];
  const Inst* op = def(sum);
  if (!op || use_count_[sum.index()] != 1 || f_.value(sum).block != block_) return false;
  AluOp alu;
  switch (op->op) {
    case Opcode::kAdd: alu = AluOp::kAdd; break;
    case Opcode::kSub: alu = AluOp::kSub; break;
    case Opcode::kAnd: alu = AluOp::kAnd; break;
    case Opcode::kOr: alu = AluOp::kOr; break;
    case Opcode::kXor: alu = AluOp::kXor; break;
    default: return false;
  }
  auto same_place = [&](Value v) -> const Inst* {
    const Inst* load = foldable_load(v);
    if (!load || load->op != Opcode::kLoad || load->type != i.type || load->imm != i.imm ||
        load->args.size + 1 != i.args.size || ((load->flags ^ i.flags) & kMemTraps) != 0) {
      return nullptr;
    }
    auto x = f_.args(*load), y = f_.args(i).subspan(1);
    return std::equal(x.begin(), x.end(), y.begin()) ? load : nullptr;
  };
  Value a = f_.args(*op)[0], b = f_.args(*op)[1];
  const Inst* load = same_place(a);
  if (!load && (info(op->op).effects & kCommutes)) {
    std::swap(a, b);
    load = same_place(a);
  }
  if (!load) return false;
  begin(MOp::kAluStore, is_wide(i.type) ? 8 : 4, load->origin());
  cur_.sub = static_cast<uint8_t>(alu);
  if (auto c = imm_of(b)) {
    cur_.form = Form::kMI;
    cur_.imm = static_cast<uint64_t>(static_cast<int64_t>(*c));
    cur_.trap = trap_of(*load);
    folded_[f_.value(load->result).inst.index()] = true;
    add_address(*load, Role::kUse);
  } else {
    use_a(b, Policy::kReg);
    fold_memory(*load, Role::kUse, Form::kMR);
  }
  emit();
  return true;
}

}  // namespace uptier::jit::x64
