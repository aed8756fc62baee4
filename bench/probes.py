#!/usr/bin/env python3
"""Which executions of blocks do rows not count, and what do rows take?

Runs `uptier compile --verify-probes` and `--probe-table` on the example programs. Bad news: a broken law, more than
5 % of all executions unknown, or more than 15 % in a program.
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "examples/programs"
# Sizes whose machine code runs in single steps within seconds; other programs take 1.
SIZES = {}


def names():
    lines = (PROGRAMS / "programs.txt").read_text().splitlines()
    return [line.split()[0] for line in lines if line and not line.startswith("#")]


def run(tool, *words):
    r = subprocess.run([tool, "compile", "--json", *words], capture_output=True, text=True)
    if not r.stdout:
        sys.exit(f"{' '.join(words)}: {r.stderr}")
    return json.loads(r.stdout)


def show_passes(checks):
    order, lost, programs = [], {}, {}
    total = sum(c["executions"] for c in checks.values())
    for name, c in checks.items():
        for step in c["steps"]:
            if step["after"] == "code":
                continue
            if step["after"] not in lost:
                order.append(step["after"])
            lost[step["after"]] = lost.get(step["after"], 0) + step["unknown"]
            if step["unknown"] * 1000 >= c["executions"]:
                programs.setdefault(step["after"], []).append(name)
    print("| pass | blocks are | executions unknown | 0.1 % or more in |")
    print("|---|---|---|---|")
    for p in order:
        kind = "unknown" if lost[p] else "known"
        print(f"| {p} | {kind} | {100 * lost[p] / total:.2f} % | {', '.join(programs.get(p, []))} |")


def show_programs(checks, tables):
    print("| program | executions | passes lose | rows do not count | partial or unknown | row bytes of code | of compile time |")
    print("|---|---|---|---|---|---|---|")
    for name, c in checks.items():
        n = c["executions"]
        passes = sum(s["unknown"] for s in c["steps"] if s["after"] != "code")
        rows, takes = [], []
        for t in tables[name]["compilers"]:
            rows.append(f"{100 * t['row_bytes'] / t['code_bytes']:.0f} %")
            takes.append(f"{100 * t['seconds_of_rows'] / (t['seconds_of_rows'] + t['seconds_without']):.1f} %")
        print(f"| {name} | {n} | {100 * passes / n:.2f} % | {100 * c['code_unknown'] / n:.2f} % | "
              f"{100 * c['code_partial_or_unknown'] / n:.2f} % | {', '.join(rows)} | {', '.join(takes)} |")
    total = sum(c["executions"] for c in checks.values())
    lost = sum(c["code_unknown"] for c in checks.values())
    mean = sum(c["code_unknown"] / c["executions"] for c in checks.values()) / len(checks)
    print(f"\nall: {100 * lost / total:.2f} % of executions are counted by no row; mean over programs {100 * mean:.2f} %")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--tool", default="build/release/uptier")
    p.add_argument("--programs", default=",".join(names()))
    a = p.parse_args()
    checks, tables = {}, {}
    for name in a.programs.split(","):
        module = str(PROGRAMS / "wasm" / f"{name}.wasm")
        checks[name] = run(a.tool, "--verify-probes", module, SIZES.get(name, "1"))
        tables[name] = run(a.tool, "--probe-table", module)
    show_passes(checks)
    print()
    show_programs(checks, tables)
    return 0 if all(c["holds"] for c in checks.values()) else 1


sys.exit(main())
