// upf/part.h: the parts of a profile file with data about many methods, as numbers.
//
//     head    modules | modules * u64 key
//
// comes first; after it a method is written as (index of its module in that list, function index).
// Numbers have 7 bits per byte (varint.h), except u64s. A reader trusts no count before the counted
// bytes are present, so memory is proportional to the bytes.
#pragma once

#include <iterator>
#include <set>
#include <vector>

#include "profile/base/varint.h"
#include "profile/upf/format.h"
#include "uptier/profile.h"

namespace uptier::profile {

using uptier::MethodKey;

// First every module is announced (know), then the head is written, then everything else.
class PartWriter {
 public:
  void know(const MethodKey& key) { modules_.insert(key.module_key); }
  void head() {
    number(modules_.size());
    for (const uint64_t module : modules_) fixed(module);
  }
  void number(uint64_t n) { append_varint(n, out_); }
  void fixed(uint64_t n) { ByteWriter(out_).u64(n); }
  void method(const MethodKey& key) {
    const auto at = modules_.find(key.module_key);
    number(static_cast<uint64_t>(std::distance(modules_.begin(), at)));
    number(key.function_index);
  }
  Bytes take() { return std::move(out_); }

 private:
  std::set<uint64_t> modules_;
  Bytes out_;
};

// Fails at the first impossible item, and yields zeros from then on.
class PartReader {
 public:
  explicit PartReader(ByteSpan bytes) : in_(bytes) {
    for (uint64_t n = count(sizeof(uint64_t)); n > 0; --n) modules_.push_back(in_.fixed());
  }

  uint64_t number() { return in_.number(); }
  uint64_t fixed() { return in_.fixed(); }
  SiteId site() { return in_.small(); }
  // Reads a number of items of at least `least` bytes each; 0 if there are not enough bytes.
  uint64_t count(size_t least) {
    const uint64_t n = in_.number();
    ok_ = ok_ && in_.ok() && n <= in_.rest().size() / least;
    return ok_ ? n : 0;
  }
  MethodKey method() {
    const uint64_t module = in_.number();
    const uint32_t function = in_.small();
    ok_ = ok_ && module < modules_.size();
    return ok_ ? MethodKey{modules_[module], function} : MethodKey{};
  }
  void require(bool right) { ok_ = ok_ && right; }
  bool ok() const { return ok_ && in_.ok(); }
  bool done() const { return ok() && in_.rest().empty(); }

 private:
  VarintReader in_;
  std::vector<uint64_t> modules_;
  bool ok_ = true;
};

}  // namespace uptier::profile
