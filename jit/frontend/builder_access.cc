// Ends a build: removes needless parameters and unreachable blocks, and numbers the sites.
#include <algorithm>
#include <utility>

#include "jit/frontend/builder_impl.h"
#include "jit/frontend/number_sites.h"
#include "jit/frontend/plain_form.h"
#include "jit/frontend/verify.h"
#include "jit/frontend/verify_built.h"

namespace uptier {
namespace {

using jit::Edge;
using jit::Function;
using jit::Inst;
using jit::InstId;
using jit::is_terminated;

void keep_reachable(Function& f) {
  std::vector<bool> seen(f.blocks.size());
  std::vector<Block> work;
  work.reserve(f.blocks.size());
  work.push_back(f.entry());
  seen[f.entry().index()] = true;
  while (!work.empty()) {
    Block b = work.back();
    work.pop_back();
    if (!is_terminated(f, b)) continue;
    for (const Edge& e : f.successors(b)) {
      if (e.to.index() >= seen.size() || seen[e.to.index()]) continue;
      seen[e.to.index()] = true;
      work.push_back(e.to);
    }
  }
  std::erase_if(f.layout, [&](Block b) { return !seen[b.index()]; });
}

// Removes block parameters that can have only one value. A parameter is needless if all its
// arguments, other than itself, are the same value. Removing one may make another needless, so the
// remaining parameters are visited until nothing changes.
class ParamPruner {
 public:
  ParamPruner(Function& f, const EdgeArgs& args)
      : f_(f), args_(args), alias_(f.values.size()), first_(f.blocks.size() + 1) {}

  void run() {
    collect_incoming();
    left_.reserve(f_.blocks.size());
    for (Block b : f_.layout) {
      if (b == f_.entry()) continue;
      for (Value p : f_.params(b)) left_.push_back(p);
    }
    for (int rounds = 0; rounds < kMostRounds && prune_forwards() && prune_backwards();) ++rounds;
    rewrite();
  }

 private:
  // Sorts the edges of blocks in the layout by their target.
  void collect_incoming() {
    auto each = [&](auto visit) {
      for (Block b : f_.layout) {
        if (!is_terminated(f_, b)) continue;
        const Inst& t = f_.terminator(b);
        for (uint32_t e = t.edges_at; e < t.edges_at + t.edge_count; ++e) {
          if (Block to = f_.edges[e].to; to.index() < f_.blocks.size()) visit(to.index(), e);
        }
      }
    };
    each([&](uint32_t to, uint32_t) { ++first_[to]; });
    uint32_t total = 0;
    for (uint32_t& n : first_) n = total += n;  // for now, the end of each block's edges
    incoming_.resize(total);
    each([&](uint32_t to, uint32_t e) { incoming_[--first_[to]] = e; });
  }
  std::span<const uint32_t> incoming(Block b) const {
    return std::span(incoming_).subspan(first_[b.index()],
                                        first_[b.index() + 1] - first_[b.index()]);
  }

  // Follows aliases, and shortens the chain for later calls.
  Value resolve(Value v) {
    if (v.index() >= alias_.size()) return v;  // misuse of the builder; the verifier reports it
    Value root = alias_[v.index()];
    if (!root.valid()) return v;
    while (alias_[root.index()].valid()) root = alias_[root.index()];
    while (alias_[v.index()].valid()) v = std::exchange(alias_[v.index()], root);
    return root;
  }

  // Returns the value that an edge passes to a parameter; none if the builder was misused.
  Value arg(uint32_t edge, Value param) { return resolve(args_.get(edge, f_.value(param).index)); }

  // Forwards if a parameter depends on an earlier one; backwards if a loop's parameter depends on
  // those of inner loops: nests of any depth take two rounds. Each returns whether one was
  // needless; once none is, none will be.
  bool prune_forwards() {
    return std::erase_if(left_, [&](Value p) { return prune(p); }) != 0;
  }
  bool prune_backwards() {
    size_t before = left_.size();
    auto kept = std::remove_if(left_.rbegin(), left_.rend(), [&](Value p) { return prune(p); });
    left_.erase(left_.begin(), kept.base());
    return left_.size() != before;
  }

  bool prune(Value p) {
    const jit::ValueData& data = f_.value(p);
    Value only;
    for (uint32_t e : incoming(data.block)) {
      Value v = resolve(args_.get(e, data.index));
      if (v == p || v == only) continue;
      if (only.valid() || v.index() >= alias_.size()) return false;
      only = v;
    }
    if (!only.valid()) return false;
    alias_[p.index()] = only;
    return true;
  }

  void rewrite() {
    for (Block b : f_.layout) {
      for (InstId i : f_.block(b).insts) {
        for (Value& v : f_.args(f_.inst(i))) v = resolve(v);
      }
      if (b != f_.entry() && f_.block(b).params.size != 0) rewrite_params(b);
    }
  }

  void rewrite_params(Block b) {
    kept_.clear();
    for (Value p : f_.params(b)) {
      if (!alias_[p.index()].valid()) kept_.push_back(p);
    }
    for (uint32_t e : incoming(b)) {
      passed_.clear();
      for (Value p : kept_) passed_.push_back(arg(e, p));
      f_.edges[e].args = f_.make_list(passed_);
    }
    for (uint32_t i = 0; i < kept_.size(); ++i) f_.value(kept_[i]).index = i;
    f_.block(b).params = f_.make_list(kept_);
  }

  // Bodies from compilers take one or two; a needless parameter that is left only costs time.
  static constexpr int kMostRounds = 16;

  Function& f_;
  const EdgeArgs& args_;
  std::vector<Value> alias_;        // by value
  std::vector<uint32_t> first_;     // by block: its first index in incoming_
  std::vector<uint32_t> incoming_;  // edges
  std::vector<Value> left_;         // parameters, in the order of their blocks
  std::vector<Value> kept_, passed_;
};

}  // namespace

FunctionBuilder BuilderAccess::begin(std::unique_ptr<Impl> empty, const Signature& s,
                                     std::string_view name) {
  return FunctionBuilder(std::move(empty), s, name);
}

FunctionBuilder BuilderAccess::begin_plain(const Signature& s, std::string_view name,
                                           uint32_t short_life) {
  auto impl = std::make_unique<Impl>();
  impl->short_life = short_life;
  impl->plain = true;
  return FunctionBuilder(std::move(impl), s, name);
}

bool BuilderAccess::too_much(const FunctionBuilder& b) { return b.impl_->too_much; }

void BuilderAccess::adopt(FunctionBuilder& builder, Function f) {
  builder.impl_->adopted = std::move(f);
}

Function BuilderAccess::finish(FunctionBuilder& builder) {
  FunctionBuilder::Impl& m = *builder.impl_;
  if (m.adopted) return std::move(*m.adopted);
  for (uint32_t b = 0; b < m.blocks.size() && m.misuse; ++b) {
    if (!m.blocks[b].sealed) builder.seal(Block(b));
  }
  m.leave_block();
  m.place_zeros();
  if (Status s = m.f.positions.finish(); !s) m.refuse(s.error().message);
  Function f = std::move(m.f);
  keep_reachable(f);
  ParamPruner(f, m.edge_args).run();
  if (m.plain) jit::shorten_lives(f, m.memory_bytes, m.short_life);
  jit::number_sites(f);
  // If the probe is unreachable, nothing will be known of it: it has no site.
  for (auto [asks, probe] : m.known_counts) f.inst(asks).aux = f.inst(probe).aux;
  return f;
}

Result<Function> BuilderAccess::finish_verified(FunctionBuilder& builder) {
  if (Status s = builder.status(); !s) return s.error();
  bool adopted = builder.impl_->adopted.has_value();
  Function f = finish(builder);
  if (Status s = builder.status(); !s) return s.error();
  if (!adopted && !builder.impl_->plain && jit::lives_too_long(f)) {
    builder.impl_->too_much = true;
    return Error{ErrorCode::kResourceExhausted,
                 f.name + ": too many values live in too many blocks"};
  }
  if (Status s = adopted ? jit::verify(f) : jit::verify_built(f); !s) return s.error();
  return f;
}

}  // namespace uptier
