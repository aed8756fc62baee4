#include "jit/opt/place_tallies.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "jit/ir/tally.h"

namespace uptier::jit {
namespace {

constexpr float kWorkOfCall = 48;
// Instructions that run for one addition, at the least.
constexpr float kLeastWork = 24;
// The same, where a block of the loop is counted instead of its rounds; and the least share of the
// rounds that must pass the block.
constexpr float kLeastWorkAtBlock = 96;
constexpr float kLeastShareOfBlock = 1.0f / 64;
// Words of one version, at the most: those of the loops that go round most often.
constexpr size_t kMostWords = 32;

bool calls_out(const Inst& i) {
  Shape s = info(i.op).shape;
  return s == Shape::kCall || s == Shape::kCallIndirect || s == Shape::kCallHost;
}

bool costs_nothing(const Inst& i) {
  return i.op == Opcode::kConst || i.op == Opcode::kProbe || i.op == Opcode::kFrameState;
}

// A parameter of a loop's header that grows by the same constant in each round.
struct Induction {
  Value variable, start;
  int64_t step = 0;
  bool from_constant = false;
};

class TallyPlacer {
 public:
  TallyPlacer(Function& f, const LoopNest& loops, const Frequencies& q)
      : f_(f), loops_(loops), q_(q), preds_(f), word_of_(loops.loops.size(), kNotCounted) {}

  TallyTable run(const TallyRequest& r) {
    measure();
    choose();
    find_bulks();
    auto count = static_cast<uint32_t>(chosen_.size() + bulks_.size()) + (r.entries ? 1 : 0);
    std::optional<uint32_t> first = count == 0 ? 0 : r.source->take(count);
    if (!first) return {};
    if (!r.entries) table_.words.push_back({TallyWord::kByStub, 1});
    for (uint32_t w = 0; w < count; ++w) table_.words.push_back({*first + w, 1});
    share_blocks();
    // All variables before the first edge is split, since that moves the edge's arguments.
    std::vector<Induction> by;
    for (uint32_t l : chosen_) by.push_back(by_round_[l] ? Induction{} : induction_of(l));
    for (size_t n = 0; n < bulks_.size(); ++n) {
      count_rounds(bulks_[n], static_cast<uint32_t>(chosen_.size() + 1 + n));
    }
    if (r.entries) add_at_start(f_.entry(), TallyTable::kEntries);
    for (size_t n = 0; n < chosen_.size(); ++n) {
      auto word = static_cast<uint32_t>(n + 1);
      by_round_[chosen_[n]] ? add_at_start(counted_at_[chosen_[n]], word)
                            : count_at_exits(chosen_[n], word, by[n]);
    }
    return std::move(table_);
  }

 private:
  static constexpr uint32_t kNotCounted = UINT32_MAX;

  // Fills in, by loop, whether an iteration calls or contains a loop, and how many instructions it has.
  void measure() {
    size_t count = loops_.loops.size();
    by_round_.assign(count, false);
    counted_at_.clear();
    for (const LoopNest::Loop& l : loops_.loops) counted_at_.push_back(l.header);
    has_loop_.assign(count, false);
    calls_.assign(count, false);
    work_.assign(count, 0);
    for (const LoopNest::Loop& l : loops_.loops) {
      if (l.parent != kNoLoop) has_loop_[l.parent] = true;
    }
    for (Block b : f_.layout) {
      float work = 0;
      bool calls = false;
      for (InstId id : f_.block(b).insts) {
        const Inst& i = f_.inst(id);
        calls |= calls_out(i);
        work += calls_out(i) ? kWorkOfCall : costs_nothing(i) ? 0 : 1;
      }
      for (uint32_t l = loops_.loop_of[b.index()]; l != kNoLoop; l = loops_.loops[l].parent) {
        if (calls) calls_[l] = true;
        work_[l] += work * q_.at(b);
      }
    }
  }

  void choose() {
    for (uint32_t l = 0; l < loops_.loops.size(); ++l) {
      bool long_rounds = work_[l] >= kLeastWork * q_.at(loops_.loops[l].header);
      if (has_loop_[l] || calls_[l]) by_round_[l] = long_rounds;
      bool at_exits = !calls_[l] || find_induction(l).has_value();
      if (!by_round_[l] && !at_exits) by_round_[l] = choose_block(l);
      if (by_round_[l] || at_exits) chosen_.push_back(l);
    }
    if (chosen_.size() >= kMostWords) {
      std::ranges::stable_sort(chosen_, [&](uint32_t a, uint32_t b) {
        return q_.at(loops_.loops[a].header) > q_.at(loops_.loops[b].header);
      });
      chosen_.resize(kMostWords - 1);
    }
    for (size_t n = 0; n < chosen_.size(); ++n) word_of_[chosen_[n]] = static_cast<uint32_t>(n + 1);
  }

  // Chooses the block that stands for a loop whose rounds are too short, such as an interpreter's:
  // the one that runs most often, of those that run rarely enough. Returns whether there is one.
  bool choose_block(uint32_t l) {
    const Block header = loops_.loops[l].header;
    float best = 0;
    for (Block b : f_.layout) {
      const float q = q_.at(b);
      const bool may = loops_.loop_of[b.index()] == l && q * kLeastWorkAtBlock <= work_[l] &&
                       q >= kLeastShareOfBlock * q_.at(header);
      if (!may || q <= best) continue;
      best = q;
      counted_at_[l] = b;
    }
    return best > 0;
  }

  // Blocks in which one operation replaces many rounds of a loop; each has a word of its own.
  void find_bulks() {
    for (Block b : f_.layout) {
      if (chosen_.size() + bulks_.size() + 1 >= kMostWords) return;
      const auto& insts = f_.block(b).insts;
      if (std::ranges::any_of(insts, [&](InstId i) { return is_rounds(f_.inst(i)); })) {
        bulks_.push_back(b);
      }
    }
  }

  // The rows of the loop's blocks stay partial: what is left of their probes here is remnants.
  void count_rounds(Block b, uint32_t word) {
    auto& insts = f_.block(b).insts;
    Inst sum = tally(table_.words[word].at);
    for (InstId id : insts) {
      Inst& i = f_.inst(id);
      if (!is_rounds(i)) continue;
      float part = share_of(i);
      table_.shares.push_back({i.aux, i.body, word, part, part == 1});
      sum.args = i.args;
      i = remnant_of(i, 0);
      i.args = {};
    }
    insts.insert(insts.end() - 1, f_.add_inst(sum, Type::kNone));
  }

  // A block goes by the innermost loop around it that is counted.
  void share_blocks() {
    for (Block b : f_.layout) {
      uint32_t l = loops_.loop_of[b.index()];
      while (l != kNoLoop && word_of_[l] == kNotCounted) l = loops_.loops[l].parent;
      const Block counted = l == kNoLoop ? f_.entry() : counted_at_[l];
      float whole = q_.at(counted);
      uint32_t word = l == kNoLoop ? TallyTable::kEntries : word_of_[l];
      float per = whole > 0 ? q_.at(b) / whole : 0;
      const bool exact = b == counted;
      if (exact) per = 1;
      for (InstId id : f_.block(b).insts) {
        const Inst& i = f_.inst(id);
        if (std::optional<float> part = part_of_block(i)) {
          table_.shares.push_back({i.aux, i.body, word, per * *part, exact && *part == 1});
        }
      }
    }
  }

  // ---- Additions ------------------------------------------------------------------------------

  static Inst tally(uint32_t word) {
    Inst i{.op = Opcode::kProbe, .flags = kProbeTally, .aux = word};
    i.imm = static_cast<uint64_t>(ProbeKind::kCounter);
    return i;
  }

  // Adds instructions in front of all but the block's own probes.
  void insert(Block b, const std::vector<InstId>& made) {
    auto& insts = f_.block(b).insts;
    auto at = std::ranges::find_if(insts, [&](InstId i) { return !is_block_probe(f_.inst(i)); });
    insts.insert(at, made.begin(), made.end());
    for (InstId i : made) {
      if (f_.inst(i).result.valid()) f_.value(f_.inst(i).result).block = b;
    }
  }

  // The word's number is known: it goes into the instruction.
  void add_at_start(Block b, uint32_t word) {
    insert(b, {f_.add_inst(tally(table_.words[word].at), Type::kNone)});
  }

  void count_at_exits(uint32_t l, uint32_t word, const Induction& by) {
    table_.words[word].step = static_cast<uint32_t>(by.step < 0 ? -by.step : by.step);
    std::vector<Block> inside;
    for (Block b : f_.layout) {
      if (b.index() < old_blocks_ && loops_.contains(l, b)) inside.push_back(b);
    }
    for (Block b : inside) {
      // Copied: what is added moves the instructions.
      const uint32_t first = f_.terminator(b).edges_at, count = f_.terminator(b).edge_count;
      for (uint32_t e = first; e < first + count; ++e) {
        if (!loops_.contains(l, old_target(e))) count_on(b, e, by, table_.words[word].at);
      }
    }
  }

  // Returns where an edge led before any was split.
  Block old_target(uint32_t edge) const {
    Block to = f_.edges[edge].to;
    while (to.index() >= old_blocks_) to = f_.successors(to)[0].to;
    return to;
  }

  void count_on(Block from, uint32_t edge, const Induction& by, uint32_t at) {
    Block to = f_.edges[edge].to;
    bool traps = f_.terminator(to).op == Opcode::kTrap;
    if (traps) return;
    bool own = to.index() >= old_blocks_ || preds_[to.index()].size() == 1;
    if (!own) to = split(from, edge);
    std::vector<InstId> made;
    Inst t = tally(at);
    t.args = f_.make_list(std::vector<Value>{rounds(by, made)});
    made.push_back(f_.add_inst(t, Type::kNone));
    insert(to, made);
  }

  Block split(Block from, uint32_t edge) {
    Block made = f_.add_block();
    Inst jump{.op = Opcode::kJump};
    jump.edges_at = static_cast<uint32_t>(f_.edges.size());
    jump.edge_count = 1;
    f_.edges.push_back(f_.edges[edge]);
    f_.edges[edge] = {made, {}};
    f_.append(made, jump, Type::kNone);
    auto at = std::ranges::find(f_.layout, from);
    f_.layout.insert(at + 1, made);
    return made;
  }

  // Makes step * rounds, as an i64: the variable has come from its start to its last value in all
  // rounds but one.
  Value rounds(const Induction& by, std::vector<InstId>& made) {
    Type t = f_.type_of(by.variable);
    auto emit = [&](Opcode op, Type type, std::vector<Value> args, uint64_t imm = 0) {
      Inst i{.op = op, .type = type, .imm = imm};
      i.args = f_.make_list(args);
      made.push_back(f_.add_inst(i, type));
      return f_.inst(made.back()).result;
    };
    bool up = by.step > 0;
    uint64_t mask = t == Type::kI32 ? UINT32_MAX : UINT64_MAX;
    Value sum;
    if (by.from_constant) {
      uint64_t start = f_.inst(f_.value(by.start).inst).imm;
      uint64_t more =
          up ? static_cast<uint64_t>(by.step) - start : start - static_cast<uint64_t>(by.step);
      if (up && (more & mask) == 0) {
        sum = by.variable;
      } else {
        Value c = emit(Opcode::kConst, t, {}, more & mask);
        sum =
            up ? emit(Opcode::kAdd, t, {by.variable, c}) : emit(Opcode::kSub, t, {c, by.variable});
      }
    } else {
      Value gone = up ? emit(Opcode::kSub, t, {by.variable, by.start})
                      : emit(Opcode::kSub, t, {by.start, by.variable});
      auto step = static_cast<uint64_t>(up ? by.step : -by.step);
      Value c = emit(Opcode::kConst, t, {}, step & mask);
      sum = emit(Opcode::kAdd, t, {gone, c});
    }
    return t == Type::kI32 ? emit(Opcode::kExtendU, Type::kI64, {sum}) : sum;
  }

  // ---- Inductions -----------------------------------------------------------------------------

  const Inst* def(Value v, Opcode op) const {
    InstId i = f_.value(v).inst;
    return i.valid() && f_.inst(i).op == op ? &f_.inst(i) : nullptr;
  }

  std::optional<int64_t> constant(Value v) const {
    const Inst* c = def(v, Opcode::kConst);
    if (c == nullptr) return std::nullopt;
    return f_.type_of(v) == Type::kI32 ? static_cast<int32_t>(c->imm)
                                       : static_cast<int64_t>(c->imm);
  }

  // Returns by how much `next` is more than `variable`; 0: not by a constant.
  int64_t step_between(Value variable, Value next) const {
    for (Opcode op : {Opcode::kAdd, Opcode::kSub}) {
      const Inst* i = def(next, op);
      if (i == nullptr || f_.args(*i)[0] != variable) continue;
      std::optional<int64_t> c = constant(f_.args(*i)[1]);
      if (c && *c > -kMostStep && *c < kMostStep) return op == Opcode::kAdd ? *c : -*c;
    }
    return 0;
  }

  std::optional<Induction> find_induction(uint32_t l) const {
    Block header = loops_.loops[l].header;
    std::optional<Induction> best;
    auto params = f_.params(header);
    for (size_t n = 0; n < params.size(); ++n) {
      Type t = f_.type_of(params[n]);
      if (t != Type::kI32 && t != Type::kI64) continue;
      std::optional<Induction> found = as_induction(l, params[n], n);
      if (!found) continue;
      if (found->from_constant) return found;
      if (!best) best = found;
    }
    return best;
  }

  std::optional<Induction> as_induction(uint32_t l, Value variable, size_t n) const {
    Induction i{variable, {}, 0, false};
    for (const Predecessor& p : preds_[loops_.loops[l].header.index()]) {
      Value v = f_.list(f_.edges[p.edge].args)[n];
      if (loops_.contains(l, p.from)) {
        int64_t step = step_between(variable, v);
        if (step == 0 || (i.step != 0 && i.step != step)) return std::nullopt;
        i.step = step;
      } else if (!i.start.valid()) {
        i.start = v;
      } else {
        return std::nullopt;  // two ways in: what one of them brings need not reach the loop
      }
    }
    if (i.step == 0 || !i.start.valid()) return std::nullopt;
    i.from_constant = def(i.start, Opcode::kConst) != nullptr;
    return i;
  }

  Induction induction_of(uint32_t l) {
    std::optional<Induction> found = find_induction(l);
    return found ? *found : make_induction(l);
  }

  // Gives the loop a variable of its own, which counts from 0.
  Induction make_induction(uint32_t l) {
    Block header = loops_.loops[l].header;
    Value variable = f_.add_block_param(header, Type::kI64), start;
    auto before_end = [&](Block b, Inst i, std::vector<Value> args) {
      i.args = f_.make_list(args);
      InstId id = f_.add_inst(i, Type::kI64);
      auto& insts = f_.block(b).insts;
      insts.insert(insts.end() - 1, id);
      f_.value(f_.inst(id).result).block = b;
      return f_.inst(id).result;
    };
    for (const Predecessor& p : preds_[header.index()]) {
      bool back = loops_.contains(l, p.from);
      Inst c{.op = Opcode::kConst, .type = Type::kI64, .imm = back ? 1u : 0u};
      Value v = before_end(p.from, c, {});
      if (back) {
        v = before_end(p.from, {.op = Opcode::kAdd, .type = Type::kI64}, {variable, v});
      } else {
        start = v;
      }
      f_.push(f_.edges[p.edge].args, v);
    }
    return {variable, start, 1, true};
  }

  static constexpr int64_t kMostStep = 1 << 20;

  Function& f_;
  const LoopNest& loops_;
  const Frequencies& q_;
  const Predecessors preds_;
  const size_t old_blocks_ = f_.blocks.size();
  // By loop:
  std::vector<bool> has_loop_, calls_;
  std::vector<bool> by_round_;     // counted at the start of a block,
  std::vector<Block> counted_at_;  // this one: the header, or see choose_block()
  std::vector<float> work_;        // by loop: of all its rounds
  std::vector<uint32_t> chosen_;   // loops; the n-th has word n + 1
  std::vector<Block> bulks_;       // whose words come after those
  std::vector<uint32_t> word_of_;
  TallyTable table_;
};

}  // namespace

TallyTable place_tallies(Function& f, const LoopNest& loops, const Frequencies& q,
                         const TallyRequest& r) {
  return TallyPlacer(f, loops, q).run(r);
}

}  // namespace uptier::jit
