// Bodies: bytes that may not be valid code, in modules whose sizes and counts are right. If the
// engine accepts a body, so does wabt, in its module and alone, and the body can be described as IR
// that verifies.
//
// An input is a letter that chooses the module around the body, and the code of the body. Some of
// its instructions are replaced by others, with all prefixes.
#include <wabt/binary-reader-ir.h>
#include <wabt/ir.h>
#include <wabt/validator.h>

#include <algorithm>

#include "embed/wasm/build_function.h"
#include "embed/wasm/read_module.h"
#include "embed/wasm/validate_bodies.h"
#include "jit/frontend/builder_access.h"
#include "jit/frontend/verify.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/wasm_bytes.h"

namespace uptier::fuzz {
namespace {

using wasm::Bounds;
using wasm::test::Bytes;

// Locals of all types; every body has them.
const Bytes kLocals{4, 2, 0x7f, 1, 0x7e, 1, 0x7d, 1, 0x7c};

// Valid code that uses the items of module_around and these locals.
const Bytes kCode[] = {
    {},
    // Constants, loads and stores.
    {0x20, 0, 0x41, 8, 0x36, 2, 4, 0x20, 0,    0x29, 3, 0,
     0x21, 2, 0x41, 0, 0x43, 0, 0, 0x80, 0x3f, 0x38, 2, 0},
    // A loop that repeats, and a block with a conditional branch.
    {0x02, 0x40, 0x03, 0x40, 0x20, 0, 0x45, 0x0d, 1,    0x20,
     0,    0x41, 1,    0x6b, 0x21, 0, 0x0c, 0,    0x0b, 0x0b},
    // An if with else that leaves a value, and a typed select.
    {0x41, 1, 0x04, 0x7e, 0x42, 5, 0x05, 0x42, 7, 0x0b, 0x42, 9, 0x41, 0, 0x1c, 1, 0x7e, 0x21, 2},
    // A table of targets, in reachable and in dead code.
    {0x02, 0x40, 0x02, 0x40, 0x41, 2,    0x0e, 2, 0, 1,    0,
     0x0b, 0x0b, 0x02, 0x7f, 0x00, 0x0e, 1,    0, 0, 0x0b, 0x1a},
    // Blocks with several values, by the number of their type.
    {0x41, 1, 0x42, 2, 0x02, 2, 0x1a, 0x1a, 0x42, 3, 0x41, 4, 0x0b, 0x1a, 0x1a},
    // Calls, direct and through the table; globals.
    {0x10, 0, 0x10, 1, 0x41, 0, 0x11, 0, 0, 0x41, 5, 0x41, 1, 0x11, 1, 0, 0x24, 0, 0x23, 1, 0x1a},
    // Memory and bulk instructions.
    {0x3f, 0, 0x40, 0,  0x1a, 0x41, 0, 0x41, 1, 0x41, 2, 0xfc, 10, 0, 0, 0x41, 0, 0x41, 1,
     0x41, 2, 0xfc, 11, 0,    0x41, 0, 0x41, 0, 0x41, 1, 0xfc, 8,  0, 0, 0xfc, 9, 0},
    {0x41, 0,    0x41, 0,    0x41, 1,    0xfc, 12,   0,  0, 0xfc, 13,
     0,    0x41, 0,    0x41, 0,    0x41, 1,    0xfc, 14, 0, 0},
    // Arithmetic and conversions.
    {0x41, 3, 0x41, 4, 0x6d, 0xac, 0xb9, 0xfc, 2,    0xc0, 0x1a, 0x44,
     0,    0, 0,    0, 0,    0,    0xf0, 0x3f, 0xb6, 0xbc, 0x1a},
    {0x02, 0x7f, 0x41, 1, 0x0c, 0, 0x0b, 0x04, 0x40, 0x0f, 0x0b, 0x00},
};

// Makes a body of code: reachable, dead, or with a few flipped bits.
Bytes frame(const Bytes& code, Random& random) {
  Bytes body = kLocals;
  const size_t how = random.below(4);
  if (how == 0) body.push_back(0x00);
  wasm::test::append(body, code);
  body.push_back(0x0b);
  if (how != 1) return body;
  for (size_t n = 1 + random.below(3); n > 0; --n) {
    body[random.below(body.size())] ^= static_cast<uint8_t>(1u << random.below(8));
  }
  return body;
}

// Replaces or inserts instructions; the bytes that follow become their immediates.
void put_instructions(Bytes& code, Random& random) {
  constexpr uint8_t kPrefixes[] = {0xfb, 0xfc, 0xfc, 0xfc, 0xfd, 0xfe};
  for (size_t n = random.below(4); n > 0; --n) {
    const size_t at = random.below(code.size() + 1);
    Bytes op;
    if (random.below(3) != 0) {
      op.push_back(static_cast<uint8_t>(random.below(0xd3)));
    } else {
      op.push_back(kPrefixes[random.below(std::size(kPrefixes))]);
      wasm::test::append_number(op, random.below(random.below(2) == 0 ? 20 : 512));
    }
    if (random.below(2) == 0) {
      code.insert(code.begin() + static_cast<ptrdiff_t>(at), op.begin(), op.end());
    } else {
      for (size_t i = 0; i < op.size() && at + i < code.size(); ++i) code[at + i] = op[i];
    }
  }
}

wasm::test::Surroundings bend(uint8_t how, Bytes& code, Random& random) {
  wasm::test::Surroundings s;
  if (how % 8 < 5) return s;
  if (how % 8 == 5) {
    s.data_count = random.below(3);
    if (random.below(2) == 0) s.data = {};
    return s;
  }
  // The end of the input becomes an initializer.
  const size_t from = code.size() - std::min<size_t>(code.size(), random.below(8));
  Bytes init(code.begin() + static_cast<ptrdiff_t>(from), code.end());
  code.resize(from);
  Bytes& into = how % 8 == 6 ? s.global : s.data;
  into = how % 8 == 6 ? Bytes{0x7f, 1} : Bytes{0};
  wasm::test::append(into, init);
  into.push_back(0x0b);
  if (how % 8 == 7) wasm::test::append(into, {1, 'x'});
  return s;
}

bool wabt_accepts(const Bytes& bytes) {
  wabt::Features features;
  wabt::Errors errors;
  wabt::Module module;
  wabt::ReadBinaryOptions options(features, nullptr, false, true, false);
  return wabt::Succeeded(
             wabt::ReadBinaryIr("fuzz", bytes.data(), bytes.size(), options, &errors, &module)) &&
         wabt::Succeeded(wabt::ValidateModule(&module, &errors, wabt::ValidateOptions(features)));
}

void describe(const wasm::ModuleInfo& info) {
  wasm::VmLayout layout(info);
  struct Numbered final : wasm::FunctionMethods {
    Result<MethodId> method_of(uint32_t f) override { return MethodId(f); }
  } methods;
  std::vector<uint32_t> types(info.types.size(), 1);
  for (Bounds bounds : {Bounds::kGuarded, Bounds::kExplicit}) {
    wasm::BuildContext context{info, layout, bounds, methods, types};
    for (uint32_t f = info.imported_functions; f < info.functions.size(); ++f) {
      FunctionBuilder b(wasm::compiled_signature(info.type_of(f)), info.name_of(f));
      UPTIER_FUZZ_CHECK(wasm::build_function(context, f, b).ok());
      UPTIER_FUZZ_CHECK(b.status().ok());
      UPTIER_FUZZ_CHECK(jit::verify(BuilderAccess::finish(b)).ok());
    }
  }
}

// Returns the verdict of a validator of the single body, apart from its module.
bool valid_alone(const Bytes& bytes) {
  auto later = wasm::read_module(bytes, wasm::Bodies::kLater);
  if (!later.ok()) return false;
  wasm::BodyValidator validator(std::move(later->rules));
  return validator.validate(*later, 1, 1).ok();
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (const Bytes& code : kCode) {
    for (const char how : {'@', '@', 'E', 'F', 'G'}) {
      all.push_back(how + std::string(code.begin(), code.end()));
    }
  }
  return all;
}

void feed(const std::string& input) {
  if (input.empty()) return;
  uint64_t seed = 0xcbf29ce484222325;
  for (char c : input) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  Random random(seed);
  Bytes code(input.begin() + 1, input.end());
  if (random.below(2) == 0) put_instructions(code, random);
  const auto around = bend(static_cast<uint8_t>(input[0]), code, random);
  const Bytes bytes = wasm::test::module_around(frame(code, random), around);
  auto read = wasm::read_module(bytes);
  UPTIER_FUZZ_CHECK(read.ok() == valid_alone(bytes));
  if (!read.ok()) {
    UPTIER_FUZZ_CHECK(read.error().message.starts_with("at offset 0x"));
    return;
  }
  UPTIER_FUZZ_CHECK(wabt_accepts(bytes));
  describe(*read);
}

}  // namespace uptier::fuzz
