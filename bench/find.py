#!/usr/bin/env python3
"""Who should find the methods that are observed and optimized: counts, stack samples, or both?

Bad news would be: samples that make code which is slower than that of counts, or that need more than
a fifth of the instrumented copies, or final tiers that differ in the methods of 95 % of the time.

Every program runs with `-O find=counts`, `samples` and `both` (the last two with stack samples, 1,000
a second), and with counts and the same samples, so that the price of samples themselves is apart.

  overlap      of blocks with the exhaustive profile of the same run
  copies       instrumented copies that were made, and optimized versions
  tiers        the share of the time of samples that went to methods whose last tier is the one that
               counts gave them
  time         processor time of the guest's thread over that of counts without samples: the median
               of ratios within rounds
"""
import argparse, json, os, subprocess, tempfile

import measure, truth

SIDES = {
    "counts": [],
    "counts, sampled": ["sample_hz=1000"],
    "samples": ["sample_hz=1000", "find=samples"],
    "both": ["sample_hz=1000", "find=both"],
}


def flags(options):
    return [x for o in options for x in ("-O", o)]


def run_with_report(case, options, profile):
    """Runs the program once; returns its report."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        case.run([*flags(options), "--report=json", "--report-to", out.name], profile)
        with open(out.name) as f:
            return json.load(f)


def copies_of(report):
    made = [v for m in report["methods"] for v in m["versions"]]
    instrumented = sum(v["copy"] == "instrumented" for v in made)
    return instrumented, sum(v["tier"] == "optimized" and v["copy"] != "instrumented" for v in made)


def tiers_of(report):
    return {m["name"]: m["tier"] for m in report["methods"]}


def agreement(report, wanted):
    """The share of sampled time in methods whose last tier is the wanted one."""
    tiers, same, whole = tiers_of(report), 0, 0
    for row in report["time"]["rows"]:
        if row["place"] != "method" or row["name"] not in wanted:
            continue
        whole += row["ns"]
        same += row["ns"] if tiers.get(row["name"]) == wanted[row["name"]] else 0
    return same / whole if whole else 1


def measure_case(case, a):
    with tempfile.TemporaryDirectory() as scratch:
        exhaustive = os.path.join(scratch, "truth.upf")
        case.run(["--tier=instrumented"], exhaustive)
        reports, overlaps = {}, {}
        for side, options in SIDES.items():
            said = os.path.join(scratch, "said.upf")
            if os.path.exists(said):
                os.unlink(said)
            reports[side] = run_with_report(case, options, said)
            overlaps[side] = case.overlaps(said, exhaustive)["block"]
    times = {side: [] for side in SIDES}
    for n in range(a.rounds):
        for side in list(SIDES)[::-1 if n % 2 else 1]:
            times[side].append(measure.guest_seconds(case.command(SIDES[side])))
    wanted = tiers_of(reports["counts, sampled"])
    return {side: {"overlap": overlaps[side], "copies": copies_of(reports[side]),
                   "tiers": agreement(reports[side], wanted) if side != "counts" else 1,
                   "times": times[side]} for side in SIDES}


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(ap)
    ap.add_argument("--times", type=float, default=1, help="how many times as long programs run")
    ap.add_argument("--wide", default="",
                    help="METHODS:ROUNDS,...: programs of many methods of equal weight (wide.py)")
    a = ap.parse_args()
    measured = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, case in [*truth.cases(a), *truth.wide_cases(a, scratch)]:
            measure.progress(name)
            measured[name] = measure_case(case, a)
    measure.progress("")
    print(f"./dev bench find --times {a.times:g} --rounds {a.rounds}; {measure.load_note()}\n")
    print(f"{'program':<11}" + "".join(f"{s:>34}" for s in SIDES))
    for name, m in measured.items():
        cells = []
        for side in SIDES:
            s = m[side]
            time = measure.spread([x / y for x, y in zip(s["times"], m["counts"]["times"])])
            cells.append(f"{100 * s['overlap']:.1f} % {s['copies'][0]}+{s['copies'][1]} "
                         f"{100 * s['tiers']:.0f} % {time[0]:.3f}")
        print(f"{name:<11}" + "".join(f"{c:>34}" for c in cells))
    for side in SIDES:
        all_of = [m[side] for m in measured.values()]
        ratio = measure.mean_ratio([[x / y for x, y in zip(s["times"], m["counts"]["times"])]
                                    for s, m in zip(all_of, measured.values())])
        print(f"{side:<16} blocks {100 * sum(s['overlap'] for s in all_of) / len(all_of):.1f} % mean, "
              f"{100 * min(s['overlap'] for s in all_of):.1f} % least; copies "
              f"{sum(s['copies'][0] for s in all_of)} instrumented, "
              f"{sum(s['copies'][1] for s in all_of)} optimized; tiers as by counts "
              f"{100 * sum(s['tiers'] for s in all_of) / len(all_of):.1f} % of the time; time {ratio:.4f}")
    if a.json:
        with open(a.json, "w") as f:
            json.dump(measured, f, indent=1)


if __name__ == "__main__":
    main()
