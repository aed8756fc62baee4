// Calls that copy or fill a few bytes become loads and stores:
//
//     r = call_host copy(c, base, to, from, 11) copies   ->   x = load.i64 base[from] traps
//                                                             y = load.i64 base[from]+3 traps
//                                                             store.i64 y, base[to]+3 traps
//                                                             store.i64 x, base[to] traps
//                                                             r = 0
//
// All loads come before all stores, so source and target may overlap. If the length is not a power
// of two, words of one range overlap. The highest word is stored first: if a byte of the range must
// not be accessed, that store faults before anything has been stored. A length of 0 stays a call,
// because the call checks whether the addresses are in range.
#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "jit/ir/semantics.h"
#include "jit/opt/bulk_calls.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr uint64_t kEachByte = 0x0101010101010101;

struct Chunk {
  uint32_t offset = 0;
  uint32_t width = 0;  // bytes
};

// Divides a range into the widest accesses that fit, from its end backwards.
std::vector<Chunk> chunks_of(uint32_t length) {
  uint32_t width = std::min(8u, std::bit_floor(length));
  std::vector<Chunk> chunks;
  if (length % width != 0) chunks.push_back({length - width, width});
  for (uint32_t n = length / width; n-- > 0;) chunks.push_back({n * width, width});
  return chunks;
}

class BulkExpander {
 public:
  explicit BulkExpander(Function& f) : f_(f) {}

  void run() {
    for (Block b : f_.layout) {
      block_ = b;
      auto is_short = [&](InstId id) { return short_length(f_, f_.inst(id)) != 0; };
      if (!std::ranges::any_of(f_.block(b).insts, is_short)) continue;
      std::vector<InstId> before = std::exchange(f_.block(b).insts, {});
      for (InstId id : before) {
        if (is_short(id)) expand(id);
        f_.block(b).insts.push_back(id);
      }
    }
  }

 private:
  void expand(InstId id) {
    call_ = f_.inst(id);
    auto args = f_.args(call_);
    base_ = args[1];
    Value to = args[2], what = args[3];
    std::vector<Chunk> chunks = chunks_of(short_length(f_, call_));
    std::vector<Value> words = (call_.flags & kCallCopies) != 0
                                   ? load_all(chunks, what)
                                   : std::vector(chunks.size(), repeat(what, chunks[0].width));
    for (size_t n = 0; n < chunks.size(); ++n) store(chunks[n], words[n], to);
    Inst& call = f_.inst(id);
    call = {.op = Opcode::kConst,
            .type = Type::kI32,
            .loc = call_.loc,
            .body = call_.body,
            .result = call_.result};
  }

  static Type type_for(uint32_t width) { return width == 8 ? Type::kI64 : Type::kI32; }

  std::vector<Value> load_all(const std::vector<Chunk>& chunks, Value from) {
    std::vector<Value> words;
    for (const Chunk& c : chunks) {
      Opcode op = c.width == 1 ? Opcode::kLoad8U : c.width == 2 ? Opcode::kLoad16U : Opcode::kLoad;
      Inst load{.op = op, .type = type_for(c.width), .flags = kMemTraps, .imm = c.offset};
      words.push_back(append(load, {base_, from}, load.type));
    }
    return words;
  }

  // Returns the low byte of `v`, repeated to fill `width` bytes.
  Value repeat(Value v, uint32_t width) {
    Type t = type_for(width);
    v = append({.op = Opcode::kAnd, .type = Type::kI32}, {v, constant(Type::kI32, 0xff)},
               Type::kI32);
    if (t == Type::kI64) v = append({.op = Opcode::kExtendU, .type = t}, {v}, t);
    return append({.op = Opcode::kMul, .type = t}, {v, constant(t, clip(t, kEachByte))}, t);
  }

  void store(const Chunk& c, Value v, Value to) {
    Opcode op = c.width == 1 ? Opcode::kStore8 : c.width == 2 ? Opcode::kStore16 : Opcode::kStore;
    append({.op = op, .type = type_for(c.width), .flags = kMemTraps, .imm = c.offset},
           {v, base_, to}, Type::kNone);
  }

  Value constant(Type t, uint64_t bits) {
    return append({.op = Opcode::kConst, .type = t, .imm = bits}, {}, t);
  }

  Value append(Inst i, std::initializer_list<Value> args, Type result) {
    i.loc = call_.loc;
    i.body = call_.body;
    i.args = f_.make_list({args.begin(), args.size()});
    return f_.inst(f_.append(block_, i, result)).result;
  }

  Function& f_;
  Block block_;
  Inst call_;  // a copy of the original
  Value base_;
};

}  // namespace

void expand_memcpy(Function& f) {
  if (has_bulk_calls(f)) BulkExpander(f).run();
}

}  // namespace uptier::jit
