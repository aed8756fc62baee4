#include <bit>
#include <cassert>
#include <cstring>

#include "jit/ir/builder_impl.h"

namespace uptier {

using jit::Inst;
using jit::InstId;

// ---- Filling --------------------------------------------------------------------------------

// Builds without asserts put what comes after a terminator behind it, where the verifier finds it.
Block FunctionBuilder::Impl::here() const {
  assert(current.valid() && "an instruction after the block's terminator");
  return current.valid() ? current : f.layout.back();
}

Type FunctionBuilder::Impl::type_of(Value v) const {
  assert(v.index() < f.values.size() && "not a value of this function");
  return v.index() < f.values.size() ? f.type_of(v) : Type::kNone;
}

Value FunctionBuilder::Impl::append(const Inst& i) {
  Block b = here();
  InstId id = f.add_inst(i, jit::result_type(f, i));
  f.insts.back().loc = location;
  (current.valid() ? body : f.block(b).insts).push_back(id);
  Value r = f.insts.back().result;
  if (r.valid()) f.value(r).block = b;
  return r;
}

// A jump that may not be (values were already looked up as if it did not exist) leads nowhere, so
// that the verifier finds it in builds without asserts.
void FunctionBuilder::Impl::add_edge(Block from, Block to) {
  assert(to.index() < blocks.size() && "not a block of this function");
  assert(!blocks[to.index()].sealed && "a jump to a sealed block");
  if (to.index() >= blocks.size() || blocks[to.index()].sealed) to = Block::none();
  auto edge = static_cast<uint32_t>(f.edges.size());
  f.edges.push_back({to, {}});
  incoming.push_back({from});
  edge_args.add_edge();
  if (!to.valid()) return;
  BlockState& s = blocks[to.index()];
  incoming.back().before = s.last_pred;
  (s.pred_count++ == 0 ? s.first_pred : incoming[s.last_pred].next) = edge;
  s.last_pred = edge;
}

void FunctionBuilder::Impl::end_block(Inst i, std::initializer_list<Block> to) {
  i.edges_at = static_cast<uint32_t>(f.edges.size());
  i.edge_count = static_cast<uint32_t>(to.size());
  Block from = here();
  append(i);
  for (Block b : to) add_edge(from, b);
  leave_block();
}

// Gives the current block its instructions, with room for the probe that number_sites() adds.
void FunctionBuilder::Impl::leave_block() {
  if (current.valid()) {
    auto& insts = f.block(current).insts;
    insts.reserve(body.size() + 1);
    insts.assign(body.begin(), body.end());
    body.clear();
  }
  current = Block::none();
}

namespace {

// Entries that the tables start with: the smallest functions then allocate each table once.
constexpr size_t kFirstRoom = 64;

}  // namespace

FunctionBuilder::FunctionBuilder(Signature signature, std::string_view name)
    : impl_(std::make_unique<Impl>()) {
  Impl& m = *impl_;
  m.f.name = name;
  m.f.insts.reserve(kFirstRoom);
  m.f.values.reserve(kFirstRoom);
  m.f.pool.reserve(kFirstRoom);
  m.f.signature_id = m.f.intern(signature);
  Block entry = create_block();
  for (Type t : signature.params) m.params.push_back(m.f.add_block_param(entry, t));
  m.blocks[entry.index()].sealed = true;
  switch_to(entry);
}

FunctionBuilder::~FunctionBuilder() = default;

const Signature& FunctionBuilder::signature() const { return impl_->f.signature(); }
Value FunctionBuilder::param(unsigned i) const { return impl_->params[i]; }
Type FunctionBuilder::type_of(Value v) const { return impl_->type_of(v); }
Block FunctionBuilder::current() const { return impl_->current; }
void FunctionBuilder::set_location(uint32_t loc) { impl_->location = loc; }

Block FunctionBuilder::create_block() {
  impl_->blocks.emplace_back();
  return impl_->f.add_block();
}

void FunctionBuilder::switch_to(Block b) {
  Impl& m = *impl_;
  assert(!m.current.valid() && "the current block has no terminator");
  assert(m.blocks[b.index()].begun_at == 0 && "a block is filled once");
  m.leave_block();
  m.begin(b);
  m.f.layout.push_back(b);
  m.current = b;
  m.body = m.f.block(b).insts;
}

void FunctionBuilder::seal(Block b) {
  Impl& m = *impl_;
  assert(!m.blocks[b.index()].sealed && "a block is sealed once");
  m.close(b);
  for (uint32_t at = m.blocks[b.index()].first_waiting; at != Impl::kEnd; at = m.waiting[at].next) {
    m.pending.push_back({m.waiting[at].variable, m.waiting[at].param});
  }
  m.fill_pending();
}

Variable FunctionBuilder::declare(Type t) {
  impl_->variables.push_back(t);
  impl_->defs.declare();
  impl_->defined_at.push_back(0);
  return Variable(static_cast<uint32_t>(impl_->variables.size() - 1));
}

void FunctionBuilder::def(Variable x, Value v) {
  Impl& m = *impl_;
  assert(m.type_of(v) == m.variables[x.index()] && "the value has another type");
  if (x.index() >= m.variables.size()) return;
  m.defs.set(x, m.here(), v);
  m.defined_at[x.index()] = m.clock;
}

Value FunctionBuilder::use(Variable x) {
  Value v = impl_->lookup(x, impl_->here());
  impl_->fill_pending();
  return v;
}

// ---- Operations -----------------------------------------------------------------------------

Value FunctionBuilder::constant(Type t, uint64_t bits) {
  return impl_->append({.op = Opcode::kConst, .type = t, .imm = bits});
}
Value FunctionBuilder::i32(int32_t v) { return constant(Type::kI32, static_cast<uint32_t>(v)); }
Value FunctionBuilder::i64(int64_t v) { return constant(Type::kI64, static_cast<uint64_t>(v)); }
Value FunctionBuilder::f32(float v) { return constant(Type::kF32, std::bit_cast<uint32_t>(v)); }
Value FunctionBuilder::f64(double v) { return constant(Type::kF64, std::bit_cast<uint64_t>(v)); }
Value FunctionBuilder::ref(const void* p) {
  return constant(Type::kRef, reinterpret_cast<uintptr_t>(p));
}

Value FunctionBuilder::unary(Opcode op, Value a) {
  auto& f = impl_->f;
  return impl_->append({.op = op, .type = impl_->type_of(a), .args = f.make_list({{a}})});
}

Value FunctionBuilder::binary(Opcode op, Value a, Value b) {
  auto& f = impl_->f;
  return impl_->append({.op = op, .type = impl_->type_of(a), .args = f.make_list({{a, b}})});
}

Value FunctionBuilder::convert(Opcode op, Type to, Value a) {
  return impl_->append({.op = op, .type = to, .args = impl_->f.make_list({{a}})});
}

Value FunctionBuilder::select(Value condition, Value a, Value b) {
  auto& f = impl_->f;
  return impl_->append(
      {.op = Opcode::kSelect, .type = impl_->type_of(a), .args = f.make_list({{condition, a, b}})});
}

Value FunctionBuilder::load(Opcode op, Type t, const Address& at) {
  auto& f = impl_->f;
  auto args = at.index.valid() ? f.make_list({{at.base, at.index}}) : f.make_list({{at.base}});
  return impl_->append({.op = op, .type = t, .flags = at.flags, .args = args, .imm = at.offset});
}

void FunctionBuilder::store(Opcode op, Value v, const Address& at) {
  auto& f = impl_->f;
  auto args =
      at.index.valid() ? f.make_list({{v, at.base, at.index}}) : f.make_list({{v, at.base}});
  impl_->append(
      {.op = op, .type = impl_->type_of(v), .flags = at.flags, .args = args, .imm = at.offset});
}

// ---- Calls ----------------------------------------------------------------------------------

Value FunctionBuilder::call(MethodId callee, const Signature& signature,
                            std::span<const Value> args, std::string_view name) {
  auto& f = impl_->f;
  SignatureId sig = f.intern(signature);
  uint32_t index = 0;
  while (index < f.callees.size() && f.callees[index].method != callee) ++index;
  if (index == f.callees.size()) f.callees.push_back({callee, std::string(name), sig});
  return impl_->append({.op = Opcode::kCall,
                        .type = signature.result,
                        .aux = sig.index(),
                        .args = f.make_list(args),
                        .imm = index});
}

Value FunctionBuilder::call_indirect(Value target, const Signature& signature,
                                     std::span<const Value> args) {
  auto& f = impl_->f;
  auto list = f.make_list({{target}});
  for (Value v : args) f.push(list, v);
  return impl_->append({.op = Opcode::kCallIndirect,
                        .type = signature.result,
                        .aux = f.intern(signature).index(),
                        .args = list});
}

Value FunctionBuilder::call_host(const HostFunction& callee, std::span<const Value> args,
                                 uint8_t flags) {
  auto& f = impl_->f;
  SignatureId sig = f.intern(callee.signature);
  uint32_t index = 0;
  auto same = [&](const jit::HostCallee& h) {
    return h.address == callee.address && h.signature == sig && h.name == callee.name;
  };
  while (index < f.host_callees.size() && !same(f.host_callees[index])) ++index;
  if (index == f.host_callees.size()) f.host_callees.push_back({callee.name, callee.address, sig});
  return impl_->append({.op = Opcode::kCallHost,
                        .type = callee.signature.result,
                        .flags = flags,
                        .aux = sig.index(),
                        .args = f.make_list(args),
                        .imm = index});
}

// ---- Control --------------------------------------------------------------------------------

void FunctionBuilder::jump(Block to) { impl_->end_block({.op = Opcode::kJump}, {to}); }

void FunctionBuilder::branch(Value condition, Block if_true, Block if_false) {
  impl_->end_block({.op = Opcode::kBranch, .args = impl_->f.make_list({{condition}})},
                   {if_true, if_false});
}

void FunctionBuilder::switch_on(Value index, std::span<const Block> cases, Block otherwise) {
  Impl& m = *impl_;
  Block from = m.here();
  m.append({.op = Opcode::kSwitch,
            .args = m.f.make_list({{index}}),
            .edges_at = static_cast<uint32_t>(m.f.edges.size()),
            .edge_count = static_cast<uint32_t>(cases.size() + 1)});
  for (Block b : cases) m.add_edge(from, b);
  m.add_edge(from, otherwise);
  m.leave_block();
}

void FunctionBuilder::ret() { impl_->end_block({.op = Opcode::kReturn}, {}); }

void FunctionBuilder::ret(Value v) {
  impl_->end_block({.op = Opcode::kReturn, .args = impl_->f.make_list({{v}})}, {});
}

void FunctionBuilder::trap(TrapCode code) {
  impl_->end_block({.op = Opcode::kTrap, .aux = static_cast<uint32_t>(code)}, {});
}

void FunctionBuilder::trap_if(Value condition, TrapCode code) {
  impl_->append({.op = Opcode::kTrapIf,
                 .aux = static_cast<uint32_t>(code),
                 .args = impl_->f.make_list({{condition}})});
}

// ---- Observation and speculation --------------------------------------------------------------

LoopId FunctionBuilder::loop_header(uint32_t pc, std::span<const Variable> slots) {
  Impl& m = *impl_;
  assert(m.body.empty() && "loop_header comes first in its block");
  assert(!m.blocks[m.here().index()].sealed && "a loop header is sealed after its back edges");
  std::vector<Value> values;
  for (Variable x : slots) values.push_back(use(x));
  LoopId id(m.f.loop_count++);
  m.append(
      {.op = Opcode::kLoopHeader, .aux = id.index(), .args = m.f.make_list(values), .imm = pc});
  return id;
}

void FunctionBuilder::frame_state(uint32_t pc, std::span<const Value> slots) {
  impl_->append({.op = Opcode::kFrameState, .args = impl_->f.make_list(slots), .imm = pc});
}

void FunctionBuilder::guard(Value condition, GuardReason reason) {
  impl_->append({.op = Opcode::kGuard,
                 .aux = static_cast<uint32_t>(reason),
                 .args = impl_->f.make_list({{condition}})});
}

uint32_t FunctionBuilder::probe(ProbeKind kind, Value v, uint32_t tag) {
  assert(kind != ProbeKind::kBlock && "the library places these itself");
  impl_->append({.op = Opcode::kProbe,
                 .args = impl_->f.make_list(std::span(&v, v.valid() ? 1 : 0)),
                 .imm = static_cast<uint64_t>(kind) | uint64_t{tag} << 32});
  return impl_->host_probes++;
}

}  // namespace uptier
