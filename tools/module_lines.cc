#include "tools/module_lines.h"

#include <algorithm>
#include <filesystem>
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

// An operation of a function, by where it lies.
struct PlacedOp {
  uint32_t offset = 0;
  uint32_t block = 0;
  bool ends_block = false;
};

std::vector<PlacedOp> placed_ops(const jit::Function& f, uint32_t code_begin) {
  std::vector<PlacedOp> ops;
  for (uint32_t i = 0; i < f.layout.size(); ++i) {
    const std::vector<jit::InstId>& insts = f.block(f.layout[i]).insts;
    for (jit::InstId id : insts) {
      const jit::Inst& inst = f.inst(id);
      if (inst.loc < code_begin || jit::is_block_probe(inst)) continue;
      ops.push_back({inst.loc, i + 1, id == insts.back()});
    }
  }
  std::ranges::stable_sort(ops, {}, &PlacedOp::offset);
  return ops;
}

// Returns whether nothing falls through an instruction.
bool leaves(uint8_t opcode) {
  return opcode == 0x00 || opcode == 0x0c || opcode == 0x0e || opcode == 0x0f;
}

// Returns a part for each row that has no operation.
std::vector<LinePart> quiet_parts_of(const jit::Function& f, const wasm::SourceLines& source,
                                     std::span<const LinedRow> rows) {
  std::vector<LinePart> parts;
  const std::vector<PlacedOp> ops = placed_ops(f, source.code_begin());
  for (const LinedRow& r : rows) {
    const uint32_t from = r.row->address + source.code_begin();
    const auto next = std::ranges::lower_bound(ops, from, {}, &PlacedOp::offset);
    if (next == ops.end() || next->offset < r.end + source.code_begin()) continue;
    const bool dead =
        next != ops.begin() && (next - 1)->ends_block && leaves(source.bytes()[(next - 1)->offset]);
    if (!dead) parts.push_back({next->block, from, 0});
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

Result<wasm::SourceLines> read_source_lines(const std::string& path, wasm::ModuleBytes bytes) {
  const std::string name = wasm::has_dwarf(bytes) ? "" : wasm::source_map_name(bytes);
  if (name.empty()) return wasm::SourceLines::read(std::move(bytes));
  std::error_code error;
  const std::string folder = std::filesystem::absolute(path, error).parent_path().string();
  const std::string file = folder + "/" + name;
  if (!std::filesystem::exists(file, error)) {
    return Error{ErrorCode::kNotFound, "its source map is not beside it: " + file};
  }
  Result<std::vector<uint8_t>> text = read_file(file);
  if (!text) return text.error();
  const std::string_view json(reinterpret_cast<const char*>(text->data()), text->size());
  Result<wasm::SourceLines> lines = wasm::SourceLines::read_map(std::move(bytes), json, folder);
  if (lines) return lines;
  return Error{lines.error().code, "source map " + name + ": " + lines.error().message};
}

Result<std::unique_ptr<ModuleLines>> ModuleLines::open(const std::string& path) {
  Result<std::vector<uint8_t>> bytes = read_file(path);
  if (!bytes) return bytes.error();
  return read(path, std::move(*bytes));
}

Result<std::unique_ptr<ModuleLines>> ModuleLines::read(const std::string& path,
                                                       std::vector<uint8_t> bytes, bool covers) {
  Result<Functions> functions = read_functions(path, bytes, covers);
  if (!functions) return functions.error();
  Result<wasm::SourceLines> source = read_source_lines(path, std::move(bytes));
  if (!source) return lines_error(path, source.error());
  return std::unique_ptr<ModuleLines>(new ModuleLines(*functions, std::move(*source)));
}

ModuleLines::ModuleLines(const Functions& functions, wasm::SourceLines source)
    : bodies_(body_graphs(functions)),
      begins_(functions.begins),
      sizes_(functions.bytes),
      source_(std::move(source)) {
  source_.map().lines().each_row([&](const dwarf::Row& row, uint32_t end) {
    if (row.line != 0) rows_.push_back({&row, end});
  });
  for (uint32_t i = 0; i < functions.module.functions.size(); ++i) {
    const jit::Function& f = functions.module.functions[i];
    parts_.push_back(parts_of(f, source_));
    quiet_.push_back(quiet_parts_of(f, source_, rows_of(i)));
  }
}

std::span<const LinedRow> ModuleLines::rows_of(uint32_t function) const {
  const uint32_t begin = begin_of(function) - source_.code_begin();
  const uint32_t end = end_of(function) - source_.code_begin();
  const auto address = [](const LinedRow& r) { return r.row->address; };
  const auto first = std::ranges::lower_bound(rows_, begin, {}, address);
  return {first, std::ranges::lower_bound(first, rows_.end(), end, {}, address)};
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
