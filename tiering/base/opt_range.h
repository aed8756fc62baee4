// OptRange: which methods may be optimized at all, by hash. For finding the one whose optimized
// code is wrong: halve the range until one method is left.
//
//   range = "" | low ".." high       hexadecimal, up to 16 digits each, both included
//
// A method's hash is made of its key and name, so it is the same in every run.
#pragma once

#include <cstdint>
#include <string_view>

#include "uptier/host.h"
#include "uptier/result.h"

namespace uptier::tiering {

struct OptRange {
  uint64_t low = 0;
  uint64_t high = UINT64_MAX;

  // Errors: kInvalidArgument says what is legal.
  static Result<OptRange> parse(std::string_view text);
  bool contains(uint64_t hash) const { return low <= hash && hash <= high; }
};

// FNV-1a over module key, function index and name, then mixed so that ranges halve evenly.
uint64_t method_hash(const MethodInfo& info);

}  // namespace uptier::tiering
