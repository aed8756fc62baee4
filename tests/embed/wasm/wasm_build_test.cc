// Descriptions of functions: each one verifies, and the IR is as simple as it can be.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "embed/wasm/build_adapter.h"
#include "embed/wasm/build_function.h"
#include "embed/wasm/read_module.h"
#include "jit/analysis/memory_place.h"
#include "jit/frontend/builder_access.h"
#include "jit/frontend/verify.h"
#include "jit/ir/print.h"
#include "test_paths.h"
#include "tests/support/wasm_world.h"

namespace uptier::wasm::test::wasm_build_test {
namespace {

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

// The functions of a module, built without an engine.
class Built {
 public:
  explicit Built(Bytes bytes, Bounds bounds = Bounds::kGuarded, std::span<uint8_t> covered = {}) {
    auto read = read_module(std::move(bytes));
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
    info = std::move(*read);
    VmLayout layout(info);
    struct Numbered final : FunctionMethods {
      explicit Numbered(uint32_t imported) : imported(imported) {}
      Result<MethodId> method_of(uint32_t f) override { return MethodId(f - imported); }
      uint32_t imported;
    } methods(info.imported_functions);
    std::vector<uint32_t> types;
    for (uint32_t t = 0; t < info.types.size(); ++t) types.push_back(t + 1);
    BuildContext context{info, layout, bounds, methods, types};
    context.covered = covered;
    for (uint32_t f = info.imported_functions; f < info.functions.size(); ++f) {
      FunctionBuilder b(compiled_signature(info.type_of(f)), info.name_of(f));
      EXPECT_TRUE(build_function(context, f, b).ok());
      functions.push_back(BuilderAccess::finish(b));
    }
  }
  explicit Built(std::string_view text, Bounds bounds = Bounds::kGuarded)
      : Built(assemble(text), bounds) {}

  std::string text(size_t function = 0) const { return jit::to_text(functions[function]); }

  ModuleInfo info;
  std::vector<jit::Function> functions;
};

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(WasmBuild, all_functions_of_the_example_programs_verify) {
  size_t functions = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(UPTIER_SOURCE_DIR "/examples/programs/wasm")) {
    for (Bounds bounds : {Bounds::kGuarded, Bounds::kExplicit}) {
      Built built(read_file(entry.path()), bounds);
      for (const jit::Function& f : built.functions) {
        Status s = jit::verify(f);
        EXPECT_TRUE(s.ok()) << entry.path() << " " << s.error().message;
        ++functions;
      }
    }
  }
  EXPECT_GT(functions, 100u);
}

// With coverage each block sets a byte of its own, until it is set; the blocks stay the same.
TEST(WasmBuild, covered_functions_verify_and_have_a_byte_for_each_block) {
  for (const auto& entry :
       std::filesystem::directory_iterator(UPTIER_SOURCE_DIR "/examples/programs/wasm")) {
    const Bytes bytes = read_file(entry.path());
    std::vector<uint8_t> covered(bytes.size());
    Built none(bytes, Bounds::kGuarded, covered);
    std::ranges::fill(covered, uint8_t{1});
    Built all(bytes, Bounds::kGuarded, covered);
    for (size_t f = 0; f < none.functions.size(); ++f) {
      const jit::Function& function = none.functions[f];
      Status s = jit::verify(function);
      EXPECT_TRUE(s.ok()) << entry.path() << " " << s.error().message;
      EXPECT_EQ(function.cfg_hash, all.functions[f].cfg_hash);
      EXPECT_EQ(function.site_count, all.functions[f].site_count);
      std::set<uint32_t> set;
      for (Block b : function.layout) {
        size_t stores = 0;
        for (jit::InstId id : function.block(b).insts) {
          const jit::Inst& i = function.inst(id);
          if (i.op != Opcode::kStore8 || alias_class_of(i.flags) != 5) continue;
          ++stores;
          EXPECT_EQ(i.loc, 0u);
          EXPECT_TRUE(set.insert(static_cast<uint32_t>(jit::place_of(function, i).offset)).second);
        }
        EXPECT_EQ(stores, 1u) << entry.path() << " " << function.name;
      }
      EXPECT_EQ(*set.rbegin() + 1, function.layout.size());
      EXPECT_EQ(count(all.text(f), "store8"), count(none.text(f), "store8") - set.size());
    }
  }
}

TEST(WasmBuild, both_edges_of_a_covered_branch_have_blocks_of_their_own) {
  const Bytes bytes = assemble(
      "(module (func (param i32) (result i32) (block $a (br_if $a (local.get 0))"
      " (if (i32.eqz (local.get 0)) (then (br_if $a (i32.const 1))))) (loop $l (br_if $l "
      "(local.get 0)))"
      " (i32.const 1)))");
  std::vector<uint8_t> covered(bytes.size());
  Built built(bytes, Bounds::kGuarded, covered);
  const jit::Function& f = built.functions[0];
  std::map<uint32_t, unsigned> entered;
  for (Block b : f.layout) {
    for (const jit::Edge& e : f.edges_of(f.terminator(b))) ++entered[e.to.index()];
  }
  size_t branches = 0;
  for (Block b : f.layout) {
    if (f.terminator(b).op != Opcode::kBranch) continue;
    ++branches;
    for (const jit::Edge& e : f.edges_of(f.terminator(b))) EXPECT_EQ(entered[e.to.index()], 1u);
  }
  EXPECT_EQ(branches, 4u);
}

TEST(WasmBuild, a_second_description_is_the_same) {
  Bytes bytes = read_file(UPTIER_SOURCE_DIR "/examples/programs/wasm/mix.wasm");
  Built a(bytes), b(bytes);
  ASSERT_EQ(a.functions.size(), b.functions.size());
  for (size_t f = 0; f < a.functions.size(); ++f) EXPECT_EQ(a.text(f), b.text(f));
}

TEST(WasmBuild, only_loops_with_a_branch_back_have_a_header) {
  Built once("(module (func (loop (nop))))");
  EXPECT_EQ(once.functions[0].loop_count, 0u);
  EXPECT_EQ(once.functions[0].layout.size(), 1u);
  Built repeating("(module (func (param i32) (loop (br_if 0 (local.get 0)))))");
  EXPECT_EQ(repeating.functions[0].loop_count, 1u);
  // The branch continues the outer loop from the inner one.
  Built outer("(module (func (param i32) (loop (loop (br_if 1 (local.get 0))))))");
  EXPECT_EQ(outer.functions[0].loop_count, 1u);
}

TEST(WasmBuild, memory_base_is_loaded_once_and_only_where_memory_is_used) {
  Built b(R"((module (memory 1)
    (func (param i32) (result i32)
      (i32.add (i32.load (local.get 0)) (i32.load offset=4 (local.get 0))))
    (func (result i32) memory.size)))");
  EXPECT_EQ(count(b.text(0), "load.ref"), 1u) << b.text(0);
  EXPECT_EQ(count(b.text(0), "traps"), 2u) << b.text(0);
  EXPECT_EQ(count(b.text(0), "trap_if"), 0u) << b.text(0);
  EXPECT_EQ(b.text(1).find("v0+16"), std::string::npos) << b.text(1);
}

TEST(WasmBuild, explicit_bounds_compare_before_each_access) {
  Built b("(module (memory 1) (func (param i32) (i64.store offset=8 (local.get 0) (i64.const 1))))",
          Bounds::kExplicit);
  EXPECT_EQ(count(b.text(), "trap_if"), 1u) << b.text();
  EXPECT_EQ(count(b.text(), "const.i64 16"), 1u) << b.text();  // offset + width
  EXPECT_EQ(count(b.text(), " traps"), 0u) << b.text();
}

TEST(WasmBuild, eqz_of_a_condition_swaps_the_targets_instead) {
  Built b(R"((module
    (func (param i32) (result i32)
      (block (br_if 0 (i32.eqz (local.get 0))) (return (i32.const 1))) (i32.const 2))
    (func (param i32) (result i32) (select (i32.const 1) (i32.const 2) (i32.eqz (local.get 0))))
    (func (param i32) (result i32) (i32.eqz (local.get 0)))))");
  EXPECT_EQ(count(b.text(0), "eqz"), 0u) << b.text(0);
  EXPECT_EQ(count(b.text(1), "eqz"), 0u) << b.text(1);
  EXPECT_EQ(count(b.text(2), "eqz"), 1u) << b.text(2);
}

TEST(WasmBuild, dead_code_is_not_described) {
  Built b(R"((module (func (result i32)
    (block (br 0) (drop (i32.div_s (i32.const 1) (i32.const 0))) (loop (br 0)))
    (return (i32.const 3))
    (block (if (i32.const 0) (then (unreachable)) (else (unreachable)))))))");
  EXPECT_EQ(count(b.text(), "div_s"), 0u) << b.text();
  EXPECT_EQ(b.functions[0].loop_count, 0u) << b.text();
  EXPECT_EQ(count(b.text(), "return"), 1u) << b.text();
}

TEST(WasmBuild, locals_make_no_block_parameters_where_they_do_not_change) {
  Built b(R"((module (func (param i32 i32) (result i32)
    (if (local.get 0) (then (drop (local.get 1))))
    (local.get 1))))");
  EXPECT_EQ(count(b.text(), "return v2"), 1u) << b.text();
}

TEST(WasmBuild, instructions_carry_their_offsets) {
  Bytes bytes = assemble(
      "(module (func (param i32) (result i32)\n"
      "  (i32.div_s (i32.const 1) (local.get 0))))");
  Built b(bytes);
  // The body ends in div_s, end; then comes the name section.
  uint32_t div = b.info.functions[0].body_end - 2;
  EXPECT_EQ(count(b.text(), "div_s.i32 v2, v1 @" + std::to_string(div)), 1u) << b.text();
}

TEST(WasmBuild, immutable_globals_with_a_constant_are_constants) {
  Built b("(module (global i64 (i64.const 99)) (func (result i64) (global.get 0)))");
  EXPECT_EQ(count(b.text(), "const.i64 99"), 1u) << b.text();
  EXPECT_EQ(count(b.text(), "load"), 0u) << b.text();
}

TEST(WasmBuild, nan_bits_of_constants_are_kept) {
  Built b("(module (func (result f32) (f32.const -nan:0x200001)))");
  const jit::Function& f = b.functions[0];
  bool found = false;
  for (const jit::Inst& i : f.insts) found |= i.op == Opcode::kConst && i.imm == 0xffa00001;
  EXPECT_TRUE(found) << b.text();
}

TEST(WasmBuild, deep_nesting_is_built_without_recursion) {
  std::string text = "(module (func (param i32) (result i32) ";
  // The test's text parser is recursive, which limits the depth.
  constexpr int kDepth = 400;
  for (int i = 0; i < kDepth; ++i) text += "block (br_if 0 (local.get 0)) ";
  for (int i = 0; i < kDepth; ++i) text += "end ";
  Built b(text + "i32.const 1))");
  EXPECT_EQ(b.functions[0].layout.size(), 2u * kDepth + 1);
  EXPECT_TRUE(jit::verify(b.functions[0]).ok());
}

TEST(WasmBuild, adapters_verify_for_all_types) {
  FuncType many;
  for (Type t : {Type::kI32, Type::kI64, Type::kF32, Type::kF64}) {
    for (int i = 0; i < 9; ++i) many.params.push_back(t);
    many.results.push_back(t);
  }
  for (const FuncType& type : {FuncType{}, FuncType{{Type::kF32}, {Type::kF32}}, many}) {
    FunctionBuilder b(compiled_signature(type), "adapter");
    build_adapter(type, b);
    Status s = jit::verify(BuilderAccess::finish(b));
    EXPECT_TRUE(s.ok()) << to_string(type) << s.error().message;
  }
}

}  // namespace
}  // namespace uptier::wasm::test::wasm_build_test
