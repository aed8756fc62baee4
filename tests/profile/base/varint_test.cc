// Numbers with 7 bits per byte: writing and reading gives the same, one by one and in bulk,
// wherever the input ends.
#include "profile/base/varint.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace uptier::profile::varint_test {
namespace {

// Numbers around each power of two, in ascending order.
std::vector<uint64_t> edges() {
  std::vector<uint64_t> all{0};
  for (unsigned bit = 0; bit < 64; ++bit) {
    for (const int64_t off : {-1, 0, 1}) all.push_back((uint64_t{1} << bit) + off);
  }
  all.push_back(UINT64_MAX);
  return all;
}

Bytes written(std::span<const uint64_t> numbers) {
  Bytes out;
  append_varints(numbers, out);
  return out;
}

// Reads in both ways: from exactly these bytes, and with `behind` more bytes after them.
void expect_reads(std::span<const uint64_t> numbers, size_t behind) {
  Bytes bytes = written(numbers);
  const size_t size = bytes.size();
  bytes.resize(size + behind, std::byte{0xff});
  std::vector<uint64_t> got(numbers.size());
  const std::optional<Varints> taken = take_varints(bytes, got);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->bytes, size);
  EXPECT_TRUE(std::ranges::equal(got, numbers));
  for (const uint64_t n : numbers) EXPECT_LE(n, taken->bound);
  VarintReader in(bytes);
  for (const uint64_t n : numbers) EXPECT_EQ(in.number(), n);
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.at(), size);
}

TEST(Varint, each_length_is_read_wherever_it_ends) {
  for (const uint64_t n : edges()) {
    for (size_t behind = 0; behind <= 9; ++behind) expect_reads(std::array{n}, behind);
  }
}

TEST(Varint, lists_of_mixed_lengths_are_read) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint64_t> numbers(random() % 40);
    for (uint64_t& n : numbers) {
      const bool is_short = random() % 4 != 0;
      n = random() >> (is_short ? 57 : random() % 64);
    }
    expect_reads(numbers, random() % 10);
  }
}

TEST(Varint, nothing_is_read_from_a_number_that_is_cut) {
  for (const uint64_t n : edges()) {
    const Bytes bytes = written(std::array{n});
    for (size_t size = 0; size < bytes.size(); ++size) {
      const ByteSpan cut = ByteSpan(bytes).first(size);
      uint64_t got = 0;
      EXPECT_FALSE(take_varints(cut, std::span(&got, 1)).has_value()) << n << " " << size;
      VarintReader in(cut);
      EXPECT_EQ(in.number(), 0u);
      EXPECT_FALSE(in.ok());
      EXPECT_EQ(in.number(), 0u) << "from then on";
    }
  }
}

TEST(Varint, numbers_of_more_than_64_bits_are_refused) {
  const auto refused = [](std::initializer_list<int> list) {
    Bytes bytes;
    for (const int b : list) bytes.push_back(static_cast<std::byte>(b));
    uint64_t got = 0;
    VarintReader in(bytes);
    in.number();
    return !in.ok() && !take_varints(bytes, std::span(&got, 1)).has_value();
  };
  constexpr int kMore = 0xff;
  EXPECT_FALSE(refused({kMore, kMore, kMore, kMore, kMore, kMore, kMore, kMore, kMore, 1}));
  EXPECT_TRUE(refused({kMore, kMore, kMore, kMore, kMore, kMore, kMore, kMore, kMore, 2}));
  EXPECT_TRUE(refused({kMore, kMore, kMore, kMore, kMore, kMore, kMore, kMore, kMore, kMore, 0}));
}

// As written by code that reserves room for a larger number.
TEST(Varint, longer_forms_than_needed_are_read) {
  for (size_t zeros = 1; zeros <= 9; ++zeros) {
    Bytes bytes{std::byte{0x85}};
    bytes.resize(zeros, std::byte{0x80});
    bytes.push_back(std::byte{0});
    VarintReader in(bytes);
    EXPECT_EQ(in.number(), 5u) << zeros;
    EXPECT_TRUE(in.ok());
    EXPECT_EQ(in.at(), bytes.size());
  }
}

}  // namespace
}  // namespace uptier::profile::varint_test
