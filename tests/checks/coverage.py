#!/usr/bin/env python3
"""Compares `uptier run --coverage` with llvm-cov: which lines of C programs ran.

  coverage.py TOOL ROOT OUTDIR [PROGRAM...]

Each program is built twice with -g -O0: for WASI, and natively with clang's coverage. Over the
lines that have code in both, the same lines must have run. Prints each line that differs; exit 1 if there is one that
EXPLAINED does not name, or one in EXPLAINED that does not differ. Exit 77 if a tool is missing.
"""
import json
import pathlib
import shutil
import subprocess
import sys

PROGRAMS = ["parser", "bytecode", "compress", "strings", "hashtable", "objects", "bintrees", "mix", "phases", "nbody",
            "spectral"]
TOOLS = ["clang", "wasm-ld", "llvm-profdata", "llvm-cov"]
# (program, line): why
EXPLAINED = {
    ("parser", 83): "the line's only code leaves the branch before, which did not run; llvm-cov counts the `else`",
    ("parser", 142): "exit(0) ended the program, so main never returned; llvm-cov counts the function's braces",
}


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def lines_of(lcov, source):
    """The lines of a source in an lcov file: number -> count."""
    lines, here = {}, False
    for row in lcov.splitlines():
        if row.startswith("SF:"):
            here = row[3:] == str(source)
        elif row.startswith("DA:") and here:
            line, count = row[3:].split(",")[:2]
            lines[int(line)] = int(count)
    return lines


def native(source, out):
    """What llvm-cov says of a run of the native program."""
    program, raw, data = out / "native", out / "native.profraw", out / "native.profdata"
    run(["clang", "-O0", "-g", "-fprofile-instr-generate", "-fcoverage-mapping", "-ffp-contract=off", source, "-o",
         program, "-lm"])
    output = run([program], env={"LLVM_PROFILE_FILE": str(raw)}, cwd=out)
    run(["llvm-profdata", "merge", raw, "-o", data])
    return output, lines_of(run(["llvm-cov", "export", "-format=lcov", program, f"-instr-profile={data}"]), source)


def guest(tool, source, out):
    """What the tool says of a run of the WebAssembly program: counts, after a comparison of both formats and modes."""
    module, lcov, as_json = out / "guest.wasm", out / "guest.info", out / "guest.json"
    hits, hits_json = out / "hits.info", out / "hits.json"
    run(["clang", "--target=wasm32-wasi", "-O0", "-g", "-mbulk-memory", "-ffp-contract=off", source, "-o", module, "-lm"])
    output = run([tool, "run", "--tier=instrumented", "--coverage", lcov, module], cwd=out)
    run([tool, "run", "--tier=instrumented", "--coverage", as_json, module], cwd=out)
    if run([tool, "run", "--coverage", hits, module], cwd=out) != output:
        sys.exit(f"{source}: the program prints another text with coverage")
    run([tool, "run", "--coverage", hits_json, module], cwd=out)
    if ran(as_json) != ran(hits_json):
        sys.exit(f"{source}: what ran in automatic mode is not what instrumented code counts")
    lines = lines_of(lcov.read_text(), source)
    whole = {f["file"]: f for f in json.loads(as_json.read_text())["files"]}
    if dict(map(tuple, whole[str(source)]["lines"])) != lines:
        sys.exit(f"{source}: the JSON and the lcov file differ")
    return output, lines


def ran(as_json):
    """What a JSON file says, with 1 for every count above 0."""
    def flat(value):
        return [min(int(v), 1) for v in value]
    return {f["file"]: ([(l[0], *flat(l[1:])) for l in f["lines"]],
                        [(n["name"], n["line"], *flat([n["calls"]])) for n in f["functions"]],
                        [(b[0], *flat(b[1:])) for b in f["branches"]])
            for f in json.loads(as_json.read_text())["files"]}


def source_of(root, program):
    own = root / "tests/support/lines" / f"{program}.c"
    return own if own.exists() else root / "examples/programs/src" / f"{program}.c"


def compare(tool, root, out, program):
    """Returns (lines with code in both, lines that differ, number with the same count, number that did not run)."""
    out = out / program
    out.mkdir(parents=True, exist_ok=True)
    source = source_of(root, program)
    native_output, theirs = native(source, out)
    guest_output, ours = guest(tool, source, out)
    if native_output != guest_output:
        sys.exit(f"{program}: the native program and the guest print different texts")
    both = sorted(set(theirs) & set(ours))
    if shutil.which("genhtml") is not None:
        run(["genhtml", "-q", out / "hits.info", "-o", out / "html"])
    differ = [(n, theirs[n], ours[n]) for n in both if (theirs[n] > 0) != (ours[n] > 0)]
    return len(both), differ, sum(theirs[n] == ours[n] for n in both), sum(theirs[n] == 0 for n in both)


def main(words):
    if len(words) < 3:
        sys.exit(__doc__)
    tool, root, out = (pathlib.Path(w).resolve() for w in words[:3])
    programs = words[3:] or PROGRAMS
    missing = [t for t in TOOLS if shutil.which(t) is None]
    if missing:
        print("SKIPPED: coverage against llvm-cov: missing " + ", ".join(missing))
        return 77
    code = unrun_lines = 0
    for program in programs:
        count, differ, same, unrun = compare(tool, root, out, program)
        unrun_lines += unrun
        text = source_of(root, program).read_text().splitlines()
        print(f"{program}: {count} lines with code in both, {unrun} of them did not run, {len(differ)} differ, "
              f"{same} with the same count")
        for line, theirs, ours in differ:
            why = EXPLAINED.get((program, line))
            code |= why is None
            print(f"  {line}: llvm-cov {theirs}, uptier {ours}{': ' + why if why else ''}\n    {text[line - 1]}")
        wrong = {line for p, line in EXPLAINED if p == program} - {line for line, _, _ in differ}
        if count == 0 or wrong:
            print(f"  no lines, or lines that are explained and do not differ: {sorted(wrong)}")
            code = 1
    if not words[3:] and unrun_lines < 20:
        print(f"only {unrun_lines} lines did not run: the programs say little")
        code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
