#include "jit/frontend/plain_form.h"

#include <algorithm>
#include <vector>

#include "jit/analysis/liveness.h"

namespace uptier::jit {
namespace {

// Bodies with a smaller product of blocks and values need no check.
constexpr uint64_t kSurelyFew = uint64_t{1} << 26;
// The most members of the sets of live values: a thousand values live in each of 8,192 blocks.
constexpr uint64_t kMostMembers = uint64_t{1} << 23;

// Puts long-lived values into memory: a store after the definition, a load before the first use in
// each block. Constants are computed again instead.
class Shortener {
 public:
  Shortener(Function& f, Value memory, uint32_t bytes, uint32_t most)
      : f_(f),
        memory_(memory),
        bytes_(bytes),
        most_(most),
        lives_(f.values.size()),
        place_(f.blocks.size()) {}

  void run() {
    find_lives();
    for (Block b : f_.layout) rewrite(b);
    f_.inst(f_.value(memory_).inst).imm = bytes_;
  }

 private:
  struct Life {
    uint32_t from = 0, last = 0;  // positions in the layout: of the definition, of the last use
    uint32_t at = 0;              // offset in the memory, once it has one
    bool stored = false;
    Block here;  // the block where `again` replaces it
    Value again;
  };

  // Also counts loop headers: if there is none between definition and last use, that distance is
  // the whole life.
  void find_lives() {
    uint32_t place = 0, headers = 0;
    headers_.reserve(f_.layout.size());
    for (Block b : f_.layout) {
      place_[b.index()] = place++;
      const auto& insts = f_.block(b).insts;
      headers += !insts.empty() && f_.inst(insts[0]).op == Opcode::kLoopHeader;
      headers_.push_back(headers);
    }
    place = 0;
    for (Block b : f_.layout) {
      for (Value p : f_.params(b)) lives_[p.index()].from = place;
      for (InstId id : f_.block(b).insts) {
        const Inst& i = f_.inst(id);
        for (Value v : f_.args(i)) lives_[v.index()].last = std::max(lives_[v.index()].last, place);
        if (i.result.valid()) lives_[i.result.index()].from = place;
        for (const Edge& e : f_.edges_of(i)) {
          for (Value v : f_.list(e.args)) {
            lives_[v.index()].last = std::max(lives_[v.index()].last, place);
          }
        }
      }
      ++place;
    }
  }

  bool is_long(Value v) const {
    const Life& l = lives_[v.index()];
    if (v == memory_ || l.last <= l.from) return false;
    return l.last - l.from > most_ || headers_[l.last] != headers_[l.from];
  }

  const Inst* constant(Value v) const {
    InstId id = f_.value(v).inst;
    return id.valid() && f_.inst(id).op == Opcode::kConst ? &f_.inst(id) : nullptr;
  }

  // Returns how many instructions must stay before a store at the start of a block.
  size_t leading(Block b, const std::vector<InstId>& insts) const {
    auto is = [&](Opcode op) { return [this, op](InstId i) { return f_.inst(i).op == op; }; };
    if (b == f_.entry()) {
      auto memory = std::ranges::find_if(insts, is(Opcode::kFrameMemory));
      return static_cast<size_t>(memory - insts.begin()) + 1;
    }
    return !insts.empty() && is(Opcode::kLoopHeader)(insts[0]) ? 1 : 0;
  }

  void rewrite(Block b) {
    out_.clear();
    auto insts = std::move(f_.block(b).insts);
    size_t n = 0;
    for (size_t lead = leading(b, insts); n < lead; ++n) out_.push_back(insts[n]);
    std::vector<Value> params(f_.params(b).begin(), f_.params(b).end());
    for (Value p : params) keep(b, p);
    for (; n < insts.size(); ++n) {
      InstId id = insts[n];
      const Inst i = f_.inst(id);
      rename(b, i.args);
      for (uint32_t e = i.edges_at; e < i.edges_at + i.edge_count; ++e) {
        rename(b, f_.edges[e].args);
      }
      out_.push_back(id);
      if (i.result.valid()) keep(b, i.result);
    }
    f_.block(b).insts.assign(out_.begin(), out_.end());
  }

  // Indexes the pool each time, because it may be reallocated meanwhile.
  void rename(Block b, ValueList list) {
    for (uint32_t k = 0; k < list.size; ++k) {
      Value v = here(b, f_.pool[list.at + k]);
      f_.pool[list.at + k] = v;
    }
  }

  // Returns the replacement of a value in a block.
  Value here(Block b, Value v) {
    if (v.index() >= lives_.size() || f_.value(v).block == b || !is_long(v)) return v;
    Life& l = lives_[v.index()];
    if (l.here == b) return l.again;
    Inst i;
    if (const Inst* c = constant(v)) {
      i = *c;
    } else {
      i = {.op = Opcode::kLoad,
           .type = f_.type_of(v),
           .args = f_.make_list({{memory_}}),
           .imm = place_of(l)};
    }
    l.here = b;
    l.again = add(b, i, f_.type_of(v));
    return l.again;
  }

  // Stores a long-lived value where it is defined.
  void keep(Block b, Value v) {
    if (!is_long(v) || constant(v) != nullptr) return;
    add(b,
        {.op = Opcode::kStore,
         .type = f_.type_of(v),
         .args = f_.make_list({{v, memory_}}),
         .imm = place_of(lives_[v.index()])},
        Type::kNone);
  }

  uint32_t place_of(Life& l) {
    if (!l.stored) {
      l.at = bytes_;
      bytes_ += 8;
      l.stored = true;
    }
    return l.at;
  }

  Value add(Block b, Inst i, Type t) {
    i.result = Value::none();
    InstId id = f_.add_inst(i, t);
    Value v = f_.inst(id).result;
    if (v.valid()) f_.value(v).block = b;
    out_.push_back(id);
    return v;
  }

  Function& f_;
  const Value memory_;
  uint32_t bytes_;
  const uint32_t most_;
  std::vector<Life> lives_;        // by value, for the described values
  std::vector<uint32_t> place_;    // by block
  std::vector<uint32_t> headers_;  // by position: number of loop headers up to there
  std::vector<InstId> out_;
};

}  // namespace

bool lives_too_long(const Function& f) {
  if (uint64_t{f.layout.size()} * f.values.size() < kSurelyFew) return false;
  return liveness_exceeds(f, kMostMembers + 16 * f.insts.size());
}

void shorten_lives(Function& f, uint32_t bytes, uint32_t most) {
  const Inst* memory = find_frame_memory(f);
  if (memory != nullptr) Shortener(f, memory->result, bytes, most).run();
}

}  // namespace uptier::jit
