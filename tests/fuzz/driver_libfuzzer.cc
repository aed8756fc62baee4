// driver_libfuzzer.cc: the fuzzers of readers, driven by libFuzzer, which keeps inputs that reach
// new code.
//
//   fuzzer --write-seeds DIR            writes seeds() into DIR, as the first corpus
//   fuzzer [libFuzzer's options] DIR    runs; a finding is written to a file
//   fuzzer FILE...                      feeds these files instead
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/driver_corpus.h"
#include "tests/fuzz/fuzz.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace uptier::fuzz {
namespace {

int write_seeds(const std::string& name, const std::string& folder) {
  size_t number = 0;
  std::vector<std::string> all = seeds();
  for (std::string& kept : kept_inputs(name)) all.push_back(std::move(kept));
  for (const std::string& seed : all) {
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
    std::exit(write_seeds(std::filesystem::path((*words)[0]).filename(), (*words)[2]));
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uptier::fuzz::feed(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

// Half of the mutations of record files change a record. Checksums are always repaired, or no
// mutant would get past them; driver.cc also feeds wrong ones.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  using namespace uptier::fuzz;
  size_t changed = 0;
  if (mutate_input != nullptr && seed % 2 == 0) {
    Random random(seed);
    std::string input(reinterpret_cast<const char*>(data), size);
    mutate_input(input, random);
    changed = std::min(input.size(), max_size);
    std::memcpy(data, input.data(), changed);
  } else {
    changed = LLVMFuzzerMutate(data, size, max_size);
  }
  if (mend_input != nullptr) mend_input(std::as_writable_bytes(std::span(data, changed)));
  return changed;
}
