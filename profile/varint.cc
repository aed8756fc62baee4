#include "profile/varint.h"

#include <bit>

namespace uptier::profile {
namespace {

constexpr uint64_t kTops = 0x8080808080808080;
constexpr size_t kAtOnce = 8;

// Returns the position behind the number at `at`; 0 if it does not end, or not fit.
size_t take_one(ByteSpan bytes, size_t at, uint64_t& number) {
  number = 0;
  for (unsigned shift = 0; at < bytes.size() && shift <= 63; shift += 7) {
    const auto byte = static_cast<uint64_t>(bytes[at++]);
    const uint64_t bits = byte & (kMoreBytes - 1);
    const bool fits = bits << shift >> shift == bits;
    if (!fits) return 0;
    number |= bits << shift;
    if ((byte & kMoreBytes) == 0) return at;
  }
  return 0;
}

// With vectors, which -O2 alone does not use here.
__attribute__((optimize("O3"))) inline void widen(const std::byte* bytes, uint64_t* numbers) {
  for (size_t i = 0; i < kAtOnce; ++i) numbers[i] = static_cast<uint64_t>(bytes[i]);
}

}  // namespace

void append_varints(std::span<const uint64_t> numbers, Bytes& out) {
  for (const uint64_t number : numbers) append_varint(number, out);
}

std::optional<Varints> take_varints(ByteSpan bytes, std::span<uint64_t> numbers) {
  Varints taken{0, kMoreBytes - 1};
  size_t at = 0, n = 0;
  while (n < numbers.size()) {
    if (numbers.size() - n >= kAtOnce && bytes.size() - at >= kAtOnce) {
      const uint64_t tops = load<uint64_t>(bytes, at) & kTops;
      widen(bytes.data() + at, &numbers[n]);  // those behind the first long one are written again
      const size_t shorts = tops == 0 ? kAtOnce : static_cast<size_t>(std::countr_zero(tops)) / 8;
      at += shorts;
      n += shorts;
      if (tops == 0) continue;
    }
    if (at < bytes.size() && static_cast<uint64_t>(bytes[at]) < kMoreBytes) {
      numbers[n++] = static_cast<uint64_t>(bytes[at++]);
      continue;
    }
    at = take_one(bytes, at, numbers[n]);
    if (at == 0) return std::nullopt;
    taken.bound |= numbers[n++];
  }
  taken.bytes = at;
  return taken;
}

VarintReader::Taken VarintReader::take_slow(ByteSpan bytes, size_t at) {
  Taken taken;
  taken.behind = take_one(bytes, at, taken.number);
  if (taken.behind == 0) taken.number = 0;
  return taken;
}

}  // namespace uptier::profile
