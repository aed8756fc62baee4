#!/usr/bin/env python3
"""Do rates that adapt keep to the budget they are given?

Bad news would be: a verdict `not kept`.

A budget of 1 % cannot be told by a stopwatch: two runs of the same thing differ by 0.5 to 5 %, since
code and data lie elsewhere each time. So three figures stand beside each other, for every program
and overhead_budget, in % of the time of the framework alone (checks, and an interval that never
ends):

  own      what the runtime's own account says (overhead_share): slow paths as timed where they
           happen, and what lies outside of them as modelled (sampler/cost.h)
  outside  own * k: what it is worth on a stopwatch. k is measured where it can be: at budgets of
           20 and 50 % of the same program, which cost so much that noise is little of it,

               k = (time at that budget / time of the framework - 1) / (own share, over the rest)

           In brackets the lowest and the highest of k over all rounds at both budgets.
  direct   time at the budget / time of the framework - 1: lowest and highest of all rounds; what a
           stopwatch says by itself

The verdict: `kept` where all of outside is within the budget, `not kept` where none of it is, and
`cannot tell` in between. Events are warmer at 50 % than at 20 %, and at 20 % than at 1 %; the columns
k 20 % and k 50 % show how much that makes.

Times are of the guest's thread; all in baseline code, so nothing is won back by optimizing. With
--overlaps also the overlap of blocks with the exhaustive profile at each budget.
"""
import argparse, json, os, statistics, tempfile

import measure

BUDGETS = [0.005, 0.01, 0.05]
LEVERS = [0.2, 0.5]


def label(budget):
    return f"{100 * budget:g} %"


def run_reported(program, options):
    """Returns the CPU seconds of the guest's thread, and the share that the runtime accounts for."""
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, "report.json")
        command = program.command(options)
        command[2:2] = ["--report=json", "--report-to", report]
        seconds = measure.guest_seconds(command)
        with open(report) as f:
            share = json.load(f)["overhead_share"] or 0.0
    return seconds, share


def measure_rounds(program, rounds):
    """Returns {name: [(seconds, own share over the rest) of each round]}."""
    configurations = {"framework": measure.fixed(measure.NEVER)}
    configurations |= {label(b): measure.adaptive(b) for b in BUDGETS + LEVERS}
    runs = {name: [] for name in configurations}
    for r in range(rounds):
        # To and fro, so that no configuration always runs after the same other one.
        for name, options in list(configurations.items())[:: -1 if r % 2 else 1]:
            seconds, share = run_reported(program, options)
            runs[name].append((seconds, share / (1 - share)))
    return runs


def over_framework(runs, name):
    return [t / base - 1 for (t, _), (base, _) in zip(runs[name], runs["framework"])]


def factors(runs, lever):
    """Returns what the account is to be multiplied by, of each round at a large budget."""
    own = [share for _, share in runs[label(lever)]]
    return [over / share for over, share in zip(over_framework(runs, label(lever)), own) if share]


class Figures:
    """What is known of one program at one budget; shares, not percent."""

    def __init__(self, runs, budget):
        k = [f for lever in LEVERS for f in factors(runs, lever)]
        self.budget = budget
        self.own = statistics.median(share for _, share in runs[label(budget)])
        self.outside = self.own * statistics.median(k)
        self.low, self.high = self.own * min(k), self.own * max(k)
        self.direct = over_framework(runs, label(budget))

    def verdict(self):
        if self.high <= self.budget:
            return "kept"
        return "not kept" if self.low > self.budget else "cannot tell"

    def row(self):
        return (f"{100 * self.own:>7.2f}{100 * self.outside:>9.2f} "
                f"{f'({100 * self.low:.2f} {100 * self.high:.2f})':<14}"
                f"{f'({100 * min(self.direct):+.1f} {100 * max(self.direct):+.1f})':>14}"
                f"{self.verdict():>13}")


def overlaps_of(program, seeds):
    with tempfile.TemporaryDirectory() as scratch:
        truth = os.path.join(scratch, "truth.trace")
        measure.guest_seconds(program.command(measure.EXHAUSTIVE, truth))
        return {label(b): measure.median_overlaps(program, truth, measure.adaptive(b), scratch,
                                                  seeds)["block"] for b in BUDGETS}


def print_program(name, m):
    runs = m["runs"]
    for b in BUDGETS:
        overlap = f"{100 * m['overlaps'][label(b)][0]:>9.2f}" if m["overlaps"] else ""
        ks = "".join(f"{statistics.median(factors(runs, lever) or [0]):>8.2f}" for lever in LEVERS)
        first = b == BUDGETS[0]
        print(f"{name if first else '':<11}{label(b):>7}{Figures(runs, b).row()}"
              f"{ks if first else ' ' * 8 * len(LEVERS)}{overlap}", flush=True)


def print_sums(measured):
    print()
    for b in BUDGETS:
        all_of = [Figures(m["runs"], b) for m in measured.values()]
        count = lambda verdict: sum(f.verdict() == verdict for f in all_of)
        print(f"budget {label(b)}: own {100 * statistics.mean(f.own for f in all_of):.2f}, outside "
              f"{100 * statistics.mean(f.outside for f in all_of):.2f} % in the mean; "
              f"{count('kept')} kept, {count('not kept')} not kept, {count('cannot tell')} cannot "
              f"tell")


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(ap)
    ap.add_argument("--overlaps", action="store_true", help="overlaps at each budget, too")
    ap.set_defaults(rounds=4)
    a = ap.parse_args()
    print(f"% of the framework's time, {a.rounds} interleaved rounds; {measure.load_note()}")
    print(f"{'program':<11}{'budget':>7}{'own':>7}{'outside':>9} {'(low high)':<14}{'direct':>14}"
          f"{'verdict':>13}" + "".join(f"{'k ' + label(lever):>8}" for lever in LEVERS) +
          (f"{'overlap':>9}" if a.overlaps else ""))
    measured = {}
    for name, size in measure.chosen_programs(a):
        measure.progress(name)
        program = measure.Program(a, name, size)
        measured[name] = {"runs": measure_rounds(program, a.rounds),
                          "overlaps": overlaps_of(program, a.seeds) if a.overlaps else None}
        measure.progress("")
        print_program(name, measured[name])
    print_sums(measured)
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"load": measure.load_note(), "programs": measured}, f, indent=1)


if __name__ == "__main__":
    main()
