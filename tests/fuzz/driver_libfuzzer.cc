// driver_libfuzzer.cc: the fuzzers of readers, driven by libFuzzer, which keeps what reaches new code.
//
//   fuzzer --write-seeds DIR            writes seeds() into DIR, to be the first corpus
//   fuzzer [libFuzzer's options] DIR    runs; a finding is written to a file
//   fuzzer FILE...                      feeds these files instead
#include <fstream>

#include "tests/fuzz/fuzz.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace uptier::fuzz {
namespace {

int write_seeds(const std::string& folder) {
  size_t number = 0;
  for (const std::string& seed : seeds()) {
    std::ofstream file(folder + "/seed-" + std::to_string(number++), std::ios::binary);
    if (!file.write(seed.data(), static_cast<std::streamsize>(seed.size())).flush()) {
      std::fprintf(stderr, "cannot write to %s\n", folder.c_str());
      return 2;
    }
  }
  return 0;
}

}  // namespace
}  // namespace uptier::fuzz

extern "C" int LLVMFuzzerInitialize(int* count, char*** words) {
  using namespace uptier::fuzz;
  if (*count == 3 && std::string((*words)[1]) == "--write-seeds") {
    std::exit(write_seeds((*words)[2]));
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uptier::fuzz::feed(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

// Inputs with checksums are mended after three mutations of four, so that the next one starts from
// an input that is read; the fourth is left to tell what wrong checksums do.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  const size_t changed = LLVMFuzzerMutate(data, size, max_size);
  if (uptier::fuzz::mend != nullptr && seed % 4 != 0) {
    uptier::fuzz::mend(std::as_writable_bytes(std::span(data, changed)));
  }
  return changed;
}
