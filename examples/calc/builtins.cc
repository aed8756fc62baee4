// The functions that the language brings along. Compiled code makes the short ones itself
// (build.cc).
#include <ctime>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "ast.h"
#include "vm.h"

namespace calc {
namespace {

struct Call {
  Vm& vm;
  const Instr* at;
  const Val* args;

  Val fail(const char* what) const {
    return vm.fail(at, std::string(kBuiltins[at->b].name) + ": " + what);
  }
  String* string(unsigned i) const {
    bool is = is_object(args[i]) && as_object(args[i])->shape == &vm.heap.string_shape;
    return is ? static_cast<String*>(as_object(args[i])) : nullptr;
  }
  Array* array(unsigned i) const {
    bool is = is_object(args[i]) && as_object(args[i])->shape == &vm.heap.array_shape;
    return is ? static_cast<Array*>(as_object(args[i])) : nullptr;
  }
  double num(unsigned i) const { return is_number(args[i]) ? number(args[i]) : NAN; }
  Val result(const std::string& text) const {
    String* s = vm.heap.string(text);
    return s == nullptr ? vm.out_of_memory(at) : of_object(s);
  }
  Val result(double d) const {
    auto i = static_cast<int32_t>(std::clamp(d, -2147483648.0, 2147483647.0));
    return i == d && !std::signbit(d) ? of_int(i) : of_double(d);
  }
};

Val do_print(const Call& c) {
  for (int i = 0; i < c.at->c; ++i) print(c.vm, c.args[i], i + 1 == c.at->c);
  return c.vm.heap.nil();
}
Val do_len(const Call& c) {
  if (Array* a = c.array(0)) return of_int(static_cast<int32_t>(a->length));
  if (String* s = c.string(0)) return of_int(static_cast<int32_t>(s->length));
  return c.fail("needs an array or a string");
}
Val do_push(const Call& c) {
  Array* a = c.array(0);
  if (a == nullptr) return c.fail("needs an array");
  return c.vm.heap.push(a, c.args[1]) ? c.vm.heap.nil() : c.vm.out_of_memory(c.at);
}
Val do_pop(const Call& c) {
  Array* a = c.array(0);
  if (a == nullptr || a->length == 0) return c.fail("needs an array that is not empty");
  return a->data[--a->length];
}
// array(n, v): n times v.
Val do_array(const Call& c) {
  double n = c.num(0);
  if (!(n >= 0 && n < 1e9)) return c.fail("needs a length");
  Array* a = c.vm.heap.array(static_cast<uint32_t>(n));
  if (a == nullptr) return c.vm.out_of_memory(c.at);
  std::fill_n(a->data, a->length, c.args[1]);
  return of_object(a);
}
Val do_sqrt(const Call& c) {
  return is_number(c.args[0]) ? of_double(std::sqrt(c.num(0))) : c.fail("needs a number");
}
Val do_floor(const Call& c) {
  return is_number(c.args[0]) ? c.result(std::floor(c.num(0)) + 0.0) : c.fail("needs a number");
}
Val do_clock(const Call&) {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return of_double(static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec));
}
Val do_str(const Call& c) { return c.result(text_of(c.vm, c.args[0])); }
Val do_num(const Call& c) {
  String* s = c.string(0);
  return s == nullptr ? c.fail("needs a string")
                      : c.result(std::strtod(std::string(s->view()).c_str(), nullptr));
}
// fixed(x, digits): x with so many digits behind the point.
Val do_fixed(const Call& c) {
  if (!is_number(c.args[0]) || !is_int(c.args[1])) return c.fail("needs a number and digits");
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", std::clamp(as_int(c.args[1]), 0, 30), c.num(0));
  return c.result(std::string(text));
}
// byte(s, i): the i-th byte, from 0.
Val do_byte(const Call& c) {
  String* s = c.string(0);
  double i = c.num(1);
  if (s == nullptr || !(i >= 0 && i < s->length)) return c.fail("needs a string and a place in it");
  return of_int(static_cast<unsigned char>(s->text[static_cast<uint32_t>(i)]));
}
// sub(s, from, to): the bytes from..to.
Val do_sub(const Call& c) {
  String* s = c.string(0);
  if (s == nullptr || !is_number(c.args[1]) || !is_number(c.args[2])) {
    return c.fail("needs a string and two places");
  }
  double length = s->length;
  auto from = static_cast<size_t>(std::clamp(c.num(1), 0.0, length));
  auto to = static_cast<size_t>(std::clamp(c.num(2), static_cast<double>(from), length));
  return c.result(std::string(s->view().substr(from, to - from)));
}
// join(a): the strings of an array, one after the other.
Val do_join(const Call& c) {
  Array* a = c.array(0);
  if (a == nullptr) return c.fail("needs an array");
  std::string text;
  for (uint32_t i = 0; i < a->length; ++i) text += text_of(c.vm, a->data[i]);
  return c.result(text);
}
// arg(i, otherwise): the i-th argument of the program, as a number.
Val do_arg(const Call& c) {
  double i = c.num(0);
  if (!(i >= 0 && i < static_cast<double>(c.vm.arguments.size()))) return c.args[1];
  return c.result(std::strtod(c.vm.arguments[static_cast<size_t>(i)].c_str(), nullptr));
}

using Function = Val (*)(const Call&);
constexpr Function kFunctions[] = {do_print, do_len,   do_push,  do_pop,  do_array,
                                   do_sqrt,  do_floor, do_clock, do_str,  do_num,
                                   do_fixed, do_byte,  do_sub,   do_join, do_arg};

}  // namespace

const std::vector<BuiltinInfo> kBuiltins = {{"print", -1}, {"len", 1},  {"push", 2},  {"pop", 1},
                                            {"array", 2},  {"sqrt", 1}, {"floor", 1}, {"clock", 0},
                                            {"str", 1},    {"num", 1},  {"fixed", 2}, {"byte", 2},
                                            {"sub", 3},    {"join", 1}, {"arg", 2}};

void print(Vm& vm, Val v, bool last) {
  std::string text = text_of(vm, v) + (last ? "\n" : " ");
  std::fwrite(text.data(), 1, text.size(), stdout);
}

Val call_builtin(Vm& vm, const Instr* at, const Val* args) {
  return kFunctions[at->b]({vm, at, args});
}

std::string text_of(Vm& vm, Val v) {
  char text[32];
  switch (kind_of(v)) {
    case kInt: return std::to_string(as_int(v));
    case kDouble: {
      double d = as_double(v);
      if (d == 0) return "0";  // an int cannot say minus zero, so nothing does
      std::snprintf(text, sizeof text, "%.14g", d);
      return text;
    }
    case kNil: return "nil";
    case kBool: return v == vm.heap.boolean(true) ? "true" : "false";
    case kString: return std::string(static_cast<String*>(as_object(v))->view());
    case kFunction: return "function " + static_cast<Closure*>(as_object(v))->proto->name;
    case kRecord: return "record";
    case kArray: return "array of " + std::to_string(static_cast<Array*>(as_object(v))->length);
  }
  return "?";
}

}  // namespace calc
