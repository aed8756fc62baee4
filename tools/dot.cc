#include "tools/dot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "profile/algebra/algebra.h"

namespace uptier::tools {
namespace {

constexpr double kWidest = 5;

std::string dot_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out + "\"";
}

std::string count_text(double n) {
  char text[32];
  std::snprintf(text, sizeof text, n < 1e15 ? "%.0f" : "%.6g", n);
  return text;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
  return text;
}

// White for 0 to red for 1, or to blue for -1.
std::string heat(double share) {
  const double level = std::sqrt(std::clamp(std::fabs(share), 0.0, 1.0));
  const int fade = 255 - static_cast<int>(std::lround(200 * level));
  char text[16];
  std::snprintf(text, sizeof text, share < 0 ? "#%02x%02xff" : "#ff%02x%02x", fade, fade);
  return text;
}

std::string head(const std::string& title) {
  return "digraph profile {\n  label=" + dot_quoted(title) +
         ";\n  labelloc=t;\n  fontname=monospace;\n"
         "  node [shape=box, style=filled, fontname=monospace, fillcolor=white];\n"
         "  edge [fontname=monospace];\n";
}

std::string title_of(const MethodProfile& m) {
  return m.name.empty() ? "function " + std::to_string(m.key.function_index) : m.name;
}

// Counts of one side, and what they are shares of.
struct Side {
  const MethodProfile* m;
  double all = 0;
  double hottest = 0;

  explicit Side(const MethodProfile* method) : m(method) {
    if (m == nullptr) return;
    for (const Slot& slot : m->schema.slots) {
      if (slot.kind != SlotKind::kBlock) continue;
      const auto n = static_cast<double>(m->estimates[slot.word]);
      all += n;
      hottest = std::max(hottest, n);
    }
  }
  double count(uint32_t block) const {
    const auto c = m == nullptr ? std::nullopt : block_count(*m, block);
    return c ? static_cast<double>(c->estimate) : 0;
  }
  double share(uint32_t block) const { return all > 0 ? count(block) / all : 0; }
};

std::vector<uint32_t> blocks_of(const MethodProfile& m, const BodyGraph* body) {
  std::vector<uint32_t> blocks;
  if (body != nullptr) {
    for (uint32_t i = 0; i < body->blocks.size(); ++i) blocks.push_back(i + 1);
  } else {
    for (const Slot& slot : m.schema.slots) {
      if (slot.kind == SlotKind::kBlock) blocks.push_back(slot.site);
    }
  }
  return blocks;
}

std::string block_node(uint32_t block, const BodyGraph* body, const Side& a, const Side& b) {
  std::string label = "block " + std::to_string(block);
  if (body != nullptr && body->blocks[block - 1].location != 0) {
    char at[24];
    std::snprintf(at, sizeof at, " @0x%x", body->blocks[block - 1].location);
    label += at;
  }
  const bool known = block_count(*a.m, block).has_value();
  const std::string first =
      known ? count_text(a.count(block)) + " (" + percent(a.share(block)) + ")" : "?";
  label += b.m == nullptr ? "\n" + first
                          : "\na: " + first + "\nb: " + count_text(b.count(block)) + " (" +
                                percent(b.share(block)) + ")";
  double colour = a.hottest > 0 ? a.count(block) / a.hottest : 0;
  if (b.m != nullptr) colour = a.share(block) - b.share(block);
  return "  b" + std::to_string(block) + " [label=" + dot_quoted(label) + ", fillcolor=\"" +
         heat(colour) + "\"" + (known ? "" : ", style=\"filled,dashed\"") + "];\n";
}

std::string arrow(const std::string& from, const std::string& to, const Counted* count, double all,
                  const std::string& more = {}) {
  if (count == nullptr) return "  " + from + " -> " + to + " [style=dashed" + more + "];\n";
  const auto n = static_cast<double>(count->estimate);
  char width[32];
  std::snprintf(width, sizeof width, "%.2f", 1 + (kWidest - 1) * (all > 0 ? n / all : 0));
  return "  " + from + " -> " + to + " [label=\"" + count_text(n) + "\", penwidth=" + width + more +
         "];\n";
}

}  // namespace

std::string dot_of_blocks(const MethodProfile& m, const BodyGraph* body,
                          const MethodProfile* other) {
  const Side a(&m), b(other);
  std::string title = title_of(m) + "\n" + std::to_string(m.calls) + " calls, " +
                      std::to_string(m.sampled_calls + m.bursts) + " samples";
  if (other != nullptr) {
    title = title_of(m) + "\na: " + std::to_string(m.calls) +
            " calls, b: " + std::to_string(other->calls) + " calls";
  }
  std::string out = head(title);
  for (const uint32_t block : blocks_of(m, body)) out += block_node(block, body, a, b);
  if (body == nullptr) return out + "}\n";
  for (uint32_t i = 0; i < body->edges.size(); ++i) {
    const auto count = edge_count(m, *body, i);
    const BodyGraph::Edge& e = body->edges[i];
    out += arrow("b" + std::to_string(e.from), "b" + std::to_string(e.to),
                 count ? &*count : nullptr, a.hottest);
  }
  return out + "}\n";
}

namespace {

// Calls by caller and callee; indirect ones apart from direct ones.
struct Calls {
  std::map<std::pair<MethodKey, MethodKey>, Counted> direct, indirect;
};

void add(Counted& sum, const Counted& n) {
  sum.count += n.count;
  sum.estimate += n.estimate;
}

Calls calls_of(const Profile& profile, std::span<const BodyGraph> bodies) {
  Calls calls;
  for (const BodyGraph& body : bodies) {
    const MethodProfile* m = profile_of(profile, body);
    if (m == nullptr) continue;
    for (const BodyGraph::Call& c : body.calls) {
      const auto n = block_count(*m, c.block);
      if (!c.callee || !n || *c.callee >= bodies.size()) continue;
      const MethodProfile* callee = profile_of(profile, bodies[*c.callee]);
      if (callee != nullptr) add(calls.direct[{m->key, callee->key}], *n);
    }
  }
  for (const auto& [key, m] : profile.methods) {
    for (const auto& [site, table] : m.tables) {
      if (site.first != SlotKind::kCallTarget) continue;
      for (const auto& [to, entry] : table) {
        const MethodKey callee{to.module_key, static_cast<uint32_t>(to.value)};
        add(calls.indirect[{key, callee}], {entry.count, entry.estimate});
      }
    }
  }
  return calls;
}

std::string node_name(const MethodKey& key) {
  return "m" + std::to_string(key.module_key) + "_" + std::to_string(key.function_index);
}

std::string method_node(const Profile& profile, const MethodKey& key, long double all,
                        long double hottest) {
  const MethodProfile* m = profile.find(key);
  if (m == nullptr) {
    return "  " + node_name(key) + " [label=\"function " + std::to_string(key.function_index) +
           "\", style=\"filled,dashed\"];\n";
  }
  const long double mass = profile::executions(*m);
  const double share = all > 0 ? static_cast<double>(mass / all) : 0;
  const double colour = hottest > 0 ? static_cast<double>(mass / hottest) : 0;
  return "  " + node_name(key) + " [label=" +
         dot_quoted(title_of(*m) + "\n" + percent(share) + "\n" + std::to_string(m->calls) +
                    " calls") +
         ", fillcolor=\"" + heat(colour) + "\"];\n";
}

}  // namespace

std::string dot_of_calls(const Profile& profile, std::span<const BodyGraph> bodies, uint64_t top) {
  const Profile hot = profile::top(profile, top);
  long double all = 0, hottest = 0;
  for (const auto& [key, m] : profile.methods) {
    all += profile::executions(m);
    hottest = std::max(hottest, profile::executions(m));
  }
  const Calls calls = calls_of(profile, bodies);
  double most = 0;
  std::set<MethodKey> nodes;
  for (const auto& [key, m] : hot.methods) nodes.insert(key);
  std::string arrows;
  for (const auto* kind : {&calls.direct, &calls.indirect}) {
    for (const auto& [ends, n] : *kind) most = std::max(most, static_cast<double>(n.estimate));
  }
  for (const auto* kind : {&calls.direct, &calls.indirect}) {
    for (const auto& [ends, n] : *kind) {
      if (!hot.methods.contains(ends.first) || n.estimate == 0) continue;
      nodes.insert(ends.second);
      arrows += arrow(node_name(ends.first), node_name(ends.second), &n, most,
                      kind == &calls.indirect ? ", color=blue" : "");
    }
  }
  std::string out = head("calls of the " + std::to_string(hot.methods.size()) +
                         " hottest methods; blue: indirect");
  for (const MethodKey& key : nodes) out += method_node(profile, key, all, hottest);
  return out + arrows + "}\n";
}

}  // namespace uptier::tools
