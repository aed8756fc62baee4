#!/usr/bin/env python3
"""How true are sampled profiles, and what do they cost?

Bad news would be: an overlap below 97 % at intervals 7, 16 or 64, or a cost above 5 % at 16.

Per program and interval, with random gaps: the overlap of the sampled block profile with that of an
exhaustive run (every call and iteration counted), and the time over the plain copy's, which has no
checks and no counters. `checks` is the cost of the checks alone: an interval that never ends. All
runs keep to baseline code (--policy=never), alternate, and are medians of per-round ratios of user
time.
"""
import argparse, math, os, re, resource, statistics, subprocess, sys, tempfile

from compare import PROGRAMS, geomean, read_programs

NEVER = 1 << 27


def user_time(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    r = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if r.returncode != 0:
        raise SystemExit(f"failed: {' '.join(command)}\n{r.stderr.decode()[:500]}")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def overlap(tool, a, b):
    r = subprocess.run([tool, "trace", "overlap", a, b], stdout=subprocess.PIPE, check=True)
    return float(re.search(rb"overlap ([0-9.]+)", r.stdout).group(1))


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tool", required=True)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--intervals", default="7,16,64")
    ap.add_argument("--gap", default="random")
    ap.add_argument("--programs", help="comma separated; all by default")
    ap.add_argument("--test-size", action="store_true", help="small runs: quick, and less precise")
    a = ap.parse_args()
    intervals = [int(i) for i in a.intervals.split(",")]
    programs = [p for p in read_programs() if not a.programs or p[0] in a.programs.split(",")]

    print(f"overlap with the exhaustive profile | time over the plain copy, median of {a.rounds} "
          f"rounds; gaps {a.gap}")
    print(f"{'program':<11}" + "".join(f"{'at ' + str(i):>18}" for i in intervals) +
          f"{'checks':>10}{'exhaustive':>12}")
    all_overlaps = {i: [] for i in intervals}
    all_costs = {i: [] for i in intervals + [NEVER, 1]}
    with tempfile.TemporaryDirectory() as tmp:
        for name, size in programs:
            wasm = os.path.join(PROGRAMS, "wasm", name + ".wasm")
            tail = [wasm] + ([] if a.test_size else [size])
            plain = [a.tool, "run", "--tier=baseline"] + tail
            sampled = lambda i: [a.tool, "run", "--policy=never", f"--gap={a.gap}",
                                 f"--interval={i}"]
            trace = lambda i: os.path.join(tmp, f"{name}.{i}.trace")
            for i in intervals + [1]:
                user_time(sampled(i) + ["--trace", trace(i)] + tail)
            ratios = {i: [] for i in intervals + [NEVER, 1]}
            for _ in range(a.rounds):
                base = user_time(plain)
                for i in ratios:
                    ratios[i].append(user_time(sampled(i) + tail) / base)
            cells = ""
            for i in intervals:
                o = overlap(a.tool, trace(1), trace(i))
                all_overlaps[i].append(o)
                all_costs[i].append(statistics.median(ratios[i]))
                cells += f"{100 * o:>9.2f} % |{all_costs[i][-1]:>5.3f}".rjust(18)
            for i in (NEVER, 1):
                all_costs[i].append(statistics.median(ratios[i]))
            print(f"{name:<11}{cells}{all_costs[NEVER][-1]:>10.3f}{all_costs[1][-1]:>12.3f}",
                  flush=True)
    print(f"{'geomean':<11}" +
          "".join(f"{100 * geomean(all_overlaps[i]):>9.2f} % |{geomean(all_costs[i]):>5.3f}".rjust(18)
                  for i in intervals) +
          f"{geomean(all_costs[NEVER]):>10.3f}{geomean(all_costs[1]):>12.3f}")


if __name__ == "__main__":
    main()
