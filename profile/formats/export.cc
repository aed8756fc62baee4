#include "profile/formats/export.h"

#include <algorithm>
#include <functional>
#include <set>

#include "profile/algebra/fold_inlined.h"
#include "profile/base/numbers.h"
#include "profile/data/inlined.h"
#include "profile/data/schema.h"
#include "profile/data/text.h"
#include "profile/formats/llvm_text.h"

namespace uptier::profile {
namespace {

std::string without(std::string text, std::string_view marks) {
  std::ranges::replace_if(
      text,
      [&](char c) {
        return static_cast<unsigned char>(c) < 0x20 || marks.find(c) != std::string_view::npos;
      },
      '_');
  return text;
}

// Formats a number, which may be negative, or a text that cannot be a formula.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

using ExportRow = std::vector<std::string>;

// Calls `add` with the word, key, count and estimate of each word of a site, and of each table
// entry.
void each_word(const MethodProfile& m, const Slot& slot,
               const std::function<void(ExportRow)>& add) {
  const std::span<const Word> words = words_of(slot.kind);
  for (uint32_t i = 0; i < words.size(); ++i) {
    const bool wide = words[i].rule == WordRule::kWide;
    if (words[i].rule == WordRule::kWideHigh) continue;
    const uint64_t* count = &m.counts[slot.word + i];
    const uint64_t* estimate = &m.estimates[slot.word + i];
    const bool extreme = words[i].rule == WordRule::kMin || words[i].rule == WordRule::kMax;
    const std::string text = wide      ? to_text(load_wide(count))
                             : extreme ? std::to_string(static_cast<int64_t>(*count))
                                       : std::to_string(*count);
    add({std::string(words[i].name), "", "", text,
         wide ? to_text(load_wide(estimate)) : std::to_string(*estimate)});
  }
  const Table* table = m.table(slot.kind, slot.site);
  if (table == nullptr) return;
  for (const auto& [at, entry] : *table) {
    const bool value = slot.kind == SlotKind::kValue;
    add({"entry", value ? "" : hex(at.module_key),
         value ? std::to_string(static_cast<int64_t>(at.value)) : std::to_string(at.value),
         std::to_string(entry.count), std::to_string(entry.estimate)});
  }
}

// Calls `row` for each word of each site, and each entry of each table.
void each_row(const Profile& profile, const std::function<void(const ExportRow&)>& row) {
  row({"module", "function", "method", "kind", "site", "word", "key_module", "key", "count",
       "estimate"});
  for (const auto& [key, m] : profile.methods) {
    if (!m.check().ok()) continue;
    for (const Slot& slot : m.schema.slots) {
      const ExportRow head = {hex(key.module_key), std::to_string(key.function_index),
                              guarded(m.name), std::string(slot_kind_name(slot.kind)),
                              std::to_string(slot.site)};
      const auto add = [&](ExportRow rest) {
        ExportRow whole = head;
        whole.insert(whole.end(), rest.begin(), rest.end());
        row(whole);
      };
      each_word(m, slot, add);
    }
  }
}

std::string path_text(const InlinedKey& key) {
  std::string out;
  for (const InlinedCall& c : key.path) out += (out.empty() ? "" : "/") + std::to_string(c.site);
  return out;
}

void each_inlined_row(const Profile& profile, const std::function<void(const ExportRow&)>& row) {
  for (const auto& item : profile.inlined) {
    const InlinedKey& key = item.first;
    if (!item.second.check(key).ok()) continue;
    const MethodProfile* root = profile.find(key.root);
    const MethodKey& callee = key.path.back().callee;
    for (const auto& [site, block] : item.second.blocks) {
      const auto add = [&, s = site](const char* word, uint64_t count,
                                     const std::string& estimate) {
        row({hex(key.root.module_key), std::to_string(key.root.function_index),
             root == nullptr ? "" : guarded(root->name), "inlined", std::to_string(s),
             path_text(key) + " " + word, hex(callee.module_key),
             std::to_string(callee.function_index), std::to_string(count), estimate});
      };
      add("executions", block.count, std::to_string(block.estimate));
      add("samples", block.samples, "");
    }
    for (const auto& [at, site] : item.second.sites) {
      const MethodProfile m = as_method(at.first, at.second, site);
      const ExportRow head = {hex(key.root.module_key), std::to_string(key.root.function_index),
                              root == nullptr ? "" : guarded(root->name),
                              "inlined_" + std::string(slot_kind_name(at.first)),
                              std::to_string(at.second)};
      const auto add = [&](ExportRow rest) {
        ExportRow whole = head;
        const bool keyed = !rest[2].empty();
        rest[0] = path_text(key) + " " + rest[0];
        if (!keyed) rest[1] = hex(callee.module_key);
        if (!keyed) rest[2] = std::to_string(callee.function_index);
        whole.insert(whole.end(), rest.begin(), rest.end());
        row(whole);
      };
      each_word(m, m.schema.slots[0], add);
      add({"samples", "", "", std::to_string(site.samples), ""});
    }
  }
}

// A method known only from calls has no name.
ExportRow head_of(const Profile& profile, const MethodKey& key, const char* kind) {
  const MethodProfile* m = profile.find(key);
  return {hex(key.module_key), std::to_string(key.function_index),
          m == nullptr ? "" : guarded(m->name), kind, ""};
}

void each_call_row(const Profile& profile, const CallProfile& calls,
                   const std::function<void(const ExportRow&)>& row) {
  const auto add = [&](ExportRow head, const ExportRow& rest) {
    head.insert(head.end(), rest.begin(), rest.end());
    row(head);
  };
  for (const auto& [call, count] : calls.graph) {
    add(head_of(profile, call.first, "call"),
        {"callee", hex(call.second.module_key), std::to_string(call.second.function_index), "",
         std::to_string(count)});
  }
  for (const auto& [key, first] : calls.first) {
    const ExportRow head = head_of(profile, key, "first_call");
    add(head, {"positions", "", "", std::to_string(first.positions), ""});
    add(head, {"runs", "", "", std::to_string(first.runs), ""});
  }
}

std::string bracketed(TimePlace p) { return "[" + std::string(time_place_name(p)) + "]"; }

void each_time_row(const Profile& profile, const TimeProfile& time,
                   const std::function<void(const ExportRow&)>& row) {
  for (const auto& [frame, sum] : time.by_frame()) {
    ExportRow head = head_of(profile, frame.method, "time");
    if (frame.place != TimePlace::kMethod) head[2] = bracketed(frame.place);
    const std::pair<const char*, uint64_t> words[] = {
        {"own_ns", sum.own_ns}, {"total_ns", sum.all_ns}, {"samples", sum.samples}};
    for (const auto& [word, n] : words) {
      ExportRow r = head;
      for (const std::string& field :
           {std::string(word), std::string(), std::string(), std::to_string(n), std::string()}) {
        r.push_back(field);
      }
      row(r);
    }
  }
}

std::string join(const ExportRow& row, char separator, std::string (*field)(const std::string&)) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i)
    line += (i == 0 ? "" : std::string(1, separator)) + field(row[i]);
  return line;
}

std::string name_of(const MethodProfile& m) {
  return m.name.empty() ? "function " + std::to_string(m.key.function_index) : m.name;
}

std::string frame_of(const Profile& profile, const MethodKey& key) {
  const MethodProfile* m = profile.find(key);
  MethodProfile unknown;
  unknown.key = key;
  return without(name_of(m == nullptr ? unknown : *m), "; ");
}

std::vector<uint64_t> blocks_of(const MethodProfile& m) {
  std::vector<uint64_t> blocks;
  for (const Slot& slot : m.schema.slots) {
    if (slot.kind == SlotKind::kBlock && slot.word < m.estimates.size()) {
      blocks.push_back(m.estimates[slot.word]);
    }
  }
  return blocks;
}

// Returns the method including the executions of its inlined bodies.
const MethodProfile& wherever(const FoldedMethods& folded, const MethodProfile& m) {
  const auto at = folded.methods.find(m.key);
  return at == folded.methods.end() ? m : at->second;
}

// Returns whether a method's blocks are unknown, in the order of blocks_of.
std::vector<bool> unknown_of(const FoldedMethods& folded, const MethodProfile& m) {
  std::vector<bool> unknown;
  const auto at = folded.unknown.find(m.key);
  for (const Slot& slot : wherever(folded, m).schema.slots) {
    if (slot.kind != SlotKind::kBlock || slot.word >= m.estimates.size()) continue;
    unknown.push_back(at != folded.unknown.end() && at->second.contains(slot.site));
  }
  return unknown;
}

}  // namespace

std::string to_csv(const Profile& profile, const CallProfile& calls) {
  std::string out;
  const auto write = [&](const ExportRow& row) { out += join(row, ',', csv_field) + "\r\n"; };
  each_row(profile, write);
  each_inlined_row(profile, write);
  each_call_row(profile, calls, write);
  each_time_row(profile, calls.time, write);
  return out;
}

std::string to_lcov(const Profile& profile, std::string_view folder,
                    std::vector<LcovListing>* listings) {
  std::string out;
  std::string functions, lines, listing;
  uint64_t line = 0, known_lines = 0, hit_lines = 0, found = 0, hit = 0;
  const auto end_module = [&](uint64_t module) {
    if (line == 0) return;
    const std::string file = hex(module).substr(2);
    out += "TN:\nSF:" + std::string(folder) + "/" + file + "\n" + functions +
           "FNF:" + std::to_string(found) + "\nFNH:" + std::to_string(hit) + "\n" + lines +
           "LF:" + std::to_string(known_lines) + "\nLH:" + std::to_string(hit_lines) +
           "\nend_of_record\n";
    if (listings != nullptr) listings->push_back({file, std::move(listing)});
    functions.clear();
    lines.clear();
    listing.clear();
    line = known_lines = hit_lines = found = hit = 0;
  };
  uint64_t module = 0;
  const FoldedMethods folded = fold_inlined(profile);
  for (const auto& [key, m] : profile.methods) {
    const std::vector<uint64_t> blocks = blocks_of(wherever(folded, m));
    if (key.module_key != module) end_module(module);
    module = key.module_key;
    if (blocks.empty()) continue;
    const std::string name = without(name_of(m), ",");
    const uint64_t calls = blocks.front();
    functions += "FN:" + std::to_string(line + 1) + "," + name + "\nFNDA:" + std::to_string(calls) +
                 "," + name + "\n";
    ++found;
    hit += calls != 0 ? 1 : 0;
    const std::vector<bool> unknown = unknown_of(folded, m);
    for (size_t block = 0; block < blocks.size(); ++block) {
      ++line;
      listing += name + ", block " + std::to_string(block + 1) + "\n";
      if (unknown[block]) continue;
      lines += "DA:" + std::to_string(line) + "," + std::to_string(blocks[block]) + "\n";
      ++known_lines;
      hit_lines += blocks[block] != 0 ? 1 : 0;
    }
  }
  end_module(module);
  return out;
}

std::string to_folded(const Profile& profile) {
  std::string out;
  for (const auto& [key, m] : profile.methods) {
    const std::vector<uint64_t> blocks = blocks_of(m);
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i] == 0) continue;
      out += without(name_of(m), "; ") + ";block_" + std::to_string(i + 1) + " " +
             std::to_string(blocks[i]) + "\n";
    }
  }
  for (const auto& [key, body] : profile.inlined) {
    if (!body.check(key).ok()) continue;
    std::string stack = frame_of(profile, key.root);
    for (const InlinedCall& c : key.path) stack += ";" + frame_of(profile, c.callee) + "_[i]";
    for (const auto& [site, block] : body.blocks) {
      if (block.estimate == 0) continue;
      out += stack + ";block_" + std::to_string(site) + " " + std::to_string(block.estimate) + "\n";
    }
  }
  return out;
}

namespace {

void add_folded(const PathTime& path, const std::string& above, const Profile& names,
                std::string& out) {
  std::string stack = above + (above.empty() ? "" : ";");
  stack += path.frame.place == TimePlace::kMethod ? frame_of(names, path.frame.method)
                                                  : bracketed(path.frame.place);
  if (path.ns >= 500) out += stack + " " + std::to_string((path.ns + 500) / 1000) + "\n";
  for (const PathTime& callee : path.callees) add_folded(callee, stack, names, out);
}

}  // namespace

std::string to_folded(const TimeProfile& time, const Profile& names) {
  std::string out;
  for (const PathTime& outermost : time.root.callees) add_folded(outermost, "", names, out);
  return out;
}

std::string to_llvm_text(const Profile& profile) {
  std::string out = ":ir\n";
  std::set<std::pair<std::string, uint64_t>> names;
  const FoldedMethods folded = fold_inlined(profile);
  for (const auto& [key, m] : profile.methods) {
    const std::vector<uint64_t> blocks = blocks_of(wherever(folded, m));
    if (blocks.empty()) continue;
    std::string name = without(name_of(m), "");
    const bool mark = name.front() == '#' || name.front() == ':';
    if (mark) name.insert(0, 1, '_');
    const uint64_t whole = m.schema.cfg_hash, hash = whole & kLlvmHash;
    if (!names.emplace(name, hash).second) {
      name += "#" + hex(key.module_key) + ":" + std::to_string(key.function_index);
    }
    out += name + "\n";
    if (hash != whole) out += std::string(kWholeHash) + std::to_string(whole) + "\n";
    out += "# Func Hash:\n" + std::to_string(hash) + "\n# Num Counters:\n" +
           std::to_string(blocks.size()) + "\n# Counter Values:\n";
    const std::vector<bool> unknown = unknown_of(folded, m);
    for (size_t b = 0; b < blocks.size(); ++b) {
      out += std::to_string(unknown[b] ? 1 : blocks[b]) + "\n";
    }
    out += "\n";
  }
  return out;
}

}  // namespace uptier::profile
