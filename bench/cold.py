"""Does it pay to leave out of optimized code what no sample has run?

Bad news: a program that is slower with deopt_cold than without, or one whose frames leave so often
that the exits cost what the smaller code saves.

Each program runs with deopt_cold off and on, interleaved; a ratio (on / off, CPU time of the guest's
thread) is taken within its round, and the table has the median with the lowest and the highest. Code
is what was compiled by the optimizing compiler, in bytes; exits are frames that left it.
"""
import argparse, json, os, subprocess

from programs import geomean
from measure import Program, add_arguments, chosen_programs, guest_seconds

import statistics


def figures(program, options):
    command = program.command(options)
    command[2:2] = ["--report=json"]
    p = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    report = json.loads(p.stderr)
    code = exits = versions = 0
    for m in report["methods"]:
        exits += m["left"]
        for v in m["versions"]:
            if v["tier"] != "optimized":
                continue
            code += v["code_bytes"]
            versions += 1
    return code, exits, versions


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_arguments(parser)
    a = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {a.rounds} rounds")
    print(f"{'program':<10} {'off s':>7} {'on / off':>9} {'low':>6} {'high':>6} "
          f"{'code off':>9} {'on':>9} {'exits':>7} {'versions':>8}")
    medians, rows = [], {}
    for name, size in chosen_programs(a):
        program = Program(a, name, size)
        off, ratios = [], []
        for _ in range(a.rounds):
            off.append(guest_seconds(program.command(["deopt_cold=off"])))
            ratios.append(guest_seconds(program.command(["deopt_cold=on"])) / off[-1])
        before, _, _ = figures(program, ["deopt_cold=off"])
        after, exits, versions = figures(program, ["deopt_cold=on"])
        median = statistics.median(ratios)
        medians.append(median)
        rows[name] = {"off": off, "ratios": ratios, "code": [before, after], "exits": exits}
        print(f"{name:<10} {statistics.median(off):>7.2f} {median:>9.3f} {min(ratios):>6.3f} "
              f"{max(ratios):>6.3f} {before:>9} {after:>9} {exits:>7} {versions:>8}", flush=True)
    print(f"{'geomean':<10} {'':>7} {geomean(medians):>9.3f}")
    print(f"load {os.getloadavg()[0]:.1f}")
    if a.json:
        with open(a.json, "w") as f:
            json.dump(rows, f, indent=1)


main()
