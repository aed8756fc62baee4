// data.h: converts counts and tables to the words of an id's data, and back.
//
//     all words of all slots, in slot order | for each slot with a table `top` pairs (key, count)
//
// The key of a call target is the callee's method handle (its region has shape 10), the key of a
// value is its bits. A pair with count 0 has key 0, and so has every pair after the last entry; a
// call target has no entry with handle 0.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "profile/base/bytes.h"
#include "profile/data/estimate.h"

namespace uptier::profile {

// Returns the handle of an announced method, or 0.
using HandleOf = std::function<uint64_t(const MethodKey&)>;

// Returns the method of a handle, if it is announced.
using MethodOf = std::function<std::optional<MethodKey>(uint64_t handle)>;

// Returns the words of data of this schema: of each table the `top` greatest entries (by count,
// then the smaller key first); `other` receives the rest, and callees without a handle. Entries
// with count 0 are left out. There must be as many counts as the schema has words, and tables must
// pass MethodProfile::check; their estimates are ignored.
std::vector<uint64_t> data_words(const Schema& schema, std::span<const uint64_t> counts,
                                 const Tables& tables, const HandleOf& handle_of);

// Returns counts and tables (without estimates) from the words of data. Min and max become 0 if
// there is no count. Fails, naming the region, if the number of words does not fit the
// schema, if a handle is unknown, or if a pair breaks the rules above. Pairs with the same key are
// summed.
Result<Observed> observed_of(const Schema& schema, std::span<const uint64_t> words,
                             const MethodOf& method_of);

// Returns the shape of data of this schema.
Bytes data_shape(const Schema& schema);

}  // namespace uptier::profile
