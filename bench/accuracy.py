#!/usr/bin/env python3
"""How true are sampled profiles, and what do they cost?

Bad news would be: an overlap below 97 % at interval 16 or with adaptive rates, a cost of adaptive
rates above their budget of 1 % over the framework alone, or a framework that costs more than 3 %.

For every program, at each interval with random gaps and with rates that adapt: the overlap of the
sampled profile with an exhaustive one (tier=instrumented), per kind, as `uptier trace overlap` has
it, from estimates; and the guest thread's CPU time over that of the plain copy, which has no checks
and no counters. `framework` is the checks alone, an interval that never ends. Cycles of loops come
from runs of their own with loops=on; they are times, so two exhaustive runs differ, too: that is
the column `again`. A kind of which a program has fewer than 1,000 events is left out (n/a): there
is nothing to sample. See docs/accuracy.md.
"""
import argparse, json, os, shlex, sys, tempfile

import measure, svg
from measure import KINDS, NEVER

FEW = 1000
INTERVALS = [1, 4, 16, 64, 256, 1000]
TITLES = {"block": "blocks", "edge": "edges", "call_target": "targets of indirect calls",
          "value": "values", "loop": "cycles of loops"}


def configurations():
    return {str(i): measure.fixed(i) for i in INTERVALS} | {"adaptive": measure.adaptive()}


def loop_overlaps(program, scratch, observers):
    timed = ["loops=on"]
    truth = os.path.join(scratch, "loops.trace")
    measure.guest_seconds(program.command(measure.EXHAUSTIVE + timed, truth))
    found = {}
    for name, options in ({"again": measure.EXHAUSTIVE} | observers).items():
        value = program.overlaps(truth, options + timed, scratch).get("loop")
        if value is not None:
            found[name] = (value, value, value)
    return found


def measure_program(program, a):
    """Returns {"times": {configuration: seconds}, "overlaps": {kind: {configuration: spread}}}."""
    observers = configurations()
    overlaps = {kind: {} for kind in KINDS}
    with tempfile.TemporaryDirectory() as scratch:
        truth = os.path.join(scratch, "truth.trace")
        measure.guest_seconds(program.command(measure.EXHAUSTIVE, truth))
        for name, options in observers.items():
            for kind, value in measure.median_overlaps(program, truth, options, scratch,
                                                       a.seeds).items():
                overlaps[kind][name] = value
        events = program.events(truth)
        overlaps = {k: v if events[k] >= FEW else {} for k, v in overlaps.items()}
        overlaps["loop"] = loop_overlaps(program, scratch, observers) if a.loops else {}
    timed = {"plain": measure.PLAIN, "framework": measure.fixed(NEVER)}
    timed |= observers | {"exhaustive": measure.EXHAUSTIVE}
    return {"times": measure.timed_rounds(program, timed, a.rounds), "overlaps": overlaps}


def print_overlaps(kind, measured):
    columns = (["again"] if kind == "loop" else []) + list(configurations())
    rows = {p: m["overlaps"][kind] for p, m in measured.items() if m["overlaps"][kind]}
    print(f"\n{TITLES[kind]}: overlap with the exhaustive profile, %")
    if not rows:
        print("n/a: no program observes any")
        return
    print(f"{'program':<11}" + "".join(f"{c:>24}" for c in columns))
    for program in measured:
        cells = [rows.get(program, {}).get(c) for c in columns]
        print(f"{program:<11}" + "".join(overlap_cell(v) for v in cells))
    means = [sum(r[c][0] for r in rows.values() if c in r) / len(rows) for c in columns]
    print(f"{'mean':<11}" + "".join(f"{100 * v:>24.2f}" for v in means))


def overlap_cell(v):
    text = "n/a" if v is None else f"{100 * v[0]:.2f} ({100 * v[1]:.2f} {100 * v[2]:.2f})"
    return f"{text:>24}"


def print_costs(measured):
    columns = ["framework"] + list(configurations()) + ["exhaustive"]
    print("\ncost: CPU time of the guest's thread above the plain copy's, %")
    print(f"{'program':<11}{'plain':>9}" + "".join(f"{c:>24}" for c in columns))
    for program, m in measured.items():
        cells = [measure.percent(measure.ratios(m["times"], c, "plain")) for c in columns]
        print(f"{program:<11}{measure.spread(m['times']['plain'])[0]:>7.3f} s" +
              "".join(f"{c:>24}" for c in cells))
    for base in "plain", "framework":
        means = [measure.mean_ratio([measure.ratios(m["times"], c, base)
                                     for m in measured.values()]) for c in columns]
        print(f"{'mean above ' + base:<22}" + f"{100 * (means[0] - 1):>+22.2f}" +
              "".join(f"{100 * (v - 1):>+24.2f}" for v in means[1:]))


def write_charts(folder, measured, command):
    names = list(configurations())
    note = f"{command}; {measure.load_note()}"
    for kind in KINDS:
        rows = {p: [100 * m["overlaps"][kind][n][0] for n in names] for p, m in measured.items()
                if all(n in m["overlaps"][kind] for n in names)}
        if rows:
            svg.write(os.path.join(folder, f"accuracy-{kind}.svg"), svg.Chart(
                f"Sampled profiles: {TITLES[kind]}", note, "overlap with the exhaustive profile, %",
                "mean gap between samples, calls", names, rows, "mean", svg.linear_below_100))
    names = ["framework", "adaptive"] + [str(i) for i in reversed(INTERVALS)] + ["exhaustive"]
    rows = {p: [100 * (measure.ratios(m["times"], n, "plain")[0] - 1) for n in names]
            for p, m in measured.items()}
    svg.write(os.path.join(folder, "overhead.svg"), svg.Chart(
        "What sampling costs", note, "CPU time above the plain copy's, %",
        "mean gap between samples, calls", names, rows, "mean", svg.logarithmic))


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(ap)
    ap.add_argument("--svg", help="writes the charts into this folder")
    ap.add_argument("--intervals", default=",".join(map(str, INTERVALS)),
                    help="mean gaps to measure, e.g. 7,16,64")
    ap.add_argument("--no-loops", dest="loops", action="store_false", help="without loops=on runs")
    a = ap.parse_args()
    INTERVALS[:] = map(int, a.intervals.split(","))
    shown = [x for i, x in enumerate(sys.argv[1:]) if "--tool" not in (x, sys.argv[i])]
    command = " ".join(["./dev bench accuracy"] + [shlex.quote(x) for x in shown])
    measured = {}
    for name, size in measure.chosen_programs(a):
        measure.progress(name)
        measured[name] = measure_program(measure.Program(a, name, size), a)
    measure.progress("")
    print(f"{command}; median (lowest highest) of {a.rounds} interleaved rounds, of {a.seeds} seeds "
          f"for overlaps; {measure.load_note()}")
    for kind in KINDS:
        print_overlaps(kind, measured)
    print_costs(measured)
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"command": command, "load": measure.load_note(), "programs": measured}, f,
                      indent=1)
    if a.svg:
        write_charts(a.svg, measured, command)


if __name__ == "__main__":
    main()
