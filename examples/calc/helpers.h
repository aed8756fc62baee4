// helpers.h: what compiled code calls in the host: the slow paths of vm.h as C functions.
//
// Each takes the Vm and the instruction it works for, which says the operation and, when it fails,
// the line. Those that may fail are called with kCallMayTrap: Vm::fail has told the runtime then
// (Runtime::raise), and the compiled code that called ends as soon as the helper returns.
#pragma once

#include "uptier/builder.h"

namespace calc::helper {

extern const uptier::HostFunction kArithmetic;  // (vm, at, a, b) -> Val
extern const uptier::HostFunction kNegate;      // (vm, at, a) -> Val
extern const uptier::HostFunction kCompare;     // (vm, at, a, b) -> i32
extern const uptier::HostFunction kEqual;       // (a, b) -> i32; cannot fail
extern const uptier::HostFunction kModulo;      // (f64, f64) -> f64; cannot fail
extern const uptier::HostFunction kGetField;    // (vm, at, object) -> Val
extern const uptier::HostFunction kSetField;    // (vm, at, object, value)
extern const uptier::HostFunction kGetIndex;    // (vm, at, object, index) -> Val
extern const uptier::HostFunction kSetIndex;    // (vm, at, object, index, value)
extern const uptier::HostFunction kPush;        // (vm, at, array, value)
extern const uptier::HostFunction kNewArray;    // (vm, at) -> Val, all nil
extern const uptier::HostFunction kNewRecord;   // (vm, at) -> Val, fields unset
extern const uptier::HostFunction kNewCell;     // (vm, at, value) -> Val
extern const uptier::HostFunction kNewClosure;  // (vm, at, closure) -> Val; local cells unset
extern const uptier::HostFunction kForFrom;     // (vm, at, from, to) -> i32
extern const uptier::HostFunction kForTo;       // (vm, at, from, to) -> i32
extern const uptier::HostFunction kCallee;      // (vm, at, function) -> where to call it
extern const uptier::HostFunction kBuiltin;     // (vm, at, a, b, c) -> Val
extern const uptier::HostFunction kPrint;       // (vm, at, a, end of line) -> Val

}  // namespace calc::helper
