// mode_options.h: the options of a mode that a fuzzer runs its programs in.
#pragma once

#include <span>

#include "tests/fuzz/fuzz.h"
#include "uptier/options.h"

namespace uptier::fuzz {

// Those of the environment, changed by NAME=VALUE; null words are left out.
inline Options options_of(std::span<const char* const> assignments) {
  Options o = Options::from_env().value();
  for (const char* text : assignments) {
    if (text != nullptr) UPTIER_FUZZ_CHECK(o.set(text).ok());
  }
  return o;
}

}  // namespace uptier::fuzz
