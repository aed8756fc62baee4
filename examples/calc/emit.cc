#include "emit.h"

namespace calc {

// ---- The walk

// Whenever a loop is found to want something of a register, all begins again.
void Emitter::infer() {
  do {
    changed_ = wants_more_ = false;
    walk();
    if (wants_more_) plan_.types.assign(plan_.types.size(), {});
  } while (changed_ || wants_more_);
  recording_ = true;
  walk();
}

void Emitter::walk() {
  code_ = vm_.code.instrs.data() + plan_.proto->begin;
  types_.assign(plan_.proto->registers, {});
  open_.clear();
  next_state_ = 0;
  next_loop_ = 0;
  enter_function();
  for (at_ = 0; at_ < plan_.size(); ++at_) {
    state_at_ = kNoState;
    if (plan_.leaders[at_]) enter_block();
    if (alive_) {
      if (!ir_.dry()) ir_->set_location(plan_.proto->begin + at_);
      instruction();
    }
    end_loops();
  }
}

// Arguments arrive as Vals. Each becomes a value of its own: a loop that is entered in the middle
// of a call takes all it needs from the interpreter's registers, which may hold something else by
// then.
void Emitter::enter_function() {
  alive_ = true;
  at_ = 0;
  auto params = static_cast<int>(plan_.proto->params);
  for (int i = 0; i < params; ++i) {
    Value v = ir_.dry() ? Value() : ir_->param(static_cast<unsigned>(i) + 1);
    set(i, {Type::kAny}, ir_.bin(Opcode::kOr, v, ir_.i64(0)));
  }
  for (int i = 0; i < params; ++i) {
    narrow(i, plan_.params_seen[static_cast<size_t>(i)], 0, State::kParameter);
  }
  flow(0);
}

void Emitter::enter_block() {
  if (alive_ && at_ != 0) flow(at_);
  alive_ = !plan_.types[at_].empty();
  if (!alive_) return;
  types_ = plan_.types[at_];
  auto loop = plan_.loops.find(at_);
  if (loop != plan_.loops.end()) return enter_loop(loop->second);
  if (!ir_.dry()) ir_.begin(block_at(at_));
}

// Declares the frame: what is live, and the arrays' own values.
void Emitter::enter_loop(Loop& loop) {
  open_[at_] = &loop;
  if (recording_) {
    loop.id = next_loop_++;
    for (size_t r = 0; r < types_.size(); ++r) {
      auto reg = static_cast<uint8_t>(r);
      if (plan_.live[at_].test(r)) loop.frame.registers.push_back({reg, types_[r]});
      for (auto& [header, around] : open_) {
        if (!plan_.carries(header, *around, r)) continue;
        loop.carried.push_back(reg);
        break;
      }
    }
  }
  if (ir_.dry()) return;
  ir_->switch_to(block_at(at_));
  std::vector<Variable> slots;
  for (auto [reg, type] : loop.frame.registers) slots.push_back(variable(reg, type.form()));
  for (int reg : loop.carried) {
    slots.push_back(variable(reg + kLength, kI32));
    slots.push_back(variable(reg + kData, kI64));
  }
  ir_->loop_header(plan_.proto->begin + at_, slots);
}

// Seals the headers whose last jump back is behind us.
void Emitter::end_loops() {
  std::erase_if(open_, [&](const auto& o) {
    if (o.second->end != at_ + 1) return false;
    if (!ir_.dry()) ir_->seal(block_at(o.first));
    return true;
  });
}

Block Emitter::block_at(uint32_t at) {
  auto [found, is_new] = blocks_.try_emplace(at);
  if (is_new) found->second = ir_.block();
  return found->second;
}

// ---- Paths

void Emitter::flow(uint32_t to, bool back) {
  arrive(to, back);
  alive_ = false;
  if (!ir_.dry()) ir_.jump(block_at(to));
}

void Emitter::flow_if(Value condition, uint32_t yes, uint32_t no, bool back) {
  struct Way {
    uint32_t to;
    bool back;
    Block block;
  } ways[] = {{yes, back, {}}, {no, false, {}}};
  for (Way& w : ways) {
    if (!ir_.dry()) w.block = direct(w.to, w.back) ? block_at(w.to) : ir_.block();
  }
  ir_.branch(condition, ways[0].block, ways[1].block);
  std::vector<Type> types = types_;
  for (Way& w : ways) {
    bool between = !ir_.dry() && !direct(w.to, w.back);
    if (between) ir_.begin(w.block);
    if (between || ir_.dry()) arrive(w.to, w.back);
    if (between) ir_.jump(block_at(w.to));
    types_ = types;
  }
  alive_ = false;
}

// Whether nothing is to be done on the way to a block.
bool Emitter::direct(uint32_t to, bool back) const {
  for (size_t r = 0; r < types_.size(); ++r) {
    if (plan_.live[to].test(r) && !types_[r].fits(plan_.types[to][r])) return false;
  }
  auto loop = plan_.loops.find(to);
  return back || loop == plan_.loops.end() ||
         (loop->second.wanted.empty() && loop->second.arrays.none());
}

// Before a jump: gives registers the forms that they have at `to`, or finds these forms.
void Emitter::arrive(uint32_t to, bool back) {
  if (!back && plan_.loops.contains(to)) hoist(to);
  std::vector<Type>& there = plan_.types[to];
  if (ir_.dry() && there.empty()) {
    there.assign(types_.size(), {});
    changed_ = true;
  }
  for (size_t r = 0; r < types_.size(); ++r) {
    if (!plan_.live[to].test(r)) continue;
    auto reg = static_cast<int>(r);
    Type joined = ir_.dry() ? join(there[r], types_[r]) : there[r];
    changed_ |= joined != there[r];
    there[r] = joined;
    if (ir_.dry() || types_[r].fits(joined)) continue;
    Operand o = operand(reg);
    ir_.def(variable(reg, joined.form()), joined.is == Type::kDouble ? double_of(o) : box(o));
  }
}

// Does before a loop what its body would have to do again and again.
void Emitter::hoist(uint32_t to) {
  Loop& loop = plan_.loops.at(to);
  if (!plan_.speculate || (plan_.seen[to] & kNoHoist) != 0) return;
  for (auto [reg, wanted] : loop.wanted) {
    if (type(reg).is != Type::kAny) continue;
    frame_state(to, {.learn_at = to, .learn = kNoHoist});
    check(reg, wanted);
  }
  if (ir_.dry()) return;
  for (int reg = 0; reg < static_cast<int>(types_.size()); ++reg) {
    if (!plan_.carries(to, loop, static_cast<size_t>(reg))) continue;
    Value array = get(reg);
    ir_.def(variable(reg + kLength, kI32), ir_.load(kI32, kArrays, array, offsetof(Array, length)));
    ir_.def(variable(reg + kData, kI64), ir_.load(kI64, kArrays, array, offsetof(Array, data)));
  }
}

// ---- Registers

Variable Emitter::variable(int reg, uptier::Type form) {
  if (ir_.dry()) return {};
  auto [found, is_new] = variables_.try_emplace({reg, form});
  if (is_new) found->second = ir_->declare(form);
  return found->second;
}

void Emitter::set(int reg, Type t, Value v) {
  type(reg) = t;
  ir_.def(variable(reg, t.form()), v);
}

void Emitter::set_seen(int reg, Value v) {
  set(reg, {Type::kAny}, v);
  narrow(reg, plan_.seen[at_], at_ + 1, at_);
}

Emitter::Operand Emitter::constant(Val v) {
  Type t = type_of_kinds(kind_of(v));
  uint64_t bits = 0;
  to_form(t, v, bits);
  if (t.form() == kF64) return {t, ir_.f64(as_double(v))};
  return {t, t.form() == kI32 ? ir_.i32(static_cast<int32_t>(bits)) : ir_.i64(bits)};
}

Value Emitter::box(const Operand& o) {
  if (o.type.object()) return ir_.bin(Opcode::kOr, o.value, tag());
  switch (o.type.is) {
    case Type::kInt:
      return ir_.bin(Opcode::kOr, ir_.to(kI64, Opcode::kExtendU, o.value), ir_.i64(kIntTag));
    case Type::kBool:
      return ir_.bin(Opcode::kAdd, ir_.to(kI64, Opcode::kExtendU, o.value), ir_.i64(kFalseVal));
    case Type::kDouble: return ir_.to(kI64, Opcode::kBitcast, o.value);
    default: return o.value;
  }
}

Value Emitter::double_of(const Operand& o) {
  return o.type.is == Type::kDouble ? o.value : ir_.to(kF64, Opcode::kConvertS, o.value);
}

Value Emitter::truth(const Operand& o) {
  if (o.type.is == Type::kBool) return o.value;
  if (o.type.is != Type::kAny) return ir_.i32(o.type.is == Type::kNil ? 0 : 1);
  return ir_.bin(Opcode::kGtU, ir_.bin(Opcode::kSub, o.value, ir_.i64(kNilVal)), ir_.i64(1));
}

// ---- Guards

// Declares the interpreter's frame at `at`; see Plan::states.
void Emitter::frame_state(uint32_t at, State s) {
  s.pc = at;
  std::vector<Value> slots = {self()};
  for (size_t r = 0; r < types_.size(); ++r) {
    if (!plan_.live[at].test(r)) continue;
    s.registers.push_back({static_cast<uint8_t>(r), types_[r]});
    slots.push_back(get(static_cast<int>(r)));
  }
  if (recording_) plan_.states.push_back(s);
  if (!ir_.dry()) ir_->frame_state(next_state_, slots);
  ++next_state_;
}

void Emitter::state_here() {
  if (state_at_ != at_) frame_state(at_);
  state_at_ = at_;
}

void Emitter::guard(Value condition, GuardReason reason) {
  state_here();
  guard_state(condition, reason);
}

void Emitter::guard_state(Value condition, GuardReason reason) {
  if (!ir_.dry()) ir_->guard(condition, reason);
}

bool Emitter::unreached(bool seen) {
  if (seen || !plan_.speculate) return false;
  guard(ir_.i32(0), GuardReason::kUnreached);
  if (!ir_.dry()) ir_->trap(uptier::TrapCode::kUnreachable);
  alive_ = false;
  return true;
}

void Emitter::narrow(int reg, uint16_t seen, uint32_t to, uint32_t learn_at) {
  Type wanted = type_of_kinds(seen & 255);
  bool worth_it = wanted.number() || wanted.is == Type::kBool || wanted.is == Type::kArray;
  bool wants = plan_.speculate && worth_it && type(reg).is == Type::kAny;
  if (!wants || !plan_.live[to].test(static_cast<size_t>(reg))) return;
  frame_state(to, {.learn_at = learn_at, .learn_of = reg});
  (seen & 255) == (kInt | kDouble) ? check_number(reg) : check(reg, wanted);
}

// A number of either kind becomes a double.
void Emitter::check_number(int reg) {
  Value v = get(reg);
  guard_state(ir_.bin(Opcode::kGeU, ir_.bin(Opcode::kSub, v, tag()), ir_.i64(kIntTag - kObjectTag)),
              GuardReason::kType);
  Block is_int = ir_.block(), is_double = ir_.block(), done = ir_.block();
  Variable out = variable(reg, kF64);
  ir_.branch(ir_.bin(Opcode::kGeU, v, ir_.i64(kIntTag)), is_int, is_double);
  ir_.begin(is_int);
  ir_.def(out, ir_.to(kF64, Opcode::kConvertS, ir_.to(kI32, Opcode::kWrap, v)));
  ir_.jump(done);
  ir_.begin(is_double);
  ir_.def(out, ir_.to(kF64, Opcode::kBitcast, v));
  ir_.jump(done);
  ir_.begin(done);
  type(reg) = {Type::kDouble};
  state_at_ = kNoState;
}

// Guards, by the frame_state just before, that a Val is of a type, and gives it that form. An
// object that is known for one need only have the shape.
void Emitter::check(int reg, Type wanted) {
  Value v = get(reg);
  switch (wanted.is) {
    case Type::kInt:
      guard_state(ir_.bin(Opcode::kGeU, v, ir_.i64(kIntTag)), GuardReason::kType);
      return set(reg, wanted, ir_.to(kI32, Opcode::kWrap, v));
    case Type::kDouble:
      guard_state(ir_.bin(Opcode::kLtU, v, tag()), GuardReason::kType);
      return set(reg, wanted, ir_.to(kF64, Opcode::kBitcast, v));
    case Type::kBool: {
      Value bit = ir_.bin(Opcode::kSub, v, ir_.i64(kFalseVal));
      guard_state(ir_.bin(Opcode::kLeU, bit, ir_.i64(1)), GuardReason::kType);
      return set(reg, wanted, ir_.to(kI32, Opcode::kWrap, bit));
    }
    default: break;
  }
  Value object = v;
  if (!type(reg).object()) {
    object = ir_.bin(Opcode::kSub, v, tag());
    guard_state(ir_.bin(Opcode::kLtU, object, ir_.i64(uint64_t{1} << 48)), GuardReason::kType);
  }
  const void* shape = wanted.is == Type::kArray      ? &Array::kShape
                      : wanted.is == Type::kFunction ? &Closure::kShape
                                                     : wanted.what;
  Value is = ir_.load(kI64, kShapes, object, offsetof(Object, shape));
  guard_state(ir_.bin(Opcode::kEq, is, ir_.pointer(shape)), GuardReason::kType);
  set(reg, wanted, object);
}

bool Emitter::need(int reg, Type wanted) {
  want(reg, wanted);
  Type is = type(reg);
  if (is.is == wanted.is && (wanted.what == nullptr || wanted.what == is.what)) return true;
  bool possible = is.is == Type::kAny || (is.is == wanted.is && is.object());
  if (!possible) return !unreached(false);
  state_here();
  check(reg, wanted);
  return true;
}

// Tells the loops around that their bodies need a register of a type.
void Emitter::want(int reg, Type wanted) {
  for (auto& [header, loop] : open_) {
    auto r = static_cast<size_t>(reg);
    bool fixed = plan_.speculate && !loop->writes.test(r) && plan_.live[header].test(r);
    if (!ir_.dry() || !fixed || (plan_.seen[header] & kNoHoist) != 0) continue;
    if (wanted.is == Type::kArray) loop->arrays.set(r);
    wants_more_ |= loop->wanted.try_emplace(reg, wanted).second;
  }
}

// What others may have done to records: a field more changes a shape.
void Emitter::forget_shapes() {
  for (Type& t : types_) {
    if (t.is == Type::kRecord) t.what = nullptr;
  }
}

}  // namespace calc
