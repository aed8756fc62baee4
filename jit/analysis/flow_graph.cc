#include "jit/analysis/flow_graph.h"

#include <algorithm>

#include "jit/analysis/frequencies.h"

namespace uptier::jit {
namespace {

constexpr double kUnit = 1e6;  // weight of code that runs once per call
constexpr double kDearer = 1.25;

class Shaper {
 public:
  explicit Shaper(const Function& f)
      : f_(f), flow_(analyze_control_flow(f)), position_(layout_positions(f)) {
    LoopNest loops = find_loops(f, flow_);
    frequency_ = estimate_frequencies(f, flow_, loops, {});
  }

  FlowShape run() {
    shape_.graph.blocks = static_cast<uint32_t>(f_.layout.size());
    for (Block b : f_.layout) add_real(b);
    shape_.real = static_cast<uint32_t>(shape_.graph.edges.size());
    bool single = f_.layout.size() == 1 && shape_.real == 0;
    add(0, 1, weight(f_.entry()), single);
    for (Block b : f_.layout) add_return(b);
    shape_.headers.resize(f_.loop_count);
    for (Block b : f_.layout) note_header(b);
    for (SiteId h : shape_.headers) add(0, h, 0, true);
    for (SiteId h : shape_.headers) add(h, 0, 0, true);
    for (Block b : f_.layout) add(site(b), 0, 0, true);
    return std::move(shape_);
  }

 private:
  SiteId site(Block b) const { return position_[b.index()] + 1; }
  uint64_t weight(Block b, double factor = 1) const {
    return 1 + static_cast<uint64_t>(kUnit * factor * static_cast<double>(frequency_.at(b)));
  }
  void add(SiteId from, SiteId to, uint64_t weight, bool external) {
    shape_.graph.edges.push_back({from, to, weight, external});
  }

  void add_real(Block b) {
    auto edges = f_.successors(b);
    for (const Edge& e : edges) {
      bool back = flow_.position[e.to.index()] <= flow_.position[b.index()];
      bool critical = edges.size() > 1 && flow_.preds[e.to.index()].size() > 1;
      Block rarer = frequency_.at(b) < frequency_.at(e.to) ? b : e.to;
      add(site(b), site(e.to), weight(rarer, back || critical ? kDearer : 1), false);
    }
  }

  void add_return(Block b) {
    if (f_.terminator(b).op != Opcode::kReturn) return;
    shape_.returning.push_back(site(b));
    add(site(b), 0, weight(b), false);
  }

  void note_header(Block b) {
    const Inst& first = f_.inst(f_.block(b).insts[0]);
    if (first.op == Opcode::kLoopHeader) shape_.headers[first.aux] = site(b);
  }

  const Function& f_;
  ControlFlow flow_;
  Frequencies frequency_;
  std::vector<uint32_t> position_;
  FlowShape shape_;
};

}  // namespace

FlowShape flow_graph(const Function& f) { return Shaper(f).run(); }

std::vector<uint32_t> edge_numbers(const Function& f) {
  std::vector<uint32_t> numbers(f.edges.size());
  uint32_t next = 1;
  for (Block b : f.layout) {
    const Inst& t = f.terminator(b);
    for (uint32_t e = 0; e < t.edge_count; ++e) numbers[t.edges_at + e] = next++;
  }
  return numbers;
}

}  // namespace uptier::jit
