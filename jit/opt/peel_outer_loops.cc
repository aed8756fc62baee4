#include "jit/opt/peel_outer_loops.h"

#include <algorithm>
#include <unordered_map>

namespace uptier::jit {
namespace {

constexpr size_t kMostPeelGrowth = 6'000;

using Loop = LoopForest::Loop;

class Peeler {
 public:
  Peeler(Function& f, const LoopForest& forest, std::span<const uint64_t> counts,
         std::vector<Redefinition>& again)
      : f_(f), forest_(forest), counts_(counts), again_(again) {}

  Block run(LoopId entered) {
    // From the innermost loop outwards, so that a size limit excludes the outermost ones.
    size_t grown = 0;
    for (LoopId l = forest_.loop(entered).parent; l.valid(); l = forest_.loop(l).parent) {
      grown += size_of(forest_.loop(l));
      if (grown > kMostPeelGrowth) break;
      rounds_.push_back({&forest_.loop(l), {}});
    }
    for (size_t n = 0; n < rounds_.size(); ++n) add_blocks(n);
    for (size_t n = 0; n < rounds_.size(); ++n) fill_blocks(n);
    return goes_to(0, forest_.loop(entered).header);
  }

 private:
  // The rest of one iteration of a loop: copies of its blocks except the header.
  struct Round {
    const Loop* loop;
    std::unordered_map<uint32_t, Block> copies;  // by Block::index()
  };

  size_t size_of(const Loop& l) const {
    size_t size = 0;
    for (Block b : l.blocks) size += f_.block(b).insts.size();
    return size;
  }

  void add_blocks(size_t n) {
    for (Block b : rounds_[n].loop->blocks) {
      if (b == rounds_[n].loop->header) continue;
      Block copy = f_.add_block();
      f_.layout.push_back(copy);
      rounds_[n].copies.emplace(b.index(), copy);
      for (uint32_t k = 0, count = f_.block(b).params.size; k < count; ++k) {
        Value old = f_.params(b)[k];
        again_.push_back({old, copy, f_.add_block_param(copy, f_.type_of(old))});
      }
    }
  }

  // Returns the target of an edge to `b` from iteration n. An edge to a loop's header leads to its
  // copy in the next loop outwards, or to the header itself.
  Block goes_to(size_t n, Block b) const {
    for (; n < rounds_.size(); ++n) {
      auto at = rounds_[n].copies.find(b.index());
      if (at != rounds_[n].copies.end()) return at->second;
    }
    return b;
  }

  void fill_blocks(size_t n) {
    const Loop& l = *rounds_[n].loop;
    uint32_t share = share_of(l);
    for (Block b : l.blocks) {
      auto at = rounds_[n].copies.find(b.index());
      if (at != rounds_[n].copies.end()) copy(n, b, at->second, share);
    }
  }

  // Returns the share of one iteration among all that the loop runs, in parts of kWholeShare; 0:
  // unknown.
  uint32_t share_of(const Loop& l) const {
    for (InstId i : f_.block(l.header).insts) {
      const Inst& probe = f_.inst(i);
      if (!is_block_probe(probe) || probe.aux > counts_.size()) continue;
      uint64_t rounds = std::clamp<uint64_t>(counts_[probe.aux - 1], 2, kWholeShare);
      return static_cast<uint32_t>(kWholeShare / rounds);
    }
    return 0;
  }

  void copy(size_t n, Block from, Block to, uint32_t share) {
    std::unordered_map<uint32_t, Value> here;  // by Value::index(): the copied definition
    for (uint32_t k = 0; k < f_.block(from).params.size; ++k) {
      here.emplace(f_.params(from)[k].index(), f_.params(to)[k]);
    }
    auto copy_list = [&](ValueList l) {
      std::vector<Value> values;
      for (Value v : f_.list(l)) {
        auto at = here.find(v.index());
        values.push_back(at == here.end() ? v : at->second);
      }
      return f_.make_list(values);
    };
    const std::vector<InstId> insts = f_.block(from).insts;
    for (InstId id : insts) {
      Inst i = f_.inst(id);
      if (i.op == Opcode::kLoopHeader) continue;  // copies are never entered
      if (is_block_probe(i) && share != 0) {
        i.flags |= kProbeResumes;
        i.imm = (i.imm & UINT32_MAX) | uint64_t{share} << 32;
      }
      Value result = i.result;
      i.result = Value::none();
      i.args = copy_list(i.args);
      auto edges = static_cast<uint32_t>(f_.edges.size());
      for (uint32_t e = 0; e < i.edge_count; ++e) {
        Edge edge = f_.edges[i.edges_at + e];
        f_.edges.push_back({goes_to(n, edge.to), copy_list(edge.args)});
      }
      if (i.edge_count != 0) i.edges_at = edges;
      InstId made = f_.append(to, i, result.valid() ? f_.type_of(result) : Type::kNone);
      if (!result.valid()) continue;
      here.emplace(result.index(), f_.inst(made).result);
      again_.push_back({result, to, f_.inst(made).result});
    }
  }

  Function& f_;
  const LoopForest& forest_;
  std::span<const uint64_t> counts_;
  std::vector<Redefinition>& again_;
  std::vector<Round> rounds_;  // innermost first
};

}  // namespace

Block peel_outer_loops(Function& f, const LoopForest& forest, LoopId loop,
                       std::span<const uint64_t> counts, std::vector<Redefinition>& again) {
  return Peeler(f, forest, counts, again).run(loop);
}

}  // namespace uptier::jit
