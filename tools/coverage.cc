#include "tools/coverage.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace uptier::tools {
namespace {

// The counts of one function's lines.
using Counts = std::map<std::pair<uint32_t, uint32_t>, uint64_t>;  // by file and line

uint64_t count_of(const MethodProfile* m, uint32_t block) {
  if (m == nullptr) return 0;
  const std::optional<Counted> count = block_count(*m, block);
  return count ? count->count : 0;
}

void raise_to(Counts& counts, const dwarf::Row& row, uint64_t count) {
  uint64_t& known = counts[{row.file, row.line}];
  known = std::max(known, count);
}

Counts counts_of(const ModuleLines& module, uint32_t function, const MethodProfile* m,
                 const std::vector<const dwarf::Row*>& rows) {
  Counts counts;
  const wasm::SourceLines& source = module.source();
  for (const LinePart& part : module.parts(function)) {
    const dwarf::Row* row = source.map().row(part.offset - source.code_begin());
    raise_to(counts, *row, count_of(m, part.block));
  }
  // Lines all of whose code is never reached.
  for (const dwarf::Row* row : rows) {
    if (row->is_stmt) raise_to(counts, *row, 0);
  }
  return counts;
}

// Appends the branches of a function whose edges are known.
void add_branches(const ModuleLines& module, uint32_t function, const MethodProfile* m,
                  Coverage& out) {
  const BodyGraph& body = module.bodies()[function];
  const wasm::SourceLines& source = module.source();
  for (uint32_t b = 0; b < body.blocks.size(); ++b) {
    const BodyGraph::Block& block = body.blocks[b];
    if (!block.is_branch || block.branch_location < source.code_begin()) continue;
    const dwarf::Row* row = source.map().row(block.branch_location - source.code_begin());
    if (row == nullptr || row->line == 0) continue;
    Coverage::Branch branch{row->line, count_of(m, b + 1) != 0, {0, 0}};
    bool known = true;
    for (uint32_t e = 0; e < 2 && m != nullptr; ++e) {
      const std::optional<Counted> count = edge_count(*m, body, block.first_edge + e);
      known = known && count.has_value();
      if (count) branch.counts[e] = count->count;
    }
    if (known) out.files[source.map().lines().path(row->file)].branches.push_back(branch);
  }
}

// A name must not have the comma that separates fields.
std::string field(std::string name) {
  std::ranges::replace(name, ',', '_');
  return name;
}

}  // namespace

Coverage coverage_of(const ModuleLines& module, const Profile& counts) {
  Coverage made;
  const wasm::SourceLines& source = module.source();
  const dwarf::LineTable& table = source.map().lines();
  std::vector<const dwarf::Row*> rows;  // by address
  table.each_row([&](const dwarf::Row& row, uint32_t) {
    if (row.line != 0) rows.push_back(&row);
  });
  for (uint32_t f = 0; f < module.bodies().size(); ++f) {
    const uint32_t begin = module.begin_of(f) - source.code_begin();
    const uint32_t end = module.end_of(f) - source.code_begin();
    const auto address = [](const dwarf::Row* row) { return row->address; };
    const auto first = std::ranges::lower_bound(rows, begin, {}, address);
    const auto last = std::ranges::lower_bound(rows, end, {}, address);
    const MethodProfile* m = profile_of(counts, module.bodies()[f]);
    for (const auto& [place, count] : counts_of(module, f, m, {first, last})) {
      const std::string path = table.path(place.first);
      if (!path.empty()) made.files[path].lines[place.second] += count;
    }
    add_branches(module, f, m, made);
    const std::vector<dwarf::SourceFrame> at = module.place_of(f);
    if (at.empty() || at.back().file.empty() || at.back().line == 0) continue;
    const std::string& known = at.back().function;
    made.files[at.back().file].functions.push_back(
        {known.empty() ? module.bodies()[f].name : known, at.back().line, count_of(m, 1)});
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
  const ordered_json all = {{"files", std::move(files)}};
  return all.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

size_t leave_out_missing(Coverage& c) {
  return std::erase_if(c.files,
                       [](const auto& item) { return access(item.first.c_str(), R_OK) != 0; });
}

}  // namespace uptier::tools
