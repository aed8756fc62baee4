// Debug sections: any bytes are read without harm, in limited memory, and every address can be asked
// for.
//
// The inputs are modules. Most mutants keep their sections' sizes, or no section would be found.
#include <cstring>

#include "embed/wasm/sections.h"
#include "embed/wasm/source_lines.h"
#include "tests/fuzz/counted_memory.h"
#include "tests/fuzz/fuzz.h"

namespace uptier::fuzz {
namespace {

constexpr size_t kHeader = 8;  // of a module

// Returns the sections of a module as they are stored, or nothing if one goes past its end.
std::vector<std::string> split(const std::string& module) {
  std::vector<std::string> parts;
  for (size_t at = kHeader; at < module.size();) {
    size_t size = 0, end = at + 1;
    for (unsigned shift = 0; end < module.size() && shift < 35; shift += 7) {
      const auto byte = static_cast<uint8_t>(module[end++]);
      size |= size_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    if (end + size > module.size()) return {};
    parts.push_back(module.substr(at, 1) + module.substr(end, size));
    at = end + size;
  }
  return parts;
}

std::string join(const std::string& header, const std::vector<std::string>& parts) {
  std::string module = header;
  for (const std::string& part : parts) {
    module += part[0];
    for (size_t left = part.size() - 1;; left >>= 7) {
      module += static_cast<char>((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
      if (left <= 0x7f) break;
    }
    module += part.substr(1);
  }
  return module;
}

// Returns the size of all debug sections.
size_t debug_bytes(std::span<const uint8_t> module) {
  size_t sum = 0;
  for (wasm::Sections s(module); s.next();) {
    const std::string_view content(reinterpret_cast<const char*>(s.content().data()),
                                   s.content().size());
    if (s.id() == wasm::kCustomSection && content.substr(0, 16).find(".debug_") < 8) {
      sum += content.size();
    }
  }
  return sum;
}

}  // namespace

std::vector<std::string> seeds() {
  // A module without sections; the stored inputs have all of them.
  return {std::string("\0asm\1\0\0\0", kHeader)};
}

void feed(const std::string& input) {
  const size_t before = held;
  most_held = held;
  {
    const std::span bytes(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    Result<wasm::SourceLines> lines =
        wasm::SourceLines::read(wasm::ModuleBytes(bytes, std::shared_ptr<const void>()));
    // A message and the map itself take a few hundred bytes.
    UPTIER_FUZZ_CHECK(most_held - before <= (size_t{16} << 20) + 16 * debug_bytes(bytes) + 4096);
    if (!lines.ok()) {
      UPTIER_FUZZ_CHECK(!lines.error().message.empty());
    } else {
      for (uint32_t at = 0; at < std::min<size_t>(input.size() + 16, 4096); ++at) {
        const auto frames = lines->at(at);
        UPTIER_FUZZ_CHECK(frames.size() <= 64);
      }
      size_t rows = 0;
      lines->map().lines().each_row([&](const dwarf::Row& row, uint32_t end) {
        UPTIER_FUZZ_CHECK(row.address < end && end <= input.size());
        ++rows;
      });
      UPTIER_FUZZ_CHECK(rows <= input.size());
    }
  }
  UPTIER_FUZZ_CHECK(held == before);
}

// Changes some bytes of one section, and mends its size.
void mutate_input(std::string& input, Random& random) {
  std::vector<std::string> parts = split(input);
  if (parts.empty()) return;
  std::string& part = parts[random.below(parts.size())];
  const size_t name = part.size() > 1 && part[0] == 0 ? 2 + static_cast<uint8_t>(part[1]) : 1;
  if (name >= part.size()) return;
  const size_t at = name + random.below(part.size() - name);
  switch (random.below(5)) {
    case 0: part[at] = static_cast<char>(random.next()); break;
    case 1: part[at] = static_cast<char>(part[at] + (random.below(2) == 0 ? 1 : -1)); break;
    case 2: part.erase(at, 1 + random.below(8)); break;
    case 3:
      part.insert(at, part.substr(name + random.below(part.size() - name), 1 + random.below(64)));
      break;
    default: {
      // Many copies of a piece: what repeats takes the most memory and work.
      const std::string piece = part.substr(at, 1 + random.below(8));
      for (size_t n = random.below(2000); n > 0; --n) part.insert(at, piece);
      break;
    }
  }
  input = join(input.substr(0, kHeader), parts);
}

void mend_input(std::span<std::byte>) {}

}  // namespace uptier::fuzz
