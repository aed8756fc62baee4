// mode_options.h: the options of a fuzzer's mode.
#pragma once

#include <span>

#include "tests/fuzz/fuzz.h"
#include "uptier/options.h"

namespace uptier::fuzz {

// Returns the options of the environment, changed by NAME=VALUE; null words are skipped. The
// environment lets a developer narrow a mismatch down by turning things off.
inline Options options_of(std::span<const char* const> assignments) {
  Options o = Options::from_env().value();
  for (const char* text : assignments) {
    if (text != nullptr) UPTIER_FUZZ_CHECK(o.set(text).ok());
  }
  return o;
}

}  // namespace uptier::fuzz
