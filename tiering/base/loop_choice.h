// LoopChoice: which loops are timed, if not all are. It serves to find the truth about one loop: if
// no other loop inside of it is timed, only the counting disturbs it.
//
//   choice = "" | loop { "," loop }      loop = function ":" id, both decimal; "": all
//
// `function` is the function's index (MethodKey), `id` the loop's; the id after the last loop
// stands for the whole body. Loops that are not chosen are still counted.
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

  // Errors: kInvalidArgument, with the legal form.
  static Result<LoopChoice> parse(std::string_view text);
  // Returns the ids of the loops of a function.
  std::vector<uint32_t> of(uint32_t function) const;
};

}  // namespace uptier::tiering
