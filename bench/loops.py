#!/usr/bin/env python3
"""How true are loop cycles that are extrapolated from a few executions?

Bad news would be: loops with a share of 1 % or more that are off by more than 3 % and by more than
the noise.

The truth about a loop is a run that times every execution of it. Timing a short loop that often
disturbs what it lies in by some ten cycles an execution, more than can be subtracted as a constant;
so a loop whose executions are shorter than --short cycles has a run in which it alone is timed, and
those that are longer share one in which the short ones are not. Loops that are not timed are counted
all the same. With --together, the truth is one run that times every execution of every loop.

Per program, runs take turns: `uptier run --loops` as it is, and twice the truth of each loop. Per
loop, the median over rounds of the ratio of its total to that of the truth of the same round, less
1: of the extrapolated total (`off`), and of the other truth (`noise`: what the machine makes of the
same thing twice). With --least, of the least totals of all rounds instead. Shown are the mean,
weighted by exclusive cycles, and the worst, over loops whose share is at least 1 %, for innermost
loops and for the others apart.
"""
import argparse, json, os, statistics, subprocess

from programs import PROGRAMS, read_programs

EVERY = 1 << 30


def loops(command):
    r = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if r.returncode != 0:
        raise SystemExit(f"failed: {' '.join(command)}\n{r.stderr.decode()[:500]}")
    return {(l["function_index"], l["loop"]): l for l in json.loads(r.stderr) if l["cycles"]}


def truths(a, wasm, some):
    """Returns {key: row} of every loop with a share, timed at each of its executions."""
    run = [a.tool, "run", "--loops=json", "-O", f"loop_records={EVERY}"]
    if a.together:
        return loops(run + wasm)
    shared = [k for k, l in some.items() if l["share"] >= 0.005]
    lone = [k for k in shared if some[k]["cycles"] / some[k]["entries"] < a.short]
    groups = [[k] for k in lone] + [[k for k in shared if k not in lone]]
    rows = {}
    for group in filter(None, groups):
        chosen = ",".join(f"{function}:{loop}" for function, loop in group)
        rows.update(loops(run + ["-O", f"time_loops={chosen}"] + wasm))
    return rows


def compare(a, wasm):
    some, every, again = [], [], []
    for _ in range(a.rounds):
        some.append(loops([a.tool, "run", "--loops=json"] + wasm))
        every.append(truths(a, wasm, some[0]))
        again.append(truths(a, wasm, some[0]))

    def off(runs, key):
        if a.least:
            return abs(min(r[key]["cycles"] for r in runs) /
                       min(r[key]["cycles"] for r in every) - 1)
        return abs(statistics.median(r[key]["cycles"] / e[key]["cycles"]
                                     for r, e in zip(runs, every)) - 1)

    rows = []
    for key in every[0]:
        if not all(key in run for run in some + every + again):
            continue
        if statistics.median(run[key]["share"] for run in every) >= 0.01:
            rows.append((off(some, key), off(again, key),
                         statistics.median(run[key]["exclusive_cycles"] for run in some),
                         every[0][key]))
    return rows


def mean(rows, column):
    weight = sum(r[2] for r in rows)
    return sum(r[column] * r[2] for r in rows) / weight if weight else 0


def percent(x):
    return f"{100 * x:.2f} %"


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tool", required=True)
    ap.add_argument("--rounds", type=int, default=7)
    ap.add_argument("--programs", help="comma separated; all by default")
    ap.add_argument("--test-size", action="store_true", help="small runs: quick, and less precise")
    ap.add_argument("--least", action="store_true", help="compare the least of all rounds")
    ap.add_argument("--together", action="store_true",
                    help="the truth of all loops from one run")
    ap.add_argument("--short", type=float, default=3000,
                    help="cycles below which a loop's truth is a run of its own")
    ap.add_argument("--details", action="store_true", help="a line for each loop")
    a = ap.parse_args()
    programs = [p for p in read_programs() if not a.programs or p[0] in a.programs.split(",")]
    print(f"extrapolated loop cycles against every execution timed, "
          f"{'least' if a.least else 'median'} of {a.rounds} rounds")
    print(f"{'program':<11}{'loops':>6}{'off':>10}{'noise':>10}{'worst inner':>13}{'noise':>10}"
          f"{'worst outer':>13}{'noise':>10}{'within 3 %':>12}")
    every = []
    for name, size in programs:
        wasm = [os.path.join(PROGRAMS, "wasm", name + ".wasm")] + ([] if a.test_size else [size])
        rows = compare(a, wasm)
        every += rows
        cells = ""
        for inner in (True, False):
            part = [r for r in rows if (r[3]["height"] == 0) == inner]
            cells += f"{percent(max(r[0] for r in part)) if part else '-':>13}"
            cells += f"{percent(max(r[1] for r in part)) if part else '-':>10}"
        good = sum(r[0] <= 0.03 for r in rows)
        print(f"{name:<11}{len(rows):>6}{percent(mean(rows, 0)):>10}{percent(mean(rows, 1)):>10}"
              f"{cells}{f'{good} of {len(rows)}':>12}", flush=True)
        for off, noise, _, l in sorted(rows, key=lambda r: -r[0]) if a.details else []:
            print(f"  {l['function'][:30]:<30} {l['loop']:>3} height {l['height']} share "
                  f"{percent(l['share'])}: {l['cycles'] / l['entries']:.0f} cycles each, "
                  f"off {percent(off)}, noise {percent(noise)}")
    good = sum(r[0] <= 0.03 for r in every)
    noisy = sum(r[0] > 0.03 and r[0] <= r[1] for r in every)
    print(f"{good} of {len(every)} loops are within 3 %, {noisy} others within the noise")


if __name__ == "__main__":
    main()
