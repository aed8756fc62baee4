#!/usr/bin/env python3
"""What tiers are worth to a dynamic language: examples/calc by its interpreter alone and through all
tiers, beside Lua 5.4 (an interpreter) and LuaJIT (a tracing compiler) on the same programs.

  calc.py --calc build/release/calc [--rounds 5] [--programs nbody,records] [--json FILE]

Bad news would be: a numeric loop (mandel, nbody, matrix, sieve) that is less than 10 times as fast as
the interpreter, calls through records less than 3 times, or the storm of changing types slower than
1.2 times the interpreter's time. The interpreter is a fair one if it is no slower than Lua's.

Time is the CPU time of the program's thread: the worker that compiles beside it is not in it. Every
engine runs once in each round; a ratio is taken within its round, and what is shown is the median
with the lowest and the highest. Outputs are compared before anything is timed.
"""
import argparse, json, os, shutil, statistics, subprocess, sys

from programs import geomean
from measure import guest_seconds

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "calc",
                        "programs")
# The interpreter takes about a second or two for each of these.
SIZES = {"mandel": 900, "fib": 36, "sieve": 12000, "nbody": 800000, "matrix": 600, "strings": 40000,
         "records": 80000, "closures": 200000, "storm": 50000}


def engines(calc):
    made = {"interpreter": lambda p, n: [calc, "--interpret", path(p, "calc"), n],
            "automatic": lambda p, n: [calc, path(p, "calc"), n],
            "optimized": lambda p, n: [calc, "--tier=optimized", path(p, "calc"), n]}
    for lua in ["lua5.4", "luajit"]:
        if shutil.which(lua):
            made[lua] = lambda p, n, lua=lua: [lua, path(p, "lua"), n]
        else:
            print(f"{lua} is not installed: its column is left out", file=sys.stderr)
    return made


def path(program, suffix):
    return os.path.join(PROGRAMS, f"{program}.{suffix}")


def output(command):
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if r.returncode != 0:
        raise SystemExit(f"failed: {' '.join(command)}\n{r.stderr.decode()[:500]}")
    return r.stdout


def check_outputs(made, program, size):
    expected = output(made["interpreter"](program, size))
    for name, command in made.items():
        if output(command(program, size)) != expected:
            raise SystemExit(f"{program} {size}: {name} prints something else than the interpreter")


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--calc", required=True, help="path of the calc example")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--programs", help="comma separated; all by default")
    ap.add_argument("--json", help="writes every time to this file")
    a = ap.parse_args()

    made = engines(a.calc)
    wanted = a.programs.split(",") if a.programs else list(SIZES)
    times = {}
    for program in wanted:
        size = str(SIZES[program])
        check_outputs(made, program, size)
        rows = {e: [] for e in made}
        for _ in range(a.rounds):
            for engine, command in made.items():
                rows[engine].append(guest_seconds(command(program, size)))
        times[program] = rows

    others = [e for e in made if e != "interpreter"]
    print("how many times as fast as calc's interpreter (CPU time of the program's thread); median "
          f"of {a.rounds} interleaved rounds, with lowest and highest")
    print(f"{'program':<10}{'interpreter':>13}" + "".join(f"{e:>22}" for e in others))
    medians = {e: [] for e in others}
    for program, rows in times.items():
        cells = ""
        for e in others:
            ratios = [i / x for i, x in zip(rows["interpreter"], rows[e])]
            medians[e].append(statistics.median(ratios))
            cells += f"{medians[e][-1]:>8.2f} ({min(ratios):.2f}-{max(ratios):.2f})".rjust(22)
        print(f"{program:<10}{statistics.median(rows['interpreter']):>11.3f} s{cells}")
    print(f"{'geomean':<10}{'':>13}" + "".join(f"{geomean(medians[e]):>8.2f}".ljust(22).rjust(22)
                                             for e in others))
    if a.json:
        with open(a.json, "w") as f:
            json.dump(times, f, indent=1)


if __name__ == "__main__":
    main()
