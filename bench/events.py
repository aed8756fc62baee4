"""What a sample costs: the time that sampled calls and bursts take, in ns each.

    (time at a small interval - time of the checks alone) / (sampled calls + bursts)

Small intervals make slow paths dominate, and everything stays warm, so this is the least that an
event costs; in a program that is sampled thinly its code has to come from further away. What is
counted on the way is in it: bursts of 8 iterations, sampled calls up to their first loop. Bad news:
a change of sampler/ or of a check that makes the mean longer.

With --against another tool's runs are interleaved with this one's.
"""
import argparse, json, os, statistics, subprocess, tempfile

import measure

BURST = 8
FIXED = ["tier=auto", "policy=never", "adaptive=off", f"burst={BURST}"]
PROGRAMS = ["onecall", "nbody", "spectral", "mandel", "bintrees", "compress", "objects"]
SIZES = {"onecall": "600", "nbody": "700000", "spectral": "500", "mandel": "300", "bintrees": "15",
         "compress": "1500", "objects": "2000"}


def command(tool, name, interval):
    wasm = os.path.join(measure.PROGRAMS, "wasm", name + ".wasm")
    options = FIXED + [f"interval={interval}"]
    return [tool, "run"] + [x for o in options for x in ("-O", o)] + [wasm, SIZES[name]]


def events(tool, name, interval):
    """Returns the sampled calls and the bursts of a run."""
    c = command(tool, name, interval)
    c.insert(2, "--report=json")
    with tempfile.TemporaryFile() as report:
        subprocess.run(c, stdout=subprocess.DEVNULL, stderr=report, check=True)
        report.seek(0)
        methods = json.loads(report.read())["methods"]
    return sum(m["sampled_calls"] for m in methods), sum(m["bursts"] for m in methods)


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tool", required=True, help="path of the uptier tool")
    ap.add_argument("--against", help="path of another one, to compare with")
    ap.add_argument("--rounds", type=int, default=15)
    ap.add_argument("--interval", type=int, default=16)
    ap.add_argument("--programs", default=",".join(PROGRAMS))
    a = ap.parse_args()
    tools = [a.tool] + ([a.against] if a.against else [])
    print(f"ns an event at interval {a.interval}, bursts of {BURST}: lower quartile and median of "
          f"{a.rounds} interleaved rounds; {measure.load_note()}")
    print(f"{'program':<11}{'calls':>9}{'bursts':>9}" + "".join(f"{t[-24:]:>26}" for t in tools))
    for name in a.programs.split(","):
        counts = [events(t, name, a.interval) for t in tools]
        found = {t: ([], []) for t in tools}
        for _ in range(a.rounds):
            for t in tools:
                found[t][0].append(measure.guest_seconds(command(t, name, a.interval)))
                found[t][1].append(measure.guest_seconds(command(t, name, measure.NEVER)))
        cells = []
        for t, n in zip(tools, counts):
            sampled, bare = found[t]
            q = [statistics.quantiles(x, n=4) for x in (sampled, bare)]
            ns = [1e9 * (q[0][i] - q[1][i]) / sum(n) for i in (0, 1)]
            cells.append(f"{ns[0]:.1f} {ns[1]:.1f}")
        print(f"{name:<11}{counts[0][0]:>9}{counts[0][1]:>9}" +
              "".join(f"{c:>26}" for c in cells), flush=True)


if __name__ == "__main__":
    main()
