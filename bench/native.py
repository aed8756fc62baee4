#!/usr/bin/env python3
"""How close to native code do whole runs of half a second come, on one core and on two?

Bad news would be: a run on one core that takes more than 1.6 of native's time, anything behind node,
or a saved profile that costs more than it saves.

On one core the compiler takes its time from the program, so a run pays for every compilation in
full. Every program runs at its bench size under each engine in turn (A B C ... A B C ...), and its
output is checked. Printed for one core and for two (taskset), as ratios to native (gcc -O2) of the
same round: the median with the lowest and the highest, of wall time and of user and system time
together, which includes the compiling threads.

Engines: those of programs.py. `node` is node as it comes, `turbofan` is node without its baseline
compiler; `automatic` is the tool as it comes, `saved` has the profile of an earlier run, `optimized`
optimizes everything at first and has no profile.

--causes says, for each program and several runs of it, how much of its time was in baseline code, and
what became of the method that ran most.
"""
import argparse, collections, json, os, shutil, statistics, subprocess, tempfile, time

from measure import load_note, progress, spread
from programs import PROGRAMS, engines, geomean, read_programs

# Programs in the likeness of large interpreters, data bases and codecs.
LIKE_LARGE_ONES = ["bytecode", "compress", "script", "store", "lz", "blocksort", "exprvm"]
CORES = {1: "0", 2: "0,1"}
COLUMNS = ["wall", "user+sys"]


def run(command, cores, expected):
    """Returns (wall seconds, user and system seconds) of a process and its threads."""
    with tempfile.TemporaryFile() as out:
        start = time.perf_counter()
        p = subprocess.Popen(["taskset", "-c", CORES[cores]] + command, stdout=out,
                             stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(p.pid, 0)
        wall = time.perf_counter() - start
        p.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        if p.returncode != 0 or out.read() != expected:
            raise SystemExit(f"wrong result ({p.returncode}): {' '.join(command)}")
    return wall, usage.ru_utime + usage.ru_stime


def measure(name, size, makers, rounds, cores):
    """Returns {engine: [(wall, user+sys) of each round]}."""
    with open(os.path.join(PROGRAMS, "expected", name + ".bench.txt"), "rb") as f:
        expected = f.read()
    times = {e: [] for e in makers}
    if "saved" in makers:  # the run whose profile is used
        run(makers["saved"](name, size), cores, expected)
    for r in range(rounds):
        for engine, command in list(makers.items())[:: -1 if r % 2 else 1]:
            progress(f"{name}, {cores} cores: {engine}")
            times[engine].append(run(command(name, size), cores, expected))
    return times


def print_table(cores, all_times, others, rounds):
    for column, title in enumerate(COLUMNS):
        print(f"\n{title} over native (gcc -O2), {'one core' if cores == 1 else 'two cores'}; "
              f"median of {rounds} interleaved rounds (lowest, highest); {load_note()}")
        print(f"{'program':<11}{'native':>9}" + "".join(f"{e:>20}" for e in others))
        medians = {e: [] for e in others}
        for name, times in all_times.items():
            cells = ""
            for e in others:
                r = spread([x[column] / n[column] for x, n in zip(times[e], times["native"])])
                medians[e].append(r[0])
                cells += f"{r[0]:.2f} ({r[1]:.2f} {r[2]:.2f})".rjust(20)
            native = statistics.median(t[column] for t in times["native"])
            print(f"{name:<11}{native:>7.3f} s{cells}")
        print(f"{'geomean':<20}" + "".join(f"{geomean(medians[e]):.2f}".ljust(14).rjust(20)
                                           for e in others))


def causes_of(tool, name, size, scratch):
    """Returns (share of the samples in baseline code, share of the run that was over when a compilation
    of the method that ran most began for the last time, its optimized versions, frames that entered
    code at a loop) of one run under `automatic`."""
    path = os.path.join(scratch, "events.jsonl")
    r = subprocess.run([tool, "run", "-O", "sample_hz=1000", "--report=json", "--events", path,
                        os.path.join(PROGRAMS, "wasm", name + ".wasm"), size],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    report = json.loads(r.stderr)
    rows = [x for x in report["time"]["rows"] if x["method"] is not None]
    share = lambda chosen: sum(x["share"] for x in chosen)
    ran = collections.Counter()
    for row in rows:
        ran[row["method"]] += row["share"]
    hottest = next(m for m in report["methods"] if m["method"] == ran.most_common(1)[0][0])
    with open(path) as f:
        events = [json.loads(line) for line in f]
    began, ended = events[0]["ns"], max(e["ns"] for e in events)
    compiled = [e["ns"] for e in events if e["kind"] == "task" and e.get("phase") == "begin" and
                e.get("event", {}).get("name", "") == f"compile {hottest['name']}"]
    last = (max(compiled, default=began) - began) / (ended - began)
    made = sum(v["tier"] == "optimized" for v in hottest["versions"])
    return (share(x for x in rows if x["tier"] == "baseline"), last, made,
            hottest["osr_entries"], hottest["name"])


def print_causes(tool, programs, runs):
    print("\nautomatic, each of several runs: the share of its time in baseline code (stack samples);"
          "\nthe method that ran most: versions of optimized code, frames that entered one at a loop, "
          "and\nwhere in the run the last compilation of it began")
    with tempfile.TemporaryDirectory() as scratch:
        for name, size in programs:
            for _ in range(runs):
                baseline, last, made, entries, hottest = causes_of(tool, name, size, scratch)
                print(f"{name:<11}{100 * baseline:>5.1f} % in baseline code   {hottest}: {made} versions,"
                      f" {entries} entries, last compiled at {100 * last:.0f} %")


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tool", required=True, help="path of the uptier tool")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--programs", help=f"comma separated; {','.join(LIKE_LARGE_ONES)} by default")
    ap.add_argument("--engines", help="comma separated; all by default")
    ap.add_argument("--cores", help="1, 2 or 1,2, which is the default", default="1,2")
    ap.add_argument("--causes", type=int, metavar="RUNS",
                    help="says of so many runs where their time went; measures nothing else")
    ap.add_argument("--json", help="writes every time to this file")
    a = ap.parse_args()
    if shutil.which("taskset") is None:
        raise SystemExit("SKIPPED: taskset is not installed, nothing is measured")
    wanted = a.programs.split(",") if a.programs else LIKE_LARGE_ONES
    programs = [p for p in read_programs() if p[0] in wanted]
    if a.causes:
        return print_causes(a.tool, programs, a.causes)
    written = {}
    with tempfile.TemporaryDirectory() as scratch:
        makers = engines(a.tool, scratch, a.engines and a.engines.split(","))
        others = [e for e in makers if e != "native"]
        for cores in map(int, a.cores.split(",")):
            times = {n: measure(n, size, makers, a.rounds, cores) for n, size in programs}
            progress("")
            print_table(cores, times, others, a.rounds)
            written[cores] = times
    if a.json:
        with open(a.json, "w") as f:
            json.dump(written, f, indent=1)


if __name__ == "__main__":
    main()
