#include "tools/coverage.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "profile/base/numbers.h"

namespace uptier::tools {
namespace {

constexpr const char* kRuns = "runs";
constexpr const char* kExecutions = "executions";

// The counts of one function's lines.
using Counts = std::map<std::pair<uint32_t, uint32_t>, uint64_t>;  // by file and line

void raise_to(Counts& counts, const dwarf::Row& row, uint64_t count) {
  uint64_t& known = counts[{row.file, row.line}];
  known = std::max(known, count);
}

Counts counts_of(const ModuleLines& module, uint32_t function, const BlockCounts& blocks) {
  Counts counts;
  const wasm::SourceLines& source = module.source();
  const auto add = [&](const LinePart& part, bool is_quiet) {
    const dwarf::Row* row = source.map().row(part.offset - source.code_begin());
    if (is_quiet && !row->is_stmt) return;
    raise_to(counts, *row, blocks.block(function, part.block));
  };
  for (const LinePart& part : module.parts(function)) add(part, false);
  for (const LinePart& part : module.quiet_parts(function)) add(part, true);
  // Lines all of whose code is never reached.
  for (const LinedRow& r : module.rows_of(function)) {
    if (r.row->is_stmt) raise_to(counts, *r.row, 0);
  }
  return counts;
}

// Appends the branches of a function whose edges are known.
void add_branches(const ModuleLines& module, uint32_t function, const BlockCounts& counts,
                  Coverage& out) {
  const BodyGraph& body = module.bodies()[function];
  const wasm::SourceLines& source = module.source();
  for (uint32_t b = 0; b < body.blocks.size(); ++b) {
    const BodyGraph::Block& block = body.blocks[b];
    if (!block.is_branch || block.branch_location < source.code_begin()) continue;
    const dwarf::Row* row = source.map().row(block.branch_location - source.code_begin());
    if (row == nullptr || row->line == 0) continue;
    Coverage::Branch branch{row->line, counts.block(function, b + 1) != 0, {0, 0}};
    const std::optional<uint64_t> edges[2] = {counts.edge(function, block.first_edge),
                                              counts.edge(function, block.first_edge + 1)};
    if (!edges[0] || !edges[1]) continue;
    branch.counts[0] = *edges[0];
    branch.counts[1] = *edges[1];
    out.files[source.map().lines().path(row->file)].branches.push_back(branch);
  }
}

// A name must not have the comma that separates fields.
std::string field(std::string name) {
  std::ranges::replace(name, ',', '_');
  return name;
}

}  // namespace

ExactCounts::ExactCounts(const ModuleLines& module, const Profile& counts) : module_(module) {
  // By number, not by name: several functions may have one name and equal code. The module's key depends on
  // how memory is guarded.
  std::map<uint32_t, const MethodProfile*> by_number;
  for (const auto& [key, m] : counts.methods) by_number.emplace(key.function_index, &m);
  for (const BodyGraph& body : module.bodies()) {
    const auto at = by_number.find(body.key->function_index);
    const bool fits = at != by_number.end() && at->second->name == body.name &&
                      at->second->schema.cfg_hash == body.cfg_hash && at->second->check().ok();
    of_.push_back(fits ? at->second : nullptr);
  }
}

uint64_t ExactCounts::block(uint32_t function, uint32_t block) const {
  if (of_[function] == nullptr) return 0;
  const std::optional<Counted> count = block_count(*of_[function], block);
  return count ? count->count : 0;
}

std::optional<uint64_t> ExactCounts::edge(uint32_t function, uint32_t edge) const {
  if (of_[function] == nullptr) return 0;
  const std::optional<Counted> count = edge_count(*of_[function], module_.bodies()[function], edge);
  return count ? std::optional(count->count) : std::nullopt;
}

uint64_t HitBlocks::block(uint32_t function, uint32_t block) const {
  const uint32_t at = module_.bodies()[function].blocks[block - 1].covered_by;
  return at < covered_.size() && covered_[at] != 0 ? 1 : 0;
}

// The edges of a branch lead to blocks of their own.
std::optional<uint64_t> HitBlocks::edge(uint32_t function, uint32_t edge) const {
  const BodyGraph& body = module_.bodies()[function];
  const uint32_t to = body.edges[edge].to;
  if (body.blocks[to - 1].entered_by != 1) return std::nullopt;
  return block(function, to);
}

Coverage coverage_of(const ModuleLines& module, const BlockCounts& counts) {
  Coverage made;
  const wasm::SourceLines& source = module.source();
  const dwarf::LineTable& table = source.map().lines();
  made.hits = counts.hits();
  for (uint32_t f = 0; f < module.bodies().size(); ++f) {
    for (const auto& [place, count] : counts_of(module, f, counts)) {
      const std::string path = table.path(place.first);
      if (path.empty()) continue;
      uint64_t& line = made.files[path].lines[place.second];
      line = made.hits ? std::max(line, count) : line + count;
    }
    add_branches(module, f, counts, made);
    const std::vector<dwarf::SourceFrame> at = module.place_of(f);
    if (at.empty() || at.back().file.empty() || at.back().line == 0) continue;
    const std::string& known = at.back().function;
    made.files[at.back().file].functions.push_back(
        {known.empty() ? module.bodies()[f].name : known, at.back().line, counts.block(f, 1)});
  }
  for (auto& [path, file] : made.files) {
    std::ranges::sort(file.functions, [](const auto& a, const auto& b) {
      return a.line != b.line ? a.line < b.line : a.name < b.name;
    });
    std::ranges::stable_sort(file.branches, {}, &Coverage::Branch::line);
  }
  return made;
}

std::string coverage_lcov(const Coverage& c) {
  std::string out;
  for (const auto& [path, file] : c.files) {
    out += "TN:\nSF:" + path + "\n";
    size_t called = 0, hit = 0;
    for (const Coverage::Function& f : file.functions) {
      out += "FN:" + std::to_string(f.line) + "," + field(f.name) + "\n";
    }
    for (const Coverage::Function& f : file.functions) {
      out += "FNDA:" + std::to_string(f.calls) + "," + field(f.name) + "\n";
      called += f.calls != 0 ? 1 : 0;
    }
    out +=
        "FNF:" + std::to_string(file.functions.size()) + "\nFNH:" + std::to_string(called) + "\n";
    size_t number = 0, taken = 0;  // of a branch within its line; edges
    for (size_t i = 0; i < file.branches.size(); ++i) {
      const Coverage::Branch& b = file.branches[i];
      number = i != 0 && file.branches[i - 1].line == b.line ? number + 1 : 0;
      for (size_t e = 0; e < 2; ++e) {
        out += "BRDA:" + std::to_string(b.line) + "," + std::to_string(number) + "," +
               std::to_string(e) + "," + (b.reached ? std::to_string(b.counts[e]) : "-") + "\n";
        taken += b.counts[e] != 0 ? 1 : 0;
      }
    }
    out +=
        "BRF:" + std::to_string(2 * file.branches.size()) + "\nBRH:" + std::to_string(taken) + "\n";
    for (const auto& [line, count] : file.lines) {
      out += "DA:" + std::to_string(line) + "," + std::to_string(count) + "\n";
      hit += count != 0 ? 1 : 0;
    }
    out += "LF:" + std::to_string(file.lines.size()) + "\nLH:" + std::to_string(hit) +
           "\nend_of_record\n";
  }
  return out;
}

std::string coverage_json(const Coverage& c) {
  using nlohmann::ordered_json;
  ordered_json files = ordered_json::array();
  for (const auto& [path, file] : c.files) {
    ordered_json lines = ordered_json::array(), functions = ordered_json::array();
    ordered_json branches = ordered_json::array();
    for (const Coverage::Branch& b : file.branches) {
      branches.push_back({b.line, b.counts[0], b.counts[1]});
    }
    for (const auto& [line, count] : file.lines) lines.push_back({line, count});
    for (const Coverage::Function& f : file.functions) {
      functions.push_back({{"name", f.name}, {"line", f.line}, {"calls", f.calls}});
    }
    files.push_back({{"file", path},
                     {"lines", std::move(lines)},
                     {"branches", std::move(branches)},
                     {"functions", std::move(functions)}});
  }
  const ordered_json all = {{"counts", c.hits ? kRuns : kExecutions}, {"files", std::move(files)}};
  return all.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<Coverage> coverage_from_json(const std::string& text) {
  const Error broken{ErrorCode::kCorruptInput, "it is not the JSON of uptier run --coverage"};
  const nlohmann::json all = nlohmann::json::parse(text, nullptr, false);
  const auto is_list = [](const nlohmann::json& of, const char* name) {
    return of.is_object() && of.contains(name) && of[name].is_array();
  };
  if (!is_list(all, "files") || !all.contains("counts")) return broken;
  Coverage c;
  c.hits = all["counts"] == kRuns;
  try {
    for (const nlohmann::json& f : all["files"]) {
      if (!is_list(f, "lines") || !is_list(f, "branches") || !is_list(f, "functions"))
        return broken;
      Coverage::File& file = c.files[f.at("file").get<std::string>()];
      for (const auto& l : f["lines"])
        file.lines[l.at(0).get<uint32_t>()] = l.at(1).get<uint64_t>();
      for (const auto& b : f["branches"]) {
        Coverage::Branch branch{b.at(0).get<uint32_t>(), false, {b.at(1), b.at(2)}};
        branch.reached = branch.counts[0] != 0 || branch.counts[1] != 0;
        file.branches.push_back(branch);
      }
      for (const auto& n : f["functions"]) {
        file.functions.push_back({n.at("name"), n.at("line"), n.at("calls")});
      }
    }
  } catch (const nlohmann::json::exception&) { return broken; }
  return c;
}

Status add_coverage(Coverage& to, const Coverage& run) {
  if (to.hits != run.hits) {
    return Error{ErrorCode::kInvalidInput,
                 std::string("it counts ") + (to.hits ? kRuns : kExecutions) +
                     " and this run counts " + (run.hits ? kRuns : kExecutions)};
  }
  const Error other{ErrorCode::kInvalidInput, "it has other lines than the module"};
  if (to.files.size() != run.files.size()) return other;
  for (const auto& [path, from] : run.files) {
    const auto at = to.files.find(path);
    if (at == to.files.end()) return other;
    Coverage::File& file = at->second;
    if (file.branches.size() != from.branches.size()) return other;
    if (file.functions.size() != from.functions.size()) return other;
    for (const auto& [line, count] : from.lines) profile::add_saturating(file.lines[line], count);
    for (size_t i = 0; i < from.branches.size(); ++i) {
      file.branches[i].reached |= from.branches[i].reached;
      profile::add_saturating(file.branches[i].counts[0], from.branches[i].counts[0]);
      profile::add_saturating(file.branches[i].counts[1], from.branches[i].counts[1]);
    }
    for (size_t i = 0; i < from.functions.size(); ++i) {
      profile::add_saturating(file.functions[i].calls, from.functions[i].calls);
    }
  }
  return {};
}

size_t leave_out_missing(Coverage& c) {
  return std::erase_if(c.files,
                       [](const auto& item) { return access(item.first.c_str(), R_OK) != 0; });
}

}  // namespace uptier::tools
