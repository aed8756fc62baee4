#include "embed/wasm/read_names.h"

#include "embed/wasm/sections.h"

namespace uptier::wasm {
namespace {

constexpr uint8_t kFunctionNames = 1;
// Longer names are cut: they end up in reports and traces.
constexpr uint32_t kLongestName = 512;

// Reads from bytes that nobody has checked; `bad` once something did not fit.
class Cursor {
 public:
  explicit Cursor(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool bad() const { return bad_; }
  bool done() const { return bad_ || bytes_.empty(); }

  uint8_t byte() {
    if (bytes_.empty()) bad_ = true;
    if (bad_) return 0;
    uint8_t b = bytes_[0];
    bytes_ = bytes_.subspan(1);
    return b;
  }

  uint32_t number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      uint8_t b = byte();
      value |= uint64_t{b & 0x7fu} << shift;
      if ((b & 0x80) == 0) break;
    }
    return static_cast<uint32_t>(value);
  }

  std::span<const uint8_t> take(uint32_t count) {
    if (count > bytes_.size()) bad_ = true;
    if (bad_) return {};
    auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

 private:
  std::span<const uint8_t> bytes_;
  bool bad_ = false;
};

using Names = std::unordered_map<uint32_t, std::string>;

void read_names(Cursor c, size_t functions, Names& names) {
  for (uint32_t left = c.number(); left > 0 && !c.done(); --left) {
    uint32_t function = c.number();
    auto name = c.take(c.number());
    if (!c.bad() && function < functions && !name.empty()) names[function] = printable_name(name);
  }
}

}  // namespace

// Names appear in text for people: control characters and whatever is not ASCII become '?'.
std::string printable_name(std::span<const uint8_t> name) {
  std::string s;
  for (uint8_t c : name.first(std::min<size_t>(name.size(), kLongestName))) {
    s += c >= 0x20 && c < 0x7f ? static_cast<char>(c) : '?';
  }
  return s;
}

void read_function_names(std::span<const uint8_t> section, size_t functions, Names& names) {
  Cursor c(section);
  while (!c.done()) {
    uint8_t kind = c.byte();
    auto payload = c.take(c.number());
    if (kind == kFunctionNames && !c.bad()) read_names(Cursor(payload), functions, names);
  }
}

void name_functions(ModuleInfo& info, std::span<const uint8_t> section) {
  for (const Export& e : info.exports) {
    if (e.kind == ExternKind::kFunction && !e.name.empty()) info.names.try_emplace(e.index, e.name);
  }
  read_function_names(section, info.functions.size(), info.names);
}

std::string function_text(const ModuleInfo& info, uint32_t function) {
  const std::string number = "func[" + std::to_string(function) + "]";
  Names names;
  for (const Export& e : info.exports) {
    if (e.kind == ExternKind::kFunction && !e.name.empty()) names.try_emplace(e.index, e.name);
  }
  read_function_names(find_custom(info.bytes, "name"), info.functions.size(), names);
  const auto at = names.find(function);
  return at == names.end() ? number : number + " <" + at->second + ">";
}

}  // namespace uptier::wasm
