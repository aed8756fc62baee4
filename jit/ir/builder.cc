#include <bit>
#include <cassert>
#include <cstring>

#include "jit/ir/builder_impl.h"

namespace uptier {

using jit::Inst;
using jit::InstId;

// ---- Variables ------------------------------------------------------------------------------

// Returns the value of `x` at the end of `b`. Walks up while there is one predecessor; where paths
// join it makes a parameter, whose edges are filled by fill_pending(), so no recursion is needed
// however long the function is. A walk longer than there are blocks goes round an unreachable loop,
// where any value will do.
Value FunctionBuilder::Impl::lookup(Variable x, Block b) {
  std::vector<Block> walked;
  Value v;
  for (;;) {
    auto it = defs.find(key(x, b));
    if (it != defs.end()) {
      v = it->second;
      break;
    }
    walked.push_back(b);
    const BlockState& s = blocks[b.index()];
    if (s.sealed && s.preds.size() == 1 && walked.size() <= blocks.size()) {
      b = s.preds[0].first;
      continue;
    }
    v = s.sealed && s.preds.size() <= 1 ? zero_at_start(b, variables[x.index()])
                                        : lookup_at_join(x, b);
    break;
  }
  for (Block w : walked) defs[key(x, w)] = v;
  return v;
}

Value FunctionBuilder::Impl::lookup_at_join(Variable x, Block b) {
  BlockState& s = blocks[b.index()];
  Value p = f.add_block_param(b, variables[x.index()]);
  if (s.sealed) {
    pending.push_back({x, p});
  } else {
    s.incomplete.push_back({x, p});
  }
  return p;
}

void FunctionBuilder::Impl::fill_pending() {
  while (!pending.empty()) {
    auto [x, p] = pending.back();
    pending.pop_back();
    fill_edges(x, p);
  }
}

void FunctionBuilder::Impl::fill_edges(Variable x, Value param) {
  uint32_t index = f.value(param).index;
  Block b = f.value(param).block;
  for (size_t i = 0; i < blocks[b.index()].preds.size(); ++i) {
    auto [from, edge] = blocks[b.index()].preds[i];
    Value v = lookup(x, from);
    if (edge_args[edge].size() <= index) edge_args[edge].resize(index + 1);
    edge_args[edge][index] = v;
  }
}

// Nothing reaches `b` with a value: a Variable starts as zero.
Value FunctionBuilder::Impl::zero_at_start(Block b, Type t) {
  InstId id = f.add_inst({.op = Opcode::kConst, .type = t}, t);
  f.value(f.inst(id).result).block = b;
  auto& insts = f.block(b).insts;
  insts.insert(insts.begin(), id);
  return f.inst(id).result;
}

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

Value FunctionBuilder::Impl::append(Inst i) {
  i.loc = location;
  InstId id = f.append(here(), i, jit::result_type(f, i));
  return f.inst(id).result;
}

// A jump that may not be (values were already looked up as if it did not exist) leads nowhere, so
// that the verifier finds it in builds without asserts.
void FunctionBuilder::Impl::add_edge(Block from, Block to) {
  assert(to.index() < blocks.size() && "not a block of this function");
  assert(!blocks[to.index()].sealed && "a jump to a sealed block");
  if (to.index() >= blocks.size() || blocks[to.index()].sealed) to = Block::none();
  if (to.valid()) {
    blocks[to.index()].preds.push_back({from, static_cast<uint32_t>(f.edges.size())});
  }
  f.edges.push_back({to, {}});
  edge_args.emplace_back();
}

void FunctionBuilder::Impl::end_block(Inst i, std::initializer_list<Block> to) {
  i.edges_at = static_cast<uint32_t>(f.edges.size());
  i.edge_count = static_cast<uint32_t>(to.size());
  Block from = here();
  append(i);
  for (Block b : to) add_edge(from, b);
  current = Block::none();
}

FunctionBuilder::FunctionBuilder(Signature signature, std::string_view name)
    : impl_(std::make_unique<Impl>()) {
  Impl& m = *impl_;
  m.f.name = name;
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
  assert(!m.blocks[b.index()].begun && "a block is filled once");
  m.blocks[b.index()].begun = true;
  m.f.layout.push_back(b);
  m.current = b;
}

void FunctionBuilder::seal(Block b) {
  Impl& m = *impl_;
  assert(!m.blocks[b.index()].sealed && "a block is sealed once");
  m.blocks[b.index()].sealed = true;
  auto incomplete = std::move(m.blocks[b.index()].incomplete);
  for (auto [x, p] : incomplete) m.pending.push_back({x, p});
  m.fill_pending();
}

Variable FunctionBuilder::declare(Type t) {
  impl_->variables.push_back(t);
  return Variable(static_cast<uint32_t>(impl_->variables.size() - 1));
}

void FunctionBuilder::def(Variable x, Value v) {
  Impl& m = *impl_;
  assert(m.type_of(v) == m.variables[x.index()] && "the value has another type");
  m.defs[Impl::key(x, m.here())] = v;
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
  m.current = Block::none();
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
  assert(m.f.block(m.here()).insts.empty() && "loop_header comes first in its block");
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
  assert(kind != ProbeKind::kBlock && "block probes are placed by the library");
  impl_->append({.op = Opcode::kProbe,
                 .args = impl_->f.make_list(std::span(&v, v.valid() ? 1 : 0)),
                 .imm = static_cast<uint64_t>(kind) | uint64_t{tag} << 32});
  return impl_->host_probes++;
}

}  // namespace uptier
