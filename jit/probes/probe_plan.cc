#include "jit/probes/probe_plan.h"

#include <algorithm>

namespace uptier::jit {
namespace {

uint32_t take(ProbePlan& plan, uint32_t bytes) {
  uint32_t at = plan.bytes;
  plan.bytes += bytes;
  return at;
}

void align(ProbePlan& plan) { plan.bytes = (plan.bytes + 7) & ~7u; }

void plan_blocks(const Function& f, ProbePlan& plan) {
  for (uint32_t b = 0; b < f.block_sites; ++b) plan.blocks.push_back(take(plan, plan.stride()));
}

void plan_edges(const Function& f, const CountedFlow& flow, ProbePlan& plan) {
  for (size_t e = 0; e < flow.chords.size(); ++e) {
    bool in_code = flow.chords[e] && !flow.shape.graph.edges[e].external;
    plan.edges.push_back(in_code ? take(plan, plan.stride()) : ProbePlan::kNone);
  }
  align(plan);
  for (uint32_t l = 0; l < f.loop_count; ++l) plan.loop_enter.push_back(take(plan, 8));
  for (uint32_t l = 0; l < f.loop_count; ++l) plan.loop_leave.push_back(take(plan, 8));
}

}  // namespace

bool ProbePlan::has_sites() const {
  return !loops.empty() ||
         std::any_of(sites.begin(), sites.end(), [](const Site& s) { return s.offset != kNone; });
}

uint32_t ProbePlan::flow_counters() const {
  auto counted = [](const std::vector<uint32_t>& offsets) {
    return std::count_if(offsets.begin(), offsets.end(), [](uint32_t o) { return o != kNone; });
  };
  return static_cast<uint32_t>(counted(blocks) + counted(edges));
}

CountedFlow counted_flow(const Function& f, FlowMode mode) {
  if (mode == FlowMode::kBlocks) return {};
  FlowShape shape = flow_graph(f);
  std::vector<bool> chords = profile::choose_chords(shape.graph);
  return {std::move(shape), std::move(chords)};
}

ProbePlan plan_probes(const Function& f, const ProbeRequest& request) {
  return plan_probes(f, request, counted_flow(f, request.flow));
}

ProbePlan plan_probes(const Function& f, const ProbeRequest& request, const CountedFlow& flow) {
  ProbePlan plan;
  plan.flow = request.flow;
  plan.counters = request.counters;
  plan.narrow = request.narrow;
  plan.flow == FlowMode::kBlocks ? plan_blocks(f, plan) : plan_edges(f, flow, plan);
  align(plan);
  // Sites and loops come after the flow, from plan.bytes on.
  align(plan);
  return plan;
}

const ProbePlan::Site* planned_site(const Function& f, const ProbePlan* plan, const Inst& i) {
  if (plan == nullptr || i.body != 0) return nullptr;
  SiteId site = i.op == Opcode::kProbe ? i.aux : i.site;
  if (site <= f.block_sites || site - f.block_sites > plan->sites.size()) return nullptr;
  const ProbePlan::Site& s = plan->sites[site - f.block_sites - 1];
  return s.offset == ProbePlan::kNone ? nullptr : &s;
}

}  // namespace uptier::jit
