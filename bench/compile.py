#!/usr/bin/env python3
"""How fast are the compilers, in bytes of WebAssembly, and beside node's?

Bad news would be: a baseline compiler below 10 MB/s, or an optimizing one below 1 MB/s.

All functions of a module are compiled, one after the other on one thread, by `uptier compile
--speed` (from the module's bytes to code: description, checks and compilation) and by node:
`new WebAssembly.Module` with lazy compilation off, by Liftoff alone and by TurboFan alone, which
includes reading and validating the module. The engines take turns. Below the compilers stand the
stages: to read and validate, to describe in IR, to verify that, and either compiler alone. Printed
is the median over rounds, with the lowest and the highest. MB are of function bodies. The module is
the largest of the example programs unless one is given.
"""
import argparse, json, os, shutil, statistics, subprocess, sys

from programs import PROGRAMS, read_programs, wasm

NODE = ["--no-wasm-lazy-compilation", "--no-wasm-dynamic-tiering", "--wasm-num-compilation-tasks=1",
        "--no-wasm-native-module-cache-enabled"]
SCRIPT = """
const bytes = require('fs').readFileSync(process.argv[1]);
const start = process.hrtime.bigint();
new WebAssembly.Module(bytes);
console.log(Number(process.hrtime.bigint() - start) / 1e9);
"""


def uptier_seconds(tool, module):
    """Returns {compiler: seconds}, {stage: seconds}, bytes, IR instructions."""
    rows = json.loads(subprocess.run([tool, "compile", "--speed=json", module], check=True,
                                     capture_output=True, text=True).stdout)
    failed = sum(r["failed"] for r in rows)
    if failed:
        raise SystemExit(f"{module}: {failed} functions were not compiled")
    before = {s: rows[0][s + "_seconds"] for s in ("read", "describe", "verify")}
    seconds = {r["compiler"]: r["seconds"] + sum(before.values()) for r in rows}
    stages = {"  " + s: t for s, t in before.items()}
    stages |= {"  " + r["compiler"]: r["seconds"] for r in rows}
    return seconds, stages, rows[0]["wasm_bytes"], rows[0]["ir_instructions"]


def node_seconds(flag, module):
    r = subprocess.run(["node", *NODE, flag, "-e", SCRIPT, module], check=True,
                       capture_output=True, text=True)
    return float(r.stdout)


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tool", required=True, help="path of the uptier tool")
    ap.add_argument("--rounds", type=int, default=9)
    ap.add_argument("--module", help="a .wasm file; the largest example by default")
    ap.add_argument("--json", help="writes every time to this file")
    a = ap.parse_args()
    module = a.module or max((wasm(n) for n, _ in read_programs()), key=os.path.getsize)
    node = {"node Liftoff": "--liftoff-only", "node TurboFan": "--no-liftoff"}
    if shutil.which("node") is None:
        print("node is not installed: its rows are left out", file=sys.stderr)
        node = {}
    times, size, instructions = {}, 0, 0
    for _ in range(a.rounds):
        seconds, stages, size, instructions = uptier_seconds(a.tool, module)
        for name, s in (seconds | stages).items():
            times.setdefault(name, []).append(s)
        for name, flag in node.items():
            times.setdefault(name, []).append(node_seconds(flag, module))
    print(f"{os.path.basename(module)}: {size} bytes of bodies, {instructions} IR instructions; "
          f"median of {a.rounds} rounds (lowest, highest)")
    print(f"{'compiler':<15}{'ms':>24}{'MB/s':>9}{'ns per IR inst':>16}")
    for name, s in times.items():
        m = statistics.median(s)
        spread = f"{1e3 * m:.2f} ({1e3 * min(s):.2f} {1e3 * max(s):.2f})"
        each = f"{1e9 * m / instructions:>16.0f}" if not name.startswith("node") else ""
        print(f"{name:<15}{spread:>24}{size / 1e6 / m:>9.2f}{each}")
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"module": module, "bytes": size, "seconds": times}, f, indent=1)


if __name__ == "__main__":
    main()
