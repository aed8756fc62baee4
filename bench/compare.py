#!/usr/bin/env python3
"""How close do the tiers come to native code, and to V8, on whole programs?

Bad news would be: a geometric mean above 2.0 for `optimized`, or `onecall` slower than node.

Every program runs at its bench size under each engine in turn (A B C ... A B C ...), output checked
against examples/programs/expected. Printed: wall time of the whole process over native's, the median
of the per-round ratios with their spread, and the geometric mean. Engines that are not installed are
left out, loudly.
"""
import argparse, json, math, os, shutil, statistics, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = os.path.join(ROOT, "examples", "programs")


def read_programs():
    with open(os.path.join(PROGRAMS, "programs.txt")) as f:
        rows = [line.split(None, 2) for line in f if line.strip() and not line.startswith("#")]
    return [(r[0], r[1]) for r in rows]


def engines(tool, native_dir):
    """Returns {name: command maker}; native comes first, everything is compared with it."""
    wasm = lambda name: os.path.join(PROGRAMS, "wasm", name + ".wasm")
    node_script = os.path.join(PROGRAMS, "node_wasi.mjs")
    node = shutil.which("node")
    made = {"native": lambda n, s: [os.path.join(native_dir, n), s]}
    if node:
        made["node"] = lambda n, s: [node, node_script, wasm(n), s]
        made["turbofan"] = lambda n, s: [node, "--no-liftoff", node_script, wasm(n), s]
    else:
        print("node is not installed: its columns are left out", file=sys.stderr)
    made["baseline"] = lambda n, s: [tool, "run", "--tier=baseline", wasm(n), s]
    made["optimized"] = lambda n, s: [tool, "run", "--tier=optimized", wasm(n), s]
    made["automatic"] = lambda n, s: [tool, "run", wasm(n), s]
    return made


def timed(command, expected):
    start = time.perf_counter()
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    took = time.perf_counter() - start
    if r.returncode != 0 or r.stdout != expected:
        raise SystemExit(f"wrong result ({r.returncode}): {' '.join(command)}")
    return took


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tool", required=True, help="path of the uptier tool")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--programs", help="comma separated; all by default")
    ap.add_argument("--engines", help="comma separated; all by default")
    ap.add_argument("--json", help="writes every time to this file")
    a = ap.parse_args()

    with tempfile.TemporaryDirectory() as native_dir:
        subprocess.run([os.path.join(PROGRAMS, "native.sh"), native_dir], check=True,
                       stdout=subprocess.DEVNULL)
        makers = engines(a.tool, native_dir)
        if a.engines:
            makers = {k: v for k, v in makers.items() if k in a.engines.split(",") + ["native"]}
        programs = read_programs()
        if a.programs:
            programs = [p for p in programs if p[0] in a.programs.split(",")]
        times = {}
        for name, size in programs:
            with open(os.path.join(PROGRAMS, "expected", name + ".bench.txt"), "rb") as f:
                expected = f.read()
            rows = {e: [] for e in makers}
            for _ in range(a.rounds):
                for engine, command in makers.items():
                    rows[engine].append(timed(command(name, size), expected))
            times[name] = rows
            if sys.stderr.isatty():
                print(f"\r{name:<20}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r" + " " * 20 + "\r", end="", file=sys.stderr)

    others = [e for e in makers if e != "native"]
    print(f"wall time over native (gcc -O2); median of {a.rounds} interleaved rounds, "
          "with lowest and highest")
    print(f"{'program':<11}{'native':>9}" + "".join(f"{e:>22}" for e in others))
    medians = {e: [] for e in others}
    for name, rows in times.items():
        cells = ""
        for e in others:
            ratios = [x / n for x, n in zip(rows[e], rows["native"])]
            medians[e].append(statistics.median(ratios))
            cells += f"{medians[e][-1]:>9.2f} ({min(ratios):.2f}-{max(ratios):.2f})".rjust(22)
        print(f"{name:<11}{statistics.median(rows['native']):>7.3f} s{cells}")
    print(f"{'geomean':<11}{'':>9}" + "".join(f"{geomean(medians[e]):>9.2f}".ljust(22).rjust(22)
                                              for e in others))
    if a.json:
        with open(a.json, "w") as f:
            json.dump(times, f, indent=1)


if __name__ == "__main__":
    main()
