#!/usr/bin/env python3
"""Do rates that adapt keep to the budget they are given, and what is it worth?

Bad news would be: a cost over the framework alone that exceeds the budget by more than the spread of
the framework itself (the column `noise`), or an overlap that does not rise with the budget.

For every program and overhead_budget: the guest thread's CPU time over that of the framework alone
(an interval that never ends), over that of the plain copy, and the overlap of blocks with the
exhaustive profile. `noise` is what the framework alone differs from itself, from a second run in the
same round. All in baseline code, so nothing is won back by optimizing.
"""
import argparse, json, os, tempfile

import measure

BUDGETS = [0.005, 0.01, 0.05]


def label(budget):
    return f"{100 * budget:g} %"


def measure_program(program, a):
    framework = measure.fixed(measure.NEVER)
    timed = {"plain": measure.PLAIN, "framework": framework, "noise": framework}
    timed |= {label(b): measure.adaptive(b) for b in BUDGETS}
    with tempfile.TemporaryDirectory() as scratch:
        truth = os.path.join(scratch, "truth.trace")
        measure.guest_seconds(program.command(measure.EXHAUSTIVE, truth))
        overlaps = {label(b): measure.median_overlaps(program, truth, measure.adaptive(b), scratch,
                                                      a.seeds) for b in BUDGETS}
    return {"times": measure.timed_rounds(program, timed, a.rounds), "overlaps": overlaps}


def cells_of(m, budget):
    name = label(budget)
    over = [measure.percent(measure.ratios(m["times"], name, base))
            for base in ("framework", "plain")]
    return over + [f"{100 * m['overlaps'][name]['block'][0]:.2f}"]


def print_table(measured):
    print(f"{'':<34}" + "".join(f"{'budget ' + label(b):^55}" for b in BUDGETS))
    heads = f"{'over framework':>23}{'over plain':>23}{'overlap':>9}"
    print(f"{'program':<11}{'noise':>23}" + heads * len(BUDGETS))
    for program, m in measured.items():
        noise = measure.percent(measure.ratios(m["times"], "noise", "framework"))
        row = [c for b in BUDGETS for c in zip(cells_of(m, b), (23, 23, 9))]
        print(f"{program:<11}{noise:>23}" + "".join(f"{text:>{width}}" for text, width in row))
    print_means(measured)


def print_means(measured):
    mean = lambda name, base: 100 * (measure.mean_ratio(
        [measure.ratios(m["times"], name, base) for m in measured.values()]) - 1)
    row = f"{'mean':<11}{mean('noise', 'framework'):>+23.2f}"
    for b in map(label, BUDGETS):
        overlap = sum(m["overlaps"][b]["block"][0] for m in measured.values()) / len(measured)
        row += f"{mean(b, 'framework'):>+23.2f}{mean(b, 'plain'):>+23.2f}{100 * overlap:>9.2f}"
    print(row)


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(ap)
    a = ap.parse_args()
    measured = {}
    for name, size in measure.chosen_programs(a):
        measure.progress(name)
        measured[name] = measure_program(measure.Program(a, name, size), a)
    measure.progress("")
    print(f"CPU time of the guest's thread above that of the framework alone and of the plain copy, "
          f"%; overlap of blocks, %;\nmedian (lowest highest) of {a.rounds} interleaved rounds, "
          f"{a.seeds} seeds; {measure.load_note()}")
    print_table(measured)
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"load": measure.load_note(), "programs": measured}, f, indent=1)


if __name__ == "__main__":
    main()
