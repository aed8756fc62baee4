#!/usr/bin/env python3
"""How true are loop cycles that are extrapolated from a few executions?

Bad news would be: loops with a share of 1 % or more that are off by more than 3 % and by more than
the noise.

Per program, three runs take turns: `uptier run --loops` as it is (the first loop_records executions
after each flush are timed), and twice with every execution timed. Per loop, the median over rounds
of the ratio of its total to the one of a full run of the same round, less 1: of the extrapolated
total (`off`), and of the other full run (`noise`: what the machine makes of the same thing twice).
With --least, of the least totals of all rounds instead: cycles go on while the machine does
something else, which a long execution meets and a short one does not, so on a busy machine only the
least are comparable. Shown are the mean, weighted by exclusive cycles, and the worst, over loops
whose share is at least 1 %. Timing every execution disturbs what it times, outer loops most: its
cost is subtracted as a constant, and what it does to caches and branch predictors is not. So the
worst is given for innermost loops and for the others apart.
"""
import argparse, json, os, statistics, subprocess

from compare import PROGRAMS, read_programs

EVERY = 1 << 30


def loops(command):
    r = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if r.returncode != 0:
        raise SystemExit(f"failed: {' '.join(command)}\n{r.stderr.decode()[:500]}")
    return {(l["function_index"], l["loop"]): l for l in json.loads(r.stderr) if l["cycles"]}


def compare(a, wasm):
    run = [a.tool, "run", "--loops=json"]
    some, every, again = [], [], []
    for _ in range(a.rounds):
        some.append(loops(run + wasm))
        every.append(loops(run + ["-O", f"loop_records={EVERY}"] + wasm))
        again.append(loops(run + ["-O", f"loop_records={EVERY}"] + wasm))

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
                         statistics.median(run[key]["exclusive_cycles"] for run in every),
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
