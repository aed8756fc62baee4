#include "jit/code/cpu_features.h"

#include "jit/x64/asmjit.h"

namespace uptier::jit {

std::vector<uint64_t> cpu_features() {
  const asmjit::CpuFeatures& features = asmjit::CpuInfo::host().features();
  std::vector<uint64_t> words;
  for (size_t bit = 0; bit < asmjit::CpuFeatures::kMaxFeatures; ++bit) {
    if (bit % 64 == 0) words.push_back(0);
    if (features.has(static_cast<uint32_t>(bit))) words.back() |= uint64_t{1} << bit % 64;
  }
  return words;
}

}  // namespace uptier::jit
