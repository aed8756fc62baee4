// FunctionBuilder::Impl: the state of a FunctionBuilder while it builds.
//
// The instructions of the current block are collected here and given to the block when it ends, so
// that a block allocates once.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jit/frontend/builder_access.h"
#include "jit/frontend/ssa_construction.h"

namespace uptier {

struct FunctionBuilder::Impl : SsaConstruction {
  static constexpr uint32_t kNoPlace = UINT32_MAX;

  std::optional<jit::Function> adopted;
  std::vector<Value> params;
  std::vector<jit::InstId> body;  // of the current block
  // In the plain form (plain_form.h), Variables declared in the entry are words of the frame's
  // memory.
  bool plain = false;
  Value memory;
  std::vector<uint32_t> places;  // by Variable: offset, or kNoPlace
  uint32_t memory_bytes = 0;
  uint32_t short_life = 0;  // blocks that a value may live for without being put into memory
  uint32_t location = 0;
  std::vector<jit::InstId> host_probes;
  // Instructions that ask for the count of a probe, with that probe.
  std::vector<std::pair<jit::InstId, jit::InstId>> known_counts;

  // Indices in the function's tables, once these are too long to be searched.
  std::unordered_map<uint32_t, uint32_t> callee_places;        // by MethodId::number()
  std::unordered_multimap<size_t, uint32_t> signature_places;  // by hash
  uint32_t callee(MethodId method, std::string_view name, SignatureId signature);
  SignatureId intern(const Signature& s);

  void make_room();
  void begin_plain();
  void declare_place();
  void store_variable(Variable x, Value v);
  Value load_variable(Variable x);
  bool in_memory(Variable x) const { return plain && places[x.index()] != kNoPlace; }
  // Records a misuse unless there already is one. Returns false.
  bool refuse(std::string_view what) const;
  // Returns whether there was no misuse and the condition holds; if the condition fails, records a
  // misuse.
  bool expect(bool condition, std::string_view what) const {
    return misuse.ok() && (condition || refuse(what));
  }
  bool has(Value v) const { return v.index() < f.values.size() ? misuse.ok() : has_slow(v); }
  bool has(Block b) const { return b.index() < blocks.size() ? misuse.ok() : has_slow(b); }
  bool has(Variable x) const { return x.index() < variables.size() ? misuse.ok() : has_slow(x); }
  bool has_slow(Value v) const;
  bool has_slow(Block b) const;
  bool has_slow(Variable x) const;
  bool is_type(Type t) const;
  bool is_op(Opcode op, std::initializer_list<Shape> shapes) const;
  // Returns whether an instruction may follow here: the current block has not ended.
  bool may_append() const {
    return expect(current.valid(), "the block has ended and no other is current");
  }
  template <typename List>
  bool has_all(const List& ids) const {
    for (auto id : ids) {
      if (!has(id)) return false;
    }
    return misuse.ok();
  }
  // Returns whether a jump to the block may be added.
  bool is_open(Block b) const { return has(b) && (!blocks[b.index()].sealed || refuse_sealed(b)); }
  bool refuse_sealed(Block b) const;

  Block here() const { return current; }
  Type type_of(Value v) const { return v.index() < f.values.size() ? f.type_of(v) : Type::kNone; }
  Value append(const jit::Inst& i);
  void add_edge(Block from, Block to);
  void end_block(jit::Inst i, std::initializer_list<Block> to);
  void leave_block();
};

}  // namespace uptier
