// Positions of WebAssembly code: offsets of the module, looked up in its DWARF when somebody asks.
#include "embed/wasm/sections.h"
#include "embed/wasm/source_lines.h"
#include "tests/support/program_runs.h"
#include "tests/support/wasm_world.h"

namespace uptier::wasm::test {
namespace {

Bytes module_bytes(const std::string& name) {
  const std::string text = uptier::test::slurp(std::string(UPTIER_SOURCE_DIR) +
                                               "/tests/fuzz/corpus/dwarf/" + name + ".wasm");
  return Bytes(text.begin(), text.end());
}

TEST(WasmPositions, are_those_of_the_debug_sections_at_every_offset) {
  const Bytes bytes = module_bytes("lines5");
  World world;
  Module& module = world.load(bytes);
  auto methods = module.methods(Bounds::kGuarded);
  ASSERT_TRUE(methods.ok());
  auto lines = SourceLines::read(bytes);
  ASSERT_TRUE(lines.ok());
  size_t known = 0, inlined = 0;
  for (uint32_t offset = 0; offset < bytes.size(); ++offset) {
    SourcePositions expected;
    for (const dwarf::SourceFrame& f : lines->at(offset)) {
      expected.push_back({f.file, f.line, f.column, f.function});
    }
    if (!expected.empty()) expected.back().function.clear();  // the method itself
    known += !expected.empty();
    inlined += expected.size() > 1;
    ASSERT_EQ(world.engine().runtime().positions((*methods)[0], offset), expected) << offset;
  }
  EXPECT_GT(known, 100u);
  EXPECT_GT(inlined, 0u);
}

TEST(WasmPositions, a_module_without_lines_or_with_broken_ones_has_none) {
  World world;
  Bytes broken = module_bytes("lines5");
  const auto section = find_custom(broken, ".debug_info");
  ASSERT_GT(section.size(), 8u);
  std::fill_n(broken.begin() + (section.data() - broken.data()), 8, uint8_t{0xff});
  for (Module* m : {&world.load("(module (func (export \"f\")))"), &world.load(broken)}) {
    auto methods = m->methods(Bounds::kGuarded);
    ASSERT_TRUE(methods.ok());
    for (uint32_t offset = 0; offset < 1000; offset += 7) {
      EXPECT_TRUE(world.engine().runtime().positions((*methods)[0], offset).empty());
    }
  }
}

}  // namespace
}  // namespace uptier::wasm::test
