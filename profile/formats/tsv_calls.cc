// The shape of a method's code as one word of a row, and back; likewise the place of an inlined
// body. See tsv_rows.h.
#include <charconv>

#include "profile/formats/tsv_rows.h"

namespace uptier::profile {
namespace {

constexpr std::string_view kKinds[] = {"call", "indirect_call", "host_call", "probe", "loop"};

// Removes a mark and the text before it, and returns that text; nothing if there is no mark.
std::optional<std::string_view> take_until(std::string_view& text, char mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return taken;
}

// Removes a number and, if there is more, the space after it.
template <typename T>
bool take_number(std::string_view& text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.empty()) return true;
  const bool more = text.front() == ' ' && text.size() > 1;
  text.remove_prefix(1);
  return more;
}

bool parse_block(std::string_view text, SiteLists& lists) {
  lists.add_list();
  while (!text.empty()) {
    SiteId site = 0;
    if (!take_number(text, site)) return false;
    lists.add(site);
  }
  return true;
}

bool parse_anchor(std::string_view text, Anchor& anchor) {
  const std::optional<std::string_view> word = take_until(text, ' ');
  size_t kind = 0;
  while (word && kind < std::size(kKinds) && kKinds[kind] != *word) ++kind;
  if (!word || kind == std::size(kKinds)) return false;
  anchor.kind = static_cast<AnchorKind>(kind + 1);
  return take_number(text, anchor.target) && take_number(text, anchor.block) &&
         take_number(text, anchor.site) && text.empty();
}

// The same checks of a shape as in upf/calls.cc.
bool is_sound(const CodeShape& shape) {
  const size_t blocks = shape.successors.size();
  for (size_t b = 0; b < blocks; ++b) {
    for (const SiteId site : shape.successors[b]) {
      if (site < 1 || site > blocks) return false;
    }
  }
  SiteId block = 1;
  for (const Anchor& anchor : shape.anchors) {
    if (anchor.block < block || anchor.block > blocks) return false;
    block = anchor.block;
  }
  return true;
}

}  // namespace

std::string shape_text(const CodeShape& shape) {
  std::string out;
  for (size_t b = 0; b < shape.successors.size(); ++b) {
    const std::span<const SiteId> to = shape.successors[b];
    for (const SiteId site : to) out.append(std::to_string(site)).append(" ");
    if (!to.empty()) out.pop_back();
    out += ";";
  }
  out += "|";
  for (const Anchor& anchor : shape.anchors) {
    out.append(kKinds[static_cast<size_t>(anchor.kind) - 1]).append(" ");
    out.append(std::to_string(anchor.target)).append(" ");
    out.append(std::to_string(anchor.block)).append(" ");
    out.append(std::to_string(anchor.site)).append(";");
  }
  return out;
}

std::optional<CodeShape> parse_shape(std::string_view text) {
  CodeShape shape;
  while (!text.empty() && text.front() != '|') {
    const std::optional<std::string_view> block = take_until(text, ';');
    if (!block || !parse_block(*block, shape.successors)) return std::nullopt;
  }
  if (text.empty()) return std::nullopt;
  text.remove_prefix(1);
  while (!text.empty()) {
    const std::optional<std::string_view> anchor = take_until(text, ';');
    if (!anchor || !parse_anchor(*anchor, shape.anchors.emplace_back())) return std::nullopt;
  }
  return is_sound(shape) ? std::optional(std::move(shape)) : std::nullopt;
}

std::string place_text(const InlinedKey& key, std::span<const uint64_t> code) {
  std::string out;
  for (size_t i = 0; i < key.path.size(); ++i) {
    const auto& [site, callee] = key.path[i];
    out.append(std::to_string(site)).append(" ").append(std::to_string(callee.module_key));
    out.append(" ").append(std::to_string(callee.function_index)).append(" ");
    out.append(std::to_string(code[i + 1])).append(";");
  }
  return out;
}

bool parse_place(std::string_view text, InlinedKey& key, std::vector<uint64_t>& code) {
  while (!text.empty()) {
    std::optional<std::string_view> call = take_until(text, ';');
    auto& [site, callee] = key.path.emplace_back();
    const bool read = call && take_number(*call, site) && take_number(*call, callee.module_key) &&
                      take_number(*call, callee.function_index) &&
                      take_number(*call, code.emplace_back()) && call->empty();
    if (!read) return false;
  }
  return !key.path.empty();
}

std::string call_path_text(std::span<const PathFrame> path) {
  std::string out;
  for (const PathFrame& f : path) {
    out.append(std::to_string(static_cast<unsigned>(f.place))).append(" ");
    out.append(std::to_string(f.method.module_key)).append(" ");
    out.append(std::to_string(f.method.function_index)).append(";");
  }
  return out;
}

std::optional<std::vector<PathFrame>> parse_call_path(std::string_view text) {
  std::vector<PathFrame> path;
  while (!text.empty()) {
    std::optional<std::string_view> frame = take_until(text, ';');
    uint32_t place = 0;
    PathFrame f;
    const bool read = frame && take_number(*frame, place) &&
                      take_number(*frame, f.method.module_key) &&
                      take_number(*frame, f.method.function_index) && frame->empty();
    if (!read || place >= kTimePlaces || path.size() == TimeProfile::kMostFrames) {
      return std::nullopt;
    }
    f.place = static_cast<TimePlace>(place);
    if (f.place != TimePlace::kMethod && f.method != MethodKey{}) return std::nullopt;
    path.push_back(f);
  }
  return path;
}

}  // namespace uptier::profile
