// Instructions of IR text: one function per form of operands.
#include "jit/frontend/add_fuel.h"
#include "jit/frontend/parse_impl.h"
#include "jit/ir/names.h"
#include "jit/ir/turns.h"

namespace uptier::jit {

using Kind = Token::Kind;

bool FunctionParser::instruction() {
  Token result;
  bool has_result = in_.peek(1).is(Kind::kPunct, "=");
  if (has_result) {
    result = in_.take();
    in_.take();
  }
  Token name = in_.peek();
  auto op = name.kind == Kind::kWord ? opcode_of_text(name.text) : std::nullopt;
  if (!op) return in_.fail("expected an operation, found '" + std::string(name.text) + "'");
  in_.take();
  Inst i{.op = *op};
  if (!operands(i) || !suffixes(i)) return false;
  bool wants_result = result_type(f_, i) != Type::kNone;
  if (wants_result && !has_result) return in_.fail(name, "the result needs a name: v<n> = ...");
  if (!wants_result && has_result) return in_.fail(result, "the operation has no result");
  return append(i, has_result ? &result : nullptr) && in_.expect_newline();
}

bool FunctionParser::append(Inst i, const Token* result) {
  InstId id(static_cast<uint32_t>(f_.insts.size()));
  if (result != nullptr) {
    Type t = result_type(f_, i);
    if (!define(*result, t, i.result)) return false;
    f_.value(i.result) = {t, id, current_, 0};
  }
  f_.insts.push_back(i);
  f_.block(current_).insts.push_back(id);
  return true;
}

bool FunctionParser::operands(Inst& i) {
  Shape shape = info(i.op).shape;
  bool is_call =
      shape == Shape::kCall || shape == Shape::kCallIndirect || shape == Shape::kCallHost;
  bool typed = !is_call && in_.accept(".");
  if (typed && !in_.expect_type(i.type)) return false;
  if (!typed && !is_call && !(info(i.op).types & kMaskNone)) return in_.expect(".");
  switch (shape) {
    case Shape::kConst: return constant(i);
    case Shape::kLoad:
    case Shape::kStore: return memory(i);
    case Shape::kCall: return call(i);
    case Shape::kCallIndirect: return call_indirect(i);
    case Shape::kCallHost: return call_host(i);
    case Shape::kJump:
    case Shape::kBranch:
    case Shape::kSwitch: return terminator(i);
    case Shape::kTrap: return trap_code(i);
    case Shape::kTrapIf:
    case Shape::kGuard: return condition_and_code(i);
    case Shape::kLoopHeader:
    case Shape::kFrameState: return header_or_state(i);
    case Shape::kProbe: return probe(i);
    case Shape::kKnownCount: return in_.expect_u32(i.aux) && field("count", i.imm);
    case Shape::kBulk: return bulk(i);
    case Shape::kFrameMemory: return frame_memory(i);
    default: break;
  }
  std::vector<Value> args;
  if (!plain_values(args)) return false;
  i.args = f_.make_list(args);
  return shape != Shape::kSelect || turns(i);
}

bool FunctionParser::frame_memory(Inst& i) {
  uint32_t bytes = 0;
  if (!in_.expect_u32(bytes)) return false;
  i.imm = bytes;
  return true;
}

// "turns n0 n1 n2 n3", or nothing.
bool FunctionParser::turns(Inst& i) {
  if (!in_.accept_word("turns")) return true;
  std::array<uint64_t, kTurnValues> counts;
  for (uint64_t& n : counts) {
    uint32_t small = 0;
    if (!in_.expect_u32(small)) return false;
    n = small;
  }
  i.imm = pack_turns(counts);
  return true;
}

bool FunctionParser::suffixes(Inst& i) {
  if (in_.accept_word("site") && !in_.expect_u32(i.site)) return false;
  if (in_.accept_word("in") && !in_.expect_u32(i.body)) return false;
  return in_.accept_location(i.loc);
}

bool FunctionParser::constant(Inst& i) {
  Token where = in_.take();
  std::string text(where.text);
  if (text == "nan" && in_.accept(":")) text += ":" + std::string(in_.take().text);
  auto bits = parse_constant(i.type, text);
  if (!bits) {
    std::string shown = where.kind == Kind::kNewline ? "nothing" : "'" + text + "'";
    return in_.fail(where, std::string("expected a constant of type ") + type_name(i.type) +
                               ", found " + shown);
  }
  i.imm = *bits;
  return true;
}

// ---- Memory and calls -------------------------------------------------------------------------

bool FunctionParser::address(Inst& i, std::vector<Value>& args) {
  Value base, index;
  if (!value(base)) return false;
  args.push_back(base);
  if (in_.accept("[")) {
    if (!value(index) || !in_.expect("]")) return false;
    args.push_back(index);
  }
  uint32_t offset = 0;
  if (in_.accept("+") && !in_.expect_u32(offset)) return false;
  i.imm = offset;
  return access_flags(i);
}

bool FunctionParser::access_flags(Inst& i) {
  if (in_.accept_word("traps")) i.flags |= kMemTraps;
  if (in_.accept_word("fenced")) i.flags |= kMemFenced;
  if (in_.accept_word("invariant")) i.flags |= kMemInvariant;
  if (in_.accept_word("fuel")) i.flags |= kMemFuel;
  uint32_t alias = 0;
  if (in_.accept_word("class") && !in_.expect_u32(alias)) return false;
  if (alias >= kAliasClasses) return in_.fail("alias classes are 0 to 15");
  i.flags |= alias_class(alias);
  return true;
}

bool FunctionParser::memory(Inst& i) {
  std::vector<Value> args;
  if (info(i.op).shape == Shape::kStore) {
    Value stored;
    if (!value(stored) || !in_.expect(",")) return false;
    args.push_back(stored);
  }
  if (!address(i, args)) return false;
  i.args = f_.make_list(args);
  return true;
}

// "v1, v2, v3 by 4 traps"
bool FunctionParser::bulk(Inst& i) {
  std::vector<Value> args;
  uint32_t width = 0;
  if (!plain_values(args) || !in_.accept_word("by") || !in_.expect_u32(width)) {
    return in_.fail("expected three values and the width of an element: v1, v2, v3 by 4");
  }
  i.args = f_.make_list(args);
  i.imm = width;
  return access_flags(i);
}

// "@f(v1)", "@f#3.(i32)->i32 (v1)" or "#3.(i32)->i32 (v1)".
bool FunctionParser::call(Inst& i) {
  Token where = in_.peek();
  std::string name;
  bool named = where.kind == Kind::kName;
  if (named && !in_.expect_name(name)) return false;
  auto known = named ? headers_.by_name.find(name) : headers_.by_name.end();
  uint32_t method = 0;
  bool numbered = in_.accept("#");
  if (numbered && !in_.expect_u32(method)) return false;
  if (!named && !numbered) return in_.expect_name(name);
  if (!numbered && known == headers_.by_name.end()) {
    return in_.fail(where, "no function @" + name + " in this text");
  }
  if (!numbered) method = known->second;
  Signature signature;
  if (in_.accept(".")) {
    if (!in_.expect_signature(signature)) return false;
  } else if (numbered) {
    return in_.fail("a call by number needs a signature: .(...)->type");
  } else {
    signature = headers_.functions[method].signature;
  }
  SignatureId id = f_.intern(signature);
  i.type = signature.result;
  i.aux = id.index();
  i.imm = callee_index(MethodId(method), name, id);
  std::vector<Value> args;
  if (!argument_list(args)) return false;
  i.args = f_.make_list(args);
  return true;
}

bool FunctionParser::call_indirect(Inst& i) {
  Signature signature;
  Value target;
  if (!in_.expect(".") || !in_.expect_signature(signature) || !value(target)) return false;
  std::vector<Value> args{target};
  if (!argument_list(args)) return false;
  if (in_.accept_word("may_trap")) i.flags |= kCallMayTrap;
  i.type = signature.result;
  i.aux = f_.intern(signature).index();
  i.args = f_.make_list(args);
  return true;
}

bool FunctionParser::call_host(Inst& i) {
  std::string name;
  Signature signature;
  if (!in_.expect_name(name) || !in_.expect(".") || !in_.expect_signature(signature)) return false;
  std::vector<Value> args;
  if (!argument_list(args)) return false;
  if (in_.accept_word("may_trap")) i.flags |= kCallMayTrap;
  if (in_.accept_word("copies")) i.flags |= kCallCopies;
  if (in_.accept_word("fills")) i.flags |= kCallFills;
  SignatureId id = f_.intern(signature);
  i.type = signature.result;
  i.aux = id.index();
  i.imm = host_index(name, id);
  i.args = f_.make_list(args);
  return true;
}

uint32_t FunctionParser::callee_index(MethodId method, const std::string& name,
                                      SignatureId signature) {
  uint32_t n = 0;
  for (; n < f_.callees.size(); ++n) {
    const Callee& c = f_.callees[n];
    if (c.method == method && c.signature == signature && c.name == name) return n;
  }
  f_.callees.push_back({method, name, signature});
  return n;
}

uint32_t FunctionParser::host_index(const std::string& name, SignatureId signature) {
  uint32_t n = 0;
  for (; n < f_.host_callees.size(); ++n) {
    if (f_.host_callees[n].name == name && f_.host_callees[n].signature == signature) return n;
  }
  const void* address = nullptr;
  for (const HostFunction& h : options_.hosts) {
    bool same = h.name == name && h.signature == f_.signatures[signature.index()];
    if (same) address = h.address;
  }
  f_.host_callees.push_back({name, address, signature});
  return n;
}

// ---- Control and observation --------------------------------------------------------------------

bool FunctionParser::edge() {
  Mention<Block>* m = mention_block(in_.peek());
  if (m == nullptr) return false;
  in_.take();
  Block to = m->id;
  std::vector<Value> args;
  if (in_.peek().is(Kind::kPunct, "(") && !argument_list(args)) return false;
  f_.edges.push_back({to, f_.make_list(args)});
  return true;
}

bool FunctionParser::edges(Inst& i) {
  if (i.op == Opcode::kJump) return edge();
  if (i.op == Opcode::kBranch) return edge() && in_.expect(",") && edge() && turns(i);
  if (!in_.expect("[")) return false;
  if (!in_.accept("]")) {
    do {
      if (!edge()) return false;
    } while (in_.accept(","));
    if (!in_.expect("]")) return false;
  }
  return in_.expect(",") && edge();
}

bool FunctionParser::terminator(Inst& i) {
  Value condition;
  if (i.op != Opcode::kJump) {
    if (!value(condition) || !in_.expect(",")) return false;
    i.args = f_.make_list({{condition}});
  }
  i.edges_at = static_cast<uint32_t>(f_.edges.size());
  if (!edges(i)) return false;
  i.edge_count = static_cast<uint32_t>(f_.edges.size()) - i.edges_at;
  return true;
}

bool FunctionParser::trap_code(Inst& i) {
  auto code = trap_of_name(in_.peek().text);
  if (!code) return in_.fail("expected a trap code, found '" + std::string(in_.peek().text) + "'");
  i.aux = static_cast<uint32_t>(*code);
  in_.take();
  return true;
}

bool FunctionParser::condition_and_code(Inst& i) {
  Value condition;
  if (!value(condition) || !in_.expect(",")) return false;
  i.args = f_.make_list({{condition}});
  if (i.op == Opcode::kTrapIf) return trap_code(i);
  auto reason = guard_reason_of_name(in_.peek().text);
  if (!reason) {
    return in_.fail("expected a guard reason, found '" + std::string(in_.peek().text) + "'");
  }
  i.aux = static_cast<uint32_t>(*reason);
  in_.take();
  return true;
}

// "loop_header 0 pc=12 [v1]" and "frame_state pc=3 depth=0 [v1]"; all parts may be left out.
bool FunctionParser::header_or_state(Inst& i) {
  uint64_t depth = 0;
  if (in_.peek().kind == Kind::kNumber && !in_.expect_u32(i.aux)) return false;
  if (!field("pc", i.imm) || !field("depth", depth) || !slots(i)) return false;
  if (i.op == Opcode::kFrameState) i.aux = static_cast<uint32_t>(depth);
  return true;
}

// "name=number", or nothing.
bool FunctionParser::field(std::string_view name, uint64_t& out) {
  if (!in_.accept_word(name)) return true;
  uint32_t n = 0;
  if (!in_.expect("=") || !in_.expect_u32(n)) return false;
  out = n;
  return true;
}

bool FunctionParser::probe(Inst& i) {
  auto kind = probe_kind_of_name(in_.peek().text);
  if (!kind) return in_.fail("expected a probe kind, found '" + std::string(in_.peek().text) + "'");
  in_.take();
  i.imm = static_cast<uint64_t>(*kind);
  if (in_.peek().kind == Kind::kNumber && !in_.expect_u32(i.aux)) return false;
  if (in_.accept_word("resumes")) i.flags |= kProbeResumes;
  if (in_.accept_word("own")) i.flags |= kProbeOwn;
  if (in_.accept_word("turns")) i.flags |= kProbeTurns;
  if (in_.accept_word("branch")) i.flags |= kProbeOfBranch;
  uint64_t tag = 0;
  if (!field("tag", tag)) return false;
  i.imm |= tag << 32;
  std::vector<Value> args;
  if (!plain_values(args)) return false;
  i.args = f_.make_list(args);
  return true;
}

bool FunctionParser::argument_list(std::vector<Value>& out) {
  if (!in_.expect("(")) return false;
  if (in_.accept(")")) return true;
  do {
    Value v;
    if (!value(v)) return false;
    out.push_back(v);
  } while (in_.accept(","));
  return in_.expect(")");
}

bool FunctionParser::slots(Inst& i) {
  std::vector<Value> args;
  if (!in_.accept("[")) return true;
  if (in_.accept("]")) return true;
  do {
    Value v;
    if (!value(v)) return false;
    args.push_back(v);
  } while (in_.accept(","));
  i.args = f_.make_list(args);
  return in_.expect("]");
}

bool FunctionParser::plain_values(std::vector<Value>& out) {
  const Token& t = in_.peek();
  bool any = t.kind == Kind::kWord && t.text[0] == 'v';
  if (!any) return true;
  do {
    Value v;
    if (!value(v)) return false;
    out.push_back(v);
  } while (in_.accept(","));
  return true;
}

}  // namespace uptier::jit
