#!/usr/bin/env python3
"""What does `uptier run --coverage` cost?

Bad news would be: a geometric mean of `coverage` above 1.05, or one program above 1.10, at runs of a second and more.

The example programs are built with -O2 -g and run at the size of the benchmarks:

  auto       automatic mode, without coverage
  coverage   the same with --coverage: blocks note that they ran until code is compiled again
  exact      --coverage --tier=instrumented: blocks count, always

Printed: the median over interleaved rounds of the ratio of CPU time (of all threads, with the writing of the file) to
`auto` in the same round, with the lowest and the highest; `guest` is the same of the guest's thread alone. Needs clang,
lld and wasi-libc.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile

from measure import load_note
from programs import PROGRAMS, geomean, read_programs

FLAGS = ["--target=wasm32-wasi", "-O2", "-g", "-std=gnu11", "-ffp-contract=off", "-mbulk-memory", "-msign-ext",
         "-mnontrapping-fptoint", "-mmutable-globals", "-w"]


def build(name, out):
    source = os.path.join(PROGRAMS, "src", name + ".c")
    subprocess.run(["clang", *FLAGS, source, "-o", out, "-lm"], check=True)


def seconds(command, expected):
    """Returns the CPU seconds of a process, and of its first thread."""
    with tempfile.TemporaryFile() as out:
        p = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)  # it has ended, its figures are kept
        with open(f"/proc/{p.pid}/task/{p.pid}/schedstat") as f:
            guest = int(f.read().split()[0]) / 1e9
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        if p.returncode != 0 or out.read() != expected:
            sys.exit(f"wrong result ({p.returncode}): {' '.join(command)}")
    return used.ru_utime + used.ru_stime, guest


def measure(tool, module, name, size, rounds, exact, folder):
    out = os.path.join(folder, "cover.json")
    commands = {"auto": [tool, "run"], "coverage": [tool, "run", "--coverage", out]}
    if exact:
        commands["exact"] = [tool, "run", "--coverage", out, "--tier=instrumented"]
    with open(os.path.join(PROGRAMS, "expected", name + ".bench.txt"), "rb") as f:
        expected = f.read()
    times = {c: [] for c in commands}
    for r in range(rounds):
        for c, command in list(commands.items())[:: -1 if r % 2 else 1]:
            times[c].append(seconds([*command, module, size], expected))
    return times


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tool", required=True, help="path of the uptier tool")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--programs", help="comma separated; all by default")
    ap.add_argument("--no-exact", action="store_true", help="leave out the slow column")
    ap.add_argument("--json", help="writes every time to this file")
    a = ap.parse_args()
    columns = [("coverage", 0), ("coverage", 1)] + ([] if a.no_exact else [("exact", 0)])
    means = {c: [] for c in columns}
    all_times = {}
    print(f"CPU time over auto; median of {a.rounds} interleaved rounds (lowest, highest)")
    print(f"{'program':<11}{'auto':>9}" + "".join(f"{c + (' guest' if i else ''):>22}" for c, i in columns))
    with tempfile.TemporaryDirectory() as folder:
        for name, size in read_programs():
            if a.programs and name not in a.programs.split(","):
                continue
            module = os.path.join(folder, name + ".wasm")
            build(name, module)
            times = all_times[name] = measure(a.tool, module, name, size, a.rounds, not a.no_exact, folder)
            cells = ""
            for c, i in columns:
                ratios = [x[i] / y[i] for x, y in zip(times[c], times["auto"])]
                means[c, i].append(statistics.median(ratios))
                cells += f"{means[c, i][-1]:.3f} ({min(ratios):.2f} {max(ratios):.2f})".rjust(22)
            print(f"{name:<11}{statistics.median(t[0] for t in times['auto']):>7.2f} s{cells}", flush=True)
    print(f"{'geomean':<20}" + "".join(f"{geomean(means[c]):.3f}".ljust(12).rjust(22) for c in columns))
    print(load_note())
    if a.json:
        with open(a.json, "w") as f:
            json.dump(all_times, f, indent=1)


if __name__ == "__main__":
    main()
