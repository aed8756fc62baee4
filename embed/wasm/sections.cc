#include "embed/wasm/sections.h"

#include "embed/wasm/hash.h"

namespace uptier::wasm {
namespace {

constexpr size_t kHeader = 8;

// Takes a number of up to 5 bytes off the front; false if there is none.
bool take_number(std::span<const uint8_t>& bytes, uint32_t& number) {
  uint64_t value = 0;
  for (unsigned i = 0; i < 5 && i < bytes.size(); ++i) {
    value |= uint64_t{bytes[i] & 0x7fu} << (7 * i);
    if ((bytes[i] & 0x80) != 0) continue;
    number = static_cast<uint32_t>(value);
    bytes = bytes.subspan(i + 1);
    return value <= UINT32_MAX;
  }
  return false;
}

}  // namespace

Sections::Sections(std::span<const uint8_t> module)
    : left_(module.size() > kHeader ? module.subspan(kHeader) : std::span<const uint8_t>()) {}

bool Sections::next() {
  if (left_.empty()) return false;
  std::span<const uint8_t> at = left_.subspan(1);
  uint32_t size = 0;
  if (!take_number(at, size) || size > at.size()) return false;
  id_ = left_[0];
  content_ = at.first(size);
  whole_ = left_.first(left_.size() - at.size() + size);
  left_ = at.subspan(size);
  return true;
}

std::span<const uint8_t> find_custom(std::span<const uint8_t> module, std::string_view name) {
  for (Sections s(module); s.next();) {
    if (s.id() != kCustomSection) continue;
    std::span<const uint8_t> at = s.content();
    uint32_t size = 0;
    if (!take_number(at, size) || size > at.size()) continue;
    const std::string_view found(reinterpret_cast<const char*>(at.data()), size);
    if (found == name) return at.subspan(size);
  }
  return {};
}

uint64_t module_key(std::span<const uint8_t> module) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  std::span<const uint8_t> left = module;
  for (Sections s(module); s.next();) {
    const auto here = static_cast<size_t>(s.whole().data() - left.data());
    if (s.id() != kCustomSection) continue;
    XXH3_64bits_update(&state, left.data(), here);
    left = left.subspan(here + s.whole().size());
  }
  XXH3_64bits_update(&state, left.data(), left.size());
  return XXH3_64bits_digest(&state);
}

}  // namespace uptier::wasm
