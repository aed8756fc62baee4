// opcodes.h: the table of operations.
//
// Printer, parser, verifier, reference interpreter and both compilers derive from UPTIER_OPCODES. A
// row has all properties that do not depend on a machine: name, text, shape of operands,
// controlling types, and effects. Operations that WebAssembly has behave exactly as there
// (wrapping, shift counts modulo the width, NaN propagation, traps).
//
//   X(id, name, text, shape, types, effects)
//
// The rows are in opcode_table.h, which C can read as well; `name` is the operation's name in C.
// Text is `text.type operands`; `type` is the controlling type, see Shape.
#pragma once

#include <cstdint>

#include "uptier/ids.h"
#include "uptier/opcode_table.h"

namespace uptier {

// The shape of an instruction: its operands, results and other fields, in terms of the controlling
// type T (written after the dot).
enum class Shape : uint8_t {
  kConst,         // imm -> T                     imm holds the bits of the value, zero-extended
  kUnary,         // T -> T
  kBinary,        // T, T -> T
  kCompare,       // T, T -> i32                  1 or 0
  kTest,          // T -> i32
  kConvert,       // S -> T                       S is the type of the operand
  kSelect,        // i32, T, T -> T               second operand when the first is not 0
  kLoad,          // address -> T                 see "Addresses" below
  kStore,         // T, address
  kCall,          // args -> result of signature  aux: SignatureId, imm: index into callees
  kCallIndirect,  // ref, args -> result          aux: SignatureId
  kCallHost,      // args -> result               aux: SignatureId, imm: index into host functions
  kJump,          // -> one edge
  kBranch,        // i32 -> edge taken when not 0, edge taken when 0
  kSwitch,        // i32 -> edges 0..n-2 by index, the last edge otherwise
  kReturn,        // value of the function's result type, or nothing
  kTrap,          // aux: TrapCode
  kTrapIf,        // i32; aux: TrapCode           traps when the operand is not 0
  kLoopHeader,    // slots...; aux: LoopId, imm: host pc
  kProbe,         // optional value; aux: site, imm: ProbeKind in bits 0-31, tag in 32-63
  kKnownCount,    // aux: site -> T               see "Known counts" below
  kFrameState,    // slots...; aux: inline depth, imm: host pc
  kGuard,         // i32; aux: GuardReason        deopts to the last frame_state when 0
  kBulk,          // i64, i64, i64; imm: width    see "Bulk" below
  kFrameMemory,   // imm: bytes -> T              the frame's own, all 0 at first; in the entry only
};

// Addresses: one operand (`base`: ref or i64), or two (`base`, then `index`: an i64, or an i32 that
// is zero-extended), plus the unsigned 32-bit constant in `imm`. The sum is a host address.

// Known counts: the count that a counter, hit or gauge probe of the same body had reached when the
// code was made, as far as it was known. It is a constant in optimized code, and 0 everywhere else.
// So its value may differ from one execution to the next, and the body must be correct for any
// value. `imm` has the count once a compilation has looked it up.

// Bulk: `fill value, to, count` and `copy from, to, count` store `count` elements of `imm` (1, 2, 4
// or 8) bytes at host addresses, in ascending order. So a copy may later load elements that it has
// stored. If an element faults under kMemTraps, the elements before it are stored.

// The controlling types that an operation allows.
enum TypeMask : uint8_t {
  kMaskNone = 1,
  kMaskI32 = 2,
  kMaskI64 = 4,
  kMaskF32 = 8,
  kMaskF64 = 16,
  kMaskRef = 32,
  kMaskInt = kMaskI32 | kMaskI64,
  kMaskFloat = kMaskF32 | kMaskF64,
  kMaskNum = kMaskInt | kMaskFloat,
  kMaskAny = kMaskNum | kMaskRef,
};

// The effects of an instruction besides its result.
enum Effect : uint8_t {
  kPure = 0,  // same operands, same result: may be merged, moved, deleted
  // May end the call with a trap: not deleted unless an equal instruction dominates it, and not hoisted
  // above a guard. Loads and stores can trap only with kMemTraps.
  kCanTrap = 1,
  kReads = 2,      // reads memory
  kWrites = 4,     // writes memory or has another side effect
  kEndsBlock = 8,  // a terminator
  kCommutes = 16,  // operands may be swapped
  kPinned = 32,    // neither moved nor deleted, even if it has no result (probe, loop_header, ...)
};

enum class Opcode : uint8_t {
#define UPTIER_ROW(id, name, text, shape, types, effects) id,
  UPTIER_OPCODES(UPTIER_ROW)
#undef UPTIER_ROW
};

struct OpcodeInfo {
  const char* text;
  Shape shape;
  uint8_t types;    // TypeMask
  uint8_t effects;  // Effect
};

inline constexpr OpcodeInfo kOpcodeTable[] = {
#define UPTIER_ROW(id, name, text, shape, types, effects) {text, Shape::shape, types, effects},
    UPTIER_OPCODES(UPTIER_ROW)
#undef UPTIER_ROW
};

// Returns the row of the table. Constant time; `op` must be an operation.
inline const OpcodeInfo& info(Opcode op) { return kOpcodeTable[static_cast<unsigned>(op)]; }

inline constexpr unsigned kOpcodeCount = 0
#define UPTIER_ROW(id, name, text, shape, types, effects) +1
    UPTIER_OPCODES(UPTIER_ROW)
#undef UPTIER_ROW
    ;

// Flags of loads, stores and calls of C functions.
enum MemFlags : uint8_t {
  kMemNone = 0,
  kMemTraps = 1,  // a fault at this address is a trap out_of_bounds_memory
  // Load: the memory never changes while the function runs. It may be read at any time meanwhile,
  // also before guards and branches that precede the load. So do not use it for a field that exists
  // only if a guard has passed.
  kMemInvariant = 2,
  kCallMayTrap = 4,  // call_host, call_indirect: the callee may raise a trap
  kMemFenced = 8,    // with kMemTraps: there are guard regions, see kFenceBytes
  // call_host: the callee (ref context, ref base, i32 to, i32 from, i32 n) -> i32 copies n bytes
  // from base + from to base + to, as memmove does, and returns 0; `context` is the host's. If one
  // of these bytes may not be accessed, it stores nothing and returns 1. Optimized code copies
  // without the call if n is a small constant, or was nearly always the same small number. An
  // inaccessible byte must then fault, and the fault is a trap out_of_bounds_memory at the call; if
  // the call returns 1, the host raises that trap itself.
  kCallCopies = 16,
  // call_host: the same for (ref context, ref base, i32 to, i32 byte, i32 n) -> i32, which stores
  // the low 8 bits of `byte` n times from base + to on.
  kCallFills = 32,
};

// The size of a guard region, in bytes. With kMemFenced the host promises that accesses to the last
// kFenceBytes below the base, and to the last kFenceBytes below base + 2^32, fault. So an i32 index
// that is a sum may become part of the address: if the sum had wrapped around below zero, the
// access would lie in one of the two regions.
inline constexpr uint32_t kFenceBytes = 64 << 10;

// Alias classes, in the upper half of the flags of loads and stores. Accesses of different classes
// never touch the same byte while the function runs. Accesses of class 0 may touch the same bytes
// as any other access or another thread, so loads of class 0 are repeated in every iteration of a
// loop, while loads of other classes may be made only once. So a word that a host uses to stop a
// loop needs class 0. Classes have the same meaning in all methods with the same module_key and
// Host::alias_scope; they are ignored in bodies that are inlined from other methods. Combined with
// MemFlags by |.
inline constexpr unsigned kAliasClasses = 16;
constexpr uint8_t alias_class(unsigned n) { return static_cast<uint8_t>(n << 4); }
constexpr unsigned alias_class_of(uint8_t flags) { return flags >> 4; }

// The reason why a call ended without a result.
enum class TrapCode : uint8_t {
#define UPTIER_ROW(id, name, text) id,
  UPTIER_TRAPS(UPTIER_ROW)
#undef UPTIER_ROW
};
// Returns "integer divide by zero", ...; "?" for a number that is no code. Static storage, constant
// time, like the functions below.
const char* trap_text(TrapCode code);

// The reason why a guard was placed.
enum class GuardReason : uint8_t {
#define UPTIER_ROW(id, name, text) id,
  UPTIER_GUARD_REASONS(UPTIER_ROW)
#undef UPTIER_ROW
};
// Returns "type", "overflow", ...; "?" for a number that is no reason.
const char* guard_reason_name(GuardReason reason);

// The kinds of probes. The library observes blocks, edges and loops by itself, and the targets of
// call_indirect without a probe. A host may use these kinds, with these values:
//
//   kCallTarget  ref or i64   an entry address, counted by method; anything else is `other`
//   kValue       any          counts each value; also the sum, minimum and maximum
//   kLog         any          one record per visit, with the probe's tag, in a ring of the thread
//   kCounter     i32 or i64   adds the value to one word
//   kHit         none, any    adds 1, like a kCounter of 1; a value is ignored
//   kGauge       any          keeps the last value
//   kRange       i32 or i64   number of values, sum, minimum and maximum
//
// Values are recorded as 64 bits, signed: an i32 is sign-extended, an f32 is converted to a double,
// and a double and a ref are taken as bits.
enum class ProbeKind : uint8_t {
#define UPTIER_ROW(number, id, name, text, placed_by) id = number,
  UPTIER_PROBE_KINDS(UPTIER_ROW)
#undef UPTIER_ROW
};
inline constexpr ProbeKind kLastProbeKind = ProbeKind::kRange;
// Returns "block", "edge", ...; "?" for a number that is no kind.
const char* probe_kind_name(ProbeKind kind);
// Returns true if a body may use this kind; false for a number that is no kind.
bool host_places(ProbeKind kind);

}  // namespace uptier
