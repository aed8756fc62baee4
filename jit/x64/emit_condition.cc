#include "jit/x64/emit_impl.h"

namespace uptier::jit::x64 {
namespace {

using CC = x86::CondCode;

bool is_float_equality(Cond c) { return c >= Cond::kFloatE; }

}  // namespace

x86::CondCode code_of(Cond c) {
  static constexpr CC kCodes[] = {CC::kO,  CC::kNO, CC::kB,  CC::kAE, CC::kE,  CC::kNE,
                                  CC::kBE, CC::kA,  CC::kS,  CC::kNS, CC::kPE, CC::kPO,
                                  CC::kL,  CC::kGE, CC::kLE, CC::kG,  CC::kE,  CC::kNE};
  return kCodes[static_cast<unsigned>(c)];
}

// Returns whether the last instruction emitted has set the flags that the test would set.
bool Emitter::flags_are_set(const MInst& i) const {
  bool zero = i.form == Form::kRI && i.test == Test::kCmp && i.imm == 0;
  bool itself = i.form == Form::kRR && i.test == Test::kTest && i.a == i.b;
  bool sign_or_zero =
      i.cond == Cond::kE || i.cond == Cond::kNE || i.cond == Cond::kS || i.cond == Cond::kNS;
  return (zero || itself) && sign_or_zero && flags_.offset == b_.offset() &&
         flags_.width == i.width && at(i, i.a) == Location::reg(flags_.reg);
}

// Sets the flags.
void Emitter::test(const MInst& i) {
  if (i.test == Test::kCountDown) {
    auto by = static_cast<int64_t>(i.imm);
    Mem word = memory(i, i.width);
    by == -1 ? (void)a_.sub(word, imm(1)) : (void)a_.add(word, imm(by));
    return;
  }
  if (i.test >= Test::kAdd) return overflow_test(i);
  if (flags_are_set(i)) return;
  bool wide = i.width == 8;
  bool compares = i.test == Test::kCmp;
  auto immediate = static_cast<int32_t>(i.imm);
  if (i.test == Test::kUcomis) {
    Xmm x = xmm_at(i, i.a);
    auto compare = [&](const auto& s) { wide ? a_.ucomisd(x, s) : a_.ucomiss(x, s); };
    if (i.form == Form::kRC && b_.hides_float(i.imm, wide)) {
      emit_constant(b_, wide, x86::xmm15, i.imm);
      return compare(x86::xmm15);
    }
    if (i.form == Form::kRC) {
      return compare(wide ? b_.constant64(i.imm) : b_.constant32(static_cast<uint32_t>(i.imm)));
    }
    if (i.form == Form::kRM) {
      claim(i);
      return compare(memory(i, i.width));
    }
    if (at(i, i.b).is_reg()) return compare(xmm_at(i, i.b));
    return compare(place(at(i, i.b), i.width));
  }
  switch (i.form) {
    case Form::kMI:
      claim(i);
      compares ? a_.cmp(memory(i, i.width), imm(immediate))
               : a_.test(memory(i, i.width), imm(immediate));
      return;
    case Form::kRM:
      claim(i);
      a_.cmp(gp(gp_at(i, i.a), wide), memory(i, i.width));
      return;
    case Form::kRC: with_constant(i.imm, [&](const auto& s) { a_.cmp(gp_at(i, i.a), s); }); return;
    case Form::kRI:
      if (compares && immediate == 0 && at(i, i.a).is_reg()) {
        Gp r = gp(gp_at(i, i.a), wide);
        a_.test(r, r);
      } else if (!compares && immediate >= 0 && immediate <= 0x7F && at(i, i.a).is_reg()) {
        a_.test(gp_at(i, i.a).r8(), imm(immediate));
      } else {
        with(i, i.a, i.width, [&](const auto& s) {
          compares ? a_.cmp(s, imm(immediate)) : a_.test(s, imm(immediate));
        });
      }
      return;
    default: {
      Gp x = gp(gp_at(i, i.a), wide);
      if (at(i, i.b).is_reg()) {
        Gp y = gp(gp_at(i, i.b), wide);
        compares ? a_.cmp(x, y) : a_.test(x, y);
      } else {
        Mem y = place(at(i, i.b), i.width);
        compares ? a_.cmp(x, y) : a_.test(y, x);
      }
    }
  }
}

// The sum or product goes to the instruction's own result if it has one, otherwise to r11.
void Emitter::overflow_test(const MInst& i) {
  AluOp op = i.test == Test::kAdd ? AluOp::kAdd : i.test == Test::kSub ? AluOp::kSub : AluOp::kMul;
  bool makes = i.op == MOp::kTrapIf && i.d != kNoOperand;
  Gp d = gp(makes ? gp_at(i, i.d) : Gp(x86::r11), i.width == 8);
  copy(d, i, i.a, i.width);
  if (i.form == Form::kRI) return alu_op(op, d, static_cast<int32_t>(i.imm));
  with(i, i.b, i.width, [&](const auto& s) { alu_op(op, d, s); });
}

void Emitter::set(const MInst& i) {
  Gp d = gp_at(i, i.d);
  bool read = false;
  for (uint8_t n : {i.a, i.b, i.base, i.index}) {
    read |= n != kNoOperand && at(i, n) == at(i, i.d);
  }
  if (!read) a_.xor_(d.r32(), d.r32());
  test(i);
  a_.set(code_of(i.cond), d.r8());
  if (is_float_equality(i.cond)) {
    bool equal = i.cond == Cond::kFloatE;
    equal ? a_.setnp(x86::r11b) : a_.setp(x86::r11b);
    equal ? a_.and_(d.r8(), x86::r11b) : a_.or_(d.r8(), x86::r11b);
  }
  if (read) a_.movzx(d.r32(), d.r8());
}

void Emitter::select(const MInst& i) {
  auto type = static_cast<Type>(i.from);
  if (is_float(type) || is_float_equality(i.cond)) return float_select(i);
  test(i);
  bool wide = is_wide(type);
  Gp d = gp(gp_at(i, i.d), wide), x = gp(gp_at(i, i.x), wide), y = gp(gp_at(i, i.y), wide);
  if (d.id() == x.id() && d.id() != y.id()) {
    a_.cmov(code_of(opposite(i.cond)), d, y);
  } else {
    if (d.id() != y.id()) a_.mov(d, y);
    a_.cmov(code_of(i.cond), d, x);
  }
}

// d = y unless the condition holds, by jumping over a move. Moves keep the flags.
void Emitter::float_select(const MInst& i) {
  test(i);
  Location d = at(i, i.d), x = at(i, i.x), y = at(i, i.y);
  Label done = b_.new_label();
  Cond skip_when = opposite(i.cond);
  if (d == x && d != y) {
    std::swap(x, y);
    skip_when = i.cond;
  }
  // A 32-bit integer must have zero upper bits on both paths.
  bool narrow = static_cast<Type>(i.from) == Type::kI32;
  auto put = [&](Location from) {
    if (narrow) {
      a_.mov(x86::gpd(d.index()), x86::gpd(from.index()));
    } else {
      move(from, d);
    }
  };
  put(y);
  jump_on(skip_when, done);
  put(x);
  b_.bind(done);
}

// Jumps if the condition holds, float equality included.
void Emitter::jump_on(Cond c, const Label& to) {
  if (c == Cond::kFloatNE) {
    a_.jp(to);
    a_.jne(to);
  } else if (c == Cond::kFloatE) {
    Label no = b_.new_label();
    a_.short_().jp(no);
    a_.je(to);
    b_.bind(no);
  } else {
    a_.j(code_of(c), to);
  }
}

void Emitter::trap_if(const MInst& i) {
  if (i.exit != UINT32_MAX) return leave_if(i);
  test(i);
  jump_on(i.cond, b_.trap_label(static_cast<TrapCode>(i.flags), i.test_loc));
}

void Emitter::branch(const MInst& i) {
  uint32_t yes = m_.edges_of(i)[0].to, no = m_.edges_of(i)[1].to;
  if (target_[yes] == target_[no]) {
    // The test may read memory that faults.
    if (i.trap != TrapCode::kNone) test(i);
    return go_to(yes, part_ * m_.blocks[now_].frequency);
  }
  test(i);
  Cond c = i.cond;
  bool neither = !follows(target_[yes]) && !follows(target_[no]);
  if (follows(target_[yes]) || (neither && m_.blocks[no].frequency > m_.blocks[yes].frequency)) {
    std::swap(yes, no);
    c = opposite(c);
  }
  jump_on(c, labels_[target_[yes]]);
  go_to(no, part_ * m_.blocks[no].frequency);
}

void Emitter::switch_on(const MInst& i) {
  auto edges = m_.edges_of(i);
  Gp index = gp_at(i, i.a), d = gp_at(i, i.d);
  auto cases = static_cast<uint32_t>(edges.size() - 1);
  if (i.imm == 0) {
    a_.cmp(index.r32(), imm(cases));
    a_.jae(labels_[target_[edges[cases].to]]);
  }
  a_.lea(x86::r11, x86::ptr(table_of(i)));
  a_.movsxd(d, x86::dword_ptr(x86::r11, index, 2));
  a_.add(d, x86::r11);
  b_.jump_untracked(d);
}

// Entries are distances from the table's own start. One table serves all copies of a switch. If it has
// an entry for each value of the index, those without a case are the default.
Label Emitter::table_of(const MInst& i) {
  if (auto known = tables_.find(&i); known != tables_.end()) return known->second;
  Label table = b_.new_label();
  tables_.emplace(&i, table);
  std::vector<Label> targets;
  auto edges = m_.edges_of(i);
  size_t cases = edges.size() - 1, entries = i.imm != 0 ? i.imm : cases;
  for (size_t n = 0; n < entries; ++n) {
    targets.push_back(labels_[target_[edges[std::min(n, cases)].to]]);
  }
  b_.distances(table, std::move(targets));
  return table;
}

}  // namespace uptier::jit::x64
