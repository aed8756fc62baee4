#!/usr/bin/env python3
"""Fails the allocations of a command in turn, and says what became of it (judge.py has the verdicts).

    allocations.py --shim build/fail_allocations.so -- build/uptier run mix.wasm
    allocations.py --shim build/fail_allocations.so --reader 'build/uptier trace validate {dir}/t' \\
        -- build/uptier run --trace {dir}/t mix.wasm

once: the n-th fails; after: all from the n-th on; second: every second from the n-th on.

Exit code 1 when there is a verdict in capitals, or, with --all-the-same, a `stopped`."""
import argparse
import os
import struct
import sys
import time

import judge

MODES = ("once", "after", "second")


def run(args, at, mode, counts=False):
    env = {"LD_PRELOAD": os.path.abspath(args.shim), "FAIL_AT": str(at), "FAIL_MODE": mode}
    if counts:
        env["FAIL_COUNTS"] = "{dir}/allocations"
    # The reader runs in its own environment.
    return judge.Run(args, env=env, keep="allocations" if counts else None)


def main():
    p = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    p.add_argument("--shim", required=True, help="the library of fail_allocations.c")
    p.add_argument("--mode", default="all", choices=MODES + ("all",))
    p.add_argument("--only", type=int, help="this number alone, and what it says")
    p.add_argument("--all-the-same", action="store_true", help="a guest that has started must end as if nothing were")
    judge.add_arguments(p)
    args = p.parse_args()
    until = time.monotonic() + args.seconds
    runs = [run(args, 0, "once", counts=True) for _ in range(3)]
    expected = judge.Undisturbed(runs)
    words = max((struct.unpack("64q", r.kept) for r in runs), key=lambda w: w[0])
    total, by_thread = words[0], [n for n in words[2:] if n]
    print(f"{' '.join(os.path.basename(c) for c in args.command)}: {total} allocations, by thread {by_thread}"
          + ("" if expected.steady else "; its files differ from run to run"))
    bad = 0
    modes = MODES if args.mode == "all" else (args.mode,)
    for i, mode in enumerate(modes):
        def one(n, mode=mode):
            r = run(args, n, mode)
            verdict = expected.verdict(r)
            if args.only or verdict == "stopped" and args.all_the_same:
                verdict = verdict.upper()
            return verdict, judge.words_of(r)
        now = time.monotonic()
        share = now + (until - now) / (len(modes) - i)
        numbers = [args.only] if args.only else judge.spread(total, args.most)
        tally, shown = judge.loop(args, ((f"at {n}", lambda n=n: one(n)) for n in numbers), share)
        bad += sum(n for v, n in tally.items() if v.isupper())
        print(f"  {mode:6} {judge.line_of(tally)}", flush=True)
        for line in shown[:12]:
            print(line, flush=True)
    sys.exit(1 if bad else 0)


main()
