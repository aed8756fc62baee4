// quantile.h: points of the normal distribution and of Student's, from the probability beyond them.
//
// Law: both are found by bisection of the distribution itself, to 1e-9, and need no table.
#pragma once

#include <cstdint>

namespace uptier::profile {

// Returns the z >= 0 that a standard normal variable exceeds with probability `beyond`, which lies in
// (0, 0.5]; 1e-300 counts as the least.
double normal_point(double beyond);

// The same for Student's t with this many degrees of freedom, at least 1. Probabilities below 1e-12 count
// as 1e-12. Source: the finite series for whole degrees of freedom, Abramowitz and Stegun, Handbook of
// Mathematical Functions, 26.7.3 and 26.7.4. O(degrees).
double student_point(double beyond, uint32_t degrees);

}  // namespace uptier::profile
