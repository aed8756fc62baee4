// schema.h: runs of a schema, its compact form.
//
// A run stands for `count` slots of one kind and size with consecutive sites. Runs are maximal, so
// a schema has exactly one list of runs; the schema of a method with block counts is a single run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "uptier/profile.h"

namespace uptier::profile {

using uptier::Schema;
using uptier::Slot;
using uptier::SlotKind;

struct SlotRun {
  SlotKind kind = SlotKind::kBlock;
  uint32_t words_each = 1;
  SiteId first_site = 1;
  uint32_t count = 0;

  friend bool operator==(const SlotRun&, const SlotRun&) = default;
};

// Returns the runs of a valid schema.
std::vector<SlotRun> runs_of(const Schema& schema);

// Rebuilds the schema from its runs.
//
// `words` is the slab size that the caller has already bounded; runs that need more are refused
// before anything of their size is allocated. Fails if the runs are not exactly what runs_of gives
// for a schema that passes Schema::check.
Result<Schema> schema_of_runs(uint32_t version, uint64_t cfg_hash, std::span<const SlotRun> runs,
                              uint32_t words);

// Prints "schema 1 cfg 0x... words 3: block 1..3".
std::string to_text(const Schema& schema);

}  // namespace uptier::profile
