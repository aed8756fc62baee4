// Everything that is compiled was validated: bytes that wabt's validator skips, or decodes
// differently from the translator, are refused.
#include "embed/wasm/build_function.h"
#include "embed/wasm/read_module.h"
#include "embed/wasm/sections.h"
#include "embed/wasm/validate_bodies.h"
#include "tests/support/wasm_bytes.h"
#include "tests/support/wasm_world.h"

namespace uptier::wasm::test::wasm_trust_test {
namespace {

Error refusal(const Bytes& bytes, Bodies bodies = Bodies::kValidated) {
  auto m = read_module(bytes, bodies);
  EXPECT_FALSE(m.ok());
  return m.ok() ? Error{} : m.error();
}

bool has(const Error& e, const std::string& words) {
  return e.message.find(words) != std::string::npos;
}

TEST(WasmTrust, instruction_of_another_feature_is_refused_by_its_name) {
  struct Row {
    Bytes code;
    const char* words;
  };
  const Row rows[] = {
      // wabt takes these for no-ops, whatever features are off.
      {{0x41, 0, 0xfd, 0x5c, 0, 0, 0x1a}, "SIMD (v128.load32_zero)"},
      {{0x41, 0, 0xfd, 0x5d, 0, 0, 0x1a}, "SIMD (v128.load64_zero)"},
      {{0x41, 0, 0xfd, 0x01, 3, 0, 0x1a}, "SIMD (v128.load8x8_s)"},
      {{0x41, 0, 0xfd, 0x07, 0, 0, 0x1a}, "SIMD (v128.load8_splat)"},
      {{0x19}, "exception handling (catch_all)"},
      {{0x14}, "typed function references (call_ref)"},
      {{0x06, 0x40, 0x0b}, "exception handling (try)"},
      {{0x08, 0}, "exception handling (throw)"},
      {{0x1f, 0x40, 0, 0x0b}, "exception handling"},
      {{0x12, 0}, "tail calls (return_call)"},
      {{0x13, 0, 0}, "tail calls (return_call_indirect)"},
      {{0x41, 0, 0x41, 1, 0xfe, 0x1e, 2, 0, 0x1a}, "threads and atomics (i32.atomic.rmw.add)"},
      {{0xfe, 3, 0}, "threads and atomics (atomic.fence)"},
      {{0xd0, 0x70, 0x1a}, "references as values (ref.null)"},
      {{0xfc, 0x10, 0, 0x1a}, "references as values (table.size)"},
      {{0xfb, 0}, "garbage collection"},
      {{0xfd, 0x80, 2}, "relaxed SIMD"},
  };
  for (const Row& row : rows) {
    const Bytes bytes = module_around(body_of(row.code));
    const Error e = refusal(bytes);
    EXPECT_EQ(e.code, ErrorCode::kUnsupported) << row.words << ": " << e.message;
    EXPECT_TRUE(has(e, std::string("not supported: ") + row.words)) << e.message;
    EXPECT_TRUE(has(e, "in func[1] <f>")) << e.message;
    EXPECT_TRUE(e.message.starts_with("at offset 0x")) << e.message;
  }
}

TEST(WasmTrust, number_that_no_instruction_has_is_malformed) {
  for (const Bytes& code : {Bytes{0x27}, Bytes{0xc5}, Bytes{0xe0}, Bytes{0xff}, Bytes{0xfc, 0x12},
                            Bytes{0xfc, 0x88, 0x80, 0x04}}) {
    const Error e = refusal(module_around(body_of(code)));
    EXPECT_EQ(e.code, ErrorCode::kCorruptInput) << e.message;
    EXPECT_TRUE(has(e, "unexpected opcode")) << e.message;
  }
}

TEST(WasmTrust, declaration_of_another_feature_is_refused_by_its_name) {
  const Bytes head{0, 'a', 's', 'm', 1, 0, 0, 0};
  struct Row {
    Bytes section;
    const char* words;
  };
  const Row rows[] = {
      {{1, 5, 1, 0x60, 1, 0x7b, 0}, "SIMD"},  // a type with a v128
      {{5, 3, 1, 4, 1}, "64-bit memories"},
      {{5, 4, 1, 3, 1, 1}, "threads and atomics"},
      {{5, 5, 2, 0, 1, 0, 1}, "several memories"},
      {{13, 3, 1, 0, 0}, "exception handling"},
      {{1, 5, 1, 0x5f, 1, 0x7f, 0}, "garbage collection"},
      {{1, 6, 1, 0x60, 1, 0x6b, 0x70, 0}, "typed function references"},
  };
  for (const Row& row : rows) {
    Bytes bytes = head;
    bytes.insert(bytes.end(), row.section.begin(), row.section.end());
    const Error e = refusal(bytes);
    EXPECT_EQ(e.code, ErrorCode::kUnsupported) << row.words << ": " << e.message;
    EXPECT_TRUE(has(e, "not supported: ") && has(e, row.words)) << e.message;
  }
  // Not if something else is wrong.
  const Error other = refusal(module_around({0, 0x0b, 0x41, 0, 0x28, 0x42, 0, 0, 0x1a, 0x0b}));
  EXPECT_FALSE(has(other, "not supported")) << other.message;
  const Error local = refusal(module_around({1, 1, 0x7b, 0x0b}));
  EXPECT_TRUE(has(local, "not supported: SIMD, in func[1] <f>")) << local.message;
}

// In wabt's validator such a select leaves a value of any type, so a 64-bit number would pass for
// an address.
TEST(WasmTrust, select_with_a_type_leaves_a_value_of_that_type) {
  const Bytes select{0x42, 0, 0x42, 1, 0x41, 1, 0x1c, 1, 0x7e};
  auto with = [&](Bytes rest) {
    Bytes code = select;
    code.insert(code.end(), rest.begin(), rest.end());
    return module_around(body_of(code));
  };
  EXPECT_TRUE(read_module(with({0x50, 0x1a})).ok());  // i64.eqz
  for (const Bytes& rest : {Bytes{0x45, 0x1a}, Bytes{0x28, 2, 0, 0x1a}, Bytes{0x99, 0x1a}}) {
    const Error e = refusal(with(rest));
    EXPECT_EQ(e.code, ErrorCode::kInvalidInput);
    EXPECT_TRUE(has(e, "type mismatch")) << e.message;
  }
}

// data.drop and memory.init would reach past the module's segments.
TEST(WasmTrust, data_count_without_as_many_segments_is_malformed) {
  Surroundings around;
  around.data_count = 5;
  around.data = {};
  for (const Bytes& code :
       {Bytes{0xfc, 9, 3}, Bytes{0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 8, 4, 0}, Bytes{0x01}}) {
    for (Bodies bodies : {Bodies::kValidated, Bodies::kLater}) {
      const Error e = refusal(module_around(body_of(code), around), bodies);
      EXPECT_EQ(e.code, ErrorCode::kCorruptInput);
      EXPECT_TRUE(has(e, "inconsistent lengths")) << e.message;
    }
  }
}

// wabt reads a type as a number that may be padded; the standard allows one byte only.
TEST(WasmTrust, type_in_more_bytes_than_one_is_malformed) {
  const Bytes bodies[] = {
      {1, 1, 0xff, 0x7f, 0x0b},                                         // of a local
      {0, 0x02, 0xff, 0x7f, 0x41, 0, 0x0b, 0x1a, 0x0b},                 // of a block
      {0, 0x02, 0xc0, 0x7f, 0x0b, 0x0b},                                // the empty type
      {0, 0x41, 0, 0x41, 0, 0x41, 0, 0x1c, 1, 0xff, 0x7f, 0x1a, 0x0b},  // of a select
  };
  for (const Bytes& body : bodies) {
    for (bool later : {false, true}) {
      const Bytes bytes = module_around(body);
      auto m = read_module(bytes, later ? Bodies::kLater : Bodies::kValidated);
      Error e;
      if (later && m.ok()) {
        BodyValidator validator(*m);
        Status s = validator.validate(*m, 1, 1);
        ASSERT_FALSE(s.ok());
        e = s.error();
      } else {
        ASSERT_FALSE(m.ok());
        e = m.error();
      }
      EXPECT_EQ(e.code, ErrorCode::kCorruptInput) << e.message;
    }
  }
}

// In wabt, the locals of the last body are still known when the offset of a segment is read.
TEST(WasmTrust, initializer_behind_the_code_has_no_locals) {
  Surroundings around;
  around.data = {0, 0x20, 0, 0x0b, 1, 'x'};
  const Error e = refusal(module_around({1, 1, 0x7f, 0x0b}, around));
  EXPECT_EQ(e.code, ErrorCode::kInvalidInput);
  EXPECT_TRUE(has(e, "initializer")) << e.message;
}

// wabt takes a typed select with no type for an untyped one.
TEST(WasmTrust, select_with_types_has_one) {
  const Bytes values{0x41, 0, 0x41, 0, 0x41, 0};
  for (const Bytes& types : {Bytes{0x1c, 0}, Bytes{0x1c, 2, 0x7f, 0x7f}}) {
    Bytes code = values;
    append(code, types);
    code.push_back(0x1a);
    EXPECT_TRUE(has(refusal(module_around(body_of(code))), "invalid arity in select"));
  }
}

TEST(WasmTrust, targets_in_dead_code_may_have_different_types) {
  // (block (result f32) (block (result i32) unreachable (br_table 0 1)) drop f32.const 0) drop
  const Bytes mixed{0x02, 0x7d, 0x02, 0x7f, 0x00, 0x0e, 1, 0,    1,
                    0x0b, 0x1a, 0x43, 0,    0,    0,    0, 0x0b, 0x1a};
  EXPECT_TRUE(read_module(module_around(body_of(mixed))).ok());
  // The same in reachable code.
  const Bytes live{0x02, 0x7d, 0x02, 0x7f, 0x41, 0, 0x41, 0, 0x0e, 1,   0,
                   1,    0x0b, 0x1a, 0x43, 0,    0, 0,    0, 0x0b, 0x1a};
  EXPECT_TRUE(has(refusal(module_around(body_of(live))), "type mismatch"));
  // The targets must take the same number of values.
  const Bytes fewer{0x02, 0x40, 0x02, 0x7f, 0x00, 0x0e, 1, 0, 1, 0x0b, 0x1a, 0x0b};
  EXPECT_TRUE(has(refusal(module_around(body_of(fewer))), "inconsistent types"));
}

class WasmDeclared : public WasmModes {};
UPTIER_IN_ALL_MODES(WasmDeclared);

TEST_P(WasmDeclared, declarative_segment_holds_nothing_once_there_is_an_instance) {
  Instance& i = world.make(R"((module
    (table 2 funcref)
    (type $t (func (result i32)))
    (elem $d declare func $f)
    (func $f (result i32) (i32.const 42))
    (func (export "init") (table.init $d (i32.const 1) (i32.const 0) (i32.const 1)))
    (func (export "none") (table.init $d (i32.const 1) (i32.const 0) (i32.const 0)))
    (func (export "call") (result i32) (call_indirect (type $t) (i32.const 1)))))");
  EXPECT_EQ(call_trap(i, "init").code, TrapCode::kOutOfBoundsTable);
  EXPECT_EQ(call_trap(i, "call").code, TrapCode::kUninitializedElement);
  EXPECT_TRUE(call(i, "none").empty());
}

// Bytes that change between validation and the first call.
TEST(WasmTrust, changed_bytes_are_noticed_where_they_cannot_be_decoded) {
  const Bytes body = body_of({0x41, 0, 0x28, 2, 0, 0x1a});
  auto shared = std::make_shared<Bytes>(module_around(body));
  World world;
  auto module = Module::load(world.engine(), ModuleBytes(*shared, shared));
  ASSERT_TRUE(module.ok());
  const FunctionInfo& f = (*module)->info().functions[1];
  for (const Bytes& now :
       {Bytes{0, 0xfd, 0x5c, 0, 0, 0x41, 0x1a, 0x0b},        // no supported instruction
        Bytes{0, 0x41, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80},  // no end
        Bytes{0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0},        // too many groups of locals
        Bytes{0, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b}}) {
    ASSERT_EQ(now.size(), f.body_end - f.body_begin);
    std::copy(now.begin(), now.end(), shared->begin() + f.body_begin);
    auto methods = (*module)->methods(Bounds::kGuarded);
    ASSERT_TRUE(methods.ok());
    auto ir = world.engine().runtime().ir((*methods)[0]);
    ASSERT_FALSE(ir.ok());
    EXPECT_TRUE(has(ir.error(), "bytes have changed")) << ir.error().message;
  }
}

// ---- The name of a module ----------------------------------------------------------------------

TEST(WasmTrust, key_is_that_of_what_runs) {
  const char* text = "(module (func $f (export \"f\") (result i32) i32.const 1))";
  const Bytes named = assemble(text);
  const auto names = find_custom(named, "name");
  ASSERT_FALSE(names.empty());
  Bytes plain(named.begin(), named.end());
  const size_t behind = static_cast<size_t>(names.data() - named.data());
  plain.resize(behind - 4 - 1 - 1 - 1);  // minus "name", its size, the section's size and id
  ASSERT_TRUE(read_module(plain).ok());
  EXPECT_TRUE(find_custom(plain, "name").empty());
  EXPECT_EQ(module_key(named), module_key(plain));
  Bytes front = plain;  // a custom section before all others
  const Bytes custom{0, 3, 1, 'x', 7};
  front.insert(front.begin() + 8, custom.begin(), custom.end());
  EXPECT_EQ(module_key(front), module_key(plain));
  Bytes other = plain;
  other[other.size() - 2] = 2;
  EXPECT_NE(module_key(other), module_key(plain));
  for (size_t n = 0; n <= named.size(); ++n) (void)module_key({named.data(), n});
}

}  // namespace
}  // namespace uptier::wasm::test::wasm_trust_test
