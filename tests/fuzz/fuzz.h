// fuzz.h: what a fuzzer gives to the driver.
//
// A fuzzer is one file, <name>_fuzz.cc, that defines the two functions below. The driver mutates
// the seeds without feedback; a run is a pure function of (--seed, run number), so a number that is
// printed at a crash brings the crash back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

// Breaks the run, and with it the fuzzer, when a law does not hold.
#define UPTIER_FUZZ_CHECK(law)                                                   \
  do {                                                                           \
    if (!(law)) {                                                                \
      std::fprintf(stderr, "%s:%d: law broken: %s\n", __FILE__, __LINE__, #law); \
      std::abort();                                                              \
    }                                                                            \
  } while (false)

namespace uptier::fuzz {

// A small generator with a state of one word (splitmix64), so that runs can be numbered.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // Returns a number below `bound`, which is not 0; the bias does not matter here.
  size_t below(size_t bound) { return static_cast<size_t>(next() % bound); }

 private:
  uint64_t state_;
};

// Returns valid inputs to start from; at least one.
std::vector<std::string> seeds();

// Feeds one input; crashes, hangs or breaks a UPTIER_FUZZ_CHECK when there is a defect.
void feed(const std::string& input);

}  // namespace uptier::fuzz
