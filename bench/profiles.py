#!/usr/bin/env python3
"""What do saved profiles save, and what does merging many of them cost?

Bad news would be: programs that run longer with a profile than without, or a merge that takes longer
than llvm-profdata's of the same counts.

warm   every example program at its small size, without a profile, with the one that earlier runs have
       left (the write at the end included), and in node, in turn; wall and processor time of the
       whole process. `hot after` is when the methods that make up 90 % of the profile were in
       service optimized, in ms since the runtime was made, and which share of the run that was; `-`
       where one of them never was. An OSR version counts. With --before TOOL another build runs in the
       same rounds, warm (over the cold runs of this one, and over its own) and cold; with --real-time (root) nothing else gets a processor meanwhile. With --lengths
       small,100,500 the programs also run for some 100 and some 500 ms without a profile, and ratios are
       printed by length.
merge  FILES profiles of METHODS * BLOCKS sites into one, in turn with llvm-profdata (if it is there);
       time, and the most memory either took: of all files, of one, and of one that holds a single site.
"""
import argparse, json, math, os, random, resource, shutil, statistics, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = os.path.join(ROOT, "examples", "programs")


# The programs' argument for runs of some 100 and some 500 ms where this was measured first.
SIZES = {"mix": (2300, 12000), "nbody": (1250000, 6500000), "spectral": (1500, 3500),
         "fannkuch": (1800, 9000), "bintrees": (17, 19), "bytecode": (370, 1850),
         "objects": (6000, 36000), "hashtable": (3000, 16000), "compress": (2300, 12500),
         "onecall": (920, 4900), "mandel": (900, 2100), "phases": (580, 3000), "strings": (340, 2300)}
LENGTHS = {"small": None, "100": 0, "500": 1}


def peak(command):
    """Returns the most memory that a run takes, in KiB: the mark that Linux keeps, read until the end.
    (wait4 has it too, but counts what the process that started it had.)"""
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most = 0
    with open(f"/proc/{p.pid}/status", "rb", buffering=0) as status:
        while p.poll() is None:
            at = os.pread(status.fileno(), 4096, 0).partition(b"VmHWM:")[2].split()
            most = max(most, int(at[0])) if at else most
    if p.returncode != 0:
        raise SystemExit(f"failed: {' '.join(command)}")
    return most


def run(command, expected=None):
    """Returns (wall seconds, processor seconds)."""
    # Where the stack begins depends on it, and some loops run a tenth faster or slower by that.
    env = dict(os.environ, UPTIER_BENCH_PAD="x" * random.randrange(4096))
    start = time.perf_counter()
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    out = p.stdout.read()
    err = p.stderr.read()
    _, status, used = os.wait4(p.pid, 0)
    wall = time.perf_counter() - start
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode != 0 or (expected is not None and out != expected):
        raise SystemExit(f"wrong result ({p.returncode}): {' '.join(command)}\n{err.decode()}")
    return wall, used.ru_utime + used.ru_stime


def median(values):
    return statistics.median(values)


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def hottest(tool, file):
    """Returns the names of the methods that have 90 % of a profile's executions."""
    table = subprocess.run([tool, "profile", "show", "--top", "1000", file], check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    rows = table[table.index("\nmethod "):].splitlines()[2:]
    names, share = [], 0
    for row in rows:
        if share >= 90:
            break
        names.append(row[:32].strip())
        share += float(row[32:].split()[0].rstrip("%"))
    return names


def hot_after(tool, file, hot):
    """Returns (ms, share of the run) at which all of `hot` ran optimized in the file's last run."""
    timeline = json.loads(subprocess.run([tool, "profile", "show", "--timeline", "--json", file],
                                         check=True, stdout=subprocess.PIPE).stdout)["runs"][-1]
    first = {}
    for v in timeline["versions"]:
        if v["tier"] == "optimized" and v["copy"] == "plain":
            first.setdefault(v["method"][:32], v["from_ns"])
    if not all(name in first for name in hot):
        return None
    ns = max(first[name] for name in hot)
    return ns / 1e6, ns / timeline["length_ns"]


def warm(a):
    lengths = a.lengths.split(",")
    if not all(length in LENGTHS for length in lengths):
        raise SystemExit(f"--lengths: some of {','.join(LENGTHS)}")
    lines = []
    for length in lengths:
        if len(lengths) > 1:
            print(f"length: {length}" + (" ms" if LENGTHS[length] is not None else ""))
        lines.append((length, warm_at(a, LENGTHS[length])))
    if len(lengths) > 1:
        print("warm over cold by length: " + ", ".join(
            f"{length}: wall {wall:.3f} ({least:.2f}..{most:.2f}), cpu {cpu:.3f}"
            for length, (wall, least, most, cpu) in lines))


def warm_at(a, length):
    """Runs all programs at a length; returns ratios of wall time (mean, least, most) and of cpu."""
    with open(os.path.join(PROGRAMS, "programs.txt")) as f:
        names = [line.split()[0] for line in f if line.strip() and not line.startswith("#")]
    if a.programs:
        names = a.programs.split(",")
    node = None if a.no_node else shutil.which("node")
    if node is None and not a.no_node:
        print("node is not installed: nothing to compare with", file=sys.stderr)
    ratios = {"wall": [], "cpu": [], "node": [], "before": [], "before cpu": [], "own": [],
              "cold": [], "warm": []}
    quarters = {"warm": [], "before": []}
    print(f"{'program':10} {'cold ms':>8} {'warm ms':>8} {'ratio':>6} {'of cpu':>7} {'quartiles':>11} "
          f"{'warm/node':>9}   hot after: cold, warm")
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            wasm = [os.path.join(PROGRAMS, "wasm", name + ".wasm")]
            if length is None:
                with open(os.path.join(PROGRAMS, "expected", name + ".txt"), "rb") as f:
                    expected = f.read()
            else:
                wasm.append(str(SIZES[name][length]))
                expected = subprocess.run([a.tool, "run", "--tier", "baseline"] + wasm, check=True,
                                          stdout=subprocess.PIPE).stdout
            saved, fresh = os.path.join(work, name + ".upf"), os.path.join(work, "fresh.upf")
            runs = {"cold": [], "warm": [], "node": [], "before": [], "before cold": []}
            hot = {"cold": [], "warm": []}
            earlier = os.path.join(work, name + ".before.upf")
            for _ in range(2):
                run([a.tool, "run", "--profile", saved] + wasm, expected)
                if a.before:
                    run([a.before, "run", "--profile", earlier] + wasm, expected)
            methods = hottest(a.tool, saved)
            commands = {"cold": [a.tool, "run"] + wasm,
                        "warm": [a.tool, "run", "--profile", saved] + wasm}
            if a.before:
                commands["before"] = [a.before, "run", "--profile", earlier] + wasm
                commands["before cold"] = [a.before, "run"] + wasm
            if node:
                script = os.path.join(PROGRAMS, "node_wasi.mjs")
                commands["node"] = [node, "--no-warnings", script] + wasm
            for _ in range(a.rounds):
                # In any order: processors differ, and each start takes another one.
                for kind in random.sample(sorted(commands), len(commands)):
                    runs[kind].append(run(commands[kind], expected))
                hot["warm"].append(hot_after(a.tool, saved, methods))
                if os.path.exists(fresh):
                    os.remove(fresh)
                run([a.tool, "run", "--profile", fresh] + wasm, expected)
                hot["cold"].append(hot_after(a.tool, fresh, methods))
            over = lambda x, y, i: [p[i] / q[i] for p, q in zip(runs[x], runs[y])]
            cpu = sorted(over("warm", "cold", 1))
            ratios["wall"].append(median(over("warm", "cold", 0)))
            ratios["cpu"].append(median(cpu))
            if node:
                ratios["node"].append(median(over("warm", "node", 0)))

            # Steadier where one processor is slower than the other: the runs that had the faster one.
            quarter = lambda x: sorted(r[0] for r in runs[x])[len(runs[x]) // 4]
            for kind in quarters:
                if runs[kind]:
                    quarters[kind].append(quarter(kind) / quarter("cold"))
            if a.before:
                ratios["before"].append(median(over("before", "cold", 0)))
                ratios["before cpu"].append(median(over("before", "cold", 1)))
                ratios["own"].append(median(over("before", "before cold", 0)))
                ratios["cold"].append(median(over("cold", "before cold", 0)))
                ratios["warm"].append(median(over("warm", "before", 0)))

            def when(of):
                if None in hot[of]:
                    return "-"
                ms, share = (median([h[i] for h in hot[of]]) for i in (0, 1))
                return f"{ms:.1f} ms ({100 * share:.0f} %)"
            ms = lambda x: 1e3 * median([r[0] for r in runs[x]])
            beside = f"{ratios['node'][-1]:.3f}" if node else "-"
            print(f"{name:10} {ms('cold'):8.1f} {ms('warm'):8.1f} {ratios['wall'][-1]:6.3f} "
                  f"{ratios['cpu'][-1]:7.3f} {cpu[len(cpu) // 4]:.3f}-{cpu[3 * len(cpu) // 4]:.3f} "
                  f"{beside:>9}   {when('cold')}, {when('warm')}" +
                  (f"; before: {ratios['before'][-1]:.3f}" if a.before else ""))
    print(f"geometric mean of warm over cold: wall {geomean(ratios['wall']):.3f}, "
          f"cpu {geomean(ratios['cpu']):.3f}" +
          (f"; over node: wall {geomean(ratios['node']):.3f}" if node else "") +
          (f"; before: wall {geomean(ratios['before']):.3f}, cpu {geomean(ratios['before cpu']):.3f}"
           if a.before else ""))
    if a.before:
        print(f"before: warm over its own cold {geomean(ratios['own']):.3f}; this over before: "
              f"cold {geomean(ratios['cold']):.3f}, warm {geomean(ratios['warm']):.3f}")
    print("of lower quartiles of wall time: " +
          ", ".join(f"{kind} {geomean(of):.3f}" for kind, of in quarters.items() if of))
    return geomean(ratios["wall"]), min(ratios["wall"]), max(ratios["wall"]), geomean(ratios["cpu"])


def write_inputs(work, a, llvm):
    random.seed(1)
    for i in range(a.files):
        ours, theirs = ["uptier-profile 1"], [":ir"]
        for m in range(a.methods):
            counts = [int(random.paretovariate(0.6)) if random.random() < 0.7 else 0
                      for _ in range(a.blocks)]
            ours.append(f'method 0xa1 {m} "method_{m}" {{ calls {counts[0]} sampled {counts[0]} '
                        f"iterations 0 bursts 0 interval 1 cfg {hex(m + 1)}")
            ours += [f"block {b + 1} {c}" for b, c in enumerate(counts)]
            ours.append("}")
            theirs += [f"method_{m}", str(m + 1), str(a.blocks)] + [str(c) for c in counts] + [""]
        text, llvm_text = os.path.join(work, "t"), os.path.join(work, "l")
        with open(text, "w") as f:
            f.write("\n".join(ours) + "\n")
        run([a.tool, "profile", "merge", "-o", os.path.join(work, f"{i}.upf"), text])
        if llvm:
            with open(llvm_text, "w") as f:
                f.write("\n".join(theirs) + "\n")
            run([llvm, "merge", "-o", os.path.join(work, f"{i}.profdata"), llvm_text])


def merge(a):
    llvm = shutil.which("llvm-profdata")
    if not llvm:
        print("llvm-profdata is not installed: nothing to compare with", file=sys.stderr)
    with tempfile.TemporaryDirectory() as work:
        write_inputs(work, a, llvm)
        size = lambda ext: sum(os.path.getsize(os.path.join(work, f"{i}.{ext}")) for i in range(a.files))
        ours, theirs = [], []
        inputs = lambda ext: [os.path.join(work, f"{i}.{ext}") for i in range(a.files)]
        to_upf = [a.tool, "profile", "merge", "-o", os.path.join(work, "sum.upf")]
        to_profdata = [llvm, "merge", "-o", os.path.join(work, "sum.profdata")]
        if a.threads:
            to_upf += ["--threads", str(a.threads)]
            to_profdata += [f"-num-threads={a.threads}"]
        for _ in range(a.rounds):
            ours.append(run(to_upf + inputs("upf")))
            if llvm:
                theirs.append(run(to_profdata + inputs("profdata")))

        def show(name, runs, command, ext):
            most = lambda more: max(peak(command + more) for _ in range(5))
            none, one, every = most([tiny[ext]]), most(inputs(ext)[:1]), most(inputs(ext))
            print(f"{name:14} wall {1e3 * median([r[0] for r in runs]):8.1f} ms   cpu "
                  f"{1e3 * median([r[1] for r in runs]):8.1f} ms   files "
                  f"{size(ext) / a.files / 1024:.0f} KiB each")
            print(f"{'':14} peak {every} KiB, of one file {one} KiB, of one of a single site {none} KiB")
        tiny_work = os.path.join(work, "tiny")
        os.mkdir(tiny_work)
        write_inputs(tiny_work, argparse.Namespace(tool=a.tool, files=1, methods=1, blocks=1), llvm)
        tiny = {ext: os.path.join(tiny_work, "0." + ext) for ext in ("upf", "profdata")}
        print(f"{a.files} files of {a.methods} * {a.blocks} sites")
        show("uptier", ours, to_upf, "upf")
        if llvm:
            show("llvm-profdata", theirs, to_profdata, "profdata")
            faster = sorted(t[1] / o[1] for o, t in zip(ours, theirs))
            print(f"cpu time of llvm-profdata over ours: {median(faster):.2f} "
                  f"({faster[0]:.2f}..{faster[-1]:.2f}); wall "
                  f"{median([t[0] / o[0] for o, t in zip(ours, theirs)]):.2f}")


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tool", required=True, help="path of the uptier tool")
    ap.add_argument("what", nargs="*", choices=["warm", "merge", []], default=[],
                    help="all by default")
    ap.add_argument("--rounds", type=int, default=9)
    ap.add_argument("--before", help="of warm: path of another build's tool")
    ap.add_argument("--real-time", action="store_true", help="ahead of all other processes")
    ap.add_argument("--lengths", default="small",
                    help="of warm, comma separated: small, 100, 500 (ms, about); small by default")
    ap.add_argument("--no-node", action="store_true", help="of warm: without node")
    ap.add_argument("--programs", help="of warm, comma separated; all by default")
    ap.add_argument("--files", type=int, default=200)
    ap.add_argument("--methods", type=int, default=500)
    ap.add_argument("--blocks", type=int, default=30)
    ap.add_argument("--threads", type=int, help="of a merge; as many as the files are worth by default")
    a = ap.parse_args()
    if a.real_time:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    for what in a.what or ["warm", "merge"]:
        {"warm": warm, "merge": merge}[what](a)


if __name__ == "__main__":
    main()
