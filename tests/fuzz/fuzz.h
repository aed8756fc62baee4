// fuzz.h: the interface between a fuzzer and its driver.
//
// A fuzzer is one file, <name>_fuzz.cc, that defines the functions below. driver.cc mutates the
// seeds and the stored inputs without feedback. A run is a pure function of (--seed, run number),
// so the number that is printed at a crash reproduces it. driver_libfuzzer.cc lets libFuzzer find
// inputs that reach new code, in the readers; each finding is a file that both drivers can feed
// again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "tests/support/random.h"

// Ends the run, and the fuzzer, if a law does not hold.
#define UPTIER_FUZZ_CHECK(law)                                                   \
  do {                                                                           \
    if (!(law)) {                                                                \
      std::fprintf(stderr, "%s:%d: law broken: %s\n", __FILE__, __LINE__, #law); \
      std::abort();                                                              \
    }                                                                            \
  } while (false)

namespace uptier::fuzz {

using test::Random;

// Returns valid inputs to start from; at least one.
std::vector<std::string> seeds();

// Feeds one input; crashes, hangs or fails a UPTIER_FUZZ_CHECK if there is a defect.
void feed(const std::string& input);

// Repair the checksums of an input, and change one of its records: its claims or its content. Only
// fuzzers of record files (records.h) define them; in the others they are null.
__attribute__((weak)) void mend_input(std::span<std::byte> input);
__attribute__((weak)) void mutate_input(std::string& input, Random& random);

// Returns the stored inputs of a fuzzer, in tests/fuzz/corpus/NAME: inputs that once broke it, and
// inputs that reach most of its code. See driver_corpus.h.
std::vector<std::string> kept_inputs(const std::string& name);

}  // namespace uptier::fuzz
