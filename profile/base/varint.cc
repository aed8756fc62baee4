#include "profile/base/varint.h"

namespace uptier::profile {
namespace {

constexpr size_t kAtOnce = sizeof(uint64_t);

// Returns the number at `at`; nothing if it does not end, or does not fit.
Varint take_one(ByteSpan bytes, size_t at) {
  Varint taken;
  for (unsigned shift = 0; at + taken.bytes < bytes.size() && shift <= 63; shift += 7) {
    const auto byte = static_cast<uint64_t>(bytes[at + taken.bytes++]);
    const uint64_t bits = byte & (kMoreBytes - 1);
    const bool fits = bits << shift >> shift == bits;
    if (!fits) return {};
    taken.number |= bits << shift;
    if ((byte & kMoreBytes) == 0) return taken;
  }
  return {};
}

// O3, because -O2 alone does not vectorize this loop.
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
      const uint64_t tops = load<uint64_t>(bytes, at) & kAllMoreBytes;
      widen(bytes.data() + at,
            &numbers[n]);  // numbers after the first long one are overwritten later
      const size_t shorts = tops == 0 ? kAtOnce : static_cast<size_t>(std::countr_zero(tops)) / 8;
      at += shorts;
      n += shorts;
      if (tops == 0) continue;
    }
    if (at < bytes.size() && static_cast<uint64_t>(bytes[at]) < kMoreBytes) {
      numbers[n++] = static_cast<uint64_t>(bytes[at++]);
      continue;
    }
    const bool room = bytes.size() - at >= kAtOnce;
    Varint one = room ? take_short(load<uint64_t>(bytes, at)) : Varint{};
    if (one.bytes == 0) one = take_one(bytes, at);
    if (one.bytes == 0) return std::nullopt;
    at += one.bytes;
    taken.bound |= one.number;
    numbers[n++] = one.number;
  }
  taken.bytes = at;
  return taken;
}

Varint VarintReader::take_slow(ByteSpan bytes, size_t at) { return take_one(bytes, at); }

}  // namespace uptier::profile
