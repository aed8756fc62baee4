#!/usr/bin/env python3
"""How often confidence intervals hold: the share of blocks and edges whose true count lies in the
interval that a sampled run gives, and how much wider it would have to be.

The truth is an exhaustive run. Each seed gives a run of its own; what was executed less than --least
times is left out. `half` is the median of half an interval, as a share of its estimate. `wider` is
the 95th percentile of the error over half the interval: 1 would be right. At a fixed interval whoever
flushes makes the instrumented copies (workers=0): what ran before there were any cannot be in an
estimate, and else the load of the machine decided how much that is. With --keep runs that left
their trace in the folder before are read again, so that two versions of the reader are compared on
the same runs. Bad news: shares below 90 %, or `half` that rises without need.
"""
import argparse, json, os, statistics, subprocess, tempfile

import measure


def sites(tool, options, wasm, kept):
    """Returns {(method, kind, site): row} of a run; of the one that left its trace in `kept`, if any
    did, where that is not None."""
    with tempfile.TemporaryDirectory() as scratch:
        trace = kept or os.path.join(scratch, "trace")
        if not os.path.exists(trace):
            run = [tool, "run", "--policy=never", "--trace", trace + ".part"] + options + wasm
            subprocess.run(run, stdout=subprocess.DEVNULL, check=True)
            os.rename(trace + ".part", trace)
        shown = subprocess.run([tool, "trace", "profile", "--json", trace],
                               stdout=subprocess.PIPE, check=True).stdout
    return {(m["module_key"], m["function_index"], s["kind"], s["site"]): s
            for m in json.loads(shown)["methods"] for s in m["sites"]
            if s["kind"] in ("block", "edge") and s.get("low") is not None}


def coverage(tool, options, wasm, seeds, least, kept):
    """`kept` returns where the trace of a run is to stay, of its name."""
    truth = sites(tool, ["--tier=instrumented"], wasm, kept("truth"))
    held, errors, halves = [], [], []
    for seed in range(1, seeds + 1):
        name = "-".join([o for o in options if o != "-O"] + [str(seed)])
        for key, s in sites(tool, options + ["-O", f"seed={seed}"], wasm, kept(name)).items():
            true = truth.get(key, {"count": 0})["count"]
            if true < least:
                continue
            held.append(s["low"] <= true <= s["high"])
            half = (s["high"] - s["low"]) / 2
            halves.append(half / max(s["estimate"], 1))
            if half > 0:
                errors.append(abs(s["estimate"] - true) / half)
    return statistics.mean(held) if held else 1, statistics.median(halves) if halves else 0, \
        statistics.quantiles(errors, n=20)[-1] if len(errors) > 1 else 0


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    ap.add_argument("--tool", required=True)
    ap.add_argument("--seeds", type=int, default=10)
    ap.add_argument("--least", type=int, default=10000)
    ap.add_argument("--programs", help="comma separated; all by default")
    ap.add_argument("--keep", metavar="FOLDER", help="leave traces there, read those that are")
    a = ap.parse_args()
    if a.keep:
        os.makedirs(a.keep, exist_ok=True)
    modes = {"adaptive": [], "interval 16": ["-O", "adaptive=off", "-O", "interval=16",
                                            "-O", "workers=0"]}
    print(f"{'program':<11}" + "".join(f"{m + ' held':>18}{'half':>10}{'wider':>8}" for m in modes))
    for name, size in measure.chosen_programs(a):
        wasm = [os.path.join(measure.PROGRAMS, "wasm", name + ".wasm"), size]
        cells = ""

        def kept(run, name=name):
            return os.path.join(a.keep, f"{name}.{run}.trace") if a.keep else None

        for options in modes.values():
            share, half, wider = coverage(a.tool, options, wasm, a.seeds, a.least, kept)
            cells += f"{100 * share:>16.1f} %{100 * half:>8.2f} %{wider:>8.2f}"
        print(f"{name:<11}{cells}", flush=True)


if __name__ == "__main__":
    main()
