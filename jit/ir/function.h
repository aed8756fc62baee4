// Function: one build of a method's body, in SSA form with block parameters.
//
// A Function is a value: vectors of plain structs, addressed by typed ids, no pointers into itself.
// Operands, parameters and edge arguments of variable length live in one pool.
//
//   - every Value has one definition: an instruction or a block parameter; it dominates its uses
//   - `layout` lists the live blocks in build order, the entry first; passes may reorder it
//   - a block is a list of instructions; the last one is a terminator, and no other is
//   - block k of the build order has `probe block k+1` first in its list (after loop_header)
//   - if a pass has split a block, the rest begins with the block's probe again, marked as
//     `resumes`: the block's site, with a share of its executions, which is not counted again
//
//   Thread: none of its own; its owner's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/ir/origin.h"
#include "jit/ir/position_table.h"
#include "uptier/builder.h"
#include "uptier/ids.h"
#include "uptier/opcodes.h"

namespace uptier::jit {

using InstId = Id<struct InstTag>;

// A run of values in the pool of a Function.
struct ValueList {
  uint32_t at = 0;
  uint32_t size = 0;
  uint32_t capacity = 0;
};

// One outgoing path of a terminator; `args` match the parameters of `to`, one by one.
struct Edge {
  Block to;
  ValueList args = {};
};

struct Inst {
  Opcode op = Opcode::kTrap;
  Type type = Type::kNone;  // the controlling type, see Shape
  uint8_t flags = 0;        // MemFlags
  uint32_t aux = 0;         // meaning by Shape: signature, trap code, loop id, site, reason, ...
  uint32_t loc = 0;         // the host's source location
  uint32_t body = 0;        // of its locations and sites, see Origin
  SiteId site = 0;          // calls: the call site's id (a probe has its own in aux)
  Value result = {};        // none for instructions without one
  ValueList args = {};
  uint32_t edges_at = 0;  // terminators: first of `edge_count` entries of Function::edges
  uint32_t edge_count = 0;
  uint64_t imm =
      0;  // meaning by Shape: bits of a constant, offset, callee index, probe kind, deopt

  Origin origin() const { return {loc, body}; }
};

struct BlockData {
  ValueList params;
  std::vector<InstId> insts;
};

struct ValueData {
  Type type = Type::kNone;
  // The definition: an instruction, or (when `inst` is none) parameter `index` of `block`.
  InstId inst;
  Block block;
  uint32_t index = 0;
};

// A method called directly; `name` is for people and may be empty.
struct Callee {
  MethodId method;
  std::string name;
  SignatureId signature;
};

// A C function called directly. `address` is null in IR that was read from text, for a name that
// the reader does not know.
struct HostCallee {
  std::string name;
  const void* address = nullptr;
  SignatureId signature;
};

// A body inlined in place of a call. Following `parent` gives the path to the root.
struct InlinedBody {
  uint32_t parent = 0;  // the body with the call: 0 the function's own, else 1 + its index
  SiteId site = 0;      // of the call, in the parent
  MethodId method;
  uint32_t block_sites = 0;  // of the method, as Function's
  uint32_t site_count = 0;
  std::string name;
  uint32_t loc = 0;  // of the call, in the parent

  friend bool operator==(const InlinedBody&, const InlinedBody&) = default;
};

// One frame that an exit creates. Its values are operands of the guard, in this order.
struct DeoptFrame {
  uint32_t body = 0;           // whose frame: 0 the function's own, see Origin
  uint32_t point = 0;          // where its baseline code resumes, see analysis/deopt_targets.h
  uint32_t pc = 0;             // the host's pc, if the frame resumes in its interpreter
  std::vector<int32_t> slots;  // the places of its values: displacements from the frame's rbp
  uint32_t host_slots = 0;     // then this many values, of the host's slots in order
};

// The frames that a guard creates when it fails, the innermost first.
struct Deopt {
  uint32_t exit = 0;      // its number, see analysis/deopt_targets.h
  bool at_block = false;  // exits at a block's start, without a frame_state
  bool in_loop = false;   // of the function as it was built
  bool stressed = false;  // asks the runtime whether to fail even if it holds
  bool to_host = false;   // the one frame goes to the host's interpreter, not to baseline code
  LoopId polls = {};  // the header whose poll this guard is: it may exit even if it holds; or none
  std::vector<DeoptFrame> frames;

  // Returns whether it may exit even if its condition holds.
  bool asks() const { return stressed || polls.valid(); }
};

class Function {
 public:
  std::string name;
  SignatureId signature_id;
  std::vector<Signature> signatures;
  std::vector<Callee> callees;
  std::vector<HostCallee> host_callees;
  std::vector<Inst> insts;
  std::vector<BlockData> blocks;
  std::vector<ValueData> values;
  std::vector<Edge> edges;
  std::vector<Value> pool;
  std::vector<Block> layout;
  std::vector<InlinedBody> inlined;  // parents come before the bodies inlined into them
  // Indexed by a guard's imm - 1. Filled by the optimizing compiler: such a guard has the values of
  // its frames as operands after the condition.
  std::vector<Deopt> deopts;
  uint32_t loop_count = 0;   // loop ids are 0..loop_count-1
  uint32_t site_count = 0;   // site ids are 1..site_count
  uint32_t block_sites = 0;  // sites 1..block_sites are block probes
  uint64_t cfg_hash = 0;     // see cfg_hash.h; set once by the builder, kept by passes
  PositionTable positions;   // of its locations; the describer takes it away

  const Signature& signature() const { return signatures[signature_id.index()]; }
  const Signature& signature_of(const Inst& call) const { return signatures[call.aux]; }
  Block entry() const { return layout.front(); }

  Inst& inst(InstId i) { return insts[i.index()]; }
  const Inst& inst(InstId i) const { return insts[i.index()]; }
  BlockData& block(Block b) { return blocks[b.index()]; }
  const BlockData& block(Block b) const { return blocks[b.index()]; }
  ValueData& value(Value v) { return values[v.index()]; }
  const ValueData& value(Value v) const { return values[v.index()]; }
  Type type_of(Value v) const { return values[v.index()].type; }

  // Views into the pool; invalidated by any function that adds values to it.
  std::span<Value> list(ValueList l) { return {pool.data() + l.at, l.size}; }
  std::span<const Value> list(ValueList l) const { return {pool.data() + l.at, l.size}; }
  std::span<Value> args(const Inst& i) { return list(i.args); }
  std::span<const Value> args(const Inst& i) const { return list(i.args); }
  std::span<const Value> params(Block b) const { return list(block(b).params); }
  std::span<Edge> edges_of(const Inst& i) { return {edges.data() + i.edges_at, i.edge_count}; }
  std::span<const Edge> edges_of(const Inst& i) const {
    return {edges.data() + i.edges_at, i.edge_count};
  }
  // Returns the last instruction of a block. The block must not be empty.
  Inst& terminator(Block b) { return inst(block(b).insts.back()); }
  const Inst& terminator(Block b) const { return inst(block(b).insts.back()); }
  // Returns the outgoing edges of a block; empty for return and trap.
  std::span<Edge> successors(Block b) { return edges_of(terminator(b)); }
  std::span<const Edge> successors(Block b) const { return edges_of(terminator(b)); }

  // Growing. Lists grow by doubling; their old place in the pool is abandoned.
  ValueList make_list(std::span<const Value> values);
  void push(ValueList& l, Value v);
  Block add_block();
  Value add_block_param(Block b, Type t);
  // Adds an instruction without placing it; it gets a result value unless `result_type` is kNone.
  InstId add_inst(const Inst& i, Type result_type);
  // Adds it at the end of a block.
  InstId append(Block b, const Inst& i, Type result_type);
  SignatureId intern(const Signature& s);
};

// The parts of a probe's imm.
inline ProbeKind probe_kind(const Inst& probe) { return static_cast<ProbeKind>(probe.imm); }
inline uint32_t probe_tag(const Inst& probe) { return static_cast<uint32_t>(probe.imm >> 32); }
inline bool is_block_probe(const Inst& i) {
  return i.op == Opcode::kProbe && probe_kind(i) == ProbeKind::kBlock;
}
// Returns whether the result of the probe is one number: for a counter, a hit or a gauge.
inline bool counts_up(const Inst& probe) {
  ProbeKind kind = probe_kind(probe);
  bool is = kind == ProbeKind::kCounter || kind == ProbeKind::kHit || kind == ProbeKind::kGauge;
  return is && probe.op == Opcode::kProbe;
}
// A block probe's flag: it marks a later part of the block. The tag says how many of kWholeShare
// executions of the block reach it.
inline constexpr uint8_t kProbeResumes = 1;
// The flag of a value probe that the library has placed, and of a call_target before the indirect
// call whose site it has.
inline constexpr uint8_t kProbeOwn = 2;
inline constexpr uint32_t kWholeShare = 65536;
inline bool resumes(const Inst& probe) { return (probe.flags & kProbeResumes) != 0; }

// Returns the type of an instruction's result (kNone if it has none), from its opcode row and
// fields.
Type result_type(const Function& f, const Inst& i);

// The most bytes that frame_memory may ask for.
inline constexpr uint64_t kMostFrameMemory = 1 << 20;
// Returns the frame_memory instruction, or null if there is none.
const Inst* find_frame_memory(const Function& f);

// A predecessor of a block, and the edge's index in Function::edges.
struct Predecessor {
  Block from;
  uint32_t edge;
};

// The predecessors of every block: in layout order, edges of one block in their order.
class Predecessors {
 public:
  Predecessors() = default;
  explicit Predecessors(const Function& f);

  bool empty() const { return first_.empty(); }
  // By Block::index().
  std::span<const Predecessor> operator[](size_t block) const {
    return {all_.data() + first_[block], all_.data() + first_[block + 1]};
  }

 private:
  std::vector<uint32_t> first_;  // by block: its first index in all_; one more at the end
  std::vector<Predecessor> all_;
};

// Returns the layout positions of the blocks: position[b.index()], or UINT32_MAX if not laid out.
std::vector<uint32_t> layout_positions(const Function& f);

}  // namespace uptier::jit
