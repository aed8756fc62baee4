// The printer of the text form of profiles; profile_parse.cc reads it back.
#include <algorithm>
#include <utility>

#include "profile/data/text.h"

namespace uptier {
namespace {

std::string key_text(SlotKind kind, const TableKey& key) {
  if (kind == SlotKind::kValue) return std::to_string(static_cast<int64_t>(key.value));
  return profile::hex(key.module_key) + ":" + std::to_string(key.value);
}

std::string table_text(SlotKind kind, const Table& table) {
  std::string out = " {\n";
  for (const auto& [key, entry] : table) {
    out += "    " + key_text(kind, key) + " " + std::to_string(entry.count);
    if (entry.estimate != entry.count) out += " ~" + std::to_string(entry.estimate);
    out += "\n";
  }
  return out + "  }";
}

std::string slot_text(const MethodProfile& method, const Slot& slot) {
  std::string out = "  " + std::string(slot_kind_name(slot.kind)) + " " + std::to_string(slot.site);
  if (slot.top != 0) out += " top " + std::to_string(slot.top);
  out += profile::words_text(slot.kind, &method.counts[slot.word], &method.estimates[slot.word]);
  const Table* table = method.table(slot.kind, slot.site);
  if (table != nullptr) out += table_text(slot.kind, *table);
  return out + "\n";
}

std::string method_text(const MethodProfile& method) {
  std::string out = "\nmethod " + profile::hex(method.key.module_key) + " " +
                    std::to_string(method.key.function_index) + " " + profile::quote(method.name) +
                    " {\n";
  const std::pair<const char*, uint64_t> fields[] = {{"calls", method.calls},
                                                     {"sampled", method.sampled_calls},
                                                     {"iterations", method.iterations},
                                                     {"bursts", method.bursts},
                                                     {"interval", method.interval}};
  for (const auto& [field, value] : fields) {
    out += "  " + std::string(field) + " " + std::to_string(value) + "\n";
  }
  if (method.weight_squares != 0) {
    out += "  weight_squares " + std::to_string(method.weight_squares) + "\n";
  }
  if (method.guessed_calls != 0) {
    out += "  guessed " + std::to_string(method.guessed_calls) + "\n";
  }
  if (method.time != 0) out += "  time " + std::to_string(method.time) + "\n";
  if (method.behind) out += "  behind 1\n";
  out += "  cfg " + profile::hex(method.schema.cfg_hash) + "\n";
  for (const Slot& slot : method.schema.slots) out += slot_text(method, slot);
  return out + "}\n";
}

// A message may contain a method's name, which may contain a newline.
std::string comment(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text + "\n";
}

// Prints a method's name after a line, if it is known.
std::string name_comment(const MethodKey& key, const Profile& names) {
  const MethodProfile* method = names.find(key);
  return method == nullptr ? "\n" : "  # " + profile::quote(method->name) + "\n";
}

std::string inlined_text(const InlinedKey& key, const InlinedBody& body, const Profile& names) {
  const auto method = [](const MethodKey& m) {
    return profile::hex(m.module_key) + ":" + std::to_string(m.function_index) + " ";
  };
  std::string out = "\ninlined " + method(key.root) + profile::hex(body.code[0]) + " {" +
                    name_comment(key.root, names);
  for (size_t i = 0; i < key.path.size(); ++i) {
    out += "  at " + std::to_string(key.path[i].site) + " " + method(key.path[i].callee) +
           profile::hex(body.code[i + 1]) + name_comment(key.path[i].callee, names);
  }
  for (const auto& [site, block] : body.blocks) {
    out += "  block " + std::to_string(site) + " " + std::to_string(block.count);
    if (block.estimate != block.count) out += " ~" + std::to_string(block.estimate);
    out += " samples " + std::to_string(block.samples) + "\n";
  }
  for (const auto& [at, site] : body.sites) {
    const auto [kind, number] = at;
    out += "  " + std::string(slot_kind_name(kind)) + " " + std::to_string(number);
    out += profile::words_text(kind, site.counts.data(), site.estimates.data());
    out += " samples " + std::to_string(site.samples);
    out += (site.table.empty() ? "" : table_text(kind, site.table)) + "\n";
  }
  return out + "}\n";
}

}  // namespace

std::string to_text(const InlinedBodies& bodies, const Profile& names) {
  std::string out;
  for (const auto& [key, body] : bodies) {
    const Status status = body.check(key);
    out += status.ok() ? inlined_text(key, body, names)
                       : "\n# left out: " + comment(status.error().message);
  }
  return out;
}

std::string to_text(const Profile& profile) {
  std::string out = "uptier-profile 1\n";
  const auto add = [&out](const MethodProfile& method) {
    const Status status = method.check();
    out += status.ok() ? method_text(method) : "\n# left out: " + comment(status.error().message);
  };
  for (const auto& [key, method] : profile.methods) add(method);
  for (const auto& [at, method] : profile.other_code) add(method);
  return out + to_text(profile.inlined, profile);
}

}  // namespace uptier
