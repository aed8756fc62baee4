#include "jit/opt/devirtualize.h"

#include <algorithm>
#include <optional>

#include "jit/opt/splice.h"

namespace uptier::jit {
namespace {

class Devirtualizer {
 public:
  Devirtualizer(Function& f, InstId call, uint64_t total)
      : f_(f), call_(call), total_(std::max<double>(1, static_cast<double>(total))) {}

  Devirtualized run(Block b, size_t position, std::span<const Guess> guesses) {
    Devirtualized d;
    d.rest = rest_ = split_block(f_, b, position + 1);
    f_.block(b).insts.pop_back();
    // A copy, because appending instructions below moves the original.
    const Inst& first = f_.inst(f_.block(rest_).insts.front());
    if (is_block_probe(first) && resumes(first)) probe_ = first;
    take_result();
    double left = total_;
    for (const Guess& g : guesses) {
      double count = std::min(left, static_cast<double>(g.target->count));
      left -= count;
      std::optional<Block> met;
      if (g.first_argument.valid()) met = make_block(count);
      Block direct = make_block(count), other = make_block(left);
      ask(b, {target(), entry_of(b, *g.target)}, met.value_or(direct), other);
      if (met) ask(*met, {f_.args(f_.inst(call_))[1], g.first_argument}, direct, other);
      call_directly(direct, g);
      d.direct.push_back(direct);
      b = other;
    }
    d.other = b;
    call_indirectly(b);
    return d;
  }

 private:
  void take_result() {
    Value result = f_.inst(call_).result;
    if (!result.valid()) return;
    Type t = f_.type_of(result);
    f_.value(result) = {t, InstId::none(), rest_, 0};
    f_.block(rest_).params = f_.make_list({{result}});
    Value again(static_cast<uint32_t>(f_.values.size()));
    f_.values.push_back({t, call_, Block::none(), 0});
    f_.inst(call_).result = again;
  }

  // Makes a block before the rest, for `count` of all executions.
  Block make_block(double count) {
    Block b = f_.add_block();
    f_.layout.insert(std::find(f_.layout.begin(), f_.layout.end(), rest_), b);
    if (!probe_) return b;
    Inst part = *probe_;
    uint32_t whole = probe_tag(part) == 0 ? kWholeShare : probe_tag(part);
    auto share = static_cast<uint32_t>(whole * count / total_);
    part.imm = static_cast<uint64_t>(ProbeKind::kBlock) |
               uint64_t{std::clamp<uint32_t>(share, 1, kWholeShare)} << 32;
    part.result = Value::none();
    f_.append(b, part, Type::kNone);
    return b;
  }

  Value append(Block b, Inst i, std::initializer_list<Value> args, Type result) {
    const Inst& call = f_.inst(call_);
    i.loc = call.loc;
    i.body = call.body;
    i.args = f_.make_list({args.begin(), args.size()});
    return f_.inst(f_.append(b, i, result)).result;
  }

  Value target() const { return f_.args(f_.inst(call_))[0]; }

  Value entry_of(Block b, const TargetShare& t) {
    Inst entry{.op = Opcode::kConst, .type = Type::kRef};
    entry.imm = reinterpret_cast<uintptr_t>(t.entry);
    return append(b, entry, {}, Type::kRef);
  }

  // Ends a block with a branch on whether two values are equal.
  void ask(Block b, std::pair<Value, Value> both, Block yes, Block no) {
    Value same =
        append(b, {.op = Opcode::kEq, .type = Type::kRef}, {both.first, both.second}, Type::kI32);
    Inst branch{.op = Opcode::kBranch};
    branch.edges_at = static_cast<uint32_t>(f_.edges.size());
    branch.edge_count = 2;
    f_.edges.push_back({yes});
    f_.edges.push_back({no});
    append(b, branch, {same}, Type::kNone);
  }

  void call_directly(Block b, const Guess& g) {
    Inst call = f_.inst(call_);
    SignatureId signature(call.aux);
    call.op = Opcode::kCall;
    call.flags = 0;  // an entry: its traps need no check after the call
    call.imm = f_.callees.size();
    f_.callees.push_back({g.target->method, g.target->name, signature});
    auto args = f_.args(f_.inst(call_));
    std::vector<Value> passed(args.begin() + 1, args.end());
    if (g.first_argument.valid()) passed[0] = g.first_argument;
    call.args = f_.make_list(passed);
    call.result = Value::none();
    InstId made = f_.append(b, call, f_.signatures[signature.index()].result);
    jump_to_rest(b, f_.inst(made).result);
  }

  void call_indirectly(Block b) {
    f_.block(b).insts.push_back(call_);
    Value result = f_.inst(call_).result;
    if (result.valid()) f_.value(result).block = b;
    jump_to_rest(b, result);
  }

  void jump_to_rest(Block b, Value result) {
    Inst jump{.op = Opcode::kJump};
    jump.edges_at = static_cast<uint32_t>(f_.edges.size());
    jump.edge_count = 1;
    f_.edges.push_back({rest_, result.valid() ? f_.make_list({{result}}) : ValueList{}});
    append(b, jump, {}, Type::kNone);
  }

  Function& f_;
  InstId call_;
  double total_;
  std::optional<Inst> probe_;
  Block rest_;
};

}  // namespace

Devirtualized devirtualize(Function& f, Block b, size_t position, std::span<const Guess> guesses,
                           uint64_t total) {
  return Devirtualizer(f, f.block(b).insts[position], total).run(b, position, guesses);
}

}  // namespace uptier::jit
