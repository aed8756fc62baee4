// wasm_bytes.h: binary modules around bodies that need not be valid. Sizes and counts are right.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace uptier::wasm::test {

using Bytes = std::vector<uint8_t>;

inline void append_number(Bytes& out, uint64_t n) {
  do {
    out.push_back(static_cast<uint8_t>((n & 0x7f) | (n > 0x7f ? 0x80 : 0)));
    n >>= 7;
  } while (n != 0);
}

inline void append(Bytes& out, const Bytes& bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

inline void append_section(Bytes& out, uint8_t id, const Bytes& content) {
  out.push_back(id);
  append_number(out, content.size());
  append(out, content);
}

// Returns a body without locals that runs `code` and ends.
inline Bytes body_of(const Bytes& code) {
  Bytes body{0};
  append(body, code);
  body.push_back(0x0b);
  return body;
}

// The parts of module_around other than the bodies; a test may make them invalid.
struct Surroundings {
  // The only data segment, from its flags on; empty: no data section.
  Bytes data = {1, 1, 'x'};
  std::optional<uint64_t> data_count = 1;
  Bytes global = {0x7f, 1, 0x41, 0, 0x0b};  // type, mutability, initializer
};

// Makes a module with one of everything that an instruction can refer to: types () -> (), i32 ->
// i32 and (i32, i64) -> (i64, i32); an imported function 0 of type 0; the bodies as functions 1, 2,
// ... of type 0, the first of them exported as "f"; a table, a memory, two globals (a mutable i32,
// an immutable f64), an element segment and a data segment.
inline Bytes module_around(const std::vector<Bytes>& bodies, const Surroundings& s = {}) {
  Bytes out{0, 'a', 's', 'm', 1, 0, 0, 0};
  append_section(out, 1,
                 {3, 0x60, 0, 0, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 2, 0x7f, 0x7e, 2, 0x7e, 0x7f});
  append_section(out, 2, {1, 1, 'e', 1, 'f', 0, 0});
  Bytes functions;
  append_number(functions, bodies.size());
  functions.insert(functions.end(), bodies.size(), 0);
  append_section(out, 3, functions);
  append_section(out, 4, {1, 0x70, 0, 4});
  append_section(out, 5, {1, 0, 1});
  Bytes globals{2};
  append(globals, s.global);
  append(globals, {0x7c, 0, 0x44, 0, 0, 0, 0, 0, 0, 0, 0, 0x0b});
  append_section(out, 6, globals);
  append_section(out, 7, {1, 1, 'f', 0, 1});
  append_section(out, 9, {1, 1, 0, 1, 0});
  if (s.data_count) {
    Bytes count;
    append_number(count, *s.data_count);
    append_section(out, 12, count);
  }
  Bytes code;
  append_number(code, bodies.size());
  for (const Bytes& b : bodies) {
    append_number(code, b.size());
    append(code, b);
  }
  append_section(out, 10, code);
  if (!s.data.empty()) {
    Bytes data{1};
    append(data, s.data);
    append_section(out, 11, data);
  }
  return out;
}
inline Bytes module_around(const Bytes& body, const Surroundings& s = {}) {
  return module_around(std::vector<Bytes>{body}, s);
}

}  // namespace uptier::wasm::test
