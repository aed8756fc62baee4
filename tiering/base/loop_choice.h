// LoopChoice: which loops are timed when not all are. For the truth about one loop: with no other
// timed inside of it, nothing disturbs it but the counting.
//
//   choice = "" | loop { "," loop }      loop = function ":" id, both decimal; "": all
//
// `function` is the function's index (MethodKey), `id` the loop's; the number of loops stands for
// the body. Loops that are not chosen are counted all the same.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "uptier/result.h"

namespace uptier::tiering {

struct LoopChoice {
  std::vector<std::pair<uint32_t, uint32_t>> loops;  // function, id
  bool all = true;

  // Errors: kInvalidArgument says what is legal.
  static Result<LoopChoice> parse(std::string_view text);
  // Returns the ids of the loops of a function.
  std::vector<uint32_t> of(uint32_t function) const;
};

}  // namespace uptier::tiering
