// sections.h: the sections of a module, before anybody has looked into them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace uptier::wasm {

inline constexpr uint8_t kCustomSection = 0;

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

// Returns the name of a module across processes: a hash of all that makes it run. Custom sections,
// such as those of names and hints, are not in it, so what was seen of a program holds for the same
// program without names, too. Without any it is the hash of all bytes.
uint64_t module_key(std::span<const uint8_t> module);

}  // namespace uptier::wasm
