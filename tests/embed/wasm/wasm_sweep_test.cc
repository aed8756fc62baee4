// Every possible opcode, with every prefix. If the engine accepts an instruction, so do wabt and
// V8, and it can be described; and every supported instruction is accepted somewhere.
#include <wabt/binary-reader-ir.h>
#include <wabt/ir.h>
#include <wabt/validator.h>

#include <cstdio>
#include <fstream>
#include <set>

#include "embed/wasm/build_function.h"
#include "embed/wasm/read_module.h"
#include "jit/frontend/builder_access.h"
#include "jit/frontend/verify.h"
#include "tests/support/random.h"
#include "tests/support/tool_dir.h"
#include "tests/support/wasm_bytes.h"
#include "tests/support/wasm_world.h"

namespace uptier::wasm::test::wasm_sweep_test {
namespace {

constexpr uint32_t kNumbers = 512;  // for each prefix
constexpr size_t kRandomFills = 6;
constexpr size_t kFill = 20;

struct Swept {
  uint32_t prefix = 0, number = 0;  // prefix 0: a one-byte instruction
  Bytes module;
};

// Makes modules with an instruction and random bytes after it: in reachable code, in dead code, and
// as an initializer.
template <typename Each>
void each_module(uint32_t prefix, uint32_t number, Each each) {
  Bytes op;
  if (prefix != 0) {
    op.push_back(static_cast<uint8_t>(prefix));
    append_number(op, number);
  } else {
    op.push_back(static_cast<uint8_t>(number));
  }
  std::vector<Bytes> fills{{},     Bytes(1, 0),     Bytes(kFill, 0),
                           {0x40}, Bytes(kFill, 1), {1, 0x7f, 0x00}};
  uptier::test::Random random(prefix << 16 | number);
  for (size_t n = 0; n < kRandomFills; ++n) {
    Bytes& fill = fills.emplace_back(1 + random.below(kFill));
    for (uint8_t& b : fill) b = static_cast<uint8_t>(random.below(4) == 0 ? 0 : random.next());
  }
  const Bytes fronts[] = {{}, {0x00}, {0x41, 0, 0x04, 0x40, 0x00}};  // reachable, dead, in an if
  for (const Bytes& fill : fills) {
    for (const Bytes& front : fronts) {
      for (size_t ends : {0, 1}) {
        Bytes body{1, 1, 0x7f};  // a local
        append(body, front);
        append(body, op);
        append(body, fill);
        body.insert(body.end(), ends + 1, 0x0b);
        each(Swept{prefix, number, module_around(body)});
      }
    }
    Surroundings s;
    s.global = {0x7f, 1};
    append(s.global, op);
    append(s.global, fill);
    s.global.push_back(0x0b);
    each(Swept{prefix, number, module_around(body_of({}), s)});
  }
}

template <typename Each>
void each_module(Each each) {
  for (uint32_t code = 0; code < 256; ++code) {
    if (code >= 0xfb && code <= 0xfe) {
      for (uint32_t n = 0; n < kNumbers; ++n) each_module(code, n, each);
    } else {
      each_module(0, code, each);
    }
  }
}

// The supported instructions, written down independently.
std::set<std::pair<uint32_t, uint32_t>> served() {
  std::set<std::pair<uint32_t, uint32_t>> all;
  auto add = [&](uint32_t prefix, uint32_t first, uint32_t last) {
    for (uint32_t n = first; n <= last; ++n) all.insert({prefix, n});
  };
  add(0, 0x00, 0x05);
  add(0, 0x0b, 0x11);
  add(0, 0x1a, 0x1c);
  add(0, 0x20, 0x24);
  add(0, 0x28, 0xc4);
  add(0xfc, 0, 14);
  return all;
}

bool wabt_accepts(const Bytes& bytes) {
  wabt::Features features;
  wabt::Errors errors;
  wabt::Module module;
  wabt::ReadBinaryOptions options(features, nullptr, false, true, false);
  return wabt::Succeeded(
             wabt::ReadBinaryIr("swept", bytes.data(), bytes.size(), options, &errors, &module)) &&
         wabt::Succeeded(wabt::ValidateModule(&module, &errors, wabt::ValidateOptions(features)));
}

// Describes all functions; returns the error, or "".
std::string describe_all(const ModuleInfo& info) {
  VmLayout layout(info);
  struct Numbered final : FunctionMethods {
    Result<MethodId> method_of(uint32_t f) override { return MethodId(f); }
  } methods;
  std::vector<uint32_t> types(info.types.size(), 1);
  for (Bounds bounds : {Bounds::kGuarded, Bounds::kExplicit, Bounds::kUnfenced}) {
    BuildContext context{info, layout, bounds, methods, types};
    for (uint32_t f = info.imported_functions; f < info.functions.size(); ++f) {
      FunctionBuilder b(compiled_signature(info.type_of(f)), info.name_of(f));
      if (Status s = build_function(context, f, b); !s) return s.error().message;
      if (Status s = b.status(); !s) return s.error().message;
      if (Status s = jit::verify(BuilderAccess::finish(b)); !s) return s.error().message;
    }
  }
  return "";
}

std::string text_of(const Swept& s) {
  std::string text =
      "instruction " + std::to_string(s.prefix) + " " + std::to_string(s.number) + ":";
  for (uint8_t b : s.module) {
    char hex[4];
    std::snprintf(hex, sizeof hex, " %02x", b);
    text += hex;
  }
  return text;
}

// Returns everything that the engine accepts.
const std::vector<Swept>& accepted() {
  static const std::vector<Swept> all = [] {
    std::vector<Swept> found;
    each_module([&](const Swept& s) {
      auto read = read_module(s.module);
      if (!read.ok()) return;
      const std::string wrong = describe_all(*read);
      EXPECT_EQ(wrong, "") << text_of(s);
      found.push_back(s);
    });
    return found;
  }();
  return all;
}

TEST(WasmSweep, every_instruction_that_is_served_is_accepted_and_no_other) {
  const auto served_ones = served();
  std::set<std::pair<uint32_t, uint32_t>> seen;
  for (const Swept& s : accepted()) seen.insert({s.prefix, s.number});
  for (const auto& one : seen) {
    EXPECT_TRUE(served_ones.contains(one)) << one.first << " " << one.second;
  }
  for (const auto& one : served_ones) {
    EXPECT_TRUE(seen.contains(one)) << one.first << " " << one.second << " is never accepted";
  }
  for (uint32_t code = 0; code < 256; ++code) {
    const bool row = immediates_of_byte(static_cast<uint8_t>(code)) != Immediates::kNotServed;
    EXPECT_EQ(row, served_ones.contains({0, code})) << code;
  }
}

TEST(WasmSweep, wabt_accepts_what_is_accepted) {
  ASSERT_GT(accepted().size(), 500u);
  for (const Swept& s : accepted()) EXPECT_TRUE(wabt_accepts(s.module)) << text_of(s);
}

// V8 in node, without flags.
class WasmSweepNode : public uptier::test::ToolDir {};

TEST_F(WasmSweepNode, node_accepts_what_is_accepted) {
  if (!installed("node")) GTEST_SKIP() << "SKIPPED: no node (Debian's nodejs)";
  std::ofstream out(path("modules"), std::ios::binary);
  for (const Swept& s : accepted()) {
    const auto size = static_cast<uint32_t>(s.module.size());
    out.write(reinterpret_cast<const char*>(&size), sizeof size);
    out.write(reinterpret_cast<const char*>(s.module.data()), size);
  }
  out.close();
  write_text("validate.js", R"(
    const bytes = require('fs').readFileSync('modules');
    let count = 0;
    for (let at = 0; at < bytes.length; ++count) {
      const size = bytes.readUInt32LE(at);
      const module = bytes.subarray(at + 4, at + 4 + size);
      if (!WebAssembly.validate(module)) console.log('refused ' + module.toString('hex'));
      at += 4 + size;
    }
    console.log('asked ' + count);
  )");
  const auto r = in_dir("node validate.js");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "asked " + std::to_string(accepted().size()) + "\n");
}

}  // namespace
}  // namespace uptier::wasm::test::wasm_sweep_test
