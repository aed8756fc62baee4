// upf/part.h: the parts of a profile file that speak of many methods, as numbers.
//
//     head    modules | modules * u64 key
//
// stands in front; after it a method is (place of its module in that list, function index). Numbers
// are 7 bits a byte (varint.h) except u64s. A reader believes nothing before what it counts is
// there, so memory is in proportion to the bytes.
#pragma once

#include <iterator>
#include <set>
#include <vector>

#include "profile/base/varint.h"
#include "profile/upf/format.h"
#include "uptier/profile.h"

namespace uptier::profile {

using uptier::MethodKey;

// Every module is made known, then the head is written, then all else.
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

// Failed from the first thing that is not possible, and yields zeros from then on.
class PartReader {
 public:
  explicit PartReader(ByteSpan bytes) : in_(bytes) {
    for (uint64_t n = count(sizeof(uint64_t)); n > 0; --n) modules_.push_back(in_.fixed());
  }

  uint64_t number() { return in_.number(); }
  uint64_t fixed() { return in_.fixed(); }
  SiteId site() { return in_.small(); }
  // A number of things that take so many bytes at least; 0 if they cannot be there.
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
