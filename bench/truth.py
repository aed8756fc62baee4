#!/usr/bin/env python3
"""How true is a default profile of a program that gets optimized, and what does that cost?

Bad news would be: blocks below 0.93 in the mean or 0.85 in any program at these sizes (0.2 to 0.6 s),
below 0.97 and 0.93 in runs of 10 s and more (--times 30), or a cost above 1 % in the mean.

For every program, `run --profile` with default options against an exhaustive profile of the same run
(--tier=instrumented): overlaps of blocks, edges and targets of indirect calls, as `uptier profile
overlap` has them; the median of --seeds runs, with the lowest and the highest. Then the guest
thread's processor time in interleaved rounds: without any observation of optimized code, with
tallies alone, with copies alone, and with both (the default), as ratios to the first.

--times N lets programs run some N times as long. --wide METHODS:ROUNDS,... adds programs of many methods of
equal weight (wide.py), none of which gets a copy of its own in time. --wasm FILE:ARGUMENT:...,... adds
modules of your own. --programs none leaves the examples out, --rounds 0 the costs.
"""
import argparse, json, math, os, subprocess, tempfile

import measure, wide
from measure import PROGRAMS, guest_seconds, spread

OFF = ["count_optimized=off", "observe_optimized=off"]
SIDES = {"off": OFF, "tallies": OFF[1:], "copies": OFF[:1], "default": []}
KINDS = ["block", "edge", "call_target"]


class Case:
    def __init__(self, tool, wasm, arguments):
        self.tool, self.tail = tool, [wasm, *arguments]

    def run(self, flags, profile):
        command = [self.tool, "run", *flags, "--profile", profile, *self.tail]
        p = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if p.returncode != 0:
            raise SystemExit(f"failed: {' '.join(command)}\n{p.stderr[:500]}")

    def overlaps(self, a, b):
        out = subprocess.run([self.tool, "profile", "overlap", a, b], capture_output=True, text=True,
                             check=True).stdout
        rows = (line.split() for line in out.splitlines())
        return {r[0]: float(r[1]) for r in rows if len(r) >= 2 and r[0] in KINDS}

    def command(self, options):
        flags = [x for o in options for x in ("-O", o)]
        return [self.tool, "run", *flags, *self.tail]


def measure_case(case, a):
    found = {k: [] for k in KINDS}
    with tempfile.TemporaryDirectory() as scratch:
        truth = os.path.join(scratch, "truth.upf")
        case.run(["--tier=instrumented"], truth)
        for seed in range(1, a.seeds + 1):
            said = os.path.join(scratch, f"said{seed}.upf")
            case.run(["-O", f"seed={seed}"], said)
            for kind, value in case.overlaps(said, truth).items():
                found[kind].append(value)
    times = {name: [] for name in SIDES}
    for n in range(a.rounds):
        for name in list(SIDES)[::-1 if n % 2 else 1]:
            times[name].append(guest_seconds(case.command(SIDES[name])))
    return {"overlaps": {k: spread(v) for k, v in found.items() if v}, "times": times}


def wide_cases(a, scratch):
    for size in filter(None, a.wide.split(",")):
        methods, rounds = map(int, size.split(":"))
        wasm = os.path.join(scratch, f"wide_{methods}_{rounds}.wasm")
        with open(wasm, "wb") as f:
            f.write(wide.module(methods, rounds))
        yield f"wide {rounds}", Case(a.tool, wasm, [])


def own_cases(a):
    for text in filter(None, a.wasm.split(",")):
        wasm, *arguments = text.split(":")
        name = os.path.basename(wasm).removesuffix(".wasm")
        yield " ".join([name, *arguments]), Case(a.tool, wasm, arguments)


# By program, the size with which it runs `times` as long; other sizes grow in proportion.
GROWTH = {
    "spectral": lambda size, times: size * times ** 0.5,
    "mandel": lambda size, times: size * times ** 0.5,
    "bintrees": lambda size, times: size + math.log2(times),
}


def cases(a):
    for name, size in measure.chosen_programs(a):
        wasm = os.path.join(PROGRAMS, "wasm", name + ".wasm")
        grown = GROWTH.get(name, lambda size, times: size * times)(float(size), a.times)
        yield name, Case(a.tool, wasm, [] if a.test_size else [str(int(grown))])


def print_costs(measured):
    print("\nprocessor time of the guest's thread over that without either, %")
    print(f"{'program':<11}{'off':>9}" + "".join(f"{s:>22}" for s in list(SIDES)[1:]))
    for name, m in measured.items():
        row = [measure.percent(measure.ratios(m["times"], s, "off")) for s in list(SIDES)[1:]]
        print(f"{name:<11}{spread(m['times']['off'])[0]:>7.3f} s" + "".join(f"{c:>22}" for c in row))
    means = [measure.mean_ratio([measure.ratios(m["times"], s, "off") for m in measured.values()])
             for s in list(SIDES)[1:]]
    print(f"{'mean':<20}" + "".join(f"{100 * (v - 1):>+22.2f}" for v in means))


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(ap)
    ap.add_argument("--times", type=float, default=1, help="how many times as long programs run")
    ap.add_argument("--wide", default="", help="METHODS:ROUNDS,...; see above")
    ap.add_argument("--wasm", default="", help="FILE:ARGUMENT:...,...; see above")
    a = ap.parse_args()
    measured = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, case in [*cases(a), *wide_cases(a, scratch), *own_cases(a)]:
            measure.progress(name)
            measured[name] = measure_case(case, a)
    measure.progress("")
    print(f"./dev bench truth --times {a.times:g}; median (lowest highest) of {a.seeds} runs; "
          f"{measure.load_note()}\n\noverlap with the exhaustive profile, %")
    print(f"{'program':<11}" + "".join(f"{k:>24}" for k in KINDS))
    for name, m in measured.items():
        cells = [m["overlaps"].get(k) for k in KINDS]
        text = ["n/a" if c is None or c[2] == 0 else
                f"{100 * c[0]:.1f} ({100 * c[1]:.1f} {100 * c[2]:.1f})" for c in cells]
        print(f"{name:<11}" + "".join(f"{t:>24}" for t in text))
    for kind in KINDS:
        values = [m["overlaps"][kind][0] for m in measured.values()
                  if kind in m["overlaps"] and m["overlaps"][kind][2] > 0]
        if values:
            print(f"{kind}: mean {100 * sum(values) / len(values):.1f}, least {100 * min(values):.1f}")
    if a.rounds:
        print_costs(measured)
    if a.json:
        with open(a.json, "w") as f:
            json.dump(measured, f, indent=1)


if __name__ == "__main__":
    main()
