// words.h: methods that take words and return a word, as methods of a dynamic language do.
//
// An interpreter has one function for all of its methods, but the host_entry of a method is a C
// function with exactly the method's signature. This header makes the functions in between, for up
// to kMaxWords arguments:
//
//   callers --C call of n words--> host_entry<f>(n) --array--> f(words): the interpreter
//   the interpreter --array--> call_words(entry, words) --C call of n words--> a method's stub
//
// A word is an i64: a tagged value, or a pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "uptier/builder.h"

namespace uptier {

inline constexpr unsigned kMaxWords = 8;

// Returns the signature of a method of `count` words.
inline Signature words_signature(size_t count) {
  return {std::vector<Type>(count, Type::kI64), Type::kI64};
}

namespace words_detail {

template <size_t>
using Word = uint64_t;

template <auto kInterpret, size_t... I>
uint64_t enter(Word<I>... words) {
  const uint64_t all[] = {words..., 0};
  const uint64_t* first = all;
  // Keeps the compiler from warning, in an interpreter that is inlined here, of words beyond this
  // count.
  asm("" : "+r"(first));
  return kInterpret(first);
}
template <auto kInterpret, size_t... I>
const void* entry_of(std::index_sequence<I...>) {
  return reinterpret_cast<const void*>(&enter<kInterpret, I...>);
}
template <auto kInterpret, size_t... N>
const void* host_entry(size_t count, std::index_sequence<N...>) {
  const void* const entries[] = {entry_of<kInterpret>(std::make_index_sequence<N>())...};
  return count < sizeof...(N) ? entries[count] : nullptr;
}

template <size_t... I>
inline uint64_t call(const void* entry, const uint64_t* words, std::index_sequence<I...>) {
  return reinterpret_cast<uint64_t (*)(Word<I>...)>(const_cast<void*>(entry))(words[I]...);
}

}  // namespace words_detail

// Returns a MethodInfo::host_entry for methods of `count` words. It calls kInterpret, a function
// `uint64_t (const uint64_t* words)`, which finds in the words which method is called. Null above
// kMaxWords; a method with more arguments passes the address of an array of them as one word.
template <auto kInterpret>
const void* host_entry(size_t count) {
  return words_detail::host_entry<kInterpret>(count, std::make_index_sequence<kMaxWords + 1>());
}

// Calls an entry address (or any C function) with `count` words. With more than kMaxWords it calls
// abort(): pass them as an array, see host_entry. Calls of an entry by a thread that is not
// attached are not counted, and a trap needs an `invoke` on the stack, as for every entry.
inline uint64_t call_words(const void* entry, const uint64_t* words, size_t count) {
  using words_detail::call;
  switch (count) {
    case 0: return call(entry, words, std::make_index_sequence<0>());
    case 1: return call(entry, words, std::make_index_sequence<1>());
    case 2: return call(entry, words, std::make_index_sequence<2>());
    case 3: return call(entry, words, std::make_index_sequence<3>());
    case 4: return call(entry, words, std::make_index_sequence<4>());
    case 5: return call(entry, words, std::make_index_sequence<5>());
    case 6: return call(entry, words, std::make_index_sequence<6>());
    case 7: return call(entry, words, std::make_index_sequence<7>());
    case 8: return call(entry, words, std::make_index_sequence<8>());
    default: std::abort();
  }
}

}  // namespace uptier
