"""Random small C programs for a soak: loops in loops, calls, switches, arrays and recursion, which end.

Arithmetic is of unsigned numbers, so nothing is undefined; the exported function `run` returns a sum
of all that was computed. A program takes some millions of steps."""
import random
import subprocess

KINDS = ("uint32_t", "uint64_t", "double")


class Writer:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.functions = []  # their kinds: (of the result, of the parameter)

    def expression(self, names, depth=0):
        r = self.r
        if depth > 2 or r.random() < 0.3:
            return r.choice(names) if r.random() < 0.75 else str(r.randrange(1, 1 << r.randrange(1, 20)))
        a, b = self.expression(names, depth + 1), self.expression(names, depth + 1)
        form = r.choice(("({a} + {b})", "({a} - {b})", "({a} * {b})", "((u)({a}) ^ (u)({b}))",
                         "((u)({a}) >> ((u)({b}) & 31))", "((u)({a}) % ((u)({b}) | 1))",
                         "mem[(u)({a}) & 1023]", "({a} < {b})", "((u)({a}) & (u)({b}))"))
        return form.format(a=a, b=b)

    def call(self, names):
        if not self.functions:
            return self.expression(names)
        i = self.r.randrange(len(self.functions))
        return f"f{i}({self.expression(names)}, d + 1)"

    def statement(self, names, loops):
        r = self.r
        name = r.choice(names[1:])
        kind = r.random()
        if kind < 0.35:
            return f"{name} = {self.expression(names)};"
        if kind < 0.5:
            return f"mem[(u){self.expression(names)} & 1023] += {self.expression(names)};"
        if kind < 0.65:
            return f"{name} += {self.call(names)};"
        if kind < 0.75:
            return (f"if ((u){self.expression(names)} & 1) {{ {self.body(names, loops)} }} "
                    f"else {{ {self.body(names, loops)} }}")
        if kind < 0.85:
            cases = " ".join(f"case {k}: {name} += {self.expression(names)}; break;" for k in range(r.randrange(2, 7)))
            return f"switch ((u){self.expression(names)} & 7) {{ {cases} default: {name} += 5; }}"
        if loops == 0:
            return f"{name} = {self.expression(names)};"
        i = f"i{loops}"
        return f"for (u {i} = 0; {i} < {r.choice((3, 10, 40))}; ++{i}) {{ if (++steps > kMost) break; {self.body(names + [i], loops - 1)} }}"

    def body(self, names, loops):
        # A loop's own variable is never written.
        writable = [n for n in names if not n.startswith("i")]
        lines = []
        for _ in range(self.r.randrange(1, 4)):
            line = self.statement(writable, loops) if self.r.random() < 0.7 else \
                f"{self.r.choice(writable[1:])} += {self.expression(names)};"
            lines.append(line)
        return " ".join(lines)

    def function(self, i):
        result, kind = self.r.choice(KINDS), self.r.choice(KINDS)
        loop = f"for (u i9 = 0; i9 < n9; ++i9) {{ if (++steps > kMost) break; {self.body(['x', 'a', 'b', 'i9'], 2)} }}"
        again = f"if (d < 6 && ((u)a & 3) == 0) b += f{i}({self.expression(['a', 'b'])}, d + 1);"
        text = (f"static __attribute__((noinline)) {result} f{i}({kind} x, u d) {{\n"
                f"  {self.r.choice(KINDS)} a = {self.r.randrange(99)}; {self.r.choice(KINDS)} b = x;\n"
                f"  if (d > 8 || steps > kMost) return a;\n"
                f"  u n9 = {self.r.choice((1, 4, 30, 200))};\n"
                f"  {loop}\n  {again}\n  return a + b;\n}}\n")
        self.functions.append((result, kind))
        return text

    def program(self):
        head = ("typedef unsigned uint32_t; typedef unsigned long long uint64_t; typedef uint32_t u;\n"
                "enum { kMost = 20000 };\nstatic uint32_t mem[1024]; static uint32_t steps;\n")
        functions = "".join(self.function(i) for i in range(self.r.randrange(2, 7)))
        calls = " ".join(f"sum = sum * 31 + (u)(uint64_t)f{i}(k, 0);" for i in range(len(self.functions)))
        return (head + functions + "__attribute__((export_name(\"run\"))) uint32_t run(void) {\n"
                f"  uint32_t sum = 1;\n  for (u k = 0; k < 300; ++k) {{ steps = 0; {calls} }}\n"
                "  for (u k = 0; k < 1024; ++k) sum = sum * 31 + mem[k];\n  return sum;\n}\n")


def make(seed, path):
    """Writes the module of a seed. Raises where there is no clang that makes WebAssembly."""
    source = Writer(seed).program()
    subprocess.run(["clang", "--target=wasm32", "-O1", "-nostdlib", "-w", "-mnontrapping-fptoint",
                    "-Wl,--no-entry", "-x", "c", "-", "-o", path], input=source.encode(), check=True)
