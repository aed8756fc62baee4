#!/usr/bin/env python3
"""How true are loop cycles that are extrapolated from a few executions?

Bad news would be: a loop with a share of 1 % or more whose extrapolated total is off by more than
3 %, or whose error is larger than the one it states.

In one run: with loop_dual every execution of a loop is timed, and beside the sum stands what would
have been extrapolated from the few executions that are recorded otherwise. Both are of the very same
executions, so their difference is the error of the extrapolation and nothing else: not of the
machine, not of code that lies elsewhere. Timing a loop disturbs what it lies in, so a loop whose
executions are shorter than --short cycles has a run to itself, and the others of a program share one.
--seeds times, with other draws. Shown are the mean error, weighted by cycles, the worst, how many are
within 3 %, and how many within the interval that the total states (nominally 95 %).

Between runs: what an ordinary run, in which few executions of all loops are timed, says of a loop
(median of --rounds) over what all of them took in the run above, less 1. That holds the error of the
extrapolation, what probes of other loops and pauses do, and what the machine makes of the same thing
twice; the last is seen by the second figure, where there are two seeds or more: by how much the exact
totals of two runs differ. With --details a line for each loop.
"""
import argparse, json, os, statistics, subprocess

from programs import PROGRAMS, read_programs

LEAST_SHARE = 0.01
CLOSE = 0.03


def loops(a, wasm, options=()):
    """Runs a program; returns {(function, loop): row} of the loops that were timed."""
    command = [a.tool, "run", "--loops=json"]
    for o in a.options + list(options):
        command += ["-O", o]
    r = subprocess.run(command + wasm, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if r.returncode != 0:
        raise SystemExit(f"failed: {' '.join(command + wasm)}\n{r.stderr.decode()[:500]}")
    return {(l["function_index"], l["loop"]): l for l in json.loads(r.stderr) if l["cycles"]}


def half_width(row):
    return max(row["cycles_high"] - row["cycles"], row["cycles"] - row["cycles_low"]) / row["cycles"]


class Loop:
    """What was found of one loop: rows of dual runs, and the totals of ordinary ones."""

    def __init__(self, duals, totals):
        self.row = duals[0]
        self.exact = [d["exact_cycles"] for d in duals]
        self.errors = [d["error"] for d in duals]
        self.stated = [half_width(d) for d in duals]
        self.stands = [d["cycles_low"] <= d["exact_cycles"] <= d["cycles_high"] for d in duals]
        self.weight = self.row["exclusive_cycles"]
        self.between = statistics.median(totals) / statistics.median(self.exact) - 1
        self.noise = max(self.exact) / min(self.exact) - 1

    def worst(self):
        return max(self.errors, key=abs)

    def line(self):
        l = self.row
        within = "within" if abs(self.worst()) <= CLOSE else "not within"
        stated = "as stated" if all(self.stands) else "not as stated"
        return (f"  {l['function'][:24]:<24} {l['loop']:>3} height {l['height']}, "
                f"{l['exact_cycles'] / l['entries']:.0f} cycles {l['entries']:.0f} times, "
                f"{l['timed']} timed: off {100 * self.worst():+.2f} %, stated "
                f"{100 * max(self.stated):.2f} %: {within} 3 %, {stated}; between runs "
                f"{100 * self.between:+.2f} % (noise {100 * self.noise:.2f} %)")


def groups_of(a, rows):
    """The loops with a share, as they are timed together."""
    some = [k for k, l in rows.items() if l["share"] >= LEAST_SHARE]
    lone = [k for k in some if rows[k]["cycles"] / rows[k]["entries"] < a.short]
    return [[k] for k in lone] + [g for g in [[k for k in some if k not in lone]] if g]


def measure(a, wasm):
    """Returns {key: Loop} of one program."""
    ordinary = [loops(a, wasm) for _ in range(a.rounds)]
    found = {}
    for group in groups_of(a, ordinary[0]):
        chosen = ",".join(f"{function}:{loop}" for function, loop in group)
        duals = [loops(a, wasm, ["loop_dual=on", f"time_loops={chosen}", f"seed={s}"])
                 for s in range(1, a.seeds + 1)]
        for key in group:
            rows = [d[key] for d in duals if key in d and d[key]["exact_cycles"]]
            totals = [o[key]["cycles"] for o in ordinary if key in o]
            if rows: found[key] = Loop(rows, totals)
    return found


def percent(x):
    return f"{100 * x:.2f} %"


def counted(some):
    some = list(some)
    return f"{sum(some)} of {len(some)}"


def print_row(name, found):
    errors = [abs(e) for f in found for e in f.errors]
    between = [abs(f.between) for f in found]
    weight = max(sum(f.weight for f in found), 1)
    mean = sum(f.weight * statistics.mean(map(abs, f.errors)) for f in found) / weight
    print(f"{name:<11}{len(found):>6}{percent(mean):>10}{percent(max(errors, default=0)):>10}"
          f"{counted(e <= CLOSE for e in errors):>14}"
          f"{counted(s for f in found for s in f.stands):>14}"
          f"{percent(statistics.median(between) if between else 0):>16}"
          f"{percent(max(between, default=0)):>10}{counted(b <= CLOSE for b in between):>14}",
          flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tool", required=True)
    ap.add_argument("--seeds", type=int, default=1, help="dual runs of each loop")
    ap.add_argument("--rounds", type=int, default=3, help="ordinary runs")
    ap.add_argument("--programs", help="comma separated; all by default")
    ap.add_argument("--test-size", action="store_true", help="small runs: quick, and less precise")
    ap.add_argument("--short", type=float, default=3000,
                    help="cycles below which a loop is timed alone")
    ap.add_argument("--details", action="store_true", help="a line for each loop")
    ap.add_argument("-O", dest="options", action="append", default=[], metavar="NAME=VALUE",
                    help="options of every run")
    a = ap.parse_args()
    print(f"{'':<17}{'in one run: extrapolated against every execution':<50}"
          f"{'between runs':>22}")
    print(f"{'program':<11}{'loops':>6}{'mean off':>10}{'worst':>10}{'within 3 %':>14}"
          f"{'as stated':>14}{'median off':>16}{'worst':>10}{'within 3 %':>14}")
    every = []
    for name, size in read_programs():
        if a.programs and name not in a.programs.split(","):
            continue
        wasm = [os.path.join(PROGRAMS, "wasm", name + ".wasm")] + ([] if a.test_size else [size])
        found = list(measure(a, wasm).values())
        every += found
        print_row(name, found)
        for f in sorted(found, key=lambda f: -abs(f.worst())) if a.details else []:
            print(f.line())
    print_row("all", every)


if __name__ == "__main__":
    main()
