#include "profile/formats/llvm_names.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "profile/data/text.h"

namespace uptier::profile {
namespace {

// LLVM takes these and all that follows for additions of a compiler.
constexpr std::array<std::string_view, 11> kEndings = {
    ".llvm.",   ".part.", ".__uniq.", ".isra.",   ".constprop.", ".lto_priv.",
    ".cleanup", ".cold",  ".warm",    ".destroy", ".resume"};

std::string plain(std::string name) {
  name = llvm_field(std::move(name));
  const bool cut = std::ranges::any_of(
      kEndings, [&](std::string_view e) { return name.find(e) != std::string::npos; });
  if (cut) std::ranges::replace(name, '.', '_');
  return name;
}

}  // namespace

std::string llvm_field(std::string name) {
  for (char& c : name) {
    const bool breaks = static_cast<unsigned char>(c) <= ' ' ||
                        std::string_view(":[]@").find(c) != std::string::npos;
    if (breaks) c = '_';
  }
  // In front, LLVM reads a digit as a count, and the marks as remarks and attributes.
  const bool misread =
      !name.empty() && std::string_view("0123456789#!").find(name[0]) != std::string_view::npos;
  if (misread) name.insert(0, 1, '_');
  return name;
}

void LlvmNames::add(const MethodKey& key, std::string name) {
  name = plain(std::move(name));
  if (names_.emplace(key, name).second) ++uses_[name];
}

std::string LlvmNames::of(const MethodKey& key) const {
  const auto at = names_.find(key);
  const std::string name = at == names_.end() ? "" : at->second;
  if (!name.empty() && uses_.at(name) == 1) return name;
  return (name.empty() ? "function" : name) + "." + hex(key.module_key).substr(2) + "." +
         std::to_string(key.function_index);
}

}  // namespace uptier::profile
