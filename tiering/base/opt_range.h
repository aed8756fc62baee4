// OptRange: which methods may be optimized, by hash. It serves to find a method whose optimized
// code is wrong: halve the range until one method is left.
//
//   range = "" | low ".." high       hexadecimal, up to 16 digits each, both included
//
// A method's hash depends on its key and name only, so it is the same in every run.
#pragma once

#include <cstdint>
#include <string_view>

#include "uptier/host.h"
#include "uptier/result.h"

namespace uptier::tiering {

struct OptRange {
  uint64_t low = 0;
  uint64_t high = UINT64_MAX;

  // Errors: kInvalidArgument, with the legal form.
  static Result<OptRange> parse(std::string_view text);
  bool contains(uint64_t hash) const { return low <= hash && hash <= high; }
};

// FNV-1a over module key, function index and name, then mixed so that ranges halve evenly.
uint64_t method_hash(const MethodInfo& info);

}  // namespace uptier::tiering
