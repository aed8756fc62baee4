// MD5 against the test suite of RFC 1321, and LLVM's numbers of functions.
#include "profile/formats/md5.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace uptier::md5_test {
namespace {

std::string hex_md5(const std::string& text) {
  std::string out;
  for (const uint8_t byte : profile::md5(text)) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    out += digits;
  }
  return out;
}

TEST(Md5, test_suite_of_the_rfc) {
  EXPECT_EQ(hex_md5(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(hex_md5("a"), "0cc175b9c0f1b6a831c399e269772661");
  EXPECT_EQ(hex_md5("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(hex_md5("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(hex_md5("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
  EXPECT_EQ(hex_md5("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
            "d174ab98d277d9f5a5611c2c9f419d9f");
  EXPECT_EQ(hex_md5("1234567890123456789012345678901234567890123456789012345678901234567890123456"
                    "7890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(Md5, guids_are_those_of_llvm) {
  EXPECT_EQ(profile::llvm_guid("<stdin>:foo2"), 837061429793323041u);
  EXPECT_EQ(profile::llvm_guid("mid"), 4395024877212874786u);
}

}  // namespace
}  // namespace uptier::md5_test
