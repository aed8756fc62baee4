// upf/method.h: the bytes of one method of a profile file.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "profile/upf/format.h"
#include "uptier/profile.h"

namespace uptier::profile {

using uptier::MethodKey;
using uptier::MethodProfile;

// An entry; only its sizes have been checked. Views into the entry and into the words that were
// unpacked with it.
struct MethodView {
  MethodKey key;
  uint32_t name = 0;  // a string id
  uint64_t calls = 0;
  uint64_t sampled_calls = 0;
  uint64_t guessed_calls = 0;
  uint64_t iterations = 0;
  uint64_t bursts = 0;
  uint64_t interval = 0;
  uint64_t weight_squares = 0;  // format 0 does not have it
  uint64_t time = 0;            // the reader of an entry first sets it to the segment's time
  bool behind = false;          // format 0 does not have it
  uint16_t format = 0;          // of the entry
  uint32_t version = 0;         // of the schema; format 0 only, 1 has it in `desc`
  uint32_t tables = 0;
  ByteSpan desc;  // the schema; in one format, equal bytes are equal schemas
  std::span<const uint64_t> counts;
  std::span<const uint64_t> estimates;  // the same memory as `counts` if they are equal
  uint64_t bound = UINT64_MAX;          // upper bound of all words
  ByteSpan table_bytes;

  bool same_estimates() const { return estimates.data() == counts.data(); }
};

// Appends the entry of a method that passes MethodProfile::check, in kUpfEntries' format. `time` is
// the time that readers assume for an entry without one: the time of the segment.
void append_entry(const MethodProfile& method, uint32_t name, uint64_t time, Bytes& out);

// Returns the `desc` bytes for this schema in kUpfEntries' format.
Bytes desc_bytes(const Schema& schema);

// Reads the entry at the front of `bytes` into `view` and removes it; counts and estimates are
// unpacked into `words`. Fails, naming the rule, if a size is impossible; then `view` must not be
// used. Allocates at most 16 times the entry's bytes. `module_key` is the module of the group's
// methods; format 0 has it in the entries. There are many entries and views are large, so views are
// filled in place.
Status take_entry(uint16_t format, uint64_t module_key, ByteSpan& bytes,
                  std::vector<uint64_t>& words, MethodView& view);

// The front of an entry of kUpfEntries' format, which suffices to skip it.
struct EntryHead {
  MethodKey key;
  uint32_t name = 0;
  size_t size = 0;  // of the entry
};

// Returns the head of the entry at the front of `bytes`; nothing if it is incomplete.
std::optional<EntryHead> head_of(uint64_t module_key, ByteSpan bytes);

// Returns the schema in `desc`; fails with the broken rule.
Result<Schema> schema_of(const MethodView& view);

// Returns the method, which passes MethodProfile::check; fails with the broken rule. Allocates at
// most about three times the unpacked entry's bytes.
Result<MethodProfile> method_of(const MethodView& view, std::string_view name);

// Entries of format 0; upf/method_old.cc.
Status take_old_entry(ByteSpan& bytes, std::vector<uint64_t>& words, MethodView& view);
Result<Schema> old_schema(const MethodView& view);

}  // namespace uptier::profile
