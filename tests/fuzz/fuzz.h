// fuzz.h: what a fuzzer gives to the driver.
//
// A fuzzer is one file, <name>_fuzz.cc, that defines the functions below. driver.cc mutates the
// seeds and the kept inputs without feedback; a run is a pure function of (--seed, run number), so a number that is
// printed at a crash brings the crash back. driver_libfuzzer.cc lets libFuzzer find inputs that
// reach new code, in the readers; what it finds is a file, which both feed again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "tests/support/random.h"

// Breaks the run, and with it the fuzzer, when a law does not hold.
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

// Feeds one input; crashes, hangs or breaks a UPTIER_FUZZ_CHECK when there is a defect.
void feed(const std::string& input);

// Makes the checksums of an input right, and changes one of its records: what it claims to be, or
// what is there of it. Defined by fuzzers of files of records only (records.h), null in the others.
__attribute__((weak)) void mend_input(std::span<std::byte> input);
__attribute__((weak)) void mutate_input(std::string& input, Random& random);

// Returns the inputs that are kept for a fuzzer, in tests/fuzz/corpus/NAME: what once broke it, and
// what reaches most of its code. driver_corpus.h.
std::vector<std::string> kept_inputs(const std::string& name);

}  // namespace uptier::fuzz
