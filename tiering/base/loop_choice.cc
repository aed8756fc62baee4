#include "tiering/base/loop_choice.h"

#include <charconv>
#include <string>

namespace uptier::tiering {
namespace {

bool parse_index(std::string_view text, uint32_t& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_loop(std::string_view text, std::pair<uint32_t, uint32_t>& out) {
  size_t colon = text.find(':');
  return colon != std::string_view::npos && parse_index(text.substr(0, colon), out.first) &&
         parse_index(text.substr(colon + 1), out.second);
}

}  // namespace

Result<LoopChoice> LoopChoice::parse(std::string_view text) {
  LoopChoice choice;
  choice.all = text.empty();
  for (std::string_view rest = text; !choice.all;) {
    size_t comma = rest.find(',');
    if (!parse_loop(rest.substr(0, comma), choice.loops.emplace_back())) {
      return Error{ErrorCode::kInvalidArgument, "time_loops: \"" + std::string(text) +
                                                    "\" is not function:loop[,function:loop]"};
    }
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return choice;
}

std::vector<uint32_t> LoopChoice::of(uint32_t function) const {
  std::vector<uint32_t> ids;
  for (const auto& [index, id] : loops) {
    if (index == function) ids.push_back(id);
  }
  return ids;
}

}  // namespace uptier::tiering
