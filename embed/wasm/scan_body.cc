#include "embed/wasm/scan_body.h"

#include "embed/wasm/code_reader.h"

namespace uptier::wasm {
namespace {

// A block that is open at the place of the scan.
struct OpenBlock {
  Op op = Op::kBlock;
  uint32_t offset = 0;
  bool has_target = false;
  bool has_else = false;
};

class Scanner {
 public:
  Scanner(const ModuleInfo& info, const FunctionInfo& function) : reader_(info, function) {}

  BodyFacts run() {
    for (uint32_t groups = reader_.u32(); groups > 0; --groups) {
      reader_.u32();
      reader_.byte();
    }
    open_.push_back({});
    while (!reader_.done()) step();
    std::sort(facts_.repeating_loops.begin(), facts_.repeating_loops.end());
    std::sort(facts_.ifs_with_else.begin(), facts_.ifs_with_else.end());
    return std::move(facts_);
  }

 private:
  void step() {
    uint32_t at = reader_.offset();
    Op op = reader_.op();
    facts_.accesses_memory |= is_memory_access(op);
    switch (op) {
      case Op::kBlock:
      case Op::kLoop:
      case Op::kIf:
        reader_.block_type();
        open_.push_back({op, at, false, false});
        return;
      case Op::kElse: open_.back().has_else = true; return;
      case Op::kEnd: close(); return;
      case Op::kBr:
      case Op::kBrIf: target(reader_.u32()); return;
      case Op::kBrTable:
        for (uint64_t left = uint64_t{reader_.u32()} + 1; left > 0; --left) target(reader_.u32());
        return;
      default: reader_.skip_immediates(op); return;
    }
  }

  void target(uint32_t depth) { open_[open_.size() - 1 - depth].has_target = true; }

  void close() {
    OpenBlock b = open_.back();
    open_.pop_back();
    if (b.op == Op::kLoop && b.has_target) facts_.repeating_loops.push_back(b.offset);
    if (b.op == Op::kIf && b.has_else) facts_.ifs_with_else.push_back(b.offset);
  }

  CodeReader reader_;
  std::vector<OpenBlock> open_;
  BodyFacts facts_;
};

}  // namespace

BodyFacts scan_body(const ModuleInfo& info, const FunctionInfo& function) {
  return Scanner(info, function).run();
}

}  // namespace uptier::wasm
