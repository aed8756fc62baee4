#!/usr/bin/env python3
"""Does a module run faster if it is built again with what Uptier has observed of it?

Bad news would be: a geometric mean above 1.00 in a column of `autofdo`, or one that is far behind the same
engine's column of `instr`.

Each program is built four times by clang 22 with -O2:

  plain     without a profile
  autofdo   with -fprofile-sample-use, the profile that `uptier profile export --format=autofdo` makes of one run
            of `plain` in automatic mode at a small size
  exact     the same, of a run with --tier=instrumented: executions are counted, not estimated
  instr     with -fprofile-instr-use, clang's own counters, of a native run at that size

They run at the size of the benchmarks, which no profile has seen, by `uptier run --tier=optimized` and by node
without its baseline compiler, interleaved. Printed: the median over rounds of the ratio of CPU time to `plain` in the
same round, with the lowest and the highest, and the geometric mean. Needs clang-22, lld-22, llvm-22,
libclang-rt-22-dev, libclang-rt-22-dev-wasm32 and wasi-libc.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile

from measure import load_note
from programs import PROGRAMS, geomean, read_programs

ALL = ["bytecode", "compress", "hashtable", "objects", "strings"]
FLAGS = ["-O2", "-std=gnu11", "-ffp-contract=off"]
GUEST = ["--target=wasm32-wasi", "-mbulk-memory", "-msign-ext", "-mnontrapping-fptoint", "-lm", "-w"]
FORMS = ["autofdo", "exact", "instr"]
TOOLS = ["clang-22", "wasm-ld-22", "llvm-profdata-22"]
TRAINING = 12  # the observed run has the size of the benchmark, divided by this


def run(command, **more):
    done = subprocess.run([str(w) for w in command], capture_output=True, **more)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stderr.decode()[-2000:]}")
    return done


def source_of(name):
    return os.path.join(PROGRAMS, "src", name + ".c")


def build(name, out, extra, strip=True):
    run(["clang-22", *FLAGS, *GUEST, *extra, source_of(name), "-o", out] + (["-Wl,--strip-debug"] if strip else []))


def observed(tool, module, size, options, out):
    """Makes a sample profile from one run."""
    saved = out + ".upf"
    run([tool, "run", "--profile", saved, *options, module, size])
    run([tool, "profile", "export", saved, "--format=autofdo", "--module", module, "-o", out])
    run(["llvm-profdata-22", "show", "--sample", out])
    return ["-fdebug-info-for-profiling", "-fprofile-sample-use=" + out]


def counted(name, size, out):
    """Makes clang's own profile from one native run."""
    program, raw = out + ".native", out + ".raw"
    run(["clang-22", *FLAGS, "-w", "-fprofile-instr-generate", source_of(name), "-o", program, "-lm"])
    run([program, size], env={"LLVM_PROFILE_FILE": raw})
    run(["llvm-profdata-22", "merge", raw, "-o", out])
    return ["-fprofile-instr-use=" + out]


def build_all(tool, name, size, folder):
    path = lambda form: os.path.join(folder, f"{name}.{form}")
    small = str(max(int(size) // TRAINING, 1))
    watched = path("watched.wasm")
    build(name, watched, ["-g", "-fdebug-info-for-profiling"], strip=False)
    options = {"plain": [],
               "autofdo": observed(tool, watched, small, [], path("autofdo.prof")),
               "exact": observed(tool, watched, small, ["--tier=instrumented"], path("exact.prof")),
               "instr": counted(name, small, path("instr.profdata"))}
    for form, extra in options.items():
        build(name, path(form + ".wasm"), extra)
    return {form: path(form + ".wasm") for form in options}


def cpu_seconds(command, expected):
    with tempfile.TemporaryFile() as out:
        p = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        if p.returncode != 0 or out.read() != expected:
            sys.exit(f"wrong result ({p.returncode}): {' '.join(command)}")
    return used.ru_utime + used.ru_stime


def engines(tool):
    made = {"uptier": [tool, "run", "--tier=optimized"]}
    node = shutil.which("node")
    if node is None:
        print("node is missing: its columns are left out", file=sys.stderr)
    else:
        made["node"] = [node, "--no-liftoff", os.path.join(PROGRAMS, "node_wasi.mjs")]
    return made


def measure(modules, size, runners, expected, rounds):
    """Returns {engine: {form: [seconds of each round]}}."""
    times = {e: {form: [] for form in modules} for e in runners}
    for r in range(rounds):
        for engine, command in runners.items():
            for form, module in list(modules.items())[:: -1 if r % 2 else 1]:
                times[engine][form].append(cpu_seconds([*command, module, size], expected))
    return times


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tool", required=True, help="path of the uptier tool")
    ap.add_argument("--rounds", type=int, default=7)
    ap.add_argument("--programs", default=",".join(ALL), help="comma separated")
    ap.add_argument("--json", help="writes every time to this file")
    a = ap.parse_args()
    missing = [t for t in TOOLS if shutil.which(t) is None]
    if missing:
        sys.exit("missing: " + ", ".join(missing))
    tool = os.path.abspath(a.tool)
    runners, all_times = engines(tool), {}
    columns = [(e, form) for e in runners for form in FORMS]
    means = {c: [] for c in columns}
    print(f"CPU time over plain; median of {a.rounds} interleaved rounds (lowest, highest)")
    print(f"{'program':<11}" + "".join(f"{e + ' ' + form:>20}" for e, form in columns))
    with tempfile.TemporaryDirectory() as folder:
        for name, size in [p for p in read_programs() if p[0] in a.programs.split(",")]:
            modules = build_all(tool, name, size, folder)
            with open(os.path.join(PROGRAMS, "expected", name + ".bench.txt"), "rb") as f:
                times = all_times[name] = measure(modules, size, runners, f.read(), a.rounds)
            cells = ""
            for e, form in columns:
                ratios = [x / y for x, y in zip(times[e][form], times[e]["plain"])]
                means[e, form].append(statistics.median(ratios))
                cells += f"{means[e, form][-1]:.3f} ({min(ratios):.2f} {max(ratios):.2f})".rjust(20)
            print(f"{name:<11}{cells}", flush=True)
    print(f"{'geomean':<11}" + "".join(f"{geomean(means[c]):.3f}".ljust(12).rjust(20) for c in columns))
    print(load_note())
    if a.json:
        with open(a.json, "w") as f:
            json.dump(all_times, f, indent=1)


if __name__ == "__main__":
    main()
