#!/usr/bin/env python3
"""How close do the tiers come to native code, and to V8, on whole programs?

Bad news would be: a geometric mean above 1.30 for `optimized` in steady state, or `automatic` slower
than node or turbofan in the geometric mean or on more than one program in five.

Every program runs at its bench size under each engine in turn (A B C ... A B C ...), output checked
against examples/programs/expected. Printed, as ratios to native (gcc -O2), the median of the
per-round ratios with their spread, and the geometric mean:

  total    wall time of the whole process, start-up and compilation included
  steady   wall time of a run at the bench size less that of one at half of it, so that what every
           run pays once falls out

Engines: native is gcc -O2, clang is clang -O2; node and turbofan (without its baseline compiler) run
the same WebAssembly; baseline, optimized (no profile), automatic, and saved: automatic with the
profile of an earlier run (uptier run --profile). Engines that are not installed are left out,
loudly.
"""
import argparse, json, math, os, shutil, statistics, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = os.path.join(ROOT, "examples", "programs")


def read_programs():
    with open(os.path.join(PROGRAMS, "programs.txt")) as f:
        rows = [line.split(None, 2) for line in f if line.strip() and not line.startswith("#")]
    return [(r[0], r[1]) for r in rows]


def wasm(name):
    return os.path.join(PROGRAMS, "wasm", name + ".wasm")


def build_native(folder, compiler):
    subprocess.run([os.path.join(PROGRAMS, "native.sh"), folder], check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, "CC": compiler})


def can_save_profiles(tool):
    text = subprocess.run([tool, "run", "--help"], capture_output=True, text=True).stdout
    return "--profile" in text


def engines(tool, scratch, wanted):
    """Returns {name: command maker}; native comes first, everything is compared with it."""
    node = shutil.which("node")
    script = os.path.join(PROGRAMS, "node_wasi.mjs")
    native, clang = os.path.join(scratch, "gcc"), os.path.join(scratch, "clang")
    profile = lambda n: os.path.join(scratch, n + ".upf")
    made = {
        "native": lambda n, s: [os.path.join(native, n), s],
        "clang": lambda n, s: [os.path.join(clang, n), s],
        "node": lambda n, s: [node, script, wasm(n), s],
        "turbofan": lambda n, s: [node, "--no-liftoff", script, wasm(n), s],
        "baseline": lambda n, s: [tool, "run", "--tier=baseline", wasm(n), s],
        "optimized": lambda n, s: [tool, "run", "--tier=optimized", wasm(n), s],
        "automatic": lambda n, s: [tool, "run", wasm(n), s],
        "saved": lambda n, s: [tool, "run", "--profile", profile(n), wasm(n), s],
    }
    missing = []
    if shutil.which("clang") is None:
        missing.append("clang")
    if node is None:
        missing += ["node", "turbofan"]
    if not can_save_profiles(tool):
        missing.append("saved")
    for name in missing:
        print(f"{name}: cannot be had here, its column is left out", file=sys.stderr)
    chosen = {e: c for e, c in made.items()
              if e not in missing and (e == "native" or not wanted or e in wanted)}
    build_native(native, "gcc")
    if "clang" in chosen:
        build_native(clang, "clang")
    return chosen


def timed(command, expected):
    start = time.perf_counter()
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    took = time.perf_counter() - start
    if r.returncode != 0 or (expected is not None and r.stdout != expected):
        raise SystemExit(f"wrong result ({r.returncode}): {' '.join(command)}")
    return took, r.stdout


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def measure(name, size, makers, rounds, steady):
    """Returns {engine: [(seconds at the size, seconds at half of it or None)]}."""
    with open(os.path.join(PROGRAMS, "expected", name + ".bench.txt"), "rb") as f:
        expected = f.read()
    half, half_expected = str(int(size) // 2), None
    rows = {e: [] for e in makers}
    if "saved" in makers:  # the run whose profile is used
        subprocess.run(makers["saved"](name, size), stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    for _ in range(rounds):
        for engine, command in makers.items():
            whole, _ = timed(command(name, size), expected)
            part = None
            if steady:
                part, out = timed(command(name, half), half_expected)
                half_expected = half_expected or out  # native comes first
            rows[engine].append((whole, part))
    return rows


def ratios(rows, engine, steady):
    """Per round, over native's of the same round."""
    seconds = (lambda t: t[0] - t[1]) if steady else (lambda t: t[0])
    return [seconds(x) / seconds(n) for x, n in zip(rows[engine], rows["native"])]


def print_table(title, times, others, steady):
    print(f"\n{title}")
    print(f"{'program':<11}{'native':>9}" + "".join(f"{e:>20}" for e in others))
    medians = {e: [] for e in others}
    for name, rows in times.items():
        cells = ""
        for e in others:
            r = ratios(rows, e, steady)
            medians[e].append(statistics.median(r))
            cells += f"{medians[e][-1]:.2f} ({min(r):.2f} {max(r):.2f})".rjust(20)
        native = statistics.median(t[0] - (t[1] if steady else 0) for t in rows["native"])
        print(f"{name:<11}{native:>7.3f} s{cells}")
    print(f"{'geomean':<20}" + "".join(f"{geomean(medians[e]):.2f}".ljust(14).rjust(20)
                                       for e in others))
    return medians


def print_verdicts(medians):
    """Against V8 in total time, and what the profile is worth."""
    for ours in "automatic", "saved":
        for theirs in "node", "turbofan":
            if ours not in medians or theirs not in medians:
                continue
            pairs = list(zip(medians[ours], medians[theirs]))
            faster = sum(x < y for x, y in pairs)
            print(f"{ours} against {theirs}: {geomean([x / y for x, y in pairs]):.2f} of its time, "
                  f"faster on {faster} of {len(pairs)}")
        if ours in medians and "optimized" in medians:
            worth = geomean([y / x for x, y in zip(medians[ours], medians["optimized"])])
            print(f"{ours} against optimized without a profile: {worth:.2f} times as fast")


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tool", required=True, help="path of the uptier tool")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--programs", help="comma separated; all by default")
    ap.add_argument("--engines", help="comma separated; all by default")
    ap.add_argument("--no-steady", action="store_true", help="whole runs only: half the time")
    ap.add_argument("--json", help="writes every time to this file")
    a = ap.parse_args()
    programs = read_programs()
    if a.programs:
        programs = [p for p in programs if p[0] in a.programs.split(",")]
    steady = not a.no_steady
    times = {}
    with tempfile.TemporaryDirectory() as scratch:
        makers = engines(a.tool, scratch, a.engines and a.engines.split(","))
        for name, size in programs:
            times[name] = measure(name, size, makers, a.rounds, steady)
            if sys.stderr.isatty():
                print(f"\r{name:<20}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r" + " " * 20 + "\r", end="", file=sys.stderr)
    others = [e for e in makers if e != "native"]
    how = f"over native (gcc -O2); median of {a.rounds} interleaved rounds (lowest, highest)"
    total = print_table(f"total wall time {how}", times, others, False)
    print_verdicts(total)
    if steady:
        print_verdicts(print_table(f"steady state {how}", times, others, True))
    if a.json:
        with open(a.json, "w") as f:
            json.dump(times, f, indent=1)


if __name__ == "__main__":
    main()
