#include "jit/symbols/native_tools.h"

#include <algorithm>

#include "jit/code/code.h"

namespace uptier::jit {

namespace {

// Returns the rows of a part of the code, from `begin` up to `end`.
std::vector<FrameRow> rows_of(const std::vector<FrameRow>& all, uint32_t begin, uint32_t end) {
  std::vector<FrameRow> rows;
  for (const FrameRow& r : all) {
    if (r.offset >= end) break;
    if (r.offset <= begin) rows.clear();
    rows.push_back({r.offset <= begin ? 0 : r.offset - begin, r.state});
  }
  return rows;
}

}  // namespace

std::vector<NamedCode> parts_of(const Code& code, const std::string& name, bool at_loop,
                                PositionSource* source) {
  const CodeTables& tables = code.tables();
  NamedCode hot;
  hot.base = code.base();
  hot.size = code.hot_size();
  hot.at_loop = at_loop;
  hot.saved = tables.saved;
  hot.saved_at = tables.saved_at;
  hot.frames = rows_of(tables.frames, 0, code.hot_size());
  hot.name = name + "]";
  const NativeLines lines = source == nullptr ? NativeLines() : native_lines(code, *source);
  // In code without a cold part, the data lie at the end.
  hot.lines = part_of(lines, 0, std::min(tables.data_at, code.hot_size()));
  if (code.size() == code.hot_size()) return {std::move(hot)};
  NamedCode cold = hot;
  cold.base = code.cold_base();
  cold.size = code.size() - code.hot_size();
  cold.at_loop = true;  // it is entered from the hot part
  cold.frames = rows_of(tables.frames, code.hot_size(), code.size());
  cold.name = name + " cold]";
  cold.lines = part_of(lines, code.hot_size(), code.size());
  return {std::move(hot), std::move(cold)};
}

void NativeTools::add(const Code& code, const std::string& name, bool at_loop,
                      PositionSource& source) {
  if (perf_map == nullptr && jit_dump == nullptr && gdb_names == nullptr) return;
  for (NamedCode& part : parts_of(code, name, at_loop, &source)) add(std::move(part));
}

void NativeTools::name(const NamedCode& code) {
  const bool mapped = perf_map == nullptr || perf_map->add(code);
  const bool dumped = jit_dump == nullptr || jit_dump->add(code);
  if (!mapped || !dumped) note_lost();
}

void NativeTools::add(NamedCode code) {
  name(code);
  if (gdb_names != nullptr) gdb_names->add(std::move(code));
}

}  // namespace uptier::jit
