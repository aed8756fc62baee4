// sections.h: the sections of a module, before anybody has looked into them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace uptier::wasm {

inline constexpr uint8_t kCustomSection = 0;
inline constexpr uint8_t kCodeSection = 10;

// Walks over the sections of bytes that need not be a module; ends where they are none.
class Sections {
 public:
  explicit Sections(std::span<const uint8_t> module);
  // Moves to the next section, or returns false.
  bool next();

  uint8_t id() const { return id_; }
  // The section with its head, and what it holds.
  std::span<const uint8_t> whole() const { return whole_; }
  std::span<const uint8_t> content() const { return content_; }

 private:
  std::span<const uint8_t> left_, whole_, content_;
  uint8_t id_ = kCustomSection;
};

// Returns what the custom section of that name holds, after its name; nothing where there is none.
std::span<const uint8_t> find_custom(std::span<const uint8_t> module, std::string_view name);

// Returns the name of a module across processes: a hash of its parts that affect execution.
// Custom sections, such as names and hints, are left out, so a profile also fits the same program
// without names. Without custom sections it is the hash of all bytes.
uint64_t module_key(std::span<const uint8_t> module);

}  // namespace uptier::wasm
