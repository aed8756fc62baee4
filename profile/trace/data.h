// data.h: the words of an id's data, made of counts and tables, and back.
//
//     all words of all slots, in slot order | for each slot with a table `top` pairs (key, count)
//
// The key of a call target is the callee's method handle (its region is of shape 10), that of a
// value the value's bits. A pair whose count is 0 has key 0, and so has every pair after the last
// entry; a call target has no entry with handle 0.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "profile/base/bytes.h"
#include "profile/data/estimate.h"

namespace uptier::profile {

// Returns the handle of a method that is announced, or 0.
using HandleOf = std::function<uint64_t(const MethodKey&)>;

// Returns the method that a handle stands for, if it is announced.
using MethodOf = std::function<std::optional<MethodKey>(uint64_t handle)>;

// Returns the words of data of this schema: of each table the `top` greatest entries (by count,
// then the lesser key first); `other` receives the rest, and callees without a handle. Entries
// whose count is 0 are left out. Counts must be as many as the schema's words, and tables such as
// MethodProfile::check accepts; their estimates are not looked at.
std::vector<uint64_t> data_words(const Schema& schema, std::span<const uint64_t> counts,
                                 const Tables& tables, const HandleOf& handle_of);

// Returns counts and tables (without estimates) of the words of data. Min and max become 0 where
// there is no count. Fails, naming the region, if there are not as many words as the schema's data
// has, if a handle is unknown, or if a pair is not as above. Pairs with one key are summed.
Result<Observed> observed_of(const Schema& schema, std::span<const uint64_t> words,
                             const MethodOf& method_of);

// Returns the shape of data of this schema.
Bytes data_shape(const Schema& schema);

}  // namespace uptier::profile
