#!/usr/bin/env python3
"""Every loop of faults, over programs that embed the library and over the tool, in so many seconds.

    loops.py --build build/release --seconds 1200 [NAME...]

Names: hello, hello_c, run, listen (`run --listen`), profile, trace (`run --profile FILE` and `run --trace FILE`,
which count exactly and on one thread, so that a file that lacks something is found out), and the same
four of a tool without a reserve: run_no_reserve and so on. Each with
.allocations or .calls behind it for one loop alone. Exit code 1 when one has a finding."""
import argparse
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ("allocations", "calls")
ROOT = os.path.dirname(os.path.dirname(HERE))
MIX = "examples/programs/wasm/mix.wasm"
# Each call is counted, and nothing depends on the worker's timing.
EXACT = ["--tier=instrumented", "-O", "workers=0", "--report-to", "{dir}/report"]


def loops(build):
    """By name: the command, the reader of its file, and which loops it is for."""
    reader = os.path.join(build, "uptier")
    profile = (f"{reader} profile check {{dir}}/p.upf > {{dir}}/checked && {reader} profile export --format text "
               "-o {dir}/text {dir}/p.upf && grep -v '^  time ' {dir}/text")
    trace = f"{reader} trace validate {{dir}}/t > {{dir}}/checked && {reader} trace profile {{dir}}/t"
    all_loops = {name: ([os.path.join(build, "examples", "uptier_" + name)], None, KINDS)
                 for name in ("hello", "hello_c")}
    for suffix, tool, kinds in (("", reader, KINDS),
                                ("_no_reserve", os.path.join(build, "tests/faults/uptier_tool_no_reserve"),
                                 KINDS[:1])):
        # nlohmann's JSON crashes if memory is refused (it destroys objects that it has not
        # constructed); the tool has its reserve for that.
        json = [] if suffix else ["--report=json"]
        all_loops["run" + suffix] = [tool, "run", MIX], None, kinds
        all_loops["listen" + suffix] = [tool, "run", "--listen={dir}/it.sock", MIX], None, kinds
        all_loops["profile" + suffix] = [tool, "run", *EXACT, *json, "--profile", "{dir}/p.upf", MIX], profile, kinds
        all_loops["trace" + suffix] = [tool, "run", *EXACT, *json, "--trace", "{dir}/t", MIX], trace, kinds
    return all_loops


def main():
    p = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    p.add_argument("--build", required=True)
    p.add_argument("--seconds", type=float, default=1200)
    p.add_argument("-j", type=int, default=2)
    p.add_argument("names", nargs="*")
    args = p.parse_args()
    build = os.path.abspath(args.build)
    chosen = []
    for name, (command, reader, kinds) in loops(build).items():
        for kind in kinds:
            if args.names and name not in args.names and f"{name}.{kind}" not in args.names:
                continue
            script = {"allocations": ["allocations.py", "--shim", os.path.join(build, "fail_allocations.so")],
                      "calls": ["system_calls.py"]}[kind]
            words = [sys.executable, os.path.join(HERE, script[0]), *script[1:], "--cwd", ROOT, "-j", str(args.j)]
            if reader:
                words += ["--reader", reader, "--report", "{dir}/report"]
            if name in ("run", "listen", "profile", "trace") and kind == "allocations":
                words.append("--all-the-same")
            chosen.append((f"{name}.{kind}", words, command))
    if not chosen:
        raise SystemExit(f"loops: no loop of {' '.join(args.names)}")
    until, failed = time.monotonic() + args.seconds, []
    for i, (name, words, command) in enumerate(chosen):
        share = max(1.0, (until - time.monotonic()) / (len(chosen) - i))
        print(f"== {name}", flush=True)
        if subprocess.run([*words, "--seconds", str(share), "--", *command]).returncode:
            failed.append(name)
    print(f"findings in: {' '.join(failed)}" if failed else "no finding")
    sys.exit(1 if failed else 0)


main()
