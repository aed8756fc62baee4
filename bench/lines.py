#!/usr/bin/env python3
"""What do source lines cost before anybody asks for them, and then?

Bad news would be: more than 1 % of the instructions of a short run with debug sections that nobody reads,
more than 2 % of the optimizing compiler's instructions for rows of lines, or more than 64 bytes a row.

The example programs are built with -O2 -g. `start` counts the instructions of a short run of the module over
those of the same module without its debug sections; `rows` those of compiling all its functions with
-O line_rows=on over the same without. Both by valgrind, so a busy machine does not matter. `read` is the time
to read the sections, which a busy machine does lengthen.

`off` is the greatest difference, in points, between the share of a line in the operations of a run that
samples, and in those of a run that counts everything (--tier=instrumented); bad news: more than 3.
Needs clang, lld, wasi-libc and valgrind.
"""
import argparse, json, os, re, subprocess, sys, tempfile

from coverage import build
from measure import load_note
from programs import geomean, read_programs


def number(b, at):
    value = shift = 0
    while True:
        byte = b[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def without_debug(module):
    """Returns the module without its custom sections .debug_*, and the size of these."""
    out, debug, at = bytearray(module[:8]), 0, 8
    while at < len(module):
        size, content = number(module, at + 1)
        end = content + size
        is_debug = False
        if module[at] == 0:
            length, name = number(module, content)
            is_debug = module[name:name + length].startswith(b".debug_")
        if is_debug:
            debug += end - at
        else:
            out += module[at:end]
        at = end
    return bytes(out), debug


def instructions(command):
    p = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command],
                       capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", p.stderr)
    if p.returncode != 0 or found is None:
        sys.exit(f"failed ({p.returncode}): {' '.join(command)}\n{p.stderr[-500:]}")
    return int(found.group(1))


def shares(tool, module, options, size, folder):
    """Returns the share of each line in all operations of a run."""
    profile = os.path.join(folder, "p.upf")
    subprocess.run([tool, "run", *options, "--profile", profile, module, size], check=True,
                   stdout=subprocess.DEVNULL)
    out = subprocess.run([tool, "profile", "show", "--lines", "--json", "--module", module, profile], check=True,
                         capture_output=True, text=True).stdout
    os.remove(profile)
    lines = json.loads(out)
    return {(l["file"], l["line"]): l["operations"] / lines["operations"] for l in lines["lines"]}


def reading(bench, module):
    """Returns milliseconds, rows and bytes a row."""
    p = subprocess.run([bench, "--benchmark_filter=^read_lines", "--benchmark_format=json"], check=True,
                       capture_output=True, text=True, env={**os.environ, "UPTIER_BENCH_MODULE": module})
    r = json.loads(p.stdout)["benchmarks"][0]
    return r["cpu_time"] / 1e6, r["rows"], r["bytes/row"]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tool", required=True, help="path of the uptier tool; uptier_bench lies beside it")
    ap.add_argument("--programs", help="comma separated; all by default")
    a = ap.parse_args()
    bench = os.path.join(os.path.dirname(os.path.abspath(a.tool)), "uptier_bench")
    means = {"start": [], "rows": []}
    print(f"{'program':<11}{'debug kB':>9}{'start':>8}{'rows':>8}{'read ms':>9}{'lines':>8}{'bytes/row':>11}{'off':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for name, size in read_programs():
            if a.programs and name not in a.programs.split(","):
                continue
            module, bare = os.path.join(folder, "m.wasm"), os.path.join(folder, "bare.wasm")
            build(name, module)
            with open(module, "rb") as f:
                stripped, debug = without_debug(f.read())
            with open(bare, "wb") as f:
                f.write(stripped)
            run = [a.tool, "run", "-O", "workers=0", "--tier=baseline"]
            start = instructions([*run, module, "1"]) / instructions([*run, bare, "1"])
            speed = [a.tool, "compile", "--speed"]
            rows = instructions([*speed, "--lines", module]) / instructions([*speed, module])
            ms, count, each = reading(bench, module)
            exact, seen = (shares(a.tool, module, o, size, folder) for o in (['--tier=instrumented'], []))
            off = max(abs(exact.get(l, 0) - seen.get(l, 0)) for l in exact | seen)
            means["start"].append(start)
            means["rows"].append(rows)
            print(f"{name:<11}{debug / 1000:>9.0f}{start:>8.4f}{rows:>8.4f}{ms:>9.2f}{count:>8.0f}{each:>11.1f}"
                  f"{100 * off:>7.2f}",
                  flush=True)
    print(f"{'geomean':<20}{geomean(means['start']):>8.4f}{geomean(means['rows']):>8.4f}")
    print(load_note())


if __name__ == "__main__":
    main()
