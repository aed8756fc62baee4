"""What the loops of faults share: a command runs with one fault, and what became of it is judged.

Verdicts:

same      exit code, stdout and what the reader prints are those of the undisturbed run
told      stdout is the same, and what a file lacks, or why the exit code is another, is said: on
          stderr, by the exit code, or by a loss that the report counts
refused   exit code 1 to 125, and stdout is empty: the guest had not started
stopped   likewise, but something came out before: the guest had started
DEAD      a signal, or an exit code of 126 and more
HANG      it took longer than the time limit
WRONG     exit code 0 and another stdout
SILENT    a file lacks something, or the exit code is another, and nobody says so

Those in capitals are faults of ours. In the words of a command and of a reader {dir} is a directory
of the run's own, which goes when it has been judged.
"""
import collections
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import tempfile
import time


def add_arguments(parser):
    parser.add_argument("--most", type=int, default=2000, help="runs for each kind of fault")
    parser.add_argument("--seconds", type=float, default=1e9, help="for all of them together")
    parser.add_argument("--timeout", type=float, default=30, help="seconds, for one run")
    parser.add_argument("--reader", help="prints what a file of {dir} holds; words as in a shell")
    parser.add_argument("--report", help="the run's report, text or JSON, a file of {dir}")
    parser.add_argument("--cwd", default=None)
    parser.add_argument("-j", type=int, default=2, help="runs at once")
    parser.add_argument("command", nargs="+")


class Run:
    """A run that has ended: its exit code (None: it was killed, as it took too long), and the rest."""

    def __init__(self, args, before=(), env=None, keep=None):
        self.dir = tempfile.mkdtemp(prefix="fault-")
        try:
            self._run(args, [w.replace("{dir}", self.dir) for w in before], env)
            self.kept = None
            if keep is not None:
                self.kept = open(os.path.join(self.dir, keep), "rb").read()
        finally:
            shutil.rmtree(self.dir, ignore_errors=True)

    def _run(self, args, before, env):
        command = before + [w.replace("{dir}", self.dir) for w in args.command]
        env = {**os.environ, **{k: v.replace("{dir}", self.dir) for k, v in (env or {}).items()}}
        try:
            p = subprocess.run(command, env=env, capture_output=True, timeout=args.timeout,
                               stdin=subprocess.DEVNULL, cwd=args.cwd)
            self.code, self.out, self.err = p.returncode, p.stdout, p.stderr
        except subprocess.TimeoutExpired as e:
            self.code, self.out, self.err = None, e.stdout or b"", e.stderr or b""
        self.read = self._read(args)
        self.losses = self._losses(args)

    def _read(self, args):
        """What the reader prints, and its exit code."""
        if not args.reader:
            return None
        p = subprocess.run(args.reader.replace("{dir}", self.dir), shell=True, capture_output=True,
                           timeout=args.timeout, cwd=args.cwd)
        return p.returncode, p.stdout

    def _losses(self, args):
        try:
            with open(args.report.replace("{dir}", self.dir)) as f:
                text = f.read()
            if text.startswith("{"):
                return json.loads(text)["losses"]
            said = re.search(r"^losses: (.*)", text, re.M).group(1).split(", ")
            return {} if said == ["none"] else {w.rsplit(" ", 1)[0]: int(w.rsplit(" ", 1)[1]) for w in said}
        except (AttributeError, OSError, ValueError, KeyError):
            return {}


class Undisturbed:
    """What is expected. `steady`: the reader prints the same each time, so it may be compared."""

    def __init__(self, runs):
        self.code, self.out, self.read, self.losses = (runs[0].code, runs[0].out, runs[0].read,
                                                       runs[0].losses)
        self.steady = all(r.read == self.read for r in runs)
        for r in runs:
            if (r.code, r.out) != (self.code, self.out) or (r.read and r.read[0] != 0):
                raise SystemExit(f"the command differs from run to run, or its files are not read: "
                                 f"{r.code} {r.err[-300:]} {r.read}")

    def verdict(self, r):
        if r.code is None:
            return "HANG"
        if r.code < 0 or r.code > 125 and r.code != self.code:
            return "DEAD"
        if r.out != self.out:
            return "WRONG" if r.code == self.code else "stopped" if r.out else "refused"
        told = bool(r.err.strip()) or any(n > self.losses.get(k, 0) for k, n in r.losses.items())
        if r.code != self.code:  # what is told by an exit code has its reason in words
            if not r.err.strip():
                return "SILENT"
            return "told" if self.out else "refused"
        whole = r.read == self.read if self.steady else (r.read is None or r.read[0] == 0)
        return "same" if whole else "told" if told else "SILENT"


def spread(total, most):
    """Numbers from 1 to `total`, at most so many, in an order of which each beginning is spread out."""
    if total <= 0:
        return []
    step = next(s for s in range(max(1, int(total * 0.618)), total * 2 + 2) if gcd(s, total) == 1)
    return [1 + k * step % total for k in range(min(total, most))]


def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def loop(args, runs, until):
    """Runs `runs`, pairs of a name and a function that returns a verdict and words, until `until` of
    time.monotonic(). Returns the number of each verdict, and a line for each in capitals."""
    tally, shown = collections.Counter(), []
    pending = iter(runs)
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        def one(_):
            tried = 0
            while tried == 0 or time.monotonic() < until:
                tried += 1
                try:
                    name, f = next(pending)
                except StopIteration:
                    return
                verdict, words = f()
                tally[verdict] += 1
                if verdict.isupper():
                    shown.append(f"    {verdict} {name}: {words}")
        list(pool.map(one, range(args.j)))
    return tally, shown


def line_of(tally):
    return f"{sum(tally.values())} tried: " + ", ".join(f"{v} {n}" for v, n in sorted(tally.items()))


def words_of(r):
    lines = r.err.decode(errors="replace").strip().splitlines()
    return f"exit code {r.code}: {lines[-1][:160] if lines else ''}"
