// BodyValidator beside the library's validator: it accepts all real programs, and nothing more than
// the library does.
#include <random>

#include "embed/wasm/read_module.h"
#include "embed/wasm/validate_body.h"
#include "tests/program_runs.h"
#include "tests/wasm_world.h"

namespace uptier::wasm::test {
namespace {

Bytes example(const std::string& name) {
  std::string file = uptier::test::slurp(uptier::test::wasm_path(name));
  return Bytes(file.begin(), file.end());
}

TEST(WasmValidate, accepts_every_function_of_the_examples) {
  for (const char* name : {"strings", "compress", "bytecode", "objects", "mix"}) {
    auto info = read_module_by_library(example(name));
    ASSERT_TRUE(info.ok()) << name;
    BodyValidator validator(*info);
    for (size_t f = info->imported_functions; f < info->functions.size(); ++f) {
      EXPECT_TRUE(validator.accepts(info->functions[f])) << name << " " << f;
    }
  }
}

// Any byte of any body, changed: the verdict and its words are the library's.
TEST(WasmValidate, agrees_with_the_library_on_damaged_modules) {
  Bytes whole = example("mix");
  auto info = read_module_by_library(whole);
  ASSERT_TRUE(info.ok());
  std::mt19937 random(7);
  auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int valid = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    size_t own = info->functions.size() - info->imported_functions;
    const FunctionInfo& f = info->functions[info->imported_functions + below(own)];
    Bytes damaged = whole;
    for (size_t changes = 1 + below(2); changes > 0; --changes) {
      size_t at = f.body_begin + below(f.body_end - f.body_begin);
      // Half of the time another instruction or a small number, which is more often valid.
      damaged[at] = static_cast<uint8_t>(round % 2 == 0 ? random() : damaged[at] ^ 1);
    }
    auto quick = read_module(damaged);
    auto slow = read_module_by_library(damaged);
    ASSERT_EQ(quick.ok(), slow.ok()) << "round " << round;
    (slow.ok() ? valid : refused) += 1;
    if (!slow.ok()) { EXPECT_EQ(quick.error().message, slow.error().message); }
  }
  EXPECT_GT(valid, 400);
  EXPECT_GT(refused, 400);
}

TEST(WasmValidate, numbers_that_do_not_fit_are_refused) {
  auto accepts = [](Bytes code) {
    ModuleInfo info;
    info.types.push_back({});
    info.bytes = {0};  // no locals
    info.bytes.insert(info.bytes.end(), code.begin(), code.end());
    FunctionInfo f{0, 0, static_cast<uint32_t>(info.bytes.size()), {}};
    return BodyValidator(info).accepts(f);
  };
  EXPECT_TRUE(accepts({0x41, 0xff, 0xff, 0xff, 0xff, 0x07, 0x1a, 0x0b}));   // INT32_MAX
  EXPECT_FALSE(accepts({0x41, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x1a, 0x0b}));  // one bit more
  EXPECT_TRUE(accepts({0x41, 0x80, 0x80, 0x80, 0x80, 0x78, 0x1a, 0x0b}));   // INT32_MIN
  EXPECT_FALSE(accepts({0x41, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 0x1a, 0x0b}));
  EXPECT_TRUE(
      accepts({0x42, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f, 0x1a, 0x0b}));
  EXPECT_FALSE(
      accepts({0x42, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x3f, 0x1a, 0x0b}));
  EXPECT_FALSE(accepts({0x41, 0x80}));        // cut
  EXPECT_FALSE(accepts({0x43, 0, 0, 0x0b}));  // cut
  EXPECT_FALSE(accepts({0x0b, 0x0b}));        // goes on behind its end
}

}  // namespace
}  // namespace uptier::wasm::test
