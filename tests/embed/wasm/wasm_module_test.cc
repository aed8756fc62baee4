// Loading: malformed and invalid modules, limits, and the facts that a module provides.
#include "tests/support/wasm_world.h"

namespace uptier::wasm::test::wasm_module_test {
namespace {

class WasmModule : public testing::Test {
 protected:
  Error refusal(const Bytes& bytes) {
    auto m = Module::load(world.engine(), bytes);
    EXPECT_FALSE(m.ok());
    return m.ok() ? Error{} : m.error();
  }
  World world;
};

// A module whose only function, without parameters, has the bytes `body`, locals included.
Bytes module_with_body(const Bytes& body) {
  Bytes b{0, 'a', 's', 'm', 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0};
  auto leb = [](size_t n) {
    Bytes out;
    do {
      out.push_back(static_cast<uint8_t>((n & 0x7f) | (n > 0x7f ? 0x80 : 0)));
      n >>= 7;
    } while (n != 0);
    return out;
  };
  Bytes code{1};
  for (uint8_t c : leb(body.size())) code.push_back(c);
  code.insert(code.end(), body.begin(), body.end());
  b.push_back(10);
  for (uint8_t c : leb(code.size())) b.push_back(c);
  b.insert(b.end(), code.begin(), code.end());
  return b;
}

TEST_F(WasmModule, bytes_that_are_no_module_are_malformed) {
  EXPECT_EQ(refusal({}).code, ErrorCode::kCorruptInput);
  EXPECT_EQ(refusal({0, 'a', 's', 'm'}).code, ErrorCode::kCorruptInput);
  EXPECT_EQ(refusal({0, 'a', 's', 'm', 2, 0, 0, 0}).code, ErrorCode::kCorruptInput);
}

TEST_F(WasmModule, every_truncation_is_refused) {
  Bytes whole = assemble("(module (memory 1) (func (export \"f\") (result i32) i32.const 7))");
  int accepted = 0;
  for (size_t n = 0; n < whole.size(); ++n) {
    auto m = Module::load(world.engine(), Bytes(whole.begin(), whole.begin() + n));
    accepted += m.ok();
  }
  // A module that is cut between sections may be complete: after the header, types without
  // functions, ...
  EXPECT_LT(accepted, 6);
}

TEST_F(WasmModule, type_error_is_invalid_and_says_where) {
  Bytes b = assemble("(module (func (result i32) nop i64.const 1))");
  Error e = refusal(b);
  EXPECT_EQ(e.code, ErrorCode::kInvalidInput);
  EXPECT_TRUE(e.message.starts_with("at offset 0x")) << e.message;
  EXPECT_NE(e.message.find("type mismatch"), std::string::npos) << e.message;
}

TEST_F(WasmModule, instruction_offset_is_that_of_its_first_byte) {
  Bytes b = module_with_body({0, 0x01, 0x41, 5, 0x6a, 0x1a, 0x0b});  // nop, i32.const, i32.add
  Error e = refusal(b);
  size_t add = b.size() - 3;
  char want[32];
  std::snprintf(want, sizeof want, "at offset 0x%zx:", add);
  EXPECT_TRUE(e.message.starts_with(want)) << e.message << ", want " << want;
}

TEST_F(WasmModule, malformed_wins_over_invalid) {
  // The first function is invalid, and the module ends in the middle of a section: the latter
  // decides.
  Bytes b = assemble("(module (func (result i32)) (func))");
  b.pop_back();
  EXPECT_EQ(refusal(b).code, ErrorCode::kCorruptInput);
}

TEST_F(WasmModule, body_must_end_with_its_outermost_block) {
  EXPECT_EQ(refusal(module_with_body({0, 0x0b, 0x01, 0x0b})).code, ErrorCode::kCorruptInput);
  EXPECT_EQ(refusal(module_with_body({0, 0x02, 0x40, 0x0b})).code, ErrorCode::kCorruptInput);
  EXPECT_TRUE(Module::load(world.engine(), module_with_body({0, 0x01, 0x0b})).ok());
}

TEST_F(WasmModule, disabled_features_are_refused) {
  for (const char* text : {
           "(module (func (param externref)))",
           "(module (table 1 funcref) (table 1 funcref))",
           "(module (memory 1) (memory 1))",
           "(module (func (result v128) v128.const i32x4 0 0 0 0))",
           "(module (table 1 funcref) (func (drop (table.size 0))))",
       }) {
    EXPECT_NE(refusal(assemble(text)).message, "") << text;
  }
}

// Compilers with reference types on by default write a table's number in five bytes, for linkers to
// fill in.
TEST_F(WasmModule, number_of_the_table_may_be_padded) {
  Bytes b{0, 'a', 's', 'm', 1, 0, 0, 0, 1, 5, 1, 0x60, 0, 1, 0x7f, 3, 3, 2, 0, 0};
  const Bytes table{4, 4, 1, 0x70, 0, 1};
  const Bytes exported{7, 5, 1, 1, 'f', 0, 1};
  const Bytes elements{9, 7, 1, 0, 0x41, 0, 0x0b, 1, 0};
  const Bytes code{10,   18, 2,    4, 0,    0x41, 7,    0x0b, 11, 0,
                   0x41, 0,  0x11, 0, 0x80, 0x80, 0x80, 0x80, 0,  0x0b};
  for (const Bytes& section : {table, exported, elements, code}) {
    b.insert(b.end(), section.begin(), section.end());
  }
  EXPECT_EQ(call1(world.make(world.load(b)), "f"), 7u);
}

TEST_F(WasmModule, references_as_values_are_refused_in_words) {
  for (const char* text : {
           "(module (func (param externref)))",
           "(module (func (result funcref) unreachable))",
           "(module (func (local externref)))",
           "(module (import \"a\" \"b\" (global externref)))",
           "(module (global funcref (ref.null func)))",
           "(module (table 1 externref))",
           "(module (import \"a\" \"b\" (table 1 externref)))",
           "(module (elem externref (ref.null extern)))",
           "(module (table 1 funcref) (table 1 funcref))",
           "(module (func (block (result funcref) unreachable) drop))",
           "(module (func (loop (result funcref) unreachable) drop))",
           "(module (func (if (result funcref) (i32.const 1) (then unreachable) (else "
           "unreachable)) "
           "drop))",
           "(module (func unreachable (select (result funcref)) drop))",
           "(module (elem declare func 0) (func (drop (ref.func 0))))",
           "(module (func (drop (ref.null func))))",
           "(module (func unreachable ref.is_null drop))",
           "(module (table 1 funcref) (func (drop (table.get 0 (i32.const 0)))))",
           "(module (table 1 funcref) (func unreachable table.set 0))",
           "(module (table 1 funcref) (func unreachable table.fill 0))",
           "(module (table 1 funcref) (func unreachable (drop (table.grow 0))))",
           "(module (table 1 funcref) (func (drop (table.size 0))))",
       }) {
    Error e = refusal(assemble(text));
    EXPECT_EQ(e.code, ErrorCode::kUnsupported) << text << e.message;
    EXPECT_NE(e.message.find("not supported: "), std::string::npos) << e.message;
  }
}

TEST_F(WasmModule, more_locals_than_the_limit_are_refused) {
  auto with_locals = [](uint32_t n) {
    Bytes body{1};
    for (uint32_t v = n;; v >>= 7) {
      body.push_back(static_cast<uint8_t>((v & 0x7f) | (v > 0x7f ? 0x80 : 0)));
      if (v <= 0x7f) break;
    }
    body.insert(body.end(), {0x7f, 0x0b});
    return module_with_body(body);
  };
  EXPECT_EQ(refusal(with_locals(50001)).code, ErrorCode::kUnsupported);
  EXPECT_TRUE(Module::load(world.engine(), with_locals(50000)).ok());
}

TEST_F(WasmModule, deep_nesting_needs_no_stack) {
  constexpr int kDepth = 200000;
  Bytes body{0};
  for (int i = 0; i < kDepth; ++i) body.insert(body.end(), {0x02, 0x40});
  for (int i = 0; i <= kDepth; ++i) body.push_back(0x0b);
  EXPECT_TRUE(Module::load(world.engine(), module_with_body(body)).ok());
}

TEST_F(WasmModule, functions_are_named_by_section_then_export_then_number) {
  Module& m = world.load(R"((module
    (import "host" "imported" (func $from_host))
    (func $named (export "other"))
    (func (export "only_exported"))
    (func)))");
  EXPECT_EQ(m.info().name_of(0), "from_host");
  EXPECT_EQ(m.info().name_of(1), "named");
  EXPECT_EQ(m.info().name_of(2), "only_exported");
  EXPECT_EQ(m.info().name_of(3), "func[3]");
}

TEST_F(WasmModule, name_section_may_come_early_or_be_garbage) {
  Bytes b = assemble("(module (func (export \"f\")))");
  Bytes name{0, 9, 4, 'n', 'a', 'm', 'e', 1, 0xff, 0xff, 0xff};
  b.insert(b.begin() + 8, name.begin(), name.end());
  EXPECT_EQ(world.load(b).info().name_of(0), "f");
}

TEST_F(WasmModule, unprintable_names_are_made_printable) {
  EXPECT_EQ(world.load("(module (func $a\\n))").info().functions.size(), 1u);
  Bytes b = assemble("(module (func (nop)))");
  Bytes name{0, 13, 4, 'n', 'a', 'm', 'e', 1, 6, 1, 0, 3, 'x', '\n', 0x1b};
  b.insert(b.end(), name.begin(), name.end());
  EXPECT_EQ(world.load(b).info().name_of(0), "x??");
}

TEST_F(WasmModule, key_is_a_property_of_the_bytes) {
  Bytes a = assemble("(module (func (export \"f\") (result i32) i32.const 1))");
  Bytes b = assemble("(module (func (export \"f\") (result i32) i32.const 2))");
  EXPECT_EQ(world.load(a).key(), world.load(a).key());
  EXPECT_NE(world.load(a).key(), world.load(b).key());
}

TEST_F(WasmModule, type_ids_are_shared_by_modules) {
  Module& a = world.load("(module (type (func)) (type (func (param i32) (result i64))))");
  Module& b =
      world.load("(module (type (func (param i32) (result i64))) (type (func (param f32))))");
  EXPECT_EQ(a.type_id(1), b.type_id(0));
  EXPECT_NE(a.type_id(0), b.type_id(1));
  EXPECT_NE(a.type_id(0), 0u);
}

}  // namespace
}  // namespace uptier::wasm::test::wasm_module_test
