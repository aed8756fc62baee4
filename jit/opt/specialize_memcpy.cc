#include "jit/opt/specialize_memcpy.h"

#include <algorithm>
#include <map>

#include "jit/analysis/deopt_targets.h"
#include "jit/ir/semantics.h"
#include "jit/opt/bulk_calls.h"
#include "jit/opt/splice.h"

namespace uptier::jit {
namespace {

// The share of executions in which a guess is assumed to hold; it affects the block order only.
constexpr uint32_t kShareOfShort = kWholeShare / 64 * 63;

class LengthGuesser {
 public:
  LengthGuesser(Function& f, std::span<const SiteValues> guesses) : f_(f) {
    for (InstId id : value_probes(f)) {
      const Inst& probe = f.inst(id);
      auto at = std::ranges::find(guesses, probe.aux, &SiteValues::site);
      if (at == guesses.end() || at->min != at->max) continue;
      Value v = f.args(probe)[0];
      lengths_.try_emplace(v.index(), clip(f.type_of(v), static_cast<uint64_t>(at->min)));
    }
  }

  void run() {
    if (lengths_.empty()) return;
    std::vector<Block> blocks = f_.layout;
    for (Block b : blocks) {
      for (size_t n = 0; n < f_.block(b).insts.size(); ++n) {
        uint32_t length = guess(f_.block(b).insts[n]);
        if (length == 0) continue;
        b = ask(b, n, length);
        n = 0;
      }
    }
  }

 private:
  // Returns the short length that the call is assumed to have; 0 for all other instructions.
  uint32_t guess(InstId id) const {
    const Inst& i = f_.inst(id);
    if (!is_bulk_call(i) || short_length(f_, i) != 0) return 0;
    auto at = lengths_.find(length_of(f_, i).index());
    return at != lengths_.end() && is_short(i, at->second) ? static_cast<uint32_t>(at->second) : 0;
  }

  // Returns the block of the code after the call.
  Block ask(Block b, size_t position, uint32_t length) {
    InstId id = f_.block(b).insts[position];
    Block rest = split_block(f_, b, position + 1);
    f_.block(b).insts.pop_back();
    call_ = f_.inst(id);
    Value n = length_of(f_, call_);
    Value guess = append(b, {.op = Opcode::kConst, .type = Type::kI32, .imm = length}, {});
    Value same = append(b, {.op = Opcode::kEq, .type = Type::kI32}, {{n, guess}});
    Block quick = make_block(rest, kShareOfShort);
    Block other = make_block(rest, kWholeShare - kShareOfShort);
    f_.value(call_.result) = {Type::kI32, InstId::none(), rest, 0};
    f_.block(rest).params = f_.make_list({{call_.result}});
    go(b, {.op = Opcode::kBranch}, {{same}}, {{quick, {}}, {other, {}}});
    call(quick, rest, guess);
    call(other, rest, n);
    return rest;
  }

  // Emits the call with this length, and a jump to the rest.
  void call(Block b, Block rest, Value length) {
    auto list = f_.args(call_);
    std::vector<Value> args(list.begin(), list.end());
    args.back() = length;
    Inst again = call_;
    again.result = Value::none();
    Value result = append(b, again, args);
    go(b, {.op = Opcode::kJump}, {}, {{rest, f_.make_list({{result}})}});
  }

  // Makes a block before the rest, for `share` of all executions of its site.
  Block make_block(Block rest, uint32_t share) {
    Block b = f_.add_block();
    f_.layout.insert(std::ranges::find(f_.layout, rest), b);
    const Inst& first = f_.inst(f_.block(rest).insts.front());
    if (!is_block_probe(first)) return b;
    Inst part = first;
    uint64_t whole = probe_tag(part) == 0 ? kWholeShare : probe_tag(part);
    uint64_t tag = std::max<uint64_t>(whole * share / kWholeShare, 1);
    part.imm = tag << 32 | static_cast<uint64_t>(ProbeKind::kBlock);
    f_.append(b, part, Type::kNone);
    return b;
  }

  Value append(Block b, Inst i, std::span<const Value> args) {
    i.loc = call_.loc;
    i.body = call_.body;
    i.args = f_.make_list(args);
    return f_.inst(f_.append(b, i, Type::kI32)).result;
  }

  void go(Block b, Inst i, std::span<const Value> args, std::initializer_list<Edge> edges) {
    i.loc = call_.loc;
    i.body = call_.body;
    i.args = f_.make_list(args);
    i.edges_at = static_cast<uint32_t>(f_.edges.size());
    i.edge_count = static_cast<uint32_t>(edges.size());
    f_.edges.insert(f_.edges.end(), edges);
    f_.append(b, i, Type::kNone);
  }

  Function& f_;
  std::map<uint32_t, uint64_t> lengths_;  // by Value::index()
  Inst call_;                             // the call being specialized
};

}  // namespace

void specialize_memcpy(Function& f, std::span<const SiteValues> guesses) {
  if (!guesses.empty() && has_bulk_calls(f)) LengthGuesser(f, guesses).run();
}

}  // namespace uptier::jit
