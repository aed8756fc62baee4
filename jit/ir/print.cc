#include "jit/ir/print.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "jit/ir/fuel_flag.h"
#include "jit/ir/names.h"
#include "jit/ir/tally.h"
#include "jit/ir/turns.h"

namespace uptier::jit {
namespace {

constexpr uint32_t kUnnumbered = UINT32_MAX;

std::string hex(uint64_t v) {
  char digits[16];
  auto end = std::to_chars(digits, digits + 16, v, 16).ptr;
  return "0x" + std::string(digits, end);
}

bool is_word(std::string_view s) {
  auto letter = [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; };
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (s.empty() || digit(s[0]) || s.back() == '.') return false;
  for (char c : s) {
    if (!letter(c) && !digit(c) && c != '_' && c != '.' && c != '$') return false;
  }
  return true;
}

// Prints `@name`, in quotes if the name is not a word.
std::string name_text(std::string_view name) {
  if (is_word(name)) return "@" + std::string(name);
  std::string out = "@\"";
  for (char c : name) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || byte < 0x20 || byte >= 0x7f) {
      const char* digits = "0123456789abcdef";
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + '"';
}

template <typename F>
std::string float_text(F v, uint64_t bits) {
  if (std::isnan(v)) return "nan:" + hex(bits);
  char digits[64];
  auto end = std::to_chars(digits, digits + sizeof digits, v).ptr;
  return std::string(digits, end);
}

// Prints the observations of the condition of a select or branch; nothing if there are none.
std::string turns(const Inst& i) {
  if (i.imm == 0) return "";
  std::string out = " turns";
  for (uint64_t n : turns_of(i)) out += " " + std::to_string(n);
  return out;
}

std::string numbered(char letter, const std::vector<uint32_t>& numbers, uint32_t index) {
  if (index < numbers.size() && numbers[index] != kUnnumbered) {
    return letter + std::to_string(numbers[index]);
  }
  std::string raw = index == kUnnumbered ? "" : std::to_string(index);
  return std::string(1, letter) + '?' + raw;
}

std::string flags_text(const Inst& i) {
  if (i.op == Opcode::kProbe) {
    constexpr uint8_t kOwnTurns = kProbeOwn | kProbeTurns;
    constexpr uint8_t kOfBranch = kOwnTurns | kProbeOfBranch;
    return i.flags == kProbeResumes   ? " resumes"
           : i.flags == kProbeRemnant ? " part"
           : i.flags == kProbeRounds  ? " rounds"
           : i.flags == kProbeOwn     ? " own"
           : i.flags == kOwnTurns     ? " own turns"
           : i.flags == kOfBranch     ? " own turns branch"
                                      : "";
  }
  Shape shape = info(i.op).shape;
  bool may_trap = shape == Shape::kCallHost || shape == Shape::kCallIndirect;
  uint8_t bulk = shape == Shape::kCallHost ? i.flags & (kCallCopies | kCallFills) : 0;
  uint8_t known =
      may_trap ? kCallMayTrap | bulk
               : kMemTraps | kMemFenced | kMemInvariant | kMemFuel | alias_class(kAliasClasses - 1);
  std::string out;
  if (i.flags & known & kMemTraps) out += " traps";
  if (i.flags & known & kMemFenced) out += " fenced";
  if (i.flags & known & kMemInvariant) out += " invariant";
  if (i.flags & known & kCallMayTrap) out += may_trap ? " may_trap" : " fuel";
  if (bulk & kCallCopies) out += " copies";
  if (bulk & kCallFills) out += " fills";
  unsigned alias = may_trap ? 0 : alias_class_of(i.flags & known);
  if (alias != 0) out += " class " + std::to_string(alias);
  if (uint8_t rest = i.flags & ~known) out += " ?flags" + std::to_string(rest);
  return out;
}

// Prints the type after the dot; calls have a whole signature instead.
std::string type_suffix(const Inst& i) {
  switch (info(i.op).shape) {
    case Shape::kCall:
    case Shape::kCallIndirect:
    case Shape::kCallHost: return "";
    default: return i.type == Type::kNone ? "" : std::string(".") + type_name(i.type);
  }
}

std::string pc_text(const Inst& i) { return "pc=" + std::to_string(i.imm); }

}  // namespace

std::string to_text(const Signature& s) {
  std::string out = "(";
  for (size_t i = 0; i < s.params.size(); ++i) {
    if (i != 0) out += ", ";
    out += type_name(s.params[i]);
  }
  out += ")";
  if (s.result != Type::kNone) out += std::string("->") + type_name(s.result);
  return out;
}

std::string constant_text(Type t, uint64_t bits) {
  auto low = static_cast<uint32_t>(bits);
  switch (t) {
    case Type::kI32: return std::to_string(static_cast<int32_t>(low));
    case Type::kI64: return std::to_string(static_cast<int64_t>(bits));
    case Type::kF32: return float_text(std::bit_cast<float>(low), low);
    case Type::kF64: return float_text(std::bit_cast<double>(bits), bits);
    default: return hex(bits);
  }
}

std::string to_text(const Function& f) { return Printer(f).function(); }

std::string to_text(const Module& m) {
  std::string out;
  for (const Function& f : m.functions) {
    if (!out.empty()) out += '\n';
    out += Printer(f, &m).function();
  }
  return out;
}

Printer::Printer(const Function& f, const Module* m) : f_(f), module_(m) { number(); }

void Printer::number() {
  value_numbers_.assign(f_.values.size(), kUnnumbered);
  block_numbers_.assign(f_.blocks.size(), kUnnumbered);
  uint32_t next_value = 0, next_block = 0;
  auto give = [&](Value v) {
    if (v.index() < value_numbers_.size() && value_numbers_[v.index()] == kUnnumbered) {
      value_numbers_[v.index()] = next_value++;
    }
  };
  for (Block b : f_.layout) {
    if (b.index() >= f_.blocks.size() || block_numbers_[b.index()] != kUnnumbered) continue;
    block_numbers_[b.index()] = next_block++;
    for (Value v : values(f_.block(b).params)) give(v);
    for (InstId i : f_.block(b).insts) {
      if (is_listed(i)) give(f_.inst(i).result);
    }
  }
}

std::span<const Value> Printer::values(ValueList l) const {
  if (uint64_t{l.at} + l.size > f_.pool.size()) return {};
  return f_.list(l);
}

std::string Printer::value(Value v) const { return numbered('v', value_numbers_, v.index()); }
std::string Printer::block(Block b) const { return numbered('b', block_numbers_, b.index()); }

std::string Printer::value_list(std::span<const Value> vs) const {
  std::string out;
  for (size_t i = 0; i < vs.size(); ++i) {
    if (i != 0) out += ", ";
    out += value(vs[i]);
  }
  return out;
}

std::string Printer::edge(const Edge& e) const {
  auto args = values(e.args);
  return block(e.to) + (args.empty() ? "" : "(" + value_list(args) + ")");
}

// Prints the targets of jump, branch and switch, without the operand before them.
std::string Printer::edges(const Inst& i) const {
  if (uint64_t{i.edges_at} + i.edge_count > f_.edges.size()) return "b?";
  auto all = f_.edges_of(i);
  bool is_switch = i.op == Opcode::kSwitch;
  std::string out = is_switch ? "[" : "";
  for (size_t e = 0; e < all.size(); ++e) {
    bool is_last = e + 1 == all.size();
    if (is_switch && is_last) out += "], ";
    if (e != 0 && !(is_switch && is_last)) out += ", ";
    out += edge(all[e]);
  }
  return out;
}

std::string Printer::address(std::span<const Value> vs, const Inst& i) const {
  if (vs.empty()) return "v?";
  std::string out = value(vs[0]);
  if (vs.size() > 1) out += "[" + value_list(vs.subspan(1)) + "]";
  if (i.imm != 0) out += "+" + std::to_string(i.imm);
  return out + flags_text(i);
}

std::string Printer::signature_text(uint32_t index) const {
  return index < f_.signatures.size() ? to_text(f_.signatures[index]) : "?";
}

// If the module has a callee with that name and number, the name is sufficient.
std::string Printer::callee(const Inst& i) const {
  if (i.imm >= f_.callees.size()) return " @?." + signature_text(i.aux) + " ";
  const Callee& c = f_.callees[i.imm];
  const Function* target = nullptr;
  if (module_ == nullptr && c.method == MethodId(0) && c.name == f_.name) target = &f_;
  if (module_ != nullptr && c.method.number() < module_->functions.size() &&
      module_->functions[c.method.number()].name == c.name) {
    target = &module_->functions[c.method.number()];
  }
  bool known = target != nullptr && target->signature_id.index() < target->signatures.size() &&
               i.aux < f_.signatures.size() && f_.signatures[i.aux] == target->signature();
  if (known) return " " + name_text(c.name);
  std::string number = target == nullptr ? "#" + std::to_string(c.method.number()) : "";
  std::string name = c.name.empty() && target == nullptr ? "" : name_text(c.name);
  return " " + name + number + "." + signature_text(i.aux) + " ";
}

std::string Printer::call(const Inst& i) const {
  auto args = values(i.args);
  switch (info(i.op).shape) {
    case Shape::kCall: return callee(i) + "(" + value_list(args) + ")";
    case Shape::kCallHost: {
      std::string name = i.imm < f_.host_callees.size() ? name_text(f_.host_callees[i.imm].name)
                                                        : std::string("@?");
      return " " + name + "." + signature_text(i.aux) + " (" + value_list(args) + ")" +
             flags_text(i);
    }
    default: {
      std::string target = args.empty() ? "v?" : value(args[0]);
      return "." + signature_text(i.aux) + " " + target + "(" +
             value_list(args.empty() ? args : args.subspan(1)) + ")" + flags_text(i);
    }
  }
}

std::string Printer::probe(const Inst& i) const {
  std::string out = std::string(" ") + probe_kind_name(static_cast<ProbeKind>(i.imm));
  out += " " + std::to_string(i.aux) + flags_text(i);
  if (probe_tag(i) != 0) out += " tag=" + std::to_string(probe_tag(i));
  auto args = values(i.args);
  return args.empty() ? out : out + " " + value_list(args);
}

std::string Printer::operands(const Inst& i) const {
  auto args = values(i.args);
  switch (info(i.op).shape) {
    case Shape::kConst: return " " + constant_text(i.type, i.imm);
    case Shape::kLoad: return " " + address(args, i);
    case Shape::kStore: {
      if (args.empty()) return " v?";
      return " " + value(args[0]) + ", " + address(args.subspan(1), i);
    }
    case Shape::kCall:
    case Shape::kCallIndirect:
    case Shape::kCallHost: return call(i);
    case Shape::kJump: return " " + edges(i);
    case Shape::kBranch: return " " + value_list(args) + ", " + edges(i) + turns(i);
    case Shape::kSwitch: return " " + value_list(args) + ", " + edges(i);
    case Shape::kTrap: return " " + trap_name(static_cast<TrapCode>(i.aux));
    case Shape::kTrapIf:
      return " " + value_list(args) + ", " + trap_name(static_cast<TrapCode>(i.aux));
    case Shape::kGuard:
      return " " + value_list(args) + ", " + guard_reason_name(static_cast<GuardReason>(i.aux));
    case Shape::kLoopHeader:
      return " " + std::to_string(i.aux) + " " + pc_text(i) + " [" + value_list(args) + "]";
    case Shape::kFrameState:
      return " " + pc_text(i) + " depth=" + std::to_string(i.aux) + " [" + value_list(args) + "]";
    case Shape::kProbe: return probe(i);
    case Shape::kKnownCount: {
      std::string out = " " + std::to_string(i.aux);
      return i.imm == 0 ? out : out + " count=" + std::to_string(i.imm);
    }
    case Shape::kFrameMemory: return " " + std::to_string(i.imm);
    case Shape::kSelect: return " " + value_list(args) + turns(i);
    case Shape::kBulk:
      return " " + value_list(args) + " by " + std::to_string(i.imm) + flags_text(i);
    default: return args.empty() ? "" : " " + value_list(args);
  }
}

std::string Printer::inst(const Inst& i) const {
  auto op = static_cast<unsigned>(i.op);
  if (op >= kOpcodeCount) return "op?" + std::to_string(op);
  std::string out = i.result.valid() ? value(i.result) + " = " : "";
  out += info(i.op).text + type_suffix(i) + operands(i);
  if (i.site != 0) out += " site " + std::to_string(i.site);
  if (i.body != 0) out += " in " + std::to_string(i.body);
  if (i.loc != 0) out += " @" + std::to_string(i.loc);
  return out;
}

// Prints ", inlined [@f#1 in 0 site 4 sites 2+1 @17, ...]"; nothing if nothing is inlined.
std::string Printer::inlined() const {
  std::string out;
  for (const InlinedBody& b : f_.inlined) {
    out += out.empty() ? ", inlined [" : ", ";
    if (!b.name.empty()) out += name_text(b.name);
    out += "#" + std::to_string(b.method.number()) + " in " + std::to_string(b.parent) + " site " +
           std::to_string(b.site) + " sites " + std::to_string(b.block_sites) + "+" +
           std::to_string(b.site_count - b.block_sites);
    if (b.loc != 0) out += " @" + std::to_string(b.loc);
  }
  return out.empty() ? out : out + "]";
}

std::string Printer::function() const {
  std::string signature = "(?)";
  if (f_.signature_id.index() < f_.signatures.size()) {
    const Signature& s = f_.signature();
    signature = to_text(Signature{s.params, Type::kNone});
    if (s.result != Type::kNone) signature += std::string(" -> ") + type_name(s.result);
  }
  std::string out = "func " + name_text(f_.name) + signature;
  out += " [sites " + std::to_string(f_.block_sites) + "+" +
         std::to_string(f_.site_count - f_.block_sites) + ", loops " +
         std::to_string(f_.loop_count) + ", cfg " + hex(f_.cfg_hash) + inlined() + "] {\n";
  for (Block b : f_.layout) {
    out += block(b);
    if (b.index() >= f_.blocks.size()) {
      out += ":\n";
      continue;
    }
    auto params = values(f_.block(b).params);
    for (size_t p = 0; p < params.size(); ++p) {
      bool known = params[p].index() < f_.values.size();
      out += (p == 0 ? "(" : ", ") + value(params[p]) + ": " +
             (known ? type_name(f_.type_of(params[p])) : "?");
    }
    out += params.empty() ? ":\n" : "):\n";
    for (InstId i : f_.block(b).insts) {
      out += "  " + (is_listed(i) ? inst(f_.inst(i)) : std::string("inst?")) + "\n";
    }
  }
  return out + "}\n";
}

}  // namespace uptier::jit
