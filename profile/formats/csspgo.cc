#include "profile/formats/csspgo.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "profile/base/numbers.h"
#include "profile/formats/probe_names.h"

namespace uptier::profile {
namespace {

using ProbeNames = std::map<MethodKey, std::string>;

struct ProbeLine {
  uint64_t executions = 0;
  std::string targets;  // " name:executions" for each
};

// A body, with the bodies that are inlined into it.
struct ProbedBody {
  uint64_t hash = 0;
  std::map<SiteId, ProbeLine> lines;
  std::map<std::pair<SiteId, MethodKey>, ProbedBody> inlined;

  uint64_t total() const {
    uint64_t sum = 0;
    for (const auto& line : lines) add_saturating(sum, line.second.executions);
    for (const auto& body : inlined) add_saturating(sum, body.second.total());
    return sum;
  }
};

// The most frequent target is first; of equal ones, the one whose name is less: LLVM's order.
ProbeLine targets_line(uint64_t other, const Table* table, const ProbeNames& names) {
  ProbeLine line{other, ""};
  if (table == nullptr) return line;
  std::vector<std::pair<uint64_t, std::string>> targets;
  for (const auto& [at, entry] : *table) {
    add_saturating(line.executions, entry.estimate);
    targets.emplace_back(entry.estimate,
                         names.at({at.module_key, static_cast<uint32_t>(at.value)}));
  }
  std::ranges::sort(targets, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  for (const auto& [executions, name] : targets) {
    line.targets += " " + name + ":" + std::to_string(executions);
  }
  return line;
}

void add_own(const MethodProfile& m, const ProbeNames& names, ProbedBody& body) {
  body.hash = m.schema.cfg_hash;
  for (const Slot& slot : m.schema.slots) {
    const uint64_t first = slot.word < m.estimates.size() ? m.estimates[slot.word] : 0;
    if (slot.kind == SlotKind::kBlock) body.lines[slot.site] = {first, ""};
    if (slot.kind == SlotKind::kCallTarget) {
      body.lines[slot.site] = targets_line(first, m.table(slot.kind, slot.site), names);
    }
  }
}

void add_inlined(const InlinedKey& key, const InlinedBody& seen, const ProbeNames& names,
                 ProbedBody& root) {
  ProbedBody* at = &root;
  if (at->hash == 0) at->hash = seen.code.front();
  for (size_t i = 0; i < key.path.size(); ++i) {
    at = &at->inlined[{key.path[i].site, key.path[i].callee}];
    at->hash = seen.code[i + 1];
  }
  for (const auto& [site, block] : seen.blocks) at->lines[site] = {block.estimate, ""};
  for (const auto& [what, site] : seen.sites) {
    if (what.first != SlotKind::kCallTarget) continue;
    at->lines[what.second] = targets_line(site.estimates.front(), &site.table, names);
  }
}

void write_lines(const ProbedBody& body, const std::string& indent, const ProbeNames& names,
                 std::string& out) {
  for (const auto& [site, line] : body.lines) {
    out += indent + std::to_string(site) + ": " + std::to_string(line.executions) + line.targets +
           "\n";
  }
  for (const auto& [call, inlined] : body.inlined) {
    out += indent + std::to_string(call.first) + ": " + names.at(call.second) + ":" +
           std::to_string(inlined.total()) + "\n";
    write_lines(inlined, indent + " ", names, out);
  }
  out += indent + "!CFGChecksum: " + std::to_string(body.hash) + "\n";
}

}  // namespace

std::string to_csspgo(const Profile& profile) {
  const ProbeNames names = probe_names(profile);
  std::map<MethodKey, ProbedBody> bodies;
  for (const auto& [key, m] : profile.methods) {
    if (m.check().ok()) add_own(m, names, bodies[key]);
  }
  for (const auto& [key, seen] : profile.inlined) {
    if (seen.check(key).ok()) add_inlined(key, seen, names, bodies[key.root]);
  }
  std::string out;
  for (const auto& [key, body] : bodies) {
    if (body.lines.empty() && body.inlined.empty()) continue;
    const auto entry = body.lines.find(1);
    out += names.at(key) + ":" + std::to_string(body.total()) + ":" +
           std::to_string(entry == body.lines.end() ? 0 : entry->second.executions) + "\n";
    write_lines(body, " ", names, out);
  }
  return out;
}

}  // namespace uptier::profile
