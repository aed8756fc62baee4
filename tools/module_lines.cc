#include "tools/module_lines.h"

#include <algorithm>
#include <utility>

#include "jit/probes/probe_plan.h"
#include "tools/commands.h"

namespace uptier::tools {
namespace {

// A loop's header is no operation: it only marks where the loop begins, in the row of the code before it.
bool is_operation(const jit::Inst& inst) {
  return !jit::is_block_probe(inst) && inst.op != Opcode::kLoopHeader;
}

std::vector<LinePart> parts_of(const jit::Function& f, const wasm::SourceLines& source) {
  std::vector<LinePart> parts;
  for (uint32_t i = 0; i < f.layout.size(); ++i) {
    std::vector<uint32_t> offsets;
    for (jit::InstId id : f.block(f.layout[i]).insts) {
      const jit::Inst& inst = f.inst(id);
      if (is_operation(inst) && inst.loc >= source.code_begin()) { offsets.push_back(inst.loc); }
    }
    std::ranges::sort(offsets);
    const dwarf::Row* last = nullptr;
    for (uint32_t offset : offsets) {
      const dwarf::Row* row = source.map().row(offset - source.code_begin());
      if (row == nullptr || row->line == 0) continue;
      if (row != last) parts.push_back({i + 1, offset, 0});
      ++parts.back().operations;
      last = row;
    }
  }
  return parts;
}

}  // namespace

Error lines_error(const std::string& path, const Error& why) {
  const bool missing = why.code == ErrorCode::kNotFound;
  return {why.code, path + ": " +
                        (missing ? "no source lines: " : "its debug information is refused: ") +
                        why.message};
}

Result<std::unique_ptr<ModuleLines>> ModuleLines::open(const std::string& path) {
  Result<std::vector<uint8_t>> bytes = read_file(path);
  if (!bytes) return bytes.error();
  return read(path, std::move(*bytes));
}

Result<std::unique_ptr<ModuleLines>> ModuleLines::read(const std::string& path,
                                                       std::vector<uint8_t> bytes) {
  Result<Functions> functions = read_functions(path, bytes);
  if (!functions) return functions.error();
  Result<wasm::SourceLines> source = wasm::SourceLines::read(std::move(bytes));
  if (!source) return lines_error(path, source.error());
  return std::unique_ptr<ModuleLines>(new ModuleLines(*functions, std::move(*source)));
}

ModuleLines::ModuleLines(const Functions& functions, wasm::SourceLines source)
    : bodies_(body_graphs(functions)),
      begins_(functions.begins),
      sizes_(functions.bytes),
      source_(std::move(source)) {
  for (const jit::Function& f : functions.module.functions) {
    parts_.push_back(parts_of(f, source_));
  }
}

uint32_t ModuleLines::first_of(uint32_t function) const {
  uint32_t at = begins_[function];
  while (at < end_of(function) && source_.map().row(at - source_.code_begin()) == nullptr) ++at;
  return at;
}

std::vector<dwarf::SourceFrame> ModuleLines::place_of(uint32_t function) const {
  const uint32_t at = first_of(function);
  std::vector<dwarf::SourceFrame> frames = source_.at(at);
  if (frames.empty() || at == begins_[function]) return frames;
  const uint32_t line = source_.map().function_places(at - source_.code_begin()).back().first_line;
  if (line != 0) frames.back().line = line;
  return frames;
}

int64_t ModuleLines::find(const MethodKey& key) const {
  if (bodies_.empty() || !bodies_.front().key) return -1;
  const MethodKey& first = *bodies_.front().key;
  const uint64_t at = uint64_t{key.function_index} - first.function_index;
  return key.module_key == first.module_key && at < bodies_.size() ? static_cast<int64_t>(at) : -1;
}

}  // namespace uptier::tools
