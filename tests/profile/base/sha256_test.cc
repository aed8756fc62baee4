#include "profile/base/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace uptier::profile {
namespace {

std::string hex(const Sha256& hash) {
  std::string text;
  for (uint8_t b : hash) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", b);
    text += two;
  }
  return text;
}

ByteSpan bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// The examples of FIPS 180-4's validation: empty, one block, two blocks, a million letters.
const std::pair<std::string, const char*> kExamples[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {std::string(1'000'000, 'a'),
     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};

TEST(Sha256, has_the_known_hashes) {
  for (const auto& [text, hash] : kExamples) {
    EXPECT_EQ(hex(sha256(bytes_of(text))), hash);
    EXPECT_EQ(hex(sha256_portable(bytes_of(text))), hash);
  }
}

TEST(Sha256, pieces_of_any_length_have_the_hash_of_the_whole) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (size_t length = 0; length <= text.size(); ++length) {
    const ByteSpan whole = bytes_of(text).first(length);
    const Sha256 hash = sha256_portable(whole);
    EXPECT_EQ(sha256(whole), hash) << length;
    for (size_t piece : {1, 63, 64, 65, 129}) {
      Sha256Hasher hasher;
      for (size_t at = 0; at < length; at += piece) {
        hasher.add(whole.subspan(at, std::min(piece, length - at)));
      }
      EXPECT_EQ(hasher.finish(), hash) << length << " in pieces of " << piece;
    }
  }
}

}  // namespace
}  // namespace uptier::profile
