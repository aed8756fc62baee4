#!/usr/bin/env python3
"""What tiers are worth to a dynamic language: examples/calc by its interpreter alone and through all
tiers, beside Lua 5.4 (an interpreter) and LuaJIT (a tracing compiler) on the same programs, and
beside native code of five of them: what gcc -O2 makes of C that has the types and asks the same
(programs/native.h).

  calc.py --calc build/release/calc [--rounds 5] [--programs nbody,records] [--steady] [--json FILE]

Bad news would be: a numeric loop (mandel, nbody, matrix, sieve) that is less than 10 times as fast as
the interpreter while native code is faster than that, calls through records less than 3 times, or the
storm of changing types slower than 1.2 times the interpreter's time. The interpreter is a fair one if
it is no slower than Lua's.

Time is the CPU time of the program's thread: the worker that compiles beside it is not in it. Every
engine runs once in each round; a ratio is taken within its round, and what is shown is the median
with the lowest and the highest. Outputs are compared before anything is timed.

--steady: what is left when a run of the usual size is taken from a larger one, over what is left of
native code: neither starting nor warming up is in it.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile

from programs import geomean
from measure import guest_seconds, load_note

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "calc",
                        "programs")
# The interpreter takes about a second or two for each of these.
SIZES = {"mandel": 900, "fib": 36, "sieve": 12000, "nbody": 800000, "matrix": 600, "strings": 40000,
         "records": 80000, "closures": 200000, "storm": 50000}
LARGER = {"mandel": 1559, "fib": 38, "sieve": 36000, "nbody": 2400000, "matrix": 1800}


def engines(calc, scratch):
    """Returns {name: command maker}; the interpreter comes first."""
    made = {"interpreter": lambda p, n: [calc, "--interpret", path(p, "calc"), n],
            "automatic": lambda p, n: [calc, path(p, "calc"), n],
            "optimized": lambda p, n: [calc, "--tier=optimized", path(p, "calc"), n],
            "native": lambda p, n: [os.path.join(scratch, p), n]}
    for lua in ["lua5.4", "luajit"]:
        made[lua] = lambda p, n, lua=lua: [lua, path(p, "lua"), n]
    for engine, command in [("native", "gcc"), ("lua5.4", "lua5.4"), ("luajit", "luajit")]:
        if not shutil.which(command):
            print(f"{command} is not installed: {engine} is left out", file=sys.stderr)
            del made[engine]
    return made


def build_native(programs, folder):
    """Compiles those programs that there are in C."""
    for p in programs:
        if os.path.exists(path(p, "c")):
            subprocess.run(["gcc", "-O2", path(p, "c"), "-lm", "-o", os.path.join(folder, p)],
                           check=True)


def path(program, suffix):
    return os.path.join(PROGRAMS, f"{program}.{suffix}")


def output(command):
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if r.returncode != 0:
        raise SystemExit(f"failed: {' '.join(command)}\n{r.stderr.decode()[:500]}")
    return r.stdout


def measure(made, program, sizes, rounds):
    """Returns {engine: [seconds of each round]} of the engines that have the program; of two sizes
    what the second takes more than the first."""
    made = {e: command for e, command in made.items()
            if e != "native" or os.path.exists(command(program, "")[0])}
    for size in sizes:
        expected = output(made["automatic"](program, size))
        for engine, command in made.items():
            if output(command(program, size)) != expected:
                raise SystemExit(f"{program} {size}: {engine} prints something else than automatic")
    rows = {e: [] for e in made}
    for _ in range(rounds):
        for engine, command in made.items():
            seconds = [guest_seconds(command(program, size)) for size in sizes]
            rows[engine].append(seconds[-1] - sum(seconds[:-1]))
    return rows


def print_steady(times, engines):
    print("steady state over native code (gcc -O2)")
    print(f"{'program':<10}{'native':>13}" + "".join(f"{e:>22}" for e in engines))
    for program, rows in times.items():
        cells = ""
        for e in engines:
            ratios = [x / n for x, n in zip(rows[e], rows["native"])]
            cells += f"{statistics.median(ratios):>8.2f} ({min(ratios):.2f}-{max(ratios):.2f})".rjust(22)
        print(f"{program:<10}{statistics.median(rows['native']):>11.3f} s{cells}")


def print_ratios(times, others):
    print("how many times as fast as calc's interpreter (CPU time of the program's thread)")
    print(f"{'program':<10}{'interpreter':>13}" + "".join(f"{e:>22}" for e in others))
    medians = {e: [] for e in others}
    for program, rows in times.items():
        cells = ""
        for e in others:
            ratios = [i / x for i, x in zip(rows["interpreter"], rows.get(e, []))]
            if not ratios:
                cells += "-".rjust(22)
                continue
            medians[e].append(statistics.median(ratios))
            cells += f"{medians[e][-1]:>8.2f} ({min(ratios):.2f}-{max(ratios):.2f})".rjust(22)
        print(f"{program:<10}{statistics.median(rows['interpreter']):>11.3f} s{cells}")
    means = "".join((f"{geomean(m):>8.2f}" if m else "-").ljust(22).rjust(22)
                    for m in medians.values())
    print(f"{'geomean':<10}{'':>13}{means}")


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--calc", required=True, help="path of the calc example")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--programs", help="comma separated; all by default")
    ap.add_argument("--steady", action="store_true", help="against native code, without start-up")
    ap.add_argument("--json", help="writes every time to this file")
    a = ap.parse_args()

    all_programs = LARGER if a.steady else SIZES
    wanted = a.programs.split(",") if a.programs else list(all_programs)
    with tempfile.TemporaryDirectory(prefix="uptier-calc-") as scratch:
        made = engines(a.calc, scratch)
        if "native" in made:
            build_native(wanted, scratch)
        if a.steady:
            made = {e: made[e] for e in ["native", "automatic", "luajit"] if e in made}
            if "native" not in made:
                raise SystemExit("--steady compares with native code, which takes gcc")
        sizes = {p: [SIZES[p], LARGER[p]] if a.steady else [SIZES[p]] for p in wanted}
        times = {p: measure(made, p, [str(n) for n in sizes[p]], a.rounds) for p in wanted}
    print(f"{load_note()}; median of {a.rounds} interleaved rounds, with lowest and highest")
    if a.steady:
        print_steady(times, [e for e in made if e != "native"])
    else:
        print_ratios(times, [e for e in made if e != "interpreter"])
    if a.json:
        with open(a.json, "w") as f:
            json.dump(times, f, indent=1)


if __name__ == "__main__":
    main()
