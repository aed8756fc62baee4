#include "tools/report_module.h"

#include <charconv>
#include <cmath>

#include "jit/analysis/flow_graph.h"
#include "jit/analysis/loop_forest.h"
#include "jit/ir/print.h"
#include "jit/probes/probe_plan.h"
#include "tools/commands.h"
#include "tools/listing.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;

constexpr char kMark = '\x01';  // starts a heading of a listing
constexpr char kEnd = '\x02';   // and ends its number

double count_of(const MethodProfile& p, SlotKind kind, SiteId site) {
  const auto e = p.estimate(kind, site);
  return e ? e->total : 0;
}

// Loops are numbered in build order from 0, their sites from 1.
SiteId site_of(LoopId loop) { return loop.valid() ? loop.index() + 1 : 0; }

// Calls `line` with each line of a text, without its end.
template <typename Line>
void each_line(const std::string& text, Line line) {
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    line(text.substr(at, end - at));
    at = end + 1;
  }
}

// The text of the IR in pieces, one a block, each with the block's site.
ordered_json ir_json(const jit::Function& f) {
  ordered_json pieces = ordered_json::array();
  std::string piece;
  SiteId site = 0;
  const auto end_piece = [&] {
    if (!piece.empty()) pieces.push_back({site, piece});
    piece.clear();
    site = 0;
  };
  each_line(jit::to_text(f), [&](const std::string& line) {
    constexpr std::string_view kProbe = "  probe block ";
    const bool starts = line.starts_with("b") && line.ends_with(":");
    if (starts || line == "}") end_piece();
    if (line.starts_with(kProbe)) {
      std::from_chars(line.data() + kProbe.size(), line.data() + line.size(), site);
    }
    piece += line + "\n";
  });
  end_piece();
  return pieces;
}

// A listing in pieces, one a probe.
ordered_json pieces_of(const std::string& text) {
  ordered_json pieces = ordered_json::array();
  std::string piece, body;
  SiteId site = 0;
  const auto end_piece = [&] {
    if (!piece.empty()) pieces.push_back({site, body, piece});
    piece.clear();
  };
  each_line(text, [&](const std::string& line) {
    if (line.empty() || line[0] != kMark) {
      piece += line + "\n";
      return;
    }
    end_piece();
    size_t end = std::min(line.find(kEnd), line.size());
    site = 0;
    std::from_chars(line.data() + 1, line.data() + end, site);
    body = end < line.size() ? line.substr(end + 1) : "";
  });
  end_piece();
  return pieces;
}

}  // namespace

Result<std::unique_ptr<ReportModule>> ReportModule::open(const std::string& path,
                                                         const Profile& profile) {
  Result<std::vector<uint8_t>> bytes = read_file(path);
  if (!bytes) return bytes.error();
  Result<Functions> functions = read_functions(path, *bytes);
  if (!functions) return functions.error();
  std::unique_ptr<ReportModule> made(new ReportModule(profile));
  made->functions_ = std::move(*functions);
  note_own_probes(made->functions_, profile);
  const Functions& fs = made->functions_;
  for (uint32_t i = 0; i < fs.module.functions.size(); ++i) {
    if (fs.keys.empty()) {
      made->by_name_.emplace(fs.module.functions[i].name, MethodId(i));
    } else {
      made->by_key_.emplace(fs.keys[i], MethodId(i));
    }
  }
  if (fs.keys.empty()) {
    for (const auto& [key, m] : profile.methods) made->key_of_name_.emplace(m.name, key);
  }
  auto world = CompileWorld::create(fs, &profile, kCodeBudget);
  if (!world) return world.error();
  made->world_ = std::move(*world);
  return made;
}

MethodId ReportModule::id_of(const MethodProfile& m) const {
  auto named = by_name_.find(m.name);
  if (named != by_name_.end()) return named->second;
  auto keyed = by_key_.find(m.key);
  return keyed == by_key_.end() ? MethodId::none() : keyed->second;
}

MethodKey ReportModule::key_of(MethodId m) const {
  if (!functions_.keys.empty()) return functions_.keys[m.index()];
  auto known = key_of_name_.find(functions_.module.functions[m.index()].name);
  return known == key_of_name_.end() ? MethodKey{} : known->second;
}

const jit::Function* ReportModule::find(const MethodProfile& m) const {
  const MethodId id = id_of(m);
  if (!id.valid()) return nullptr;
  const jit::Function& f = functions_.module.functions[id.index()];
  return f.cfg_hash == m.schema.cfg_hash ? &f : nullptr;
}

std::vector<ReportModule::Call> ReportModule::calls(const MethodProfile& m) const {
  std::vector<Call> calls;
  const jit::Function* f = find(m);
  if (f == nullptr) return calls;
  const jit::LoopForest forest = jit::find_loop_forest(*f);
  for (Block b : f->layout) {
    const SiteId loop = site_of(forest.innermost[b.index()]);
    double executions = 0;
    for (jit::InstId i : f->block(b).insts) {
      const jit::Inst& inst = f->inst(i);
      if (jit::is_block_probe(inst)) executions = count_of(m, SlotKind::kBlock, inst.aux);
      if (inst.op == Opcode::kCall && executions > 0) {
        calls.push_back({loop, key_of(f->callees[inst.imm].method), executions});
      }
      const Table* seen =
          inst.op == Opcode::kCallIndirect ? m.table(SlotKind::kCallTarget, inst.site) : nullptr;
      if (seen == nullptr) continue;
      for (const auto& [key, entry] : *seen) {
        const MethodKey callee = {key.module_key, static_cast<uint32_t>(key.value)};
        calls.push_back({loop, callee, static_cast<double>(entry.estimate)});
      }
    }
  }
  return calls;
}

std::vector<SiteId> ReportModule::loop_parents(const MethodProfile& m) const {
  std::vector<SiteId> parents;
  const jit::Function* f = find(m);
  if (f == nullptr) return parents;
  const jit::LoopForest forest = jit::find_loop_forest(*f);
  const SiteId body = f->loop_count + 1;
  const bool body_timed = m.schema.find(SlotKind::kLoop, body) != nullptr;
  for (const auto& loop : forest.loops) {
    parents.push_back(loop.parent.valid() ? site_of(loop.parent) : body_timed ? body : 0);
  }
  parents.push_back(0);
  return parents;
}

ordered_json ReportModule::edges_json(const MethodProfile& m) const {
  ordered_json edges = ordered_json::array();
  const jit::Function* f = find(m);
  if (f == nullptr) return edges;
  const jit::FlowShape shape = jit::flow_graph(*f);
  for (uint32_t i = 0; i < shape.real; ++i) {
    edges.push_back({shape.graph.edges[i].from, shape.graph.edges[i].to});
  }
  return edges;
}

ordered_json ReportModule::code_json(const MethodProfile& m, bool optimized) {
  ordered_json j = ordered_json::object();
  const jit::Function* f = find(m);
  if (f == nullptr) return j;
  j["ir"] = ir_json(*f);
  const MethodId id = id_of(m);
  Result<jit::BodyProfile> seen = body_profile(functions_, id, profile_);
  if (!seen) return j;
  jit::ProbePlan plan = jit::plan_probes(*f, {});
  jit::OptimizeRequest request{.block_counts = seen->blocks};
  request.targets = seen->targets;
  auto code = optimized ? world_->optimized(id, request, true)
                        : world_->baseline(id, {.copy = Copy::kPlain, .probes = &plan});
  if (!code) {
    j["made"] = code.error().message;
    return j;
  }
  ListingNames names;
  names.site = [&](SiteId site, uint32_t body) {
    const auto& inlined = (*code)->tables().inlined;
    return kMark + std::to_string(site) + kEnd +
           (body == 0 ? "" : world_->name(inlined[body - 1].method));
  };
  names.address = [&](const void* at) { return world_->name_of(at); };
  j["code"] = pieces_of(listing(**code, names));
  j["made"] =
      optimized ? "optimized with this profile, now" : "compiled by the baseline compiler, now";
  return j;
}

}  // namespace uptier::tools
