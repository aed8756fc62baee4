// upf_method.h: one method of a profile file, as its bytes.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "profile/upf_format.h"
#include "uptier/profile.h"

namespace uptier::profile {

using uptier::MethodKey;
using uptier::MethodProfile;

// An entry whose sizes were checked, and nothing else. Views into the entry and into the words that
// were unpacked with it.
struct MethodView {
  MethodKey key;
  uint32_t name = 0;  // a string id
  uint64_t calls = 0;
  uint64_t sampled_calls = 0;
  uint64_t iterations = 0;
  uint64_t bursts = 0;
  uint64_t interval = 0;
  uint32_t version = 0;
  uint32_t tables = 0;
  ByteSpan desc;
  std::span<const uint64_t> counts;
  std::span<const uint64_t> estimates;
  ByteSpan table_bytes;
};

// Appends the entry of a method that passes MethodProfile::check.
void append_entry(const MethodProfile& method, uint32_t name, Bytes& out);

// Reads the entry at the front of `bytes` and takes it off; counts and estimates are unpacked into
// `words`. Fails, naming the rule, if a size is not possible. Allocates 16 times the entry's bytes
// at most.
Result<MethodView> take_entry(ByteSpan& bytes, std::vector<uint64_t>& words);

// Returns the method, which passes MethodProfile::check; fails with the rule that is broken.
// Allocates about three times the entry's bytes at most.
Result<MethodProfile> method_of(const MethodView& view, std::string_view name);

}  // namespace uptier::profile
