// random.h: numbers and arguments from a seed, for tests with random input.
#pragma once

#include <bit>
#include <vector>

#include "jit/ir/semantics.h"
#include "tests/support/ir_corpus.h"

namespace uptier::test {

// splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  uint64_t state_;
};

// Returns bits of a type, often edge cases of it.
inline uint64_t random_bits(Type t, Random& r) {
  if (t == Type::kF32 || t == Type::kF64) {
    static const std::vector<double> plain = {0.0,  -0.0, 1.0,   -1.0, 0.5,  1.5,  -2.5,
                                              1e10, 3e-5, 1e300, 127,  -128, 65536};
    double v = r.chance(70) ? r.pick(plain) : static_cast<double>(r.below(2000)) / 8 - 100;
    if (r.chance(15)) return jit::clip(t, r.next());
    if (t == Type::kF64) return std::bit_cast<uint64_t>(v);
    return std::bit_cast<uint32_t>(static_cast<float>(v > 1e38 ? 3e38 : v));
  }
  static const std::vector<int64_t> edges = {
      0,   1,   -1,  2,   7,     8,         31,        32,        63,       64,
      127, 128, 255, 256, 65535, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  uint64_t v = r.chance(60) ? static_cast<uint64_t>(r.pick(edges)) : r.next() >> r.below(64);
  return jit::clip(t, r.chance(20) ? ~v : v);
}

inline std::vector<uint64_t> random_arguments(const Signature& s, const Scratch& scratch,
                                              Random& r) {
  std::vector<uint64_t> out;
  for (Type t : s.params) out.push_back(t == Type::kRef ? scratch.base() : random_bits(t, r));
  return out;
}

}  // namespace uptier::test
