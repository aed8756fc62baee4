// ids.h: the typed numbers that the public headers use.
//
// A typed id is an index that cannot be mixed up with another kind of index. Ids are plain values:
// copyable, comparable, printable through `index()`. Index 0 is a valid id unless a type says
// otherwise. `Id::none()` is no id, and the only one that is not valid().
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace uptier {

// An index with a kind. `Tag` is never defined; it only keeps the kinds apart.
template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(uint32_t index) : index_(index) {}

  static constexpr Id none() { return Id(); }
  constexpr bool valid() const { return index_ != kNone; }
  constexpr uint32_t index() const { return index_; }
  // Returns a number that identifies the id: Id(i.number()) == i.
  constexpr uint32_t number() const { return index_; }

  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  uint32_t index_ = kNone;
};

struct MethodTag;

// A registered method: an index below Options::max_methods, and a generation, which counts the
// methods that had this index before, modulo kGenerations (4,095). Indices are used again after
// their methods were removed (see Runtime::remove_methods). Ids are used again only after an index
// has had kGenerations methods. So an array indexed by index() stays small, and code that keeps an
// id compares the whole id.
template <>
class Id<MethodTag> {
 public:
  static constexpr uint32_t kIndexBits = 20;
  static constexpr uint32_t kGenerations = (1u << (32 - kIndexBits)) - 1;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t number) : number_(number) {}
  // `generation` wraps around to 0 at kGenerations, so that no id is none().
  constexpr Id(uint32_t index, uint32_t generation)
      : number_(generation % kGenerations << kIndexBits | index) {}

  static constexpr Id none() { return Id(); }
  constexpr bool valid() const { return number_ != kNone; }
  constexpr uint32_t index() const { return valid() ? number_ & kIndexMask : kNone; }
  constexpr uint32_t generation() const { return number_ >> kIndexBits; }
  constexpr uint32_t number() const { return number_; }

  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  static constexpr uint32_t kIndexMask = (1u << kIndexBits) - 1;
  uint32_t number_ = kNone;
};

using MethodId = Id<MethodTag>;
using Value = Id<struct ValueTag>;        // an SSA value of one body
using Block = Id<struct BlockTag>;        // a basic block of one body
using Variable = Id<struct VariableTag>;  // a mutable local of the host's function, see builder.h
using SignatureId = Id<struct SignatureTag>;  // signature of calls, within one body
using LoopId = Id<struct LoopTag>;            // the n-th loop header of one body, in build order

// The number of a block, call or probe within its method (FunctionBuilder::probe has the order): the
// same in every tier and copy. 0 is none; the entry block is 1.
using SiteId = uint32_t;

// The types of SSA values. `kRef` is a 64-bit host pointer or handle that the library never looks
// into.
enum class Type : uint8_t { kNone, kI32, kI64, kF32, kF64, kRef };

constexpr bool is_int(Type t) { return t == Type::kI32 || t == Type::kI64; }
constexpr bool is_float(Type t) { return t == Type::kF32 || t == Type::kF64; }
// Returns whether a value of the type fills a 64-bit register.
constexpr bool is_wide(Type t) { return t == Type::kI64 || t == Type::kF64 || t == Type::kRef; }

// Returns "i32", "i64", "f32", "f64", "ref" or "none".
const char* type_name(Type t);

// The quality of code, in ascending order; says nothing about instrumentation.
enum class Tier : uint8_t { kHost, kBaseline, kOptimized };
const char* tier_name(Tier t);

// kInstrumented code observes what it runs; kPlain code counts at most its entries and iterations.
// Both copies of a version share one frame layout.
enum class Copy : uint8_t { kPlain, kInstrumented };
const char* copy_name(Copy c);

}  // namespace uptier
