#!/usr/bin/env python3
"""Writes arith_*.uir and memory_*.uir: every operation x type x edge values or places.

The expected results are computed here, from Python's integers, floats and fractions, so they do not
come from the interpreter or the compilers that are tested with them. Run it in its own folder after
a change; the files it writes are part of the repository.
"""
import math
import struct
from fractions import Fraction

WIDTH = {"i32": 32, "i64": 64, "ref": 64}
FLOAT = {"f32": ("<f", "<I", 24, 127), "f64": ("<d", "<Q", 53, 1023)}
TRAP_ZERO, TRAP_OVER, TRAP_NAN = "trap divide_by_zero", "trap integer_overflow", "trap invalid_conversion"


# ---- Values: ints are signed Python ints; floats are bit patterns (ints) with their type --------
def wrap(v, bits):
    v &= (1 << bits) - 1
    return v - (1 << bits) if v >> (bits - 1) else v


def unsigned(v, bits):
    return v & ((1 << bits) - 1)


def bits_of(x, t):
    """Bits of a Python float in f32 or f64; overflow gives an infinity."""
    if t == "f64":
        return struct.unpack("<Q", struct.pack("<d", x))[0]
    if math.isnan(x) or math.isinf(x) or x == 0:
        return struct.unpack("<I", struct.pack("<f", x))[0]
    return round_fraction(Fraction(x), t)


def float_of(b, t):
    fmt, raw, _, _ = FLOAT[t]
    return struct.unpack(fmt, struct.pack(raw, b))[0]


def round_fraction(q, t):
    """Rounds a non-zero fraction to the nearest float, ties to even; returns bits."""
    _, raw, precision, bias = FLOAT[t]
    mantissa_bits = precision - 1
    sign = 1 if q < 0 else 0
    q = abs(q)
    e = q.numerator.bit_length() - q.denominator.bit_length()
    if Fraction(2) ** e > q:
        e -= 1
    e = max(e, 1 - bias)
    scaled = q / Fraction(2) ** (e - mantissa_bits)
    n = scaled.numerator // scaled.denominator
    rest = scaled - n
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and n & 1):
        n += 1
    total = {"f32": 32, "f64": 64}[t]
    if n >= 1 << precision:
        n >>= 1
        e += 1
    if e > bias:
        b = (2 * bias + 1) << mantissa_bits
    elif n < 1 << mantissa_bits:
        b = n  # subnormal
    else:
        b = ((e + bias) << mantissa_bits) | (n - (1 << mantissa_bits))
    return b | sign << (total - 1)


def is_nan(b, t):
    return math.isnan(float_of(b, t))


def text(v, t):
    if t in WIDTH:
        return str(v) if t != "ref" else hex(unsigned(v, 64))
    x = float_of(v, t)
    if math.isnan(x):
        return "nan:" + hex(v)
    return repr(x) if abs(x) < 1e20 and (x == 0 or abs(x) > 1e-6) else x.hex() if not math.isinf(x) else repr(x)


# ---- Semantics ------------------------------------------------------------------------------
def int_binary(op, a, b, t):
    n = WIDTH[t]
    ua, ub, low = unsigned(a, n), unsigned(b, n), -(1 << (n - 1))
    sh = ub % n
    if op in ("div_s", "div_u", "rem_s", "rem_u"):
        if ub == 0:
            return TRAP_ZERO
        if op == "div_s":
            return TRAP_OVER if a == low and b == -1 else int(math.copysign(1, a * b)) * (abs(a) // abs(b)) if a else 0
        if op == "rem_s":
            r = abs(a) % abs(b)
            return -r if a < 0 else r
        return wrap(ua // ub if op == "div_u" else ua % ub, n)
    exact = {"add": a + b, "sub": a - b, "mul": a * b}
    if op in exact:
        return wrap(exact[op], n)
    if op == "mul_high_s":
        return wrap((a * b) >> n, n)
    if op == "mul_high_u":
        return wrap((ua * ub) >> n, n)
    stem = op.split("_")[0]
    if op.endswith("_overflows"):
        return int(wrap(exact[stem], n) != exact[stem])
    if op.endswith("_trap"):
        return exact[stem] if wrap(exact[stem], n) == exact[stem] else TRAP_OVER
    rot = lambda k: wrap((ua << k) | (ua >> (n - k)), n) if k else a
    table = {
        "and": lambda: a & b, "or": lambda: a | b, "xor": lambda: a ^ b,
        "shl": lambda: wrap(ua << sh, n), "shr_s": lambda: a >> sh, "shr_u": lambda: wrap(ua >> sh, n),
        "rotl": lambda: rot(sh), "rotr": lambda: rot((n - sh) % n),
        "eq": lambda: int(a == b), "ne": lambda: int(a != b),
        "lt_s": lambda: int(a < b), "lt_u": lambda: int(ua < ub), "gt_s": lambda: int(a > b),
        "gt_u": lambda: int(ua > ub), "le_s": lambda: int(a <= b), "le_u": lambda: int(ua <= ub),
        "ge_s": lambda: int(a >= b), "ge_u": lambda: int(ua >= ub),
    }
    return table[op]()


def int_unary(op, a, t):
    n = WIDTH[t]
    s = format(unsigned(a, n), "0%db" % n)
    table = {
        "clz": lambda: len(s) - len(s.lstrip("0")), "ctz": lambda: len(s) - len(s.rstrip("0")),
        "popcnt": lambda: s.count("1"), "sext8": lambda: wrap(a, 8), "sext16": lambda: wrap(a, 16),
        "sext32": lambda: wrap(a, 32), "eqz": lambda: int(a == 0),
    }
    return table[op]()


def float_binary(op, a, b, t):
    """Returns bits, "nan" for any NaN, or an int for comparisons."""
    x, y = float_of(a, t), float_of(b, t)
    sign = 1 << (31 if t == "f32" else 63)
    compare = {"feq": x == y, "fne": x != y, "flt": x < y, "fgt": x > y, "fle": x <= y, "fge": x >= y}
    if op in compare:
        return int(compare[op])
    if op == "fcopysign":
        return (a & ~sign) | (b & sign)
    if math.isnan(x) or math.isnan(y):
        return "nan"
    if op in ("fmin", "fmax"):
        if x == y:
            return (a if (a & sign) else b) if op == "fmin" else (b if (a & sign) else a)
        return (a if x < y else b) if op == "fmin" else (a if x > y else b)
    if math.isinf(x) or math.isinf(y) or x == 0 or y == 0:
        try:
            r = {"fadd": lambda: x + y, "fsub": lambda: x - y, "fmul": lambda: x * y, "fdiv": lambda: x / y}[op]()
        except ZeroDivisionError:
            r = math.nan if x == 0 else math.copysign(math.inf, x) * math.copysign(1, y)
        return "nan" if math.isnan(r) else bits_of(r, t)
    q = {"fadd": Fraction(x) + Fraction(y), "fsub": Fraction(x) - Fraction(y),
         "fmul": Fraction(x) * Fraction(y), "fdiv": Fraction(x) / Fraction(y)}[op]
    return round_fraction(q, t) if q else bits_of(0.0, t)


def float_unary(op, a, t):
    x, sign = float_of(a, t), 1 << (31 if t == "f32" else 63)
    if op == "fabs":
        return a & ~sign
    if op == "fneg":
        return a ^ sign
    if math.isnan(x) or (op == "fsqrt" and x < 0):
        return "nan"
    if math.isinf(x) or x == 0:
        return a
    if op == "fsqrt":
        return bits_of(math.sqrt(x), t)
    whole = {"fceil": math.ceil, "ffloor": math.floor, "ftrunc": math.trunc, "fnearest": round}[op](x)
    return round_fraction(Fraction(whole), t) if whole else bits_of(math.copysign(0.0, x), t)


def convert(op, a, source, to):
    if op == "wrap":
        return wrap(a, 32)
    if op == "extend_s":
        return a
    if op == "extend_u":
        return unsigned(a, 32)
    if op == "bitcast":
        raw = unsigned(a, WIDTH[source]) if source in WIDTH else a
        return wrap(raw, WIDTH[to]) if to in WIDTH else raw
    if op in ("promote", "demote"):
        x = float_of(a, source)
        return "nan" if math.isnan(x) else bits_of(x, to)
    if op in ("convert_s", "convert_u"):
        v = a if op == "convert_s" else unsigned(a, WIDTH[source])
        return round_fraction(Fraction(v), to) if v else 0
    x, n = float_of(a, source), WIDTH[to]
    low, high = (-(1 << (n - 1)), (1 << (n - 1)) - 1) if op.endswith("_s") else (0, (1 << n) - 1)
    saturates = "sat" in op
    if math.isnan(x):
        return 0 if saturates else TRAP_NAN
    if math.isinf(x) or not low <= math.trunc(x) <= high:
        return wrap(low if x < 0 else high, n) if saturates else TRAP_OVER
    return wrap(math.trunc(x), n)


# ---- Edge values ------------------------------------------------------------------------------
def int_edges(t):
    n = WIDTH[t]
    low, high = -(1 << (n - 1)), (1 << (n - 1)) - 1
    more = [0x123456789ABCDEF, 1 << 32, -(1 << 31) - 1] if n == 64 else [0x12345678, 65535, -32769]
    return [0, 1, -1, low, high, 7, n - 1, n, n + 3, 128, -129] + more


def int_pairs(t):
    e = int_edges(t)
    low, high = e[3], e[4]
    return [(0, 0), (1, 2), (-1, 1), (low, -1), (high, 1), (low, low), (7, 0), (e[11], 7), (-7, 2),
            (7, -2), (e[11], e[8]), (high, high), (-129, e[6]), (e[12], e[13]), (low, 1), (5, 5), (e[11], e[7])]


def float_edges(t):
    tiny = 1
    big = {"f32": 0x7F7FFFFF, "f64": 0x7FEFFFFFFFFFFFFF}[t]
    snan = {"f32": 0x7FA00000, "f64": 0x7FF4000000000000}[t]
    qnan = {"f32": 0xFFC12345, "f64": 0xFFF8000012345678}[t]
    plain = [0.0, -0.0, 1.0, -1.5, 0.5, 2.5, -2.5, 0.1, math.inf, -math.inf, 3e9, -1e-3]
    return [bits_of(x, t) for x in plain] + [tiny, big, qnan, snan]


def float_pairs(t):
    e = float_edges(t)
    zero, neg_zero, one, m15, half, b25, _, tenth, inf, ninf, _, small, tiny, big, qnan, snan = e
    return [(zero, neg_zero), (neg_zero, zero), (zero, zero), (neg_zero, neg_zero), (one, m15), (tenth, tenth),
            (half, b25), (m15, m15), (inf, inf), (inf, ninf), (ninf, one), (one, inf), (zero, inf), (one, zero),
            (one, neg_zero), (big, big), (big, tiny), (tiny, tiny), (tiny, half), (tenth, small), (qnan, one),
            (one, snan), (qnan, qnan), (m15, qnan), (tenth, big)]


# ---- Files ------------------------------------------------------------------------------------
class File:
    def __init__(self, name, about):
        self.name, self.out = name, ["; %s" % line for line in about + ["Written by make_corpus.py."]]

    def function(self, name, params, result, body):
        head = ", ".join("v%d: %s" % (i, t) for i, t in enumerate(params))
        self.out += ["", "func @%s(%s) -> %s {" % (name, ", ".join(params), result), "b0(%s):" % head if head else "b0:"]
        self.out += [line if line.endswith(":") else "  " + line for line in body] + ["}"]
        self.name_of, self.params, self.result = name, params, result

    def run(self, args, expected):
        shown = expected if isinstance(expected, str) else text(expected, self.result)
        args = ", ".join(text(a, t) for a, t in zip(args, self.params))
        self.out.append("; run @%s(%s) -> %s" % (self.name_of, args, shown))

    def raw_run(self, args, expected):
        self.out.append("; run @%s(%s) -> %s" % (self.name_of, args, expected))

    def write(self):
        with open(self.name, "w") as f:
            f.write("\n".join(self.out) + "\n")


INT_VALUE = ["add", "sub", "mul", "mul_high_s", "mul_high_u", "div_s", "div_u", "rem_s", "rem_u", "and", "or", "xor", "shl", "shr_s", "shr_u",
             "rotl", "rotr", "add_trap", "sub_trap", "mul_trap"]
INT_COMPARE = ["eq", "ne", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u"]
INT_OVERFLOW = ["add_overflows", "sub_overflows", "mul_overflows"]
FLOAT_VALUE = ["fadd", "fsub", "fmul", "fdiv", "fmin", "fmax", "fcopysign"]
FLOAT_COMPARE = ["feq", "fne", "flt", "fgt", "fle", "fge"]
FLOAT_UNARY = ["fabs", "fneg", "fsqrt", "fceil", "ffloor", "ftrunc", "fnearest"]


def branching(f, name, op, t, pairs, evaluate):
    """The same comparison as a branch condition and as the condition of a select."""
    f.function("br_" + name, [t, t], "i32",
               ["v2 = %s.%s v0, v1" % (op, t), "branch v2, b1, b2", "b1:", "v3 = const.i32 10", "return v3", "b2:",
                "v4 = const.i32 20", "return v4"])
    for a, b in pairs:
        f.run((a, b), "10" if evaluate(op, a, b, t) else "20")
    f.function("sel_" + name, [t, t], t, ["v2 = %s.%s v0, v1" % (op, t), "v3 = select.%s v2, v0, v1" % t, "return v3"])
    for a, b in pairs:
        f.run((a, b), a if evaluate(op, a, b, t) else b)


def integers(t):
    f = File("arith_%s.uir" % t, ["Integer operations of %s on two registers." % t])
    for op in INT_VALUE + INT_COMPARE + INT_OVERFLOW:
        f.function("%s_%s" % (op, t), [t, t], "i32" if op in INT_COMPARE + INT_OVERFLOW else t,
                   ["v2 = %s.%s v0, v1" % (op, t), "return v2"])
        for a, b in int_pairs(t):
            f.run((a, b), int_binary(op, a, b, t))
    for op in ["clz", "ctz", "popcnt", "sext8", "sext16", "eqz"] + (["sext32"] if t == "i64" else []):
        f.function("%s_%s" % (op, t), [t], "i32" if op == "eqz" else t, ["v1 = %s.%s v0" % (op, t), "return v1"])
        for a in int_edges(t) + [0x80, 0x7F, 0x8000, 0x7FFF]:
            f.run((a,), int_unary(op, a, t))
    f.write()

    f = File("arith_%s_const.uir" % t, ["Integer operations of %s with a constant on the right, on the left," % t,
                                        "and on both sides."])
    n = WIDTH[t]
    consts = [0, 1, -1, 7, n + 1, -(1 << (n - 1))] + ([0x123456789ABC, 1 << 31] if n == 64 else [1 << 30])
    xs = [1, -1, -(1 << (n - 1)), 1000003]
    for op in INT_VALUE + INT_COMPARE + INT_OVERFLOW:
        result = "i32" if op in INT_COMPARE + INT_OVERFLOW else t
        for k in consts:
            mark = "%s_%s_k%s" % (op, t, str(k).replace("-", "m"))
            f.function(mark, [t], result, ["v1 = const.%s %d" % (t, k), "v2 = %s.%s v0, v1" % (op, t), "return v2"])
            for x in xs:
                f.run((x,), int_binary(op, x, k, t))
        f.function("%s_%s_left" % (op, t), [t], result,
                   ["v1 = const.%s 100" % t, "v2 = %s.%s v1, v0" % (op, t), "return v2"])
        for x in xs:
            f.run((x,), int_binary(op, 100, x, t))
        a, b = consts[-1], 3
        f.function("%s_%s_both" % (op, t), [], result,
                   ["v0 = const.%s %d" % (t, a), "v1 = const.%s %d" % (t, b), "v2 = %s.%s v0, v1" % (op, t), "return v2"])
        f.run((), int_binary(op, a, b, t))
    f.write()

    f = File("arith_%s_branch.uir" % t, ["Comparisons of %s that a branch or a select takes." % t])
    for op in INT_COMPARE + INT_OVERFLOW:
        branching(f, "%s_%s" % (op, t), op, t, int_pairs(t), int_binary)
    f.function("br_eqz_" + t, [t], "i32", ["v1 = eqz.%s v0" % t, "branch v1, b1, b2", "b1:", "v2 = const.i32 10",
                                           "return v2", "b2:", "v3 = const.i32 20", "return v3"])
    for a in int_edges(t):
        f.run((a,), "20" if a else "10")
    if t == "i32":
        f.function("br_plain", [t], "i32", ["branch v0, b1, b2", "b1:", "v1 = const.i32 10", "return v1", "b2:",
                                            "v2 = const.i32 20", "return v2"])
        for a in int_edges(t):
            f.run((a,), "10" if a else "20")
    f.write()


def floats(t):
    f = File("arith_%s.uir" % t, ["Float operations of %s; `nan` is any quiet NaN." % t])
    for op in FLOAT_VALUE + FLOAT_COMPARE:
        f.function("%s_%s" % (op, t), [t, t], "i32" if op in FLOAT_COMPARE else t,
                   ["v2 = %s.%s v0, v1" % (op, t), "return v2"])
        for a, b in float_pairs(t):
            f.run((a, b), float_binary(op, a, b, t))
    for op in FLOAT_UNARY:
        f.function("%s_%s" % (op, t), [t], t, ["v1 = %s.%s v0" % (op, t), "return v1"])
        extra = [0.4999, -0.4999, 0.9999, -0.9999, 1.5, 3.5, -3.5, 4503599627370497.5, 8388609.0, 4.0, 2.0, 1e-300]
        for a in float_edges(t) + [bits_of(x, t) for x in extra]:
            f.run((a,), float_unary(op, a, t))
    f.write()

    f = File("arith_%s_branch.uir" % t, ["Comparisons of %s that a branch or a select takes." % t])
    for op in FLOAT_COMPARE:
        branching(f, "%s_%s" % (op, t), op, t, float_pairs(t), float_binary)
    f.write()


def conversions():
    f = File("arith_convert.uir", ["Conversions at their boundaries."])

    def case(op, source, to, values):
        f.function("%s_%s_%s" % (op, source, to), [source], to, ["v1 = %s.%s v0" % (op, to), "return v1"])
        for v in values:
            f.run((v,), convert(op, v, source, to))

    i32, i64 = int_edges("i32"), int_edges("i64")
    case("wrap", "i64", "i32", i64 + [0xFFFFFFFF, 0x80000000, -(1 << 32)])
    case("extend_s", "i32", "i64", i32)
    case("extend_u", "i32", "i64", i32)
    near = [0.0, -0.0, 0.9, -0.9, 1.9, -1.9, 2147483647.0, 2147483648.0, -2147483648.0, -2147483649.0, 4294967295.0,
            4294967296.0, 9223372036854775808.0, -9223372036854775808.0, 18446744073709551616.0, 1e30, -1e30,
            math.inf, -math.inf, 2147483646.5, -2147483648.9, 4294967295.9, -0.99999, 123456.789]
    for source in ("f32", "f64"):
        total, step = {"f32": 32, "f64": 64}[source], 1
        values = [bits_of(x, source) for x in near]
        for x in (2147483648.0, 4294967296.0, 9223372036854775808.0, 18446744073709551616.0):
            values.append(bits_of(x, source) - step)  # the float below
        for x in (-2147483648.0, -9223372036854775808.0, -1.0):
            values += [bits_of(x, source) + step, bits_of(x, source) - step]
        values += float_edges(source)[-4:]
        for to in ("i32", "i64"):
            for op in ("trunc_s", "trunc_u", "trunc_sat_s", "trunc_sat_u"):
                case(op, source, to, values)
    to_float = {"i32": i32 + [16777217, 16777219, 33554435, -16777217],
                "i64": i64 + [16777217, 9007199254740993, 9007199254740995, -9007199254740993, (1 << 63) - 513,
                              0x7FFFFF4000000001, wrap(0xFFFFFFFFFFFFFC00, 64), wrap(0x8000008000000001, 64),
                              wrap(0x8000000000000400, 64), wrap(0x8000000000000401, 64)]}
    for source in ("i32", "i64"):
        for to in ("f32", "f64"):
            for op in ("convert_s", "convert_u"):
                case(op, source, to, to_float[source])
    case("promote", "f32", "f64", float_edges("f32"))
    halfway = [bits_of(x, "f64") for x in (1 + 2.0 ** -24, 1 + 2.0 ** -24 + 2.0 ** -50, 1 + 3 * 2.0 ** -24, 3.5e38,
                                           3.4028235677973366e38, 3.4028235e38, 2.0 ** -149, 2.0 ** -150,
                                           1.5 * 2.0 ** -150, -(2.0 ** -151), 1e-40)]
    case("demote", "f64", "f32", float_edges("f64") + halfway)
    case("bitcast", "f32", "i32", float_edges("f32"))
    case("bitcast", "i32", "f32", i32 + [0x7F800001, 0x7FC00000, wrap(0xFFFFFFFF, 32)])
    case("bitcast", "f64", "i64", float_edges("f64"))
    case("bitcast", "i64", "f64", i64 + [0x7FF0000000000001, wrap(0xFFFFFFFFFFFFFFFF, 64)])
    case("bitcast", "ref", "i64", [0, 1, -1, 1 << 47])
    case("bitcast", "i64", "ref", [0, 1, -1, 1 << 47])
    case("bitcast", "ref", "f64", [0, 1 << 62, 0x3FF0000000000000])
    case("bitcast", "f64", "ref", [bits_of(1.0, "f64"), bits_of(-0.0, "f64")])
    for t, values in (("i32", i32[:4]), ("i64", i64[:4]), ("f32", float_edges("f32")[-4:]),
                      ("f64", float_edges("f64")[-4:]), ("ref", [0, 5])):
        case("bitcast", t, t, values)
    f.write()


def refs():
    f = File("arith_ref.uir", ["Comparisons of refs."])
    pairs = [(0, 0), (0, 1), (1 << 40, 1 << 40), (1 << 40, 1), (-1, 0), (1 << 32, 0)]
    for op in ("eq", "ne"):
        f.function(op + "_ref", ["ref", "ref"], "i32", ["v2 = %s.ref v0, v1" % op, "return v2"])
        for a, b in pairs:
            f.run((a, b), int_binary(op, a, b, "ref"))
        branching(f, op + "_ref", op, "ref", pairs, int_binary)
    f.function("eqz_ref", ["ref"], "i32", ["v1 = eqz.ref v0", "return v1"])
    for a in (0, 1, 1 << 32, -1):
        f.run((a,), int(a == 0))
    f.write()


def selects():
    f = File("arith_select.uir", ["Selects of every type by a condition in a register."])
    for t in ("i32", "i64", "f32", "f64", "ref"):
        a, b = (float_edges(t)[15], float_edges(t)[1]) if t in FLOAT else (-5, 9)
        f.function("select_" + t, ["i32", t, t], t, ["v3 = select.%s v0, v1, v2" % t, "return v3"])
        for c in (0, 1, -1, 256, -2147483648):
            f.run((c, a, b), a if c else b)
    f.write()


# ---- Memory -----------------------------------------------------------------------------------
# Byte i of the scratch page starts as (37 i + 11) mod 256; the page has 4096 bytes.
PAGE = [(37 * i + 11) & 255 for i in range(4096)]
LOADS = {"load8_s": 1, "load8_u": 1, "load16_s": 2, "load16_u": 2, "load32_s": 4, "load32_u": 4}
STORES = {"store8": 1, "store16": 2, "store32": 4}
OUT = "trap out_of_bounds_memory"


def types_of(op):
    if op in ("load", "store"):
        return ["i32", "i64", "f32", "f64", "ref"]
    return ["i64"] if "32" in op else ["i32", "i64"]


def size_of(op, t):
    return {**LOADS, **STORES}.get(op, {"i32": 4, "f32": 4}.get(t, 8))


def loaded(op, t, at):
    """Text of what a load gives at an offset into the page; a trap when it is not all inside."""
    size = size_of(op, t)
    if at < 0 or at + size > len(PAGE):
        return OUT
    raw = int.from_bytes(bytes(PAGE[at:at + size]), "little")
    if t in FLOAT:
        return text(raw, t)
    return text(wrap(raw, 8 * size) if op.endswith("_s") or op == "load" else raw, t)


def memory_loads():
    f = File("memory_load.uir", ["Loads of every width by every form of address, in and out of bounds."])
    for op in ["load"] + list(LOADS):
        for t in types_of(op):
            last = 4096 - size_of(op, t)
            name = "%s_%s" % (op, t)
            f.function(name, ["ref"], t, ["v1 = %s.%s v0 traps" % (op, t), "return v1"])
            for at in (0, 1, 7, 100, last, last + 1, 4096, -1, -8, 70000):
                f.raw_run("mem%+d" % at, loaded(op, t, at))
            f.function(name + "_offset", ["ref"], t, ["v1 = %s.%s v0+40 traps" % (op, t), "return v1"])
            for at in (0, 3, last - 40, last - 39, -40, -41):
                f.raw_run("mem%+d" % at, loaded(op, t, at + 40))
            for kind in ("i32", "i64"):
                f.function("%s_index_%s" % (name, kind), ["ref", kind], t,
                           ["v2 = %s.%s v0[v1]+5 traps" % (op, t), "return v2"])
                for at, index in [(0, 0), (0, 6), (64, 200), (0, last - 5), (0, last - 4), (8, 100000)]:
                    f.raw_run("mem%+d, %d" % (at, index), loaded(op, t, at + index + 5))
            f.raw_run("mem+100, -60", loaded(op, t, 45))  # an i64 index is signed
            f.function(name + "_i64_base", ["ref", "i32"], t,
                       ["v2 = bitcast.i64 v0", "v3 = %s.%s v2[v1]+1 traps" % (op, t), "return v3"])
            f.raw_run("mem+9, 20", loaded(op, t, 30))
            f.function(name + "_plain", ["ref"], t, ["v1 = %s.%s v0+8 invariant" % (op, t), "v2 = %s.%s v0+9" % (op, t),
                                                     "v3 = %s.%s v0+8" % (op, t), "return v2"])
            f.raw_run("mem+2", loaded(op, t, 11))
    # The upper half of an i32 in a register is no part of an index.
    f.function("index_is_zero_extended", ["ref", "i64"], "i32",
               ["v2 = wrap.i32 v1", "v3 = load8_u.i32 v0[v2] traps", "return v3"])
    f.raw_run("mem, -4294967292", loaded("load8_u", "i32", 4))
    f.raw_run("mem, 12884901898", loaded("load8_u", "i32", 10))
    f.write()


def memory_stores():
    f = File("memory_store.uir", ["Stores of every width by every form of address; the result is the eight bytes",
                                  "around the place, so that no neighbour may change."])
    values = {"i32": [-1, 0x12345678, 0], "i64": [-2, 0x123456789ABCDEF0], "f32": float_edges("f32")[4:6] + float_edges("f32")[14:],
              "f64": float_edges("f64")[5:6] + float_edges("f64")[14:], "ref": [0, 0x7FFF12345678]}
    for op in ["store"] + list(STORES):
        for t in types_of(op):
            size, name = size_of(op, t), "%s_%s" % (op, t)
            forms = {"": "v0+16", "_index": "v0[v2]+16", "_index64": "v0[v3]+16"}
            for suffix, place in forms.items():
                f.function(name + suffix, ["ref", t, "i32"], "i64",
                           ["v3 = extend_u.i64 v2", "%s.%s v1, %s traps" % (op, t, place),
                            "v4 = load.i64 v0[v3]+%d" % (14 if size < 8 else 16), "return v4"]
                           if suffix else
                           ["%s.%s v1, v0+16 traps" % (op, t), "v3 = load.i64 v0+%d" % (14 if size < 8 else 16), "return v3"])
                for v in values[t]:
                    for base, index in ((0, 0), (5, 3)):
                        at = base + 16 + (index if suffix else 0)
                        page = list(PAGE)
                        raw = unsigned(v, 8 * size) if t in WIDTH else v
                        page[at:at + size] = list(raw.to_bytes(size, "little"))
                        at -= 2 if size < 8 else 0
                        seen = wrap(int.from_bytes(bytes(page[at:at + 8]), "little"), 64)
                        f.raw_run("mem+%d, %s, %d" % (base, text(v, t), index), str(seen))
            last = 4096 - size - 16
            f.raw_run("mem, %s, %d" % (text(values[t][0], t), last + 1), OUT)
            f.raw_run("mem-17, %s, 0" % text(values[t][0], t), OUT)
    f.write()


for kind in ("i32", "i64"):
    integers(kind)
for kind in ("f32", "f64"):
    floats(kind)
conversions()
refs()
selects()
memory_loads()
memory_stores()
