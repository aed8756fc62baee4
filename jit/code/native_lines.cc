#include "jit/code/native_lines.h"

#include <algorithm>
#include <map>
#include <utility>

#include "jit/code/code.h"

namespace uptier::jit {
namespace {

class LineMaker {
 public:
  LineMaker(const Code& code, PositionSource& source) : code_(code), source_(source) {}

  NativeLines run() {
    for (const LineRow& r : code_.tables().lines) add(r);
    const bool known =
        std::ranges::any_of(out_.rows, [](const NativeLines::Row& r) { return r.at.line != 0; });
    if (!known) return {};
    for (const InlineRow& i : code_.tables().inlined) {
      out_.bodies.push_back({source_.name(i.method), i.parent, place(i.parent, i.loc)});
    }
    out_.end = code_.size();
    return std::move(out_);
  }

 private:
  void add(const LineRow& r) {
    const NativeLines::Place at =
        r.loc == LineRow::kUnknown ? NativeLines::Place{} : place(r.body, r.loc);
    const bool same =
        !out_.rows.empty() && out_.rows.back().at == at && out_.rows.back().body == r.body;
    if (!same) out_.rows.push_back({r.offset, at, r.body});
  }

  // Rows repeat their locations: each is asked for once.
  NativeLines::Place place(uint32_t body, uint32_t loc) {
    const MethodId m = code_.method_of(body);
    const auto [at, fresh] = known_.try_emplace({m.number(), loc});
    if (fresh) at->second = ask(m, loc);
    return at->second;
  }

  NativeLines::Place ask(MethodId m, uint32_t loc) {
    const SourcePositions found = source_.positions(m, loc);
    if (found.empty() || found[0].line == 0) return {};
    return {file(found[0].file), found[0].line, found[0].column};
  }

  uint32_t file(const std::string& path) {
    const auto known = std::ranges::find(out_.files, path);
    const auto n = static_cast<uint32_t>(known - out_.files.begin());
    if (known == out_.files.end()) out_.files.push_back(path);
    return n;
  }

  const Code& code_;
  PositionSource& source_;
  std::map<std::pair<uint32_t, uint32_t>, NativeLines::Place> known_;
  NativeLines out_;
};

}  // namespace

NativeLines native_lines(const Code& code, PositionSource& source) {
  return code.tables().lines.empty() ? NativeLines() : LineMaker(code, source).run();
}

NativeLines part_of(const NativeLines& all, uint32_t begin, uint32_t end) {
  NativeLines part;
  for (const NativeLines::Row& r : all.rows) {
    if (r.offset >= end) break;
    if (r.offset <= begin) part.rows.clear();
    part.rows.push_back({r.offset <= begin ? 0 : r.offset - begin, r.at, r.body});
  }
  if (part.rows.empty()) return {};
  part.files = all.files;
  part.bodies = all.bodies;
  part.end = std::min(end, all.end) - begin;
  return part;
}

}  // namespace uptier::jit
