#!/usr/bin/env python3
"""Runs all examples and random small C programs under stress, more at once than there are processors,
for so many minutes. Each must give its answer, in a time that is its own.

    soak.py --tool build/release/uptier --minutes 60

Prints each run that gave another answer, and each that took more than 20 times the median of its
program's runs under the same stress, and more than two seconds. A run that is slow says where it stands
(eu-stack or gdb, where there is one). Exit code 1 when there is any."""
import argparse
import collections
import concurrent.futures
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import random_c

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = os.path.join(ROOT, "examples", "programs")


class Program:
    def __init__(self, name, words):
        self.name, self.words = name, words
        self.seconds = []  # of each run under stress that has ended
        self.running = 0

    def normal(self):
        return statistics.median(self.seconds)


def examples():
    for name in sorted(os.listdir(os.path.join(PROGRAMS, "wasm"))):
        yield Program(name.removesuffix(".wasm"), [os.path.join(PROGRAMS, "wasm", name)])


def random_programs(count, seed, folder):
    if shutil.which("clang") is None or shutil.which("wasm-ld") is None:
        print("SKIPPED: clang or wasm-ld is not installed, random programs were not run")
        return
    for i in range(count):
        path = os.path.join(folder, f"{seed + i}.wasm")
        random_c.make(seed + i, path)
        yield Program(f"random {seed + i}", ["--invoke", "run", path])


def where_it_stands(process):
    for tool in (["eu-stack", "-p"], ["gdb", "-nx", "-batch", "-ex", "thread apply all bt 20", "-p"]):
        if shutil.which(tool[0]):
            p = subprocess.run(tool + [str(process)], capture_output=True, text=True)
            return p.stdout[-4000:]
    return ""


def run(args, words, limit=None):
    """Returns the answer, the seconds, and where it stood when the limit was over, or ""."""
    begin = time.monotonic()
    p = subprocess.Popen([args.tool, "run"] + words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    stands = []
    timer = threading.Timer(limit, lambda: stands.append(where_it_stands(p.pid))) if limit else None
    if timer:
        timer.start()
    out, err = p.communicate()
    if timer:
        timer.cancel()
    return (p.returncode, out, err), time.monotonic() - begin, "".join(stands)


def main():
    p = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    p.add_argument("--tool", required=True)
    p.add_argument("--minutes", type=float, default=60)
    p.add_argument("--stress", default="osr=all,osr_out=all")
    p.add_argument("--random", type=int, default=100, help="how many random programs")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("-j", type=int, default=2 * (os.cpu_count() or 1), help="runs at once")
    args = p.parse_args()
    until = time.monotonic() + 60 * args.minutes
    lock, bad, tally = threading.Lock(), [], collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        programs = list(examples()) + list(random_programs(args.random, args.seed, folder))
        expected = {q.name: run(args, ["--tier=baseline"] + q.words)[0] for q in programs}
        order = random.Random(args.seed)

        def say(q, words):
            bad.append(q.name)
            print(f"{q.name}: {words}", flush=True)

        def one(_):
            while time.monotonic() < until:
                with lock:
                    least = min(len(q.seconds) + q.running for q in programs)
                    q = order.choice([q for q in programs if len(q.seconds) + q.running == least])
                    q.running += 1
                    usual = max(2.0, 20 * q.normal()) if len(q.seconds) >= 3 else 60.0
                answer, seconds, stands = run(args, ["--stress", args.stress] + q.words, usual)
                with lock:
                    q.running -= 1
                    q.seconds.append(seconds)
                    tally["runs"] += 1
                    if answer != expected[q.name]:
                        say(q, f"another answer: {answer}, expected {expected[q.name]}")
                    if seconds > usual:
                        say(q, f"took {seconds:.2f} s, where {q.normal():.2f} are usual\n{stands}")

        with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
            list(pool.map(one, range(args.j)))
    for q in programs:  # what was slow before there was a median
        longest = max(q.seconds, default=0)
        if q.name not in bad and len(q.seconds) >= 3 and longest > max(2.0, 20 * q.normal()):
            say(q, f"took {longest:.2f} s, where {q.normal():.2f} are usual")
    worst = sorted(programs, key=lambda q: -max(q.seconds, default=0) / max(q.normal(), 1e-3) if q.seconds else 0)
    print(f"{tally['runs']} runs of {len(programs)} programs under {args.stress}, {len(bad)} bad; "
          "the furthest from their medians:")
    for q in worst[:8]:
        if q.seconds:
            print(f"  {q.name:16} {len(q.seconds)} runs, median {q.normal():.3f} s, longest {max(q.seconds):.3f} s")
    sys.exit(1 if bad else 0)


main()
