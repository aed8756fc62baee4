#!/usr/bin/env python3
"""Runs the inputs that once broke trust in the engine, or surprised its users.

    cases.py UPTIER_TOOL PROJECT WORK_DIR [CASE...]

The inputs are not part of this project: they are looked for in $UPTIER_CASES, else in shared/cases
beside the project. Exit 77 (with the reason) where they are absent; 1 if one is not as it should be.

A case is one function: `@case("folder/name")` above it, named as its file or folder in the inputs. It
gets a Box, runs things in it, and says what is wrong by `check`; `box.need("program")` skips it where
a program is missing. Inputs without a function are listed.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

CASES = {}


class Skip(Exception):
    """A case that cannot run here, and why."""


class Wrong(Exception):
    """A case that is not as it should be."""


def case(name):
    def add(function):
        CASES[name] = function
        return function
    return add


def check(holds, what):
    if not holds:
        raise Wrong(what)


class Run:
    """How a program ended."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __str__(self):
        return f"exit {self.code}\nstdout: {self.out}\nstderr: {self.err}"


class Box:
    """The inputs of one case, and a folder of its own to run in."""

    def __init__(self, tool, project, inputs, work):
        self.tool, self.project, self.inputs, self.work = tool, project, inputs, work

    def need(self, program):
        if shutil.which(program) is None:
            raise Skip(f"no {program}")

    def run(self, *words, stdin="", timeout=120):
        """Runs a program in the folder, with UPTIER naming the tool."""
        words = [str(w) for w in words]
        environment = dict(os.environ, UPTIER=str(self.tool))
        done = subprocess.run(words, cwd=self.work, input=stdin, capture_output=True, text=True,
                              errors="replace", timeout=timeout, env=environment)
        return Run(done)

    def uptier(self, *words, **more):
        return self.run(self.tool, *words, **more)

    def assemble(self, text, name="case.wasm"):
        """Makes a module of a .wat file of the inputs, with all features."""
        self.need("wat2wasm")
        out = self.work / name
        made = self.run("wat2wasm", "--enable-all", self.inputs / text, "-o", out)
        check(made.code == 0, f"wat2wasm {text}: {made}")
        return out

    def speak(self, lines, *options):
        """Says lines to `uptier wast`; returns its answers."""
        r = self.uptier("wast", *options, stdin="".join(line + "\n" for line in lines) + "quit\n")
        check(r.code == 0, f"uptier wast: {r}")
        return r.out.splitlines()


# ---- security ------------------------------------------------------------------------------------

TIERS = ("baseline", "instrumented", "optimized", "auto")


@case("security/simd-load-zero-crash.wat")
def simd_load_zero(box):
    module = box.assemble("simd-load-zero-crash.wat")
    for tier in TIERS:
        r = box.uptier("run", f"--tier={tier}", "--invoke", "f", module)
        check(r.code == 125, f"{tier}: {r}")
        for words in ("SIMD", "v128.load32_zero", "func[0]", "at offset 0x"):
            check(words in r.err, f"{tier}: no {words} in {r.err}")


@case("security/unvalidated-bytes.sh")
def unvalidated_bytes(box):
    box.need("bash")
    r = box.run("bash", box.inputs / "unvalidated-bytes.sh", box.tool)
    lines = r.out.splitlines()
    check(len(lines) == 12, str(r))
    for at in range(0, 12, 4):
        for line in lines[at:at + 2]:
            check(line.startswith("invalid ") and "SIMD" in line, line)
        check(lines[at + 2] == "error no instance 1", lines[at + 2])
        check(lines[at + 3].endswith("exit code 0"), lines[at + 3])


@case("security/catch-all-accepted.sh")
def catch_all(box):
    box.need("sh")
    r = box.run("sh", box.inputs / "catch-all-accepted.sh", box.tool)
    lines = r.out.splitlines()
    check(len(lines) == 6, str(r))
    for at, words in ((0, "exception handling"), (1, "exception handling"), (3, "SIMD"), (4, "SIMD")):
        check(lines[at].startswith("invalid ") and words in lines[at], lines[at])


@case("security/declarative-elem.wat")
def declarative_elem(box):
    module = box.assemble("declarative-elem.wat")
    for tier in TIERS:
        names = {name: name.encode().hex() for name in ("init", "call")}
        answers = box.speak([f"module 1 {module}", f"invoke 1 {names['init']}",
                             f"invoke 1 {names['call']}"], f"--tier={tier}")
        check(answers[0] == "ok", answers[0])
        check(answers[1].startswith("trap out of bounds table access"), answers[1])
        check(answers[2].startswith("trap uninitialized element"), answers[2])


# ---- users ---------------------------------------------------------------------------------------

@case("users/10-feature-names")
def feature_names(box):
    wanted = {"simd": "SIMD", "simd2": "SIMD", "simd3": "SIMD", "tag": "exception handling",
              "tail": "tail calls", "atom": "atomics"}
    for name, words in wanted.items():
        module = box.assemble(f"{name}.wat", f"{name}.wasm")
        r = box.uptier("run", module)
        check(r.code == 125, f"{name}: {r}")
        check("not supported: " in r.err and words in r.err, f"{name}: no {words} in {r.err}")
        check("at offset 0x" in r.err, f"{name}: {r.err}")


@case("users/16-stripped-module")
def stripped_module(box):
    box.need("bash")
    r = box.run("bash", box.inputs / "run.sh")
    last = r.out.splitlines()[-1] if r.out else ""
    check(last.startswith("7 methods kept, 0 matched, 0 dropped;"), str(r))
    check(", 0 of the profile not in the module" in last, str(r))
    # The module is edited too, so methods are matched by code and order.
    for _ in range(3):
        box.uptier("run", "--profile", box.work / "v.upf", "--invoke", "main",
                   box.inputs / "v1.wasm", "3000")
    r = box.uptier("profile", "match", box.work / "v.upf", box.inputs / "v2s.wasm")
    check(r.out.startswith("7 methods kept, 0 matched, 0 dropped;"), str(r))


# ---- all of them ---------------------------------------------------------------------------------

def inputs_of(name, root):
    """A case of `security` has the folder, one of `users` a folder of its own."""
    path = root / name
    return path if path.is_dir() else path.parent


def without_function(root):
    there = [f"security/{p.name}" for p in sorted((root / "security").glob("*"))]
    there += [f"users/{p.name}" for p in sorted((root / "users").glob("*"))]
    return [name for name in there if name not in CASES and not name.endswith("README.md")]


def main(arguments):
    tool, project, work = (Path(a).absolute() for a in arguments[:3])
    root = Path(os.environ.get("UPTIER_CASES", project / ".." / "shared" / "cases")).absolute()
    if not (root / "users").is_dir():
        print(f"SKIPPED: cases: no folder {root} (set UPTIER_CASES)")
        return 77
    wrong = 0
    for name in arguments[3:] or CASES:
        folder = work / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if not (root / name).exists():
            print(f"SKIPPED {name}: not in {root}")
            continue
        try:
            CASES[name](Box(tool, project, inputs_of(name, root), folder))
            print(f"ok      {name}")
        except Skip as why:
            print(f"SKIPPED {name}: {why}")
        except (Wrong, subprocess.TimeoutExpired) as what:
            wrong += 1
            print(f"WRONG   {name}: {what}")
    for name in without_function(root):
        print(f"no case {name}")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
