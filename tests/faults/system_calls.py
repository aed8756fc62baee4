#!/usr/bin/env python3
"""Fails the system calls of a command in turn (strace), and says what became of it: judge.py has the
verdicts, and there are three more:

loader    the dynamic loader met it, before any of our code ran
guest     it was a call of the guest's own, on its stdin, stdout or stderr: the guest is told
unreal    no kernel fails such a call so: a futex call that wakes others waits for nothing

    system_calls.py --reader 'build/uptier trace validate {dir}/t' -- build/uptier run --trace {dir}/t mix.wasm

The n-th call of a thread fails, for each n. Exit code 1 when there is a verdict in capitals."""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import time

import judge

PLAN = """write:ENOSPC write:EIO write:EINTR pwrite64:ENOSPC writev:ENOSPC fsync:EIO fdatasync:EIO
ftruncate:ENOSPC fallocate:ENOSPC rename:EACCES renameat2:EACCES link:EMLINK unlink:EACCES openat:EMFILE
openat:EACCES read:EIO read:EINTR pread64:EIO newfstatat:EACCES fstat:EIO lseek:EINVAL close:EIO
mmap:ENOMEM mremap:ENOMEM mprotect:ENOMEM munmap:ENOMEM madvise:EINVAL clone3:EAGAIN clone:EAGAIN
timer_create:EAGAIN timer_settime:EINVAL setitimer:EINVAL sigaltstack:ENOMEM rt_sigaction:EINVAL
rt_sigprocmask:EINVAL memfd_create:ENOSYS pkey_alloc:ENOSPC getrandom:EAGAIN getrandom:EINTR futex:EINTR
futex:EAGAIN perf_event_open:EACCES flock:EAGAIN flock:EINTR fcntl:EAGAIN sched_getaffinity:EINVAL
clock_gettime:EINVAL nanosleep:EINTR clock_nanosleep:EINTR poll:EINTR ppoll:EINTR prlimit64:EPERM
membarrier:EINVAL getrusage:EINVAL ioctl:ENOTTY socket:EMFILE bind:EACCES bind:EADDRINUSE listen:EADDRINUSE
eventfd2:EMFILE fchmod:EPERM unlinkat:EACCES poll:ENOMEM accept4:EMFILE shutdown:ENOTCONN mkdir:EACCES"""


def traced(args, names, inject=None):
    before = ["strace", "-f", "-qq", "-o", "{dir}/strace", "-e", "trace=" + ",".join("?" + n for n in names)]
    if inject:
        before += ["-e", "inject=" + inject]
    return judge.Run(args, before=before + ["--"], keep="strace")


def counts_of(trace):
    """By system call: how often the thread called it that did so most often."""
    of_thread = collections.Counter()
    for thread, name in re.findall(rb"^(\d+) +(\w+)\(", trace, re.M):
        of_thread[name.decode(), thread] += 1
    counts = collections.Counter()
    for (name, _), n in of_thread.items():
        counts[name] = max(counts[name], n)
    return counts


def loader_counts(trace):
    """By system call: how often the loader called it. Its last call unmaps its list of libraries."""
    thread = trace.split(b" ", 1)[0]
    names = re.findall(rb"^" + thread + rb" +(\w+)\(", trace, re.M)
    last = names.index(b"munmap") if b"munmap" in names else -1
    return collections.Counter(name.decode() for name in names[:last + 1])


def excuse(r, verdict, in_loader):
    """Whose fault it was, if it was not ours. `in_loader`: the main thread's call was the loader's."""
    failed = [line for line in r.kept.splitlines() if b"(INJECTED)" in line]
    if verdict == "same" or not failed:
        return verdict
    if in_loader and failed[0].startswith(r.kept.split(b" ", 1)[0] + b" "):
        return "loader"
    if any(re.search(rb"futex\(.*FUTEX_WAKE", line) for line in failed):
        return "unreal"
    own = re.compile(rb"^\d+ +(read|write|writev|close|fcntl|newfstatat|fstat|lseek|ioctl|poll)\([012][,)]")
    return "guest" if all(own.match(line) for line in failed) else verdict


def main():
    p = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    p.add_argument("--plan", default=PLAN, help="words CALL:ERROR")
    judge.add_arguments(p)
    args = p.parse_args()
    if shutil.which("strace") is None or subprocess.run(["strace", "-o", "/dev/null", "true"]).returncode:
        print("SKIPPED: strace is not installed, or may not trace here: no system call was failed")
        return
    until = time.monotonic() + args.seconds
    plan = [word.split(":") for word in args.plan.split()]
    names = sorted({name for name, _ in plan})
    runs = [traced(args, names) for _ in range(3)]
    expected = judge.Undisturbed(runs)
    counts = max((counts_of(r.kept) for r in runs), key=lambda c: sum(c.values()))
    loader = loader_counts(runs[0].kept)
    print(f"{' '.join(os.path.basename(c) for c in args.command)}: "
          + ", ".join(f"{n} {c}" for n, c in sorted(counts.items())), flush=True)
    def one(name, error, n):
        r = traced(args, [name], f"{name}:error={error}:when={n}")
        verdict = excuse(r, expected.verdict(r), n <= loader[name])
        # An interrupted call is repeated, so the program must not fail or report anything.
        if error == "EINTR" and verdict in ("refused", "stopped", "told"):
            verdict = verdict.upper()
        return verdict, judge.words_of(r)
    sums, bad = collections.Counter(), []
    there = [(name, error) for name, error in plan if counts[name]]
    for i, (name, error) in enumerate(there):
        now = time.monotonic()
        share = now + (until - now) / (len(there) - i)
        numbers = judge.spread(counts[name], args.most)
        tally, shown = judge.loop(args, ((f"{name}:{error} at {n}", lambda n=n: one(name, error, n))
                                         for n in numbers), share)
        print(f"  {name + ':' + error:24} {judge.line_of(tally)}", flush=True)
        for line in shown[:12]:
            print(line, flush=True)
        sums.update(tally)
        bad += shown
    print(f"  {'in all':24} {judge.line_of(sums)}", flush=True)
    sys.exit(1 if bad else 0)


main()
