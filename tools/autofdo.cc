#include "tools/autofdo.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "profile/algebra/fold_inlined.h"
#include "profile/base/numbers.h"
#include "profile/formats/llvm_names.h"

namespace uptier::tools {
namespace {

using profile::add_saturating;

// A line within a function. The discriminator is the part of the encoded one that tells blocks apart.
struct Place {
  uint32_t offset = 0;
  uint32_t discriminator = 0;

  friend auto operator<=>(const Place&, const Place&) = default;
};

// LLVM keeps up to three numbers in a discriminator: block, copies, and which copy. A number takes
// 7 bits, or 14 if it is above 31, and 1 bit if it is 0.
uint32_t first_number(uint32_t d) {
  if ((d & 1) != 0) return 0;
  d >>= 1;
  return (d & 0x20) != 0 ? ((d >> 1) & 0xfe0) | (d & 0x1f) : d & 0x1f;
}

uint32_t copies_of(uint32_t d) {
  const uint32_t rest = (d & 1) != 0 ? d >> 1 : d >> ((d & 0x40) != 0 ? 14 : 7);
  return std::max(first_number(rest), 1u);
}

// Returns where a place is in its function, or nothing: LLVM keeps 16 bits of an offset.
std::optional<Place> relative(const dwarf::FunctionPlace& p) {
  if (p.first_line == 0 || p.line < p.first_line || p.line - p.first_line > 0xffff) return {};
  return Place{p.line - p.first_line, first_number(p.discriminator)};
}

struct Body {
  uint64_t head = 0;
  std::map<Place, uint64_t> lines;
  std::map<Place, std::map<std::string, uint64_t>> callees;
  std::map<std::pair<Place, std::string>, Body> inlined;

  uint64_t total() const {
    uint64_t sum = 0;
    for (const auto& [place, count] : lines) add_saturating(sum, count);
    for (const auto& [at, body] : inlined) add_saturating(sum, body.total());
    return sum;
  }
  void add(const Body& other) {
    add_saturating(head, other.head);
    for (const auto& [place, count] : other.lines) add_saturating(lines[place], count);
    for (const auto& [place, counts] : other.callees) {
      for (const auto& [name, count] : counts) add_saturating(callees[place][name], count);
    }
    for (const auto& [at, body] : other.inlined) inlined[at].add(body);
  }
};

class AutofdoWriter {
 public:
  AutofdoWriter(const Profile& profile, const ModuleLines& module, AutofdoLosses& losses)
      : profile_(profile),
        folded_(profile::fold_inlined(profile)),
        module_(module),
        losses_(losses) {}

  std::string run() {
    for (uint32_t f = 0; f < module_.bodies().size(); ++f) {
      const MethodProfile* m = whole_profile_of(folded_, profile_, module_.bodies()[f]);
      if (m != nullptr) add_function(f, *m);
    }
    std::vector<std::pair<uint64_t, const std::string*>> order;  // most executions first
    for (const auto& [name, body] : functions_) order.emplace_back(body.total(), &name);
    std::ranges::stable_sort(order, std::greater<>{}, [](const auto& item) { return item.first; });
    for (const auto& [total, name] : order) {
      if (total == 0) continue;
      const Body& body = functions_.at(*name);
      out_ += *name + ":" + std::to_string(total) + ":" + std::to_string(body.head) + "\n";
      write(body, " ");
    }
    return std::move(out_);
  }

 private:
  std::vector<dwarf::FunctionPlace> places(uint32_t offset) const {
    const wasm::SourceLines& source = module_.source();
    if (offset < source.code_begin()) return {};
    return source.map().function_places(offset - source.code_begin());
  }

  // Returns the name of a function: in the sources, or in the module.
  std::string name_of(uint32_t function) const {
    const std::vector<dwarf::FunctionPlace> at = places(module_.first_of(function));
    const bool known = !at.empty() && !at.back().function.empty();
    return profile::llvm_field(known ? std::string(at.back().function)
                                     : module_.bodies()[function].name);
  }

  // Returns the body of the innermost place, and where it is in it. Null if the debug sections do not
  // say.
  Body* body_of(Body& root, const std::vector<dwarf::FunctionPlace>& at, Place& place) {
    Body* body = &root;
    for (size_t i = at.size(); i-- > 0;) {
      const std::optional<Place> here = relative(at[i]);
      if (!here) return nullptr;
      place = *here;
      if (i == 0) break;
      body = &body->inlined[{place, profile::llvm_field(std::string(at[i - 1].function))}];
    }
    return body;
  }

  void add_function(uint32_t f, const MethodProfile& m) {
    const std::vector<dwarf::FunctionPlace> own = places(module_.first_of(f));
    if (own.empty() || own.back().function.empty() || own.back().first_line == 0) {
      losses_.functions += estimate(m, 1) != 0 ? 1 : 0;
      return;
    }
    Body made;
    made.head = estimate(m, 1);
    for (const LinePart& part : module_.parts(f)) {
      const std::vector<dwarf::FunctionPlace> at = places(part.offset);
      Place place;
      Body* body = body_of(made, at, place);
      if (body == nullptr) {
        ++losses_.lines;
        continue;
      }
      uint64_t count = estimate(m, part.block);
      const uint32_t copies = copies_of(at.front().discriminator);
      count = count > UINT64_MAX / copies ? UINT64_MAX : count * copies;
      uint64_t& known = body->lines[place];
      known = std::max(known, count);
    }
    for (const BodyGraph::Call& call : module_.bodies()[f].calls) add_call(made, m, call);
    functions_[name_of(f)].add(made);
  }

  void add_call(Body& root, const MethodProfile& m, const BodyGraph::Call& call) {
    const std::vector<dwarf::FunctionPlace> at = places(call.location);
    Place place;
    Body* body = at.empty() || at.front().line == 0 ? nullptr : body_of(root, at, place);
    if (body == nullptr) return;
    if (call.callee) {
      const uint64_t count = estimate(m, call.block);
      if (count != 0) add_saturating(body->callees[place][name_of(*call.callee)], count);
      return;
    }
    const Table* table = m.table(SlotKind::kCallTarget, call.site);
    if (table == nullptr) return;
    for (const auto& [key, entry] : *table) {
      const int64_t callee = module_.find({key.module_key, static_cast<uint32_t>(key.value)});
      if (callee < 0 || entry.estimate == 0) continue;
      add_saturating(body->callees[place][name_of(static_cast<uint32_t>(callee))], entry.estimate);
    }
  }

  static uint64_t estimate(const MethodProfile& m, uint32_t block) {
    const std::optional<Counted> count = block_count(m, block);
    return count ? count->estimate : 0;
  }

  static std::string text_of(const Place& p) {
    const std::string offset = std::to_string(p.offset);
    return p.discriminator == 0 ? offset : offset + "." + std::to_string(p.discriminator);
  }

  void write(const Body& body, const std::string& indent) {
    for (const auto& [place, count] : body.lines) {
      out_ += indent + text_of(place) + ": " + std::to_string(count);
      if (const auto at = body.callees.find(place); at != body.callees.end()) {
        for (const auto& [name, n] : at->second) out_ += " " + name + ":" + std::to_string(n);
      }
      out_ += "\n";
    }
    for (const auto& [at, inlined] : body.inlined) {
      out_ += indent + text_of(at.first) + ": " + at.second + ":" +
              std::to_string(inlined.total()) + "\n";
      write(inlined, indent + " ");
    }
  }

  const Profile& profile_;
  const profile::FoldedMethods folded_;
  const ModuleLines& module_;
  AutofdoLosses& losses_;
  std::map<std::string, Body> functions_;
  std::string out_;
};

}  // namespace

std::string to_autofdo(const Profile& profile, const ModuleLines& module, AutofdoLosses& losses) {
  return AutofdoWriter(profile, module, losses).run();
}

}  // namespace uptier::tools
