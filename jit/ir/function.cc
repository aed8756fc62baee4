#include "jit/ir/function.h"

#include <algorithm>

namespace uptier::jit {

ValueList Function::make_list(std::span<const Value> from) {
  ValueList l{static_cast<uint32_t>(pool.size()), static_cast<uint32_t>(from.size()),
              static_cast<uint32_t>(from.size())};
  // `from` may be a view into the pool, which moves when it grows.
  auto into = reinterpret_cast<uintptr_t>(from.data()) - reinterpret_cast<uintptr_t>(pool.data());
  if (into >= pool.size() * sizeof(Value)) {
    for (Value v : from) pool.push_back(v);  // few
    return l;
  }
  pool.resize(pool.size() + from.size());
  std::copy_n(pool.data() + into / sizeof(Value), from.size(), pool.data() + l.at);
  return l;
}

void Function::push(ValueList& l, Value v) {
  if (l.size == l.capacity) {
    uint32_t capacity = std::max<uint32_t>(4, 2 * l.capacity);
    auto at = static_cast<uint32_t>(pool.size());
    pool.resize(pool.size() + capacity);
    std::copy_n(pool.begin() + l.at, l.size, pool.begin() + at);
    l.at = at;
    l.capacity = capacity;
  }
  pool[l.at + l.size++] = v;
}

Block Function::add_block() {
  blocks.emplace_back();
  return Block(static_cast<uint32_t>(blocks.size() - 1));
}

Value Function::add_block_param(Block b, Type t) {
  Value v(static_cast<uint32_t>(values.size()));
  values.push_back({t, InstId::none(), b, block(b).params.size});
  push(block(b).params, v);
  return v;
}

InstId Function::add_inst(const Inst& i, Type result_type) {
  InstId id(static_cast<uint32_t>(insts.size()));
  insts.push_back(i);
  if (result_type != Type::kNone) {
    insts.back().result = Value(static_cast<uint32_t>(values.size()));
    values.push_back({result_type, id, Block::none(), 0});
  }
  return id;
}

InstId Function::append(Block b, const Inst& i, Type result_type) {
  InstId id = add_inst(i, result_type);
  block(b).insts.push_back(id);
  if (Value r = inst(id).result; r.valid()) value(r).block = b;
  return id;
}

SignatureId Function::intern(const Signature& s) {
  auto it = std::find(signatures.begin(), signatures.end(), s);
  if (it == signatures.end()) it = signatures.insert(it, s);
  return SignatureId(static_cast<uint32_t>(it - signatures.begin()));
}

Type result_type(const Function& f, const Inst& i) {
  switch (info(i.op).shape) {
    case Shape::kConst:
    case Shape::kKnownCount:
    case Shape::kFrameMemory:
    case Shape::kUnary:
    case Shape::kBinary:
    case Shape::kConvert:
    case Shape::kSelect:
    case Shape::kLoad: return i.type;
    case Shape::kCompare:
    case Shape::kTest: return Type::kI32;
    case Shape::kCall:
    case Shape::kCallIndirect:
    case Shape::kCallHost: return f.signature_of(i).result;
    default: return Type::kNone;
  }
}

const Inst* find_frame_memory(const Function& f) {
  if (f.layout.empty()) return nullptr;
  for (InstId id : f.block(f.entry()).insts) {
    if (f.inst(id).op == Opcode::kFrameMemory) return &f.inst(id);
  }
  return nullptr;
}

Predecessors::Predecessors(const Function& f) : first_(f.blocks.size() + 1) {
  for (Block b : f.layout) {
    for (const Edge& e : f.successors(b)) ++first_[e.to.index()];
  }
  uint32_t end = 0;
  for (uint32_t& n : first_) n = end += n;
  all_.resize(end);
  // Backwards, since each list is filled from its end; afterwards the index is its beginning.
  for (auto b = f.layout.rbegin(); b != f.layout.rend(); ++b) {
    const Inst& t = f.terminator(*b);
    for (uint32_t e = t.edges_at + t.edge_count; e-- > t.edges_at;) {
      all_[--first_[f.edges[e].to.index()]] = {*b, e};
    }
  }
}

std::vector<uint32_t> layout_positions(const Function& f) {
  std::vector<uint32_t> position(f.blocks.size(), UINT32_MAX);
  for (uint32_t i = 0; i < f.layout.size(); ++i) position[f.layout[i].index()] = i;
  return position;
}

}  // namespace uptier::jit
