#!/usr/bin/env python3
"""Checks that files include their own floor and lower ones only, and stay small.

  floors.py ROOT        prints file:line: rule for each break; exit 1 if there is any
  floors.py --self-test proves on small made-up trees that each rule can fail

The floors, lowest first: include/uptier < profile < sampler < jit < tiering. Beside them stand
tracing and embed, which see include/uptier only, and so do examples, whose includes in quotes may be their own
folder's. tools, bench and tests may include everything.
"""
import pathlib
import re
import sys
import tempfile

FLOORS = ["include", "profile", "sampler", "jit", "tiering"]
BESIDE = ["tracing"]  # stands beside them, on include/uptier alone
ABOVE = ["embed", "tools", "bench", "tests", "examples"]  # no floor may include these
SIZED = FLOORS + BESIDE + ["embed", "tools", "bench", "tests", "examples"]

MOST_LINES = 600  # of a file

# What a folder may see of the project; an absent folder may see everything.
VISIBLE = {name: set(FLOORS[: i + 1]) for i, name in enumerate(FLOORS)}
VISIBLE["embed"] = {"include", "embed"}
VISIBLE["tracing"] = {"include", "tracing"}

# Standard and system headers that a folder must not know, with the reason.
THREADS = {"atomic", "barrier", "condition_variable", "future", "latch", "mutex", "pthread.h",
           "semaphore", "semaphore.h", "shared_mutex", "stop_token", "thread"}
CLOCKS = {"chrono", "ctime", "time.h", "sys/time.h"}
MACHINE_CODE = {"sys/mman.h", "asm/prctl.h"}
UNKNOWN = {"include": THREADS, "profile": THREADS | CLOCKS | MACHINE_CODE}

PRIVATE_WORDS = re.compile(
    r"\b(asmjit|(?:std::)?(?:recursive_|shared_|timed_)*mutex\b|std::atomic\w*|pthread_\w+"
    r"|(?:profile|sampler|jit|tiering)::|namespace\s+(?:uptier::)?(?:profile|sampler|jit|tiering)\b)")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


def without_comments(text):
    """Blanks comments, keeping every line where it was."""
    def blank(match):
        piece = match.group(0)
        return piece if piece.startswith('"') else "\n" * piece.count("\n")
    return COMMENT_OR_STRING.sub(blank, text)


def included_folder(name):
    """The top folder that an include of `name` reaches, or None for a header of others."""
    top = name.split("/")[0]
    if top == "uptier":
        return "include"
    return top if top in FLOORS + BESIDE + ABOVE and "/" in name else None


def check_include(path, quote, name, folder):
    """Yields the rules that one include breaks."""
    target = included_folder(name)
    if name.split("/")[0] == "asmjit":
        if folder in VISIBLE and folder != "jit":
            yield "asmjit is included in jit/ only"
        return
    of_others = "/" in name and not name.startswith(".")
    if target is None and quote == '"' and not of_others and folder in VISIBLE:
        yield f'"{name}": includes in quotes are root relative, or uptier/...'
    if target is not None and folder in VISIBLE and target not in VISIBLE[folder]:
        yield f"{folder}/ must not include {target}/ (only {', '.join(sorted(VISIBLE[folder]))})"
    if folder == "examples" and target not in (None, "include", "examples"):
        yield f"examples/ must not include {target}/ (only include)"
    if quote == "<" and name in UNKNOWN.get(folder, ()):
        yield f"{folder}/ must not know <{name}>"


def check_file(root, path):
    """Yields (line, rule) for each break in one file; `path` is relative to `root`."""
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    folder = path.parts[0]
    lines = text.count("\n")
    if lines > MOST_LINES:
        yield lines, f"{lines} lines, more than {MOST_LINES}: split it by verb"
    if path.suffix == ".py":
        return
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        include = INCLUDE.match(line)
        if include:
            for rule in check_include(path, include[1], include[2], folder):
                yield number, rule
        elif folder == "include" and (word := PRIVATE_WORDS.search(line)):
            yield number, f"public headers must not mention {word[0]}"


def check_tree(root):
    """Returns the sorted list of "file:line: rule" of a whole tree."""
    root = pathlib.Path(root)
    found = []
    for folder in SIZED:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".c", ".py") and path.is_file():
                relative = path.relative_to(root)
                found += [f"{relative}:{n}: {rule}" for n, rule in check_file(root, relative)]
    return found


# (what the case shows, files, the one expected line, or None for a tree that must pass)
CASES = [
    ("a clean tree", {
        "include/uptier/a.h": "#include <vector>\n#include \"uptier/b.h\"\n// a mutex, asmjit\n",
        "profile/p.cc": "#include \"profile/p.h\"\n#include \"uptier/a.h\"\n",
        "sampler/s.h": "#include \"profile/p.h\"\n#include <atomic>\n",
        "jit/ir/j.cc": "#include <asmjit/x86.h>\n#include \"sampler/s.h\"\n#include \"jit/i.h\"\n",
        "tiering/t.cc": "/* #include <asmjit/core.h>\n*/ #include \"jit/ir/j.h\"\n",
        "embed/wasm/e.cc": "#include <uptier/a.h>\n#include \"embed/wasm/e.h\"\n"
                           "#include <wabt/x.h>\n#include \"wabt/y.h\"\n",
        "tools/main.cc": "#include \"tiering/t.h\"\n#include \"embed/wasm/e.h\"\n",
        "tests/x_test.cc": "#include <asmjit/x86.h>\n",
        "examples/own/main.cc": "#include \"own.h\"\n#include \"uptier/a.h\"\n",
        "jit/code/full.cc": "\n" * 600}, None),
    ("profile above itself", {"profile/p.cc": "\n#include \"sampler/s.h\"\n"},
     "profile/p.cc:2: profile/ must not include sampler/ (only include, profile)"),
    ("sampler above itself", {"sampler/s.h": "#include \"jit/ir/function.h\"\n"},
     "sampler/s.h:1: sampler/ must not include jit/ (only include, profile, sampler)"),
    ("jit above itself", {"jit/x64/j.cc": "# include \"tiering/policy/policy.h\"\n"},
     "jit/x64/j.cc:1: jit/ must not include tiering/ (only include, jit, profile, sampler)"),
    ("a floor includes an embedding", {"tiering/t.cc": "#include \"embed/wasm/engine.h\"\n"},
     "tiering/t.cc:1: tiering/ must not include embed/ "
     "(only include, jit, profile, sampler, tiering)"),
    ("asmjit outside jit", {"tiering/t.cc": "#include <asmjit/x86.h>\n"},
     "tiering/t.cc:1: asmjit is included in jit/ only"),
    ("embed below the wall", {"embed/wasm/e.h": "#include \"profile/data/schema.h\"\n"},
     "embed/wasm/e.h:1: embed/ must not include profile/ (only embed, include)"),
    ("embed below the wall in angle brackets", {"embed/wasm/e.h": "#include <jit/ir/ir.h>\n"},
     "embed/wasm/e.h:1: embed/ must not include jit/ (only embed, include)"),
    ("an example below the wall", {"examples/calc/t.cc": "#include \"tiering/model/method.h\"\n"},
     "examples/calc/t.cc:1: examples/ must not include tiering/ (only include)"),
    ("a public header below the wall", {"include/uptier/a.h": "#include \"tiering/model/method.h\"\n"},
     "include/uptier/a.h:1: include/ must not include tiering/ (only include)"),
    ("a public header with asmjit", {"include/uptier/a.h": "namespace asmjit {}\n"},
     "include/uptier/a.h:1: public headers must not mention asmjit"),
    ("a public header with a mutex", {"include/uptier/a.h": "/* x\n*/\nstd::mutex m;\n"},
     "include/uptier/a.h:3: public headers must not mention std::mutex"),
    ("a public header with an atomic", {"include/uptier/a.h": "#include <atomic>\n"},
     "include/uptier/a.h:1: include/ must not know <atomic>"),
    ("a public header with a private type", {"include/uptier/a.h": "jit::Code* code;\n"},
     "include/uptier/a.h:1: public headers must not mention jit::"),
    ("profile with threads", {"profile/p.h": "#include <thread>\n"},
     "profile/p.h:1: profile/ must not know <thread>"),
    ("an include relative to its own folder", {"jit/ir/a.cc": "#include \"function.h\"\n"},
     "jit/ir/a.cc:1: \"function.h\": includes in quotes are root relative, or uptier/..."),
    ("an include relative to the folder above", {"jit/ir/a.cc": "#include \"../code/c.h\"\n"},
     "jit/ir/a.cc:1: \"../code/c.h\": includes in quotes are root relative, or uptier/..."),
    ("a file too long", {"tools/main.cc": "\n" * 601},
     "tools/main.cc:601: 601 lines, more than 600: split it by verb"),
]


def self_test():
    wrong = 0
    for name, files, expected in CASES:
        with tempfile.TemporaryDirectory() as root:
            for file, text in files.items():
                path = pathlib.Path(root, file)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            got = check_tree(root)
        if got != ([expected] if expected else []):
            wrong += 1
            print(f"{name}:\n  expected {expected}\n  got      {got}")
    print(f"floors: {len(CASES) - wrong} of {len(CASES)} cases right")
    return wrong != 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = check_tree(sys.argv[1])
    print("\n".join(found) if found else "floors: no break")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
