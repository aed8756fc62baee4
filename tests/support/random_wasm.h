// random_wasm.h: WebAssembly modules in text form that import from each other.
//
// Each module imports and exports the same items: functions of four types, three globals, a memory.
// So any instance can satisfy the imports of any other, also of the same module. All share a table
// and a fuel counter. Every call ends: each function that makes calls takes one unit of fuel and
// returns when none is left.
//
//   f0 (i32 i32) -> i32      f1 (i64 f64) -> i64      f2 (i32)      f3 (f64 i32) -> f64 i32
//
// Slot k of the table has a function of type k % 4. The bits of a NaN are never observable: a float
// is made a number before it is stored or taken apart.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace uptier::test {

inline constexpr const char* kWasmTypes = R"(
  (type $t0 (func (param i32 i32) (result i32)))
  (type $t1 (func (param i64 f64) (result i64)))
  (type $t2 (func (param i32)))
  (type $t3 (func (param f64 i32) (result f64 i32)))
)";

// Returns the module that the first instances import from.
inline std::string wasm_base() {
  return std::string("(module") + kWasmTypes + R"(
  (memory (export "mem") 1 3)
  (table (export "tab") 16 funcref)
  (global (export "fuel") (mut i32) (i32.const 0))
  (global $a (export "g0") (mut i32) (i32.const 7))
  (global (export "g1") (mut i64) (i64.const -1))
  (global (export "g2") (mut f64) (f64.const 0.5))
  (func $f0 (export "f0") (type $t0) (i32.sub (local.get 0) (local.get 1)))
  (func $f1 (export "f1") (type $t1) (local.get 0))
  (func $f2 (export "f2") (type $t2) (global.set $a (local.get 0)))
  (func $f3 (export "f3") (type $t3) (local.get 0) (local.get 1))
  (elem (i32.const 0) $f0 $f1 $f2 $f3 $f0 $f1 $f2 $f3 $f0 $f1 $f2 $f3 $f0 $f1 $f2 $f3)))";
}

class RandomWasm {
 public:
  explicit RandomWasm(Random& r) : r_(r) {}

  std::string module() {
    std::string out = std::string("(module") + kWasmTypes;
    out += R"(
  (import "env" "fuel" (global $fuel (mut i32)))
  (import "env" "tab" (table 16 funcref))
  (import "in" "g0" (global $in0 (mut i32)))
  (import "in" "g1" (global $in1 (mut i64)))
  (import "in" "g2" (global $in2 (mut f64)))
  (import "in" "f0" (func $if0 (type $t0)))
  (import "in" "f1" (func $if1 (type $t1)))
  (import "in" "f2" (func $if2 (type $t2)))
  (import "in" "f3" (func $if3 (type $t3)))
)";
    bool owns = r_.chance(40);
    mirrors_ = r_.chance(30);
    out += owns ? "  (memory (export \"mem\") 1 3)\n"
                : "  (import \"in\" \"mem\" (memory 1 3))\n  (export \"mem\" (memory 0))\n";
    for (size_t t = 0; t < 3; ++t) out += globals(t);
    for (size_t k = 0; k < 4; ++k) out += function(k);
    if (r_.chance(80)) {
      out += "  (elem (i32.const " + std::to_string(4 * r_.below(4)) + ") $f0 $f1 $f2 $f3)\n";
    }
    return out + ")\n";
  }

 private:
  enum T : size_t { kI32, kI64, kF64, kF32 };
  static constexpr const char* kNames[] = {"i32", "i64", "f64", "f32"};
  // Parameter types of f0 to f3.
  static constexpr std::array<std::array<T, 2>, 4> kParams = {
      {{kI32, kI32}, {kI64, kF64}, {kI32, kI32}, {kF64, kI32}}};
  static constexpr size_t kParamCount[] = {2, 2, 1, 2};

  static std::string name(T t) { return kNames[t]; }
  static bool is_float(T t) { return t == kF64 || t == kF32; }
  std::string pick(std::initializer_list<const char*> from) {
    return from.begin()[r_.below(from.size())];
  }
  static std::string call(const std::string& op, std::initializer_list<std::string> args) {
    std::string s = "(" + op;
    for (const std::string& a : args) s += " " + a;
    return s + ")";
  }

  // Two globals: a private one, and an exported one, which may be the imported global instead.
  std::string globals(size_t t) {
    std::string n = std::to_string(t), type = "(mut " + name(T(t)) + ")";
    std::string begin = " (" + name(T(t)) + ".const " + std::to_string(r_.below(9)) + "))\n";
    std::string out = "  (global $own" + n + " " + type + begin;
    bool again = r_.chance(25);
    out += "  (global $out" + n + (again ? "" : " (export \"g" + n + "\")") + " " + type + begin;
    if (again) out += "  (export \"g" + n + "\" (global $in" + n + "))\n";
    return out;
  }

  // ---- Functions --------------------------------------------------------------------------------

  std::string function(size_t k) {
    kind_ = k;
    small_ = r_.chance(45) || (mirrors_ && k == 0);
    locals_.clear();
    labels_.clear();
    loops_ = 0;
    std::string body;
    if (!small_) {
      body += "    (if (i32.eqz (global.get $fuel)) (then " + results(1) + " return))\n";
      body += "    (global.set $fuel (i32.sub (global.get $fuel) (i32.const 1)))\n";
    }
    bool mirror = mirrors_ && k == 0;
    if (mirror) body += "    (global.set $out0 " + value(kI32, 1) + ")\n";
    if (!mirror || r_.chance(40))
      body += statements(small_ ? 1 + r_.below(3) : 3 + r_.below(8), small_ ? 1 : 3);
    body += "    " + results(2) + "\n";
    std::string n = std::to_string(k);
    std::string head = "  (func $f" + n + " (export \"f" + n + "\") (type $t" + n + ")\n";
    head += "    (local $a0 i32) (local $a1 i32) (local $b0 i64) (local $b1 i64)\n";
    head += "    (local $c0 f64) (local $c1 f64) (local $d0 f32) (local $d1 f32)\n";
    for (const std::string& l : locals_) head += "    (local " + l + ")\n";
    return head + body + "  )\n";
  }

  std::string results(int depth) {
    if (kind_ == 0 && small_ && r_.chance(50))
      return r_.chance(70) ? "(i32.const 1)" : "(i32.const 0)";
    if (kind_ == 0) return value(kI32, depth);
    if (kind_ == 1) return value(kI64, depth);
    if (kind_ == 2) return "";
    return value(kF64, depth) + " " + value(kI32, depth);
  }

  std::string local(T t) {
    for (size_t n = 0; n < kParamCount[kind_]; ++n) {
      if (kParams[kind_][n] == t && r_.chance(30)) return std::to_string(n);
    }
    return std::string("$") + "abcd"[t] + (r_.chance(50) ? "0" : "1");
  }

  std::string global(size_t t) {
    return pick({"$own", "$out", "$out", "$in", "$in"}) + std::to_string(t);
  }
  size_t global_type() { return r_.chance(60) ? 0 : r_.below(3); }

  // ---- Statements -------------------------------------------------------------------------------

  std::string statements(size_t count, int depth) {
    std::string out;
    for (; count > 0; --count) out += "    " + statement(depth) + "\n";
    return out;
  }

  T any() { return T(r_.below(4)); }

  std::string statement(int depth) {
    if (small_ && r_.chance(40)) return set_global();
    if (!small_ && mirrors_ && r_.chance(30)) return asks(depth);
    switch (r_.below(small_ ? 7 : 19)) {
      case 0:
      case 1: {
        T t = any();
        return call("local.set", {local(t), value(t, 3)});
      }
      case 2:
      case 3: return set_global();
      case 4:
      case 5: return store();
      case 6: return branch(depth);
      case 7:
      case 8:
      case 9:
      case 10: return calls();
      case 11: return depth > 0 ? loop(depth) : store();
      case 12: return depth > 0 ? run() : store();
      case 13: return leave();
      case 14: return bulk();
      case 15:
      case 16:
      case 17: return asks(depth);
      default: return depth > 0 ? choice(depth) : store();
    }
  }

  std::string set_global() {
    T t = T(global_type());
    return call("global.set", {global(t), value(t, 2)});
  }

  std::string branch(int depth) {
    if (depth == 0) return store();
    std::string s = "(if " + value(kI32, 2) + "\n(then\n" + statements(1 + r_.below(3), depth - 1);
    s += ")";
    if (r_.chance(50)) s += "(else\n" + statements(1 + r_.below(3), depth - 1) + ")";
    return s + ")";
  }

  std::string label() { return "$l" + std::to_string(loops_++); }

  std::string leave() {
    if (labels_.empty()) return store();
    return call("br_if", {r_.pick(labels_), value(kI32, 2)});
  }

  // A switch whose cases fall through.
  std::string choice(int depth) {
    size_t cases = 2 + r_.below(4);
    std::vector<std::string> ends;
    std::string s, table;
    for (size_t n = 0; n < cases; ++n) ends.push_back(label());
    for (size_t n = 0; n < cases; ++n) s += "(block " + ends[n] + "\n";
    for (size_t n = 0; n < 1 + r_.below(9); ++n) table += " " + r_.pick(ends);
    std::string index =
        r_.chance(60) ? call("i32.and", {value(kI32, 2), "(i32.const 7)"}) : value(kI32, 2);
    s += "(br_table" + table + " " + index + "))\n";
    for (size_t n = 1; n < cases; ++n) s += statements(1 + r_.below(2), depth - 1) + ")";
    return s;
  }

  std::string loop(int depth) {
    std::string again = label(), out = label(), left = "$n" + again.substr(1);
    locals_.push_back(left + " i32");
    size_t rounds = 1 + r_.below(depth == 3 && r_.chance(30) ? 40 : 6);
    std::string s = "(local.set " + left + " (i32.const " + std::to_string(rounds) + "))\n";
    s += "(block " + out + " (loop " + again + "\n";
    labels_.push_back(out);
    s += statements(1 + r_.below(4), depth - 1);
    labels_.pop_back();
    std::string less = call("i32.sub", {"(local.get " + left + ")", "(i32.const 1)"});
    return s + call("br_if", {again, "(local.tee " + left + " " + less + ")"}) + "))";
  }

  // A loop that fills or copies, element by element.
  std::string run() {
    std::string again = label(), left = "$n" + again.substr(1);
    std::string to = "$p" + again.substr(1), from = "$q" + again.substr(1);
    for (const std::string& v : {left, to, from}) locals_.push_back(v + " i32");
    auto place = [&] { return call("i32.and", {value(kI32, 2), "(i32.const 2047)"}); };
    size_t rounds = 1 + r_.below(r_.chance(50) ? 100 : 10), kind = r_.below(3);
    std::string width = std::to_string(1 << (2 * kind - (kind == 2 ? 1 : 0)));
    std::string get = kind == 0 ? "i32.load8_u" : kind == 1 ? "i32.load" : "i64.load";
    std::string put = kind == 0 ? "i32.store8" : kind == 1 ? "i32.store" : "i64.store";
    std::string what = r_.chance(50) ? call(get, {"(local.get " + from + ")"})
                                     : "(local.get " + local(kind == 2 ? kI64 : kI32) + ")";
    std::string s = call("local.set", {left, "(i32.const " + std::to_string(rounds) + ")"});
    s += call("local.set", {to, place()}) + call("local.set", {from, place()});
    if (r_.chance(50)) {
      auto apart = std::to_string(static_cast<int>(r_.below(160)) - 16);
      std::string near = call("i32.add", {"(local.get " + from + ")", "(i32.const " + apart + ")"});
      s += call("local.set", {to, near});
    }
    s += "(loop " + again + "\n" + call(put, {"(local.get " + to + ")", what});
    for (const std::string& v : {to, from}) {
      s += call("local.set",
                {v, call("i32.add", {"(local.get " + v + ")", "(i32.const " + width + ")"})});
    }
    std::string less = call("i32.sub", {"(local.get " + left + ")", "(i32.const 1)"});
    return s + call("br_if", {again, "(local.tee " + left + " " + less + ")"}) + ")";
  }

  std::string bulk() {
    if (r_.chance(4))
      return "(drop (memory.grow " + call("i32.and", {value(kI32, 1), "(i32.const 1)"}) + "))";
    auto place = [&] {
      return call("i32.and",
                  {value(kI32, 2), r_.chance(95) ? "(i32.const 8191)" : "(i32.const -1)"});
    };
    std::string count = r_.chance(70) ? "(i32.const " + std::to_string(r_.below(40)) + ")"
                                      : call("i32.and", {value(kI32, 1), "(i32.const 127)"});
    std::string what = r_.chance(50) ? place() : value(kI32, 1);
    return r_.chance(50) ? call("memory.copy", {place(), place(), count})
                         : call("memory.fill", {place(), what, count});
  }

  // Calls an own function, an imported one or one from the table; mutual recursion ends when fuel
  // is used up.
  std::string calls() {
    size_t k = r_.below(4);
    std::string n = std::to_string(k), args;
    for (size_t p = 0; p < kParamCount[k]; ++p) args += " " + value(kParams[k][p], 2);
    std::string s;
    if (r_.chance(35)) {
      std::string slot = call("i32.and", {value(kI32, 1), "(i32.const 12)"});
      if (r_.chance(60)) slot = "(i32.const " + std::to_string(4 * r_.below(4)) + ")";
      if (r_.chance(98)) slot = call("i32.or", {slot, "(i32.const " + n + ")"});
      s = "(call_indirect (type $t" + n + ")" + args + " " + slot + ")";
    } else {
      s = "(call $" + std::string(r_.chance(60) ? "if" : "f") + n + args + ")";
    }
    if (k == 0) return call("local.set", {local(kI32), s});
    if (k == 1) return call("local.set", {local(kI64), s});
    if (k == 3) s += " (local.set " + local(kI32) + ") (local.set " + local(kF64) + ")";
    return s;
  }

  // Reads a global before and after a call whose result decides what follows.
  std::string asks(int depth) {
    if (depth == 0) return calls();
    T t = mirrors_ ? kI32 : T(global_type());
    std::string from = mirrors_ && r_.chance(70) ? "$in0" : global(t);
    std::string g = "(global.get " + from + ")", was = local(t);
    std::string s = call("local.set", {was, g});
    std::string f =
        call(mirrors_ || r_.chance(75) ? "call $if0" : "call $f0", {leaf(kI32), leaf(kI32)});
    s += call("local.set", {"$a0", f});
    std::string op = name(t) + (t == kF64 ? ".add" : ".xor");
    s += call("local.set", {local(t), call(op, {g, "(local.get " + was + ")"})});
    s += "(if (local.get $a0)\n(then " + statements(1, depth - 1) + ")";
    return s + "(else " + statements(1, depth - 1) + "))";
  }

  // ---- Memory -----------------------------------------------------------------------------------

  std::string offset() {
    if (r_.chance(40)) return "";
    return " offset=" + std::to_string(r_.chance(97) ? r_.below(60000) : r_.next() >> 33);
  }

  // Inside the first page; rarely anywhere, or before its beginning.
  std::string place() {
    if (r_.chance(1)) return value(kI32, 1);
    std::string at = call("i32.and", {value(kI32, 2), "(i32.const 4095)"});
    if (r_.chance(1)) return call("i32.sub", {at, "(i32.const 8)"});
    if (r_.chance(20))
      at = call("i32.add", {at, "(i32.const " + std::to_string(r_.below(500)) + ")"});
    return at;
  }

  std::string store() {
    T t = any();
    std::string op = name(t) + ".store";
    if (t == kI32 && r_.chance(40)) op += pick({"8", "16"});
    if (t == kI64 && r_.chance(40)) op += pick({"8", "16", "32"});
    std::string at = place();
    return call(op + offset(), {at, is_float(t) ? number(t, value(t, 2)) : value(t, 3)});
  }

  std::string load(T t) {
    std::string op = name(t) + ".load";
    if (t == kI32 && r_.chance(50)) op += pick({"8_s", "8_u", "16_s", "16_u"});
    if (t == kI64 && r_.chance(50)) op += pick({"8_s", "8_u", "16_s", "16_u", "32_s", "32_u"});
    op += offset();
    std::string loaded = call(op, {place()});
    return is_float(t) ? number(t, loaded) : loaded;
  }

  // ---- Expressions ------------------------------------------------------------------------------

  // `x`, or 1 if it is a NaN; a local holds x meanwhile.
  std::string number(T t, const std::string& x) {
    std::string v = "$" + std::string(1, "abcd"[t]) + "1", get = "(local.get " + v + ")";
    std::string tee = "(local.tee " + v + " " + x + ")";
    return "(select " + tee + " (" + name(t) + ".const 1) (" + name(t) + ".eq " + get + " " + get +
           "))";
  }

  std::string leaf(T t) {
    if (r_.chance(55)) return "(local.get " + local(t) + ")";
    if (t != kF32 && r_.chance(50)) return "(global.get " + global(t) + ")";
    if (is_float(t)) {
      return "(" + name(t) + ".const " + pick({"0", "-0", "1", "-1.5", "1e10", "inf", "0.25"}) +
             ")";
    }
    uint64_t bits = random_bits(t == kI32 ? Type::kI32 : Type::kI64, r_);
    int64_t v = t == kI32 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits);
    return "(" + name(t) + ".const " + std::to_string(v) + ")";
  }

  std::string value(T t, int depth) {
    if (depth <= 0 || r_.chance(20)) return leaf(t);
    if (r_.chance(12)) {
      return call("select", {value(t, depth - 1), value(t, depth - 1), value(kI32, depth - 1)});
    }
    if (r_.chance(12)) return load(t);
    return is_float(t) ? floating(t, depth) : integer(t, depth);
  }

  std::string integer(T t, int depth) {
    auto v = [&] { return value(t, depth - 1); };
    std::string n = name(t) + ".";
    switch (r_.below(10)) {
      case 0: return call(n + pick({"clz", "ctz", "popcnt", "extend8_s", "extend16_s"}), {v()});
      case 1: {
        std::string op = n + pick({"div_s", "div_u", "rem_s", "rem_u"});
        if (r_.chance(3)) return call(op, {v(), v()});
        std::string odd =
            call(n + "or", {call(n + "and", {v(), "(" + n + "const 255)"}), "(" + n + "const 1)"});
        return call(op, {v(), r_.chance(50) ? odd
                                            : "(" + n + "const " +
                                                  pick({"3", "7", "8", "-5", "1000"}) + ")"});
      }
      case 2:
      case 3:
        if (t == kI32) return condition(depth);
        return call(pick({"i64.extend_i32_s", "i64.extend_i32_u"}), {value(kI32, depth - 1)});
      case 4: {
        if (t == kI32 && r_.chance(60)) return call("i32.wrap_i64", {value(kI64, depth - 1)});
        T from = r_.chance(50) ? kF64 : kF32;
        std::string op =
            n + (r_.chance(97) ? "trunc_sat_" : "trunc_") + name(from) + "_" + pick({"s", "u"});
        return call(op, {value(from, depth - 1)});
      }
      case 5: {
        T from = t == kI32 ? kF32 : kF64;
        return call(n + "reinterpret_" + name(from), {number(from, value(from, depth - 1))});
      }
      default:
        return call(n + pick({"add", "add", "sub", "mul", "and", "or", "xor", "shl", "shr_s",
                              "shr_u", "rotl", "rotr"}),
                    {v(), r_.chance(30) ? leaf(t) : v()});
    }
  }

  std::string condition(int depth) {
    T t = any();
    std::string x = value(t, depth - 1), n = name(t) + ".";
    if (is_float(t)) {
      return call(n + pick({"eq", "ne", "lt", "gt", "le", "ge"}), {x, value(t, depth - 1)});
    }
    if (r_.chance(20)) return call(n + "eqz", {x});
    return call(
        n + pick({"eq", "ne", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u"}),
        {x, value(t, depth - 1)});
  }

  std::string floating(T t, int depth) {
    auto v = [&] { return value(t, depth - 1); };
    std::string n = name(t) + ".";
    switch (r_.below(8)) {
      case 0:
        return call(n + pick({"abs", "neg", "sqrt", "ceil", "floor", "trunc", "nearest"}), {v()});
      case 1: return call(n + pick({"min", "max"}), {v(), v()});
      case 2: return call(n + "copysign", {v(), number(t, v())});
      case 3:
        return t == kF32 ? call("f32.demote_f64", {value(kF64, depth - 1)})
                         : call("f64.promote_f32", {value(kF32, depth - 1)});
      case 4: {
        T from = r_.chance(50) ? kI32 : kI64;
        return call(n + "convert_" + name(from) + "_" + pick({"s", "u"}), {value(from, depth - 1)});
      }
      default: return call(n + pick({"add", "sub", "mul", "div"}), {v(), v()});
    }
  }

  Random& r_;
  size_t kind_ = 0;       // of the current function, 0 to 3
  bool small_ = false;    // the current function calls nothing
  bool mirrors_ = false;  // f0 sets the global that other modules import
  size_t loops_ = 0;
  std::vector<std::string> locals_, labels_;  // declared so far; of enclosing loops
};

}  // namespace uptier::test
