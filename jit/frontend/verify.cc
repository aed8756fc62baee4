#include "jit/frontend/verify.h"

#include "jit/analysis/cfg_hash.h"
#include "jit/analysis/dominators.h"
#include "jit/frontend/number_sites.h"
#include "jit/frontend/plain_form.h"
#include "jit/frontend/verify_impl.h"
#include "jit/ir/frame_memory.h"

namespace uptier::jit {

std::vector<std::string> find_problems(const Function& f, Stage stage, size_t limit) {
  return Verifier(f, stage, limit).run();
}

Status verify(const Function& f, Stage stage) {
  auto problems = find_problems(f, stage);
  if (problems.empty()) return {};
  std::string text;
  for (const std::string& p : problems) text += (text.empty() ? "" : "\n") + p;
  return Error{ErrorCode::kInvalidInput, text};
}

Status verify(const Module& m, Stage stage) {
  for (const Function& f : m.functions) {
    if (Status s = verify(f, stage); !s) return s;
  }
  return verify_calls(m);
}

Status verify_calls(const Module& m) {
  for (const Function& f : m.functions) {
    for (const Callee& c : f.callees) {
      if (c.method.number() >= m.functions.size()) continue;
      const Function& target = m.functions[c.method.number()];
      if (f.signatures[c.signature.index()] == target.signature()) continue;
      return Error{ErrorCode::kInvalidInput,
                   "@" + f.name + ": @" + target.name + " is called with another signature"};
    }
  }
  return {};
}

std::vector<std::string> Verifier::run() {
  using Step = void (Verifier::*)();
  for (Step step : {&Verifier::check_tables, &Verifier::check_layout}) {
    (this->*step)();
    if (!problems_.empty()) return problems_;
  }
  for (Block b : f_.layout) {
    check_observation(b);
    for (InstId i : f_.block(b).insts) check_inst(b, f_.inst(i));
  }
  if (!problems_.empty()) return problems_;
  check_entry();
  check_dominance();
  if (has_guards_) {
    for (Block b : f_.layout) check_guards(b);
  }
  if (problems_.empty()) check_numbers();
  return problems_;
}

const Printer& Verifier::printer() {
  if (!printer_) printer_.emplace(f_);
  return *printer_;
}

void Verifier::report(const std::string& rule) {
  if (!full()) problems_.push_back("@" + f_.name + ": " + rule);
}
void Verifier::report(Block b, const std::string& rule) {
  report(printer().block(b) + ": " + rule);
}
void Verifier::report(Block b, const Inst& i, const std::string& rule) {
  if (full()) return;  // printing is not free
  problems_.push_back("@" + f_.name + " " + printer().block(b) + ": " + printer().inst(i) + ": " +
                      rule);
}

// ---- Structure --------------------------------------------------------------------------------

bool Verifier::list_fits(ValueList l) const {
  return uint64_t{l.at} + l.capacity <= f_.pool.size() && l.size <= l.capacity;
}

bool Verifier::values_fit(ValueList l) const {
  if (!list_fits(l)) return false;
  for (Value v : f_.list(l)) {
    if (v.index() >= f_.values.size()) return false;
  }
  return true;
}

void Verifier::check_tables() {
  for (const Signature& s : f_.signatures) {
    for (Type t : s.params) {
      if (t == Type::kNone || t > Type::kRef) report("a signature has a parameter without a type");
    }
    if (s.result > Type::kRef) report("a signature has an unknown result type");
  }
  if (f_.signature_id.index() >= f_.signatures.size()) report("the signature is not in the table");
  for (const Callee& c : f_.callees) {
    if (!c.method.valid()) report("callee @" + c.name + " has no method");
    if (c.signature.index() >= f_.signatures.size()) {
      report("the signature of callee @" + c.name + " is not in the table");
    }
  }
  for (const HostCallee& c : f_.host_callees) {
    if (c.signature.index() >= f_.signatures.size()) {
      report("the signature of host function @" + c.name + " is not in the table");
    }
  }
  if (f_.site_count > kMaxSites || f_.loop_count > kMaxSites) report("too many sites or loops");
  if (f_.block_sites > f_.site_count) report("more block sites than sites");
  if (!f_.inlined.empty() && stage_ == Stage::kBuilt) report("a body is inlined as built");
  for (size_t k = 0; k < f_.inlined.size(); ++k) {
    const InlinedBody& body = f_.inlined[k];
    if (body.parent > k) {
      report("inlined body " + std::to_string(k + 1) + " comes before its parent");
      continue;
    }
    uint32_t sites = body.parent == 0 ? f_.site_count : f_.inlined[body.parent - 1].site_count;
    if (body.site < 1 || body.site > sites || body.block_sites > body.site_count) {
      report("a site of inlined body " + std::to_string(k + 1) + " is out of range");
    }
  }
}

void Verifier::check_layout() {
  placed_.assign(f_.insts.size(), false);
  laid_out_.assign(f_.blocks.size(), false);
  defined_.assign(f_.values.size(), false);
  if (f_.layout.empty()) report("there is no block");
  for (Block b : f_.layout) {
    if (b.index() >= f_.blocks.size()) {
      report(b, "the block does not exist");
    } else if (laid_out_[b.index()]) {
      report(b, "the block is laid out twice");
    } else {
      laid_out_[b.index()] = true;
    }
  }
  if (!problems_.empty()) return;
  for (Block b : f_.layout) check_block_lists(b);
}

void Verifier::check_block_lists(Block b) {
  const BlockData& data = f_.block(b);
  if (!values_fit(data.params)) return report(b, "the list of parameters is out of range");
  define_params(b);
  if (data.insts.empty()) return report(b, "the block is empty");
  for (InstId i : data.insts) check_inst_lists(b, i, i == data.insts.back());
}

void Verifier::define_params(Block b) {
  uint32_t index = 0;
  for (Value p : f_.params(b)) {
    const ValueData& v = f_.value(p);
    bool fits = !v.inst.valid() && v.block == b && v.index == index;
    ++index;
    if (!fits) report(b, "parameter " + printer().value(p) + " is recorded as something else");
    if (v.type == Type::kNone || v.type > Type::kRef) {
      report(b, "parameter " + printer().value(p) + " has no type");
    }
    if (defined_[p.index()]) report(b, printer().value(p) + " is defined twice");
    defined_[p.index()] = true;
  }
}

void Verifier::check_inst_lists(Block b, InstId id, bool last) {
  if (id.index() >= f_.insts.size()) return report(b, "an instruction does not exist");
  const Inst& i = f_.inst(id);
  if (placed_[id.index()]) return report(b, i, "the instruction is placed twice");
  placed_[id.index()] = true;
  if (static_cast<unsigned>(i.op) >= kOpcodeCount) return report(b, i, "unknown operation");
  if (i.type > Type::kRef) return report(b, i, "unknown type");
  has_guards_ |= i.op == Opcode::kGuard;
  if (!values_fit(i.args)) return report(b, i, "the list of operands is out of range");
  Shape shape = info(i.op).shape;
  bool is_call =
      shape == Shape::kCall || shape == Shape::kCallIndirect || shape == Shape::kCallHost;
  if (is_call && i.aux >= f_.signatures.size()) {
    return report(b, i, "the signature is not in the table");
  }
  bool ends = info(i.op).effects & kEndsBlock;
  if (ends && !last) report(b, i, "a terminator before the end of the block");
  if (!ends && last) report(b, i, "the block does not end in a terminator");
  check_edges(b, i);
  define_result(b, id);
}

void Verifier::check_edges(Block b, const Inst& i) {
  if (i.edge_count == 0) return;
  if (!(info(i.op).effects & kEndsBlock)) return report(b, i, "only a terminator has edges");
  if (uint64_t{i.edges_at} + i.edge_count > f_.edges.size()) {
    return report(b, i, "the edges are out of range");
  }
  for (const Edge& e : f_.edges_of(i)) {
    if (e.to.index() >= f_.blocks.size() || !laid_out_[e.to.index()]) {
      report(b, i, "an edge leads to " + printer().block(e.to) + ", which is not laid out");
    }
    if (!values_fit(e.args)) report(b, i, "the arguments of an edge are out of range");
  }
}

void Verifier::define_result(Block b, InstId id) {
  const Inst& i = f_.inst(id);
  Type t = result_type(f_, i);
  if (t == Type::kNone) {
    if (i.result.valid()) report(b, i, "the operation has no result");
    return;
  }
  if (i.result.index() >= f_.values.size()) return report(b, i, "the result does not exist");
  const ValueData& v = f_.value(i.result);
  if (v.inst != id) report(b, i, "the result is recorded as defined elsewhere");
  if (v.type != t) {
    report(b, i,
           std::string("the result is recorded as ") + type_name(v.type) + ", not " + type_name(t));
  }
  if (defined_[i.result.index()]) report(b, i, "the result is defined twice");
  defined_[i.result.index()] = true;
}

// ---- Control ------------------------------------------------------------------------------------

void Verifier::check_entry() {
  auto params = f_.params(f_.entry());
  const Signature& s = f_.signature();
  bool same = params.size() == s.params.size();
  for (size_t i = 0; same && i < params.size(); ++i) same = f_.type_of(params[i]) == s.params[i];
  if (!same) report(f_.entry(), "the entry's parameters are not those of the signature");
  for (Block b : f_.layout) {
    for (const Edge& e : f_.successors(b)) {
      if (e.to == f_.entry()) report(b, f_.terminator(b), "the entry may have no predecessor");
    }
  }
}

void Verifier::check_dominance() {
  Dominators d = compute_dominators(f_);
  for (Block b : f_.layout) {
    if (!d.reachable(b)) report(b, "the block cannot be reached");
  }
  if (!problems_.empty()) return;
  // The definition of each value: its block, and 0 for a parameter or 1 + its instruction's
  // position.
  struct Place {
    Block block;
    uint32_t position = 0;
  };
  std::vector<Place> places(f_.values.size());
  for (Block b : f_.layout) {
    uint32_t position = 0;
    for (Value p : f_.params(b)) places[p.index()] = {b, 0};
    for (InstId i : f_.block(b).insts) {
      ++position;
      if (Value r = f_.inst(i).result; r.valid()) places[r.index()] = {b, position};
    }
  }
  auto check = [&](Block b, const Inst& i, uint32_t position, Value v) {
    const Place& def = places[v.index()];
    bool ok =
        def.block == b ? def.position < position : def.block.valid() && d.dominates(def.block, b);
    if (!ok) report(b, i, printer().value(v) + " is used where it is not always defined");
  };
  for (Block b : f_.layout) {
    uint32_t position = 0;
    for (InstId id : f_.block(b).insts) {
      const Inst& i = f_.inst(id);
      ++position;
      for (Value v : f_.args(i)) check(b, i, position, v);
      for (const Edge& e : f_.edges_of(i)) {
        for (Value v : f_.list(e.args)) check(b, i, position, v);
      }
    }
  }
}

// ---- Observation --------------------------------------------------------------------------------

// loop_header comes first, then the block probe, and neither anywhere else.
void Verifier::check_observation(Block b) {
  const auto& insts = f_.block(b).insts;
  size_t probe_at = f_.inst(insts[0]).op == Opcode::kLoopHeader ? 1 : 0;
  for (size_t n = 0; n < insts.size(); ++n) {
    const Inst& i = f_.inst(insts[n]);
    if (n != probe_at && i.op != Opcode::kLoopHeader && i.op != Opcode::kProbe) continue;
    bool counts_block = is_block_probe(i);
    if (i.op == Opcode::kLoopHeader && n != 0) report(b, i, "loop_header comes first in its block");
    if (i.op == Opcode::kLoopHeader && b == f_.entry()) {
      report(b, i, "the entry is no loop header");
    }
    bool strict = stage_ == Stage::kBuilt;
    if (strict && counts_block && n != probe_at) {
      report(b, i, "a block probe comes first in its block, after loop_header");
    }
    if (strict && !counts_block && n == probe_at) report(b, i, "the block's probe is missing");
  }
}

void Verifier::check_guards(Block b) {
  bool has_state = false;
  const char* lost = "a guard needs a frame_state before it in its block";
  for (InstId id : f_.block(b).insts) {
    const Inst& i = f_.inst(id);
    bool at_block = i.op == Opcode::kGuard && i.imm != 0 && f_.deopts[i.imm - 1].at_block;
    // An inlined body does not keep its states: its guards have their values.
    bool needs = i.op == Opcode::kGuard && !at_block && i.body == 0;
    if (needs && !has_state) report(b, i, lost);
    if (i.op == Opcode::kFrameState) has_state = true;
    if (!(info(i.op).effects & kWrites) || stores_in_frame(f_, i)) continue;
    if (has_state) lost = "a side effect lies between the frame_state and the guard";
    has_state = false;
  }
}

// Returns whether check_numbers() would find no problem; takes one walk unless hosts have probes.
bool Verifier::numbers_fit() const {
  SiteId block = 0, call = static_cast<SiteId>(f_.layout.size());
  uint32_t loop = 0, host_probes = 0;
  bool fit = f_.block_sites == call;
  for (Block b : f_.layout) {
    for (InstId id : f_.block(b).insts) {
      const Inst& i = f_.inst(id);
      if (i.site != 0) fit &= i.site == ++call;
      if (i.op == Opcode::kLoopHeader) fit &= i.aux == loop++;
      if (i.op != Opcode::kProbe) continue;
      bool is_block = i.imm == static_cast<uint64_t>(ProbeKind::kBlock);
      if (is_block) fit &= i.aux == ++block;
      host_probes += !is_block;
    }
  }
  return fit && block == f_.block_sites && host_probes == 0 && f_.site_count == call &&
         f_.loop_count == loop && f_.cfg_hash == cfg_hash(f_);
}

// As built: block k has site k + 1; then calls, host probes and the library's own probes follow;
// loops are numbered in order.
void Verifier::check_numbers() {
  if (stage_ != Stage::kBuilt || numbers_fit()) return;
  SiteId site = 0;
  auto expect_site = [&](Block b, const Inst& i, SiteId found) {
    if (found != ++site) report(b, i, "the site should be " + std::to_string(site));
  };
  auto each = [&](auto visit) {
    for (Block b : f_.layout) {
      for (InstId id : f_.block(b).insts) visit(b, f_.inst(id));
    }
  };
  auto is_block = [](const Inst& i) { return i.imm == static_cast<uint64_t>(ProbeKind::kBlock); };
  each([&](Block b, const Inst& i) {
    if (i.op == Opcode::kProbe && is_block(i)) expect_site(b, i, i.aux);
  });
  if (f_.block_sites != site) report("block sites are " + std::to_string(site));
  each([&](Block b, const Inst& i) {
    if (i.site != 0) expect_site(b, i, i.site);
  });
  for (uint32_t owner = 0; owner < kProbeOwners; ++owner) {
    each([&](Block b, const Inst& i) {
      bool its = i.op == Opcode::kProbe && !is_block(i) && owner_of_probe(i) == owner;
      if (its) expect_site(b, i, i.aux);
    });
  }
  if (f_.site_count != site) report("there are " + std::to_string(site) + " sites");
  uint32_t loop = 0;
  each([&](Block b, const Inst& i) {
    if (i.op == Opcode::kLoopHeader && i.aux != loop++) {
      report(b, i, "the loop should be " + std::to_string(loop - 1));
    }
  });
  if (f_.loop_count != loop) report("there are " + std::to_string(loop) + " loops");
  if (f_.cfg_hash != cfg_hash(f_)) report("cfg_hash does not fit the blocks");
}

}  // namespace uptier::jit
