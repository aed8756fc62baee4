// Source maps: any text is read without harm, in limited memory, and every offset can be asked for.
//
// The inputs are maps of one module, tests/support/lines/as.wasm.
#include <fstream>
#include <iterator>

#include "embed/wasm/source_lines.h"
#include "test_paths.h"
#include "tests/fuzz/counted_memory.h"
#include "tests/fuzz/fuzz.h"

namespace uptier::fuzz {
namespace {

const std::vector<uint8_t>& module() {
  static const std::vector<uint8_t> bytes = [] {
    std::ifstream file(UPTIER_SOURCE_DIR "/tests/support/lines/as.wasm", std::ios::binary);
    return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
  }();
  UPTIER_FUZZ_CHECK(!bytes.empty());
  return bytes;
}

}  // namespace

std::vector<std::string> seeds() {
  return {
      R"({"version":3,"sources":["a.c"],"names":[],"mappings":"8DAAA,CAEC,EAAA"})",
      R"({"version":3,"sections":[{"offset":{"line":0,"column":90},"map":{"version":3,"sources":["a.c"],)"
      R"("mappings":"KAAA,CAEC,EAAA"}},{"offset":{"line":0,"column":120},"map":{"version":3,"sourceRoot":)"
      R"("r","sources":["b.c"],"mappings":"AAAA,CAEC"}}]})"};
}

void feed(const std::string& input) {
  const wasm::ModuleBytes bytes(module(), std::shared_ptr<const void>());
  const size_t before = held;
  most_held = held;
  {
    Result<wasm::SourceLines> lines = wasm::SourceLines::read_map(bytes, input, "/src");
    // A message and the map itself take a few hundred bytes.
    const size_t size = input.size() + bytes.size();
    UPTIER_FUZZ_CHECK(most_held - before <= (size_t{16} << 20) + 16 * size + 4096);
    if (!lines.ok()) {
      UPTIER_FUZZ_CHECK(!lines.error().message.empty());
    } else {
      size_t rows = 0;
      uint32_t last = 0;
      lines->map().lines().each_row([&](const dwarf::Row& row, uint32_t end) {
        UPTIER_FUZZ_CHECK(row.address >= last && row.address < end && end <= bytes.size());
        last = row.address;
        ++rows;
      });
      UPTIER_FUZZ_CHECK(rows <= input.size());
      for (uint32_t at = 0; at < bytes.size() + 16; ++at) {
        const auto frames = lines->at(at);
        UPTIER_FUZZ_CHECK(frames.size() <= 1);
        UPTIER_FUZZ_CHECK(frames.empty() || frames[0].line == 0 || !frames[0].file.empty());
      }
    }
  }
  UPTIER_FUZZ_CHECK(held == before);
  // The section with the name of the map, too.
  const std::string name = wasm::source_map_name(std::vector<uint8_t>(input.begin(), input.end()));
  UPTIER_FUZZ_CHECK(name.find('/') == std::string::npos && name != "..");
}

// Changes a part of the text, or repeats it: what repeats takes the most memory.
void mutate_input(std::string& input, Random& random) {
  if (input.empty()) return;
  constexpr std::string_view kMarks = "\"\\{}[],:;ACgh+/09u \n";
  const size_t at = random.below(input.size());
  switch (random.below(5)) {
    case 0: input[at] = kMarks[random.below(kMarks.size())]; break;
    case 1: input[at] = static_cast<char>(random.next()); break;
    case 2: input.erase(at, 1 + random.below(8)); break;
    case 3: input.insert(at, input.substr(random.below(input.size()), 1 + random.below(64))); break;
    default: {
      const std::string piece = input.substr(at, 1 + random.below(8));
      std::string many;
      for (size_t n = random.below(2000); n > 0; --n) many += piece;
      input.insert(at, many);
      break;
    }
  }
}

void mend_input(std::span<std::byte>) {}

}  // namespace uptier::fuzz
