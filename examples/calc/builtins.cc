// The functions that the language brings along. Compiled code makes the shortest ones itself
// (emit_objects.cc).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "vm.h"

namespace calc {
namespace {

#define BUILTIN(name)                                                                         \
  Val name([[maybe_unused]] Vm* vm, [[maybe_unused]] const Instr* at, [[maybe_unused]] Val a, \
           [[maybe_unused]] Val b, [[maybe_unused]] Val c) noexcept

Val wrong(Vm* vm, const Instr* at, const char* what) {
  return vm->fail(at, std::string(kBuiltins[at->b].name) + ": " + what);
}
Val make(Vm* vm, const Instr* at, std::string_view text) {
  return vm->made(at, vm->heap.concat(text, {}));
}
Val make(double d) {
  auto i = static_cast<int32_t>(std::clamp(d, -2147483648.0, 2147483647.0));
  if (i == d && !std::signbit(d)) return of_int(i);
  return of_double(std::isnan(d) ? NAN : d);
}
double num(Val v) { return is_number(v) ? number(v) : NAN; }

// d: whether the line ends.
BUILTIN(do_print) {
  std::string text = text_of(a) + (at->d != 0 ? "\n" : " ");
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kNilVal;
}
BUILTIN(do_sqrt) {
  return is_number(a) ? of_double(std::sqrt(number(a))) : wrong(vm, at, "needs a number");
}
BUILTIN(do_len) {
  if (Row* array = as_array(a)) return of_int(static_cast<int32_t>(array->length));
  if (String* s = as_string(a)) return of_int(static_cast<int32_t>(s->length));
  return wrong(vm, at, "needs an array or a string");
}
BUILTIN(do_push) {
  Row* array = as_array(a);
  if (array == nullptr) return wrong(vm, at, "needs an array");
  return vm->heap.push(array, b) ? kNilVal : vm->made(at, nullptr);
}
BUILTIN(do_pop) {
  Row* array = as_array(a);
  if (array == nullptr || array->length == 0) {
    return wrong(vm, at, "needs an array that is not empty");
  }
  return std::exchange(array->data[--array->length], kNilVal);
}
// array(n, v): n times v.
BUILTIN(do_array) {
  double n = num(a);
  if (!(n >= 0 && n < 1e9)) return wrong(vm, at, "needs a length");
  return vm->made(at, vm->heap.row(&array_shape, static_cast<uint32_t>(n), b));
}
BUILTIN(do_str) { return make(vm, at, text_of(a)); }
// fixed(x, digits): x with so many digits after the point.
BUILTIN(do_fixed) {
  if (!is_number(a) || !is_int(b)) return wrong(vm, at, "needs a number and digits");
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", std::clamp(as_int(b), 0, 30), number(a));
  return make(vm, at, text);
}
// byte(s, i): the i-th byte, from 0.
BUILTIN(do_byte) {
  String* s = as_string(a);
  bool inside = s != nullptr && num(b) >= 0 && num(b) < s->length;
  if (!inside) return wrong(vm, at, "needs a string and a place in it");
  return of_int(static_cast<unsigned char>(s->text[static_cast<uint32_t>(number(b))]));
}
// sub(s, from, to): the bytes from..to.
BUILTIN(do_sub) {
  String* s = as_string(a);
  if (s == nullptr || !is_number(b) || !is_number(c)) {
    return wrong(vm, at, "needs a string and two places");
  }
  double length = s->length, from = std::clamp(number(b), 0.0, length);
  auto first = static_cast<size_t>(from);
  return make(
      vm, at,
      s->view().substr(first, static_cast<size_t>(std::clamp(number(c), from, length)) - first));
}
// join(a): the texts of an array's elements, one after the other.
BUILTIN(do_join) {
  Row* array = as_array(a);
  if (array == nullptr) return wrong(vm, at, "needs an array");
  std::string text;
  for (uint32_t i = 0; i < array->length; ++i) text += text_of(array->data[i]);
  return make(vm, at, text);
}
// arg(i, otherwise): the i-th argument of the program, as a number.
BUILTIN(do_arg) {
  double i = num(a);
  if (!(i >= 0 && i < static_cast<double>(vm->arguments.size()))) return b;
  return make(std::strtod(vm->arguments[static_cast<size_t>(i)].c_str(), nullptr));
}

}  // namespace

const std::vector<Builtin> kBuiltins = {{"print", 1, do_print, kNil},
                                        {"sqrt", 1, do_sqrt, kDouble},
                                        {"len", 1, do_len, kInt},
                                        {"push", 2, do_push, kNil},
                                        {"pop", 1, do_pop},
                                        {"array", 2, do_array, kArray},
                                        {"str", 1, do_str, kString},
                                        {"fixed", 2, do_fixed, kString},
                                        {"byte", 2, do_byte, kInt},
                                        {"sub", 3, do_sub, kString},
                                        {"join", 1, do_join, kString},
                                        {"arg", 2, do_arg}};

std::string text_of(Val v) {
  char text[32];
  switch (kind_of(v)) {
    case kInt: return std::to_string(as_int(v));
    case kDouble:
      // An int cannot say minus zero, so nothing does.
      std::snprintf(text, sizeof text, "%.14g", as_double(v) == 0 ? 0 : as_double(v));
      return text;
    case kNil: return "nil";
    case kBool: return v == kTrueVal ? "true" : "false";
    case kString: return std::string(as_string(v)->view());
    case kFunction: return "function " + as_closure(v)->proto->name;
    case kRecord: return "record";
    case kArray: return "array of " + std::to_string(as_array(v)->length);
  }
  return "?";
}

}  // namespace calc
