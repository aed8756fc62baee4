#include <bit>
#include <cstring>
#include <string>

#include "jit/frontend/builder_impl.h"
#include "jit/frontend/op_call.h"

namespace uptier {

using jit::Inst;
using jit::InstId;

// ---- Misuse ---------------------------------------------------------------------------------

// After a misuse nothing is added, so the part that was built stays well formed.
bool FunctionBuilder::Impl::refuse(std::string_view what) const {
  if (!misuse) return false;
  std::string where = current.valid() ? " in block " + std::to_string(current.index()) : "";
  misuse = Error{ErrorCode::kInvalidArgument, f.name + ": the builder was misused" + where +
                                                  " at location " + std::to_string(location) +
                                                  ": " + std::string(what)};
  return false;
}

bool FunctionBuilder::Impl::has_slow(Value v) const {
  return refuse(v.valid() ? "there is no value " + std::to_string(v.index())
                          : std::string("a value is none"));
}

bool FunctionBuilder::Impl::has_slow(Block b) const {
  return refuse(b.valid() ? "there is no block " + std::to_string(b.index())
                          : std::string("a block is none"));
}

bool FunctionBuilder::Impl::has_slow(Variable x) const {
  return refuse("there is no Variable " + std::to_string(x.index()));
}

bool FunctionBuilder::Impl::is_type(Type t) const {
  return expect(t > Type::kNone && t <= Type::kRef, "a type that no value has");
}

bool FunctionBuilder::Impl::is_op(Opcode op, std::initializer_list<Shape> shapes) const {
  if (!expect(static_cast<unsigned>(op) < kOpcodeCount, "there is no such operation")) return false;
  const OpcodeInfo& row = info(op);
  for (Shape s : shapes) {
    if (row.shape == s) return true;
  }
  const char* call = jit::call_that_makes(row.shape);
  std::string cure =
      call == nullptr ? ", which only the library makes" : ": " + std::string(call) + "() makes it";
  return refuse(std::string(row.text) + " is an operation of another shape" + cure);
}

bool FunctionBuilder::Impl::refuse_sealed(Block b) const {
  return refuse("a jump to block " + std::to_string(b.index()) + ", which is sealed already");
}

// ---- Filling --------------------------------------------------------------------------------

// The operands must be values of the function.
Value FunctionBuilder::Impl::append(const Inst& i) {
  if (!may_append()) return Value::none();
  InstId id = f.add_inst(i, jit::result_type(f, i));
  body.push_back(id);
  Inst& added = f.inst(id);
  added.loc = location;
  if (added.result.valid()) f.value(added.result).block = current;
  return added.result;
}

void FunctionBuilder::Impl::add_edge(Block from, Block to) {
  auto edge = static_cast<uint32_t>(f.edges.size());
  f.edges.push_back({to, {}});
  incoming.push_back({from});
  edge_args.add_edge();
  BlockState& s = blocks[to.index()];
  incoming.back().before = s.last_pred;
  (s.pred_count++ == 0 ? s.first_pred : incoming[s.last_pred].next) = edge;
  s.last_pred = edge;
}

void FunctionBuilder::Impl::end_block(Inst i, std::initializer_list<Block> to) {
  if (!may_append()) return;
  for (Block b : to) {
    if (!is_open(b)) return;
  }
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

// ---- The plain form (plain_form.h) --------------------------------------------------------------

void FunctionBuilder::Impl::begin_plain() {
  memory = append({.op = Opcode::kFrameMemory, .type = Type::kRef});
}

// A Variable that is declared later only carries a value from some blocks to their successors.
void FunctionBuilder::Impl::declare_place() {
  bool in_entry = current == f.entry();
  places.push_back(in_entry ? memory_bytes : kNoPlace);
  if (in_entry) memory_bytes += 8;
}

void FunctionBuilder::Impl::store_variable(Variable x, Value v) {
  append({.op = Opcode::kStore,
          .type = variables[x.index()],
          .args = f.make_list({{v, memory}}),
          .imm = places[x.index()]});
}

Value FunctionBuilder::Impl::load_variable(Variable x) {
  return append({.op = Opcode::kLoad,
                 .type = variables[x.index()],
                 .args = f.make_list({{memory}}),
                 .imm = places[x.index()]});
}

namespace {

// Initial capacities: small functions then allocate each table once.
constexpr size_t kFirstInsts = 64;
constexpr size_t kFirstBlocks = 16;
constexpr size_t kFirstEdges = 32;
constexpr size_t kFirstVariables = 16;

}  // namespace

void FunctionBuilder::Impl::make_room() {
  f.insts.reserve(kFirstInsts);
  f.values.reserve(kFirstInsts);
  f.pool.reserve(kFirstInsts);
  body.reserve(kFirstInsts);
  f.blocks.reserve(kFirstBlocks);
  f.layout.reserve(kFirstBlocks);
  blocks.reserve(kFirstBlocks);
  f.edges.reserve(kFirstEdges);
  incoming.reserve(kFirstEdges);
  edge_args.reserve(kFirstEdges);
  variables.reserve(kFirstVariables);
  defined_at.reserve(kFirstVariables);
  defs.reserve(kFirstVariables);
}

FunctionBuilder::FunctionBuilder(Signature signature, std::string_view name)
    : FunctionBuilder(std::make_unique<Impl>(), std::move(signature), name) {}

FunctionBuilder::FunctionBuilder(std::unique_ptr<Impl> impl, Signature signature,
                                 std::string_view name)
    : impl_(std::move(impl)) {
  Impl& m = *impl_;
  m.f.name = name;
  m.make_room();
  m.f.signature_id = m.f.intern(signature);
  Block entry = create_block();
  for (Type t : signature.params) m.params.push_back(m.f.add_block_param(entry, t));
  m.blocks[entry.index()].sealed = true;
  switch_to(entry);
  if (m.plain) m.begin_plain();
}

FunctionBuilder::~FunctionBuilder() = default;

Status FunctionBuilder::status() const { return impl_->misuse; }
void FunctionBuilder::refuse(std::string_view what) { impl_->refuse(what); }
const Signature& FunctionBuilder::signature() const { return impl_->f.signature(); }

Value FunctionBuilder::param(unsigned i) const {
  if (i < impl_->params.size()) return impl_->params[i];
  impl_->refuse("there is no parameter " + std::to_string(i));
  return Value::none();
}

Type FunctionBuilder::type_of(Value v) const { return impl_->type_of(v); }
Block FunctionBuilder::current() const { return impl_->current; }
void FunctionBuilder::set_location(uint32_t loc) { impl_->location = loc; }
FileId FunctionBuilder::add_file(std::string_view path) {
  return impl_->f.positions.add_file(path);
}
void FunctionBuilder::add_position(uint32_t location, const Position& at) {
  jit::PositionTable& table = impl_->f.positions;
  if (!impl_->expect(table.has(at.file), "a position is in a file that add_file did not return")) {
    return;
  }
  table.add(location, at);
}

Block FunctionBuilder::create_block() {
  impl_->blocks.emplace_back();
  return impl_->f.add_block();
}

void FunctionBuilder::switch_to(Block b) {
  Impl& m = *impl_;
  if (!m.expect(!m.current.valid(), "the current block has not ended") || !m.has(b)) return;
  if (m.blocks[b.index()].begun_at != 0) {
    m.refuse("block " + std::to_string(b.index()) + " has been filled already");
    return;
  }
  m.leave_block();
  m.begin(b);
  m.f.layout.push_back(b);
  m.current = b;
  m.body = m.f.block(b).insts;
}

void FunctionBuilder::seal(Block b) {
  Impl& m = *impl_;
  if (!m.has(b)) return;
  if (m.blocks[b.index()].sealed) {
    m.refuse("block " + std::to_string(b.index()) + " is sealed already");
    return;
  }
  m.close(b);
  for (uint32_t at = m.blocks[b.index()].first_waiting; at != Impl::kEnd; at = m.waiting[at].next) {
    m.pending.push_back({m.waiting[at].variable, m.waiting[at].param});
  }
  m.fill_pending();
}

Variable FunctionBuilder::declare(Type t) {
  impl_->is_type(t);
  impl_->variables.push_back(t);
  if (impl_->plain) impl_->declare_place();
  impl_->defs.declare();
  impl_->defined_at.push_back(0);
  return Variable(static_cast<uint32_t>(impl_->variables.size() - 1));
}

void FunctionBuilder::def(Variable x, Value v) {
  Impl& m = *impl_;
  if (!m.may_append() || !m.has(x) || !m.has(v)) return;
  if (m.type_of(v) != m.variables[x.index()]) {
    m.refuse("Variable " + std::to_string(x.index()) + " is " + type_name(m.variables[x.index()]) +
             ", the value is " + type_name(m.type_of(v)));
    return;
  }
  if (m.in_memory(x)) return m.store_variable(x, v);
  m.defs.set(x, m.here(), v);
  m.defined_at[x.index()] = m.clock;
}

Value FunctionBuilder::use(Variable x) {
  if (!impl_->may_append() || !impl_->has(x)) return Value::none();
  if (impl_->in_memory(x)) return impl_->load_variable(x);
  Value v = impl_->lookup(x, impl_->here());
  impl_->fill_pending();
  return v;
}

// ---- Operations -----------------------------------------------------------------------------

Value FunctionBuilder::constant(Type t, uint64_t bits) {
  if (!impl_->is_type(t)) return Value::none();
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
  Impl& m = *impl_;
  if (!m.is_op(op, {Shape::kUnary, Shape::kTest}) || !m.has(a)) return Value::none();
  return m.append({.op = op, .type = m.type_of(a), .args = m.f.make_list({{a}})});
}

Value FunctionBuilder::binary(Opcode op, Value a, Value b) {
  Impl& m = *impl_;
  bool fits = m.is_op(op, {Shape::kBinary, Shape::kCompare}) && m.has(a) && m.has(b);
  if (!fits) return Value::none();
  return m.append({.op = op, .type = m.type_of(a), .args = m.f.make_list({{a, b}})});
}

Value FunctionBuilder::convert(Opcode op, Type to, Value a) {
  Impl& m = *impl_;
  if (!m.is_op(op, {Shape::kConvert}) || !m.is_type(to) || !m.has(a)) return Value::none();
  return m.append({.op = op, .type = to, .args = m.f.make_list({{a}})});
}

Value FunctionBuilder::select(Value condition, Value a, Value b) {
  Impl& m = *impl_;
  if (!m.has(condition) || !m.has(a) || !m.has(b)) return Value::none();
  return m.append(
      {.op = Opcode::kSelect, .type = m.type_of(a), .args = m.f.make_list({{condition, a, b}})});
}

// slot_laws.h does not look through a select.
void FunctionBuilder::make_own(std::span<const Variable> variables) {
  Value yes = i32(1);
  for (Variable x : variables) {
    Value v = use(x);
    def(x, select(yes, v, v));
  }
}

Value FunctionBuilder::load(Opcode op, Type t, const Address& at) {
  Impl& m = *impl_;
  bool indexed = at.index.valid();
  bool fits = m.is_op(op, {Shape::kLoad}) && m.is_type(t) && m.has(at.base);
  if (!fits || (indexed && !m.has(at.index))) return Value::none();
  auto args = indexed ? m.f.make_list({{at.base, at.index}}) : m.f.make_list({{at.base}});
  return m.append({.op = op, .type = t, .flags = at.flags, .args = args, .imm = at.offset});
}

void FunctionBuilder::store(Opcode op, Value v, const Address& at) {
  Impl& m = *impl_;
  bool indexed = at.index.valid();
  bool fits = m.is_op(op, {Shape::kStore}) && m.has(v) && m.has(at.base);
  if (!fits || (indexed && !m.has(at.index))) return;
  auto args = indexed ? m.f.make_list({{v, at.base, at.index}}) : m.f.make_list({{v, at.base}});
  m.append({.op = op, .type = m.type_of(v), .flags = at.flags, .args = args, .imm = at.offset});
}

// ---- Calls ----------------------------------------------------------------------------------

namespace {

// Tables up to this size are searched linearly.
constexpr size_t kShortTable = 16;

size_t hash_of(const Signature& s) {
  size_t h = static_cast<size_t>(s.result) + 1;
  for (Type t : s.params) h = h * 31 + static_cast<size_t>(t);
  return h;
}

}  // namespace

uint32_t FunctionBuilder::Impl::callee(MethodId method, std::string_view name,
                                       SignatureId signature) {
  auto count = static_cast<uint32_t>(f.callees.size());
  if (callee_places.empty()) {
    for (uint32_t i = 0; i < count; ++i) {
      if (f.callees[i].method == method) return i;
    }
    for (uint32_t i = 0; i < count && count >= kShortTable; ++i) {
      callee_places[f.callees[i].method.number()] = i;
    }
  }
  if (count >= kShortTable) {
    auto [at, fresh] = callee_places.try_emplace(method.number(), count);
    if (!fresh) return at->second;
  }
  f.callees.push_back({method, std::string(name), signature});
  return count;
}

SignatureId FunctionBuilder::Impl::intern(const Signature& s) {
  if (f.signatures.size() < kShortTable) return f.intern(s);
  if (signature_places.empty()) {
    for (uint32_t i = 0; i < f.signatures.size(); ++i) {
      signature_places.emplace(hash_of(f.signatures[i]), i);
    }
  }
  auto [first, last] = signature_places.equal_range(hash_of(s));
  for (; first != last; ++first) {
    if (f.signatures[first->second] == s) return SignatureId(first->second);
  }
  auto at = static_cast<uint32_t>(f.signatures.size());
  f.signatures.push_back(s);
  signature_places.emplace(hash_of(s), at);
  return SignatureId(at);
}

Value FunctionBuilder::call(MethodId callee, const Signature& signature,
                            std::span<const Value> args, std::string_view name) {
  auto& f = impl_->f;
  if (!impl_->expect(callee.valid(), "a call of no method") || !impl_->has_all(args)) {
    return Value::none();
  }
  SignatureId sig = impl_->intern(signature);
  uint32_t index = impl_->callee(callee, name, sig);
  return impl_->append({.op = Opcode::kCall,
                        .type = signature.result,
                        .aux = sig.index(),
                        .args = f.make_list(args),
                        .imm = index});
}

Value FunctionBuilder::call_indirect(Value target, const Signature& signature,
                                     std::span<const Value> args, uint8_t flags) {
  auto& f = impl_->f;
  if (!impl_->has(target) || !impl_->has_all(args)) return Value::none();
  auto list = f.make_list({{target}});
  for (Value v : args) f.push(list, v);
  return impl_->append({.op = Opcode::kCallIndirect,
                        .type = signature.result,
                        .flags = flags,
                        .aux = impl_->intern(signature).index(),
                        .args = list});
}

Value FunctionBuilder::call_host(const HostFunction& callee, std::span<const Value> args,
                                 uint8_t flags) {
  auto& f = impl_->f;
  bool named = impl_->expect(callee.name != nullptr, "a host function without a name");
  if (!named || !impl_->has_all(args)) return Value::none();
  SignatureId sig = impl_->intern(callee.signature);
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
  if (!impl_->has(condition)) return;
  impl_->end_block({.op = Opcode::kBranch, .args = impl_->f.make_list({{condition}})},
                   {if_true, if_false});
}

void FunctionBuilder::switch_on(Value index, std::span<const Block> cases, Block otherwise) {
  Impl& m = *impl_;
  bool fits = m.may_append() && m.has(index) && m.is_open(otherwise);
  for (Block b : cases) fits = fits && m.is_open(b);
  if (!fits) return;
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
  if (!impl_->has(v)) return;
  impl_->end_block({.op = Opcode::kReturn, .args = impl_->f.make_list({{v}})}, {});
}

void FunctionBuilder::trap(TrapCode code) {
  impl_->end_block({.op = Opcode::kTrap, .aux = static_cast<uint32_t>(code)}, {});
}

void FunctionBuilder::trap_if(Value condition, TrapCode code) {
  if (!impl_->has(condition)) return;
  impl_->append({.op = Opcode::kTrapIf,
                 .aux = static_cast<uint32_t>(code),
                 .args = impl_->f.make_list({{condition}})});
}

// ---- Observation and speculation --------------------------------------------------------------

LoopId FunctionBuilder::loop_header(uint32_t pc, std::span<const Variable> slots) {
  Impl& m = *impl_;
  bool fits =
      m.may_append() && m.has_all(slots) &&
      m.expect(m.body.empty(), "loop_header comes first in its block") &&
      m.expect(m.here() != m.f.layout.front(),
               "the entry block is no loop header, since nothing jumps to it: create_block(), jump "
               "to it, and begin the loop there") &&
      m.expect(!m.blocks[m.here().index()].sealed, "a loop header is sealed after its back edges");
  if (!fits) return LoopId(m.f.loop_count);
  // A plain body is not entered from an interpreter, and loads would have to come before the
  // header.
  std::vector<Value> values;
  for (Variable x : m.plain ? std::span<const Variable>() : slots) values.push_back(use(x));
  LoopId id(m.f.loop_count++);
  m.append(
      {.op = Opcode::kLoopHeader, .aux = id.index(), .args = m.f.make_list(values), .imm = pc});
  return id;
}

void FunctionBuilder::frame_state(uint32_t pc, std::span<const Value> slots) {
  if (!impl_->has_all(slots)) return;
  impl_->append({.op = Opcode::kFrameState, .args = impl_->f.make_list(slots), .imm = pc});
}

void FunctionBuilder::guard(Value condition, GuardReason reason) {
  if (!impl_->has(condition)) return;
  impl_->append({.op = Opcode::kGuard,
                 .aux = static_cast<uint32_t>(reason),
                 .args = impl_->f.make_list({{condition}})});
}

// In compiled code the guard always exits; the trap is there because a block must end with a
// terminator.
void FunctionBuilder::leave(GuardReason reason) {
  guard(i32(0), reason);
  trap(TrapCode::kUnreachable);
}

uint32_t FunctionBuilder::probe(ProbeKind kind, Value v, uint32_t tag) {
  if (!impl_->expect(host_places(kind), "there is no such probe, or it is placed by the library"))
    return 0;
  if (v.valid() && !impl_->has(v)) return 0;
  impl_->append({.op = Opcode::kProbe,
                 .args = impl_->f.make_list(std::span(&v, v.valid() ? 1 : 0)),
                 .imm = static_cast<uint64_t>(kind) | uint64_t{tag} << 32});
  if (!impl_->misuse) return 0;
  impl_->host_probes.push_back(impl_->body.back());
  return static_cast<uint32_t>(impl_->host_probes.size() - 1);
}

uint32_t FunctionBuilder::log(LogFormat format, std::span<const Value> arguments) {
  if (!impl_->expect(format.valid(), "log: pass a format that add_log_format has returned"))
    return 0;
  if (!impl_->expect(format.arguments() == arguments.size(),
                     "log: the format has not as many placeholders as there are arguments")) {
    return 0;
  }
  if (arguments.empty()) return probe(ProbeKind::kLog, i64(0), format.tag);
  const uint32_t first = probe(ProbeKind::kLog, arguments[0], format.tag);
  for (uint32_t i = 1; i < arguments.size(); ++i) {
    (void)probe(ProbeKind::kLog, arguments[i], format.tag + i);
  }
  return first;
}

Value FunctionBuilder::known_count(uint32_t probe) {
  const auto& probes = impl_->host_probes;
  bool counts = probe < probes.size() && jit::counts_up(impl_->f.inst(probes[probe]));
  if (!impl_->expect(counts, "there is no such counter, hit or gauge")) return Value::none();
  Value v = impl_->append({.op = Opcode::kKnownCount, .type = Type::kI64});
  if (v.valid()) impl_->known_counts.emplace_back(impl_->body.back(), probes[probe]);
  return v;
}

}  // namespace uptier
