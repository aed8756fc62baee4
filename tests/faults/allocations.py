#!/usr/bin/env python3
"""Fails the allocations of a command in turn, and says what became of it.

    allocations.py --shim build/fail_allocations.so --mode all -- build/uptier run mix.wasm

once: the n-th fails; after: all from the n-th on; second: every second from the n-th on.

same      exit code and stdout are those of the undisturbed run
refused   exit code 1 to 125, and what came out on stdout is empty
stopped   likewise, but something came out before: the guest had started
DEAD      a signal, or an exit code of 126 and more
HANG      it took longer than --timeout
WRONG     exit code 0 and another stdout

Exit code 1 when there is any of the last three."""
import argparse
import collections
import concurrent.futures
import os
import struct
import subprocess
import sys
import tempfile

MODES = ("once", "after", "second")


def run(args, at, mode, counts=None):
    env = {**os.environ, "LD_PRELOAD": os.path.abspath(args.shim), "FAIL_AT": str(at), "FAIL_MODE": mode}
    if counts:
        env["FAIL_COUNTS"] = counts
    try:
        p = subprocess.run(args.command, env=env, capture_output=True, timeout=args.timeout,
                           stdin=subprocess.DEVNULL, cwd=args.cwd)
        return p.returncode, p.stdout, p.stderr
    except subprocess.TimeoutExpired:
        return None, b"", b""


def undisturbed(args):
    """The expected exit code and stdout; the allocations in all and by thread, of the longest of three runs."""
    best = None
    for _ in range(3):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "counts")
            code, out, _ = run(args, 0, "once", path)
            words = struct.unpack("64q", open(path, "rb").read())
        if best is None or words[0] > best[2]:
            best = code, out, words[0], [n for n in words[2:] if n]
    return best


def verdict(code, out, expected):
    if code is None:
        return "HANG"
    if (code, out) == expected:
        return "same"
    if code < 0 or code > 125:
        return "DEAD"
    if code == 0:
        return "WRONG"
    return "stopped" if out else "refused"


def numbers(total, most):
    """All of them, or so many: the same share of the beginning, the middle and the end."""
    if total <= most:
        return list(range(1, total + 1))
    return sorted({1 + i * total // most for i in range(most)})


def main():
    p = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    p.add_argument("--shim", required=True, help="the library of fail_allocations.c")
    p.add_argument("--mode", default="all", choices=MODES + ("all",))
    p.add_argument("--most", type=int, default=2000, help="runs a mode")
    p.add_argument("--only", type=int, help="this number alone, and what it says")
    p.add_argument("--timeout", type=float, default=30)
    p.add_argument("--cwd", default=None)
    p.add_argument("-j", type=int, default=2)
    p.add_argument("command", nargs="+")
    args = p.parse_args()
    code, out, total, by_thread = undisturbed(args)
    print(f"{' '.join(os.path.basename(c) for c in args.command)}: {total} allocations, by thread {by_thread}")
    bad = 0
    for mode in MODES if args.mode == "all" else (args.mode,):
        at = [args.only] if args.only else numbers(total, args.most)
        tally, shown = collections.Counter(), []
        with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
            for n, r in zip(at, pool.map(lambda n: run(args, n, mode), at)):
                v = verdict(r[0], r[1], (code, out))
                tally[v] += 1
                if v.isupper() or args.only:
                    shown.append(f"    {v} at {n}, exit code {r[0]}: {r[2][-300:].decode(errors='replace').strip()}")
        bad += sum(n for v, n in tally.items() if v.isupper())
        print(f"  {mode:6} {len(at)} tried: " + ", ".join(f"{v} {n}" for v, n in sorted(tally.items())), flush=True)
        for line in shown[:12]:
            print(line, flush=True)
    sys.exit(1 if bad else 0)


main()
