#!/usr/bin/env python3
"""Checks the table "A second target" of jit/README.md against the headers of jit/.

  second_target.py ROOT         prints each name of the table that its headers do not have; exit 1 if there is any
  second_target.py --self-test  proves that a missing name, a missing file and a missing table are found

A row names files, and then what a target must provide. Each name must be a word of one of the files in
its row, or of a header of jit/ that such a file includes.
"""
import pathlib
import re
import sys

QUOTED = re.compile(r"`([^`]+)`")
FILE = re.compile(r"[\w/]+\.(?:h|cc)")
INCLUDE = re.compile(r'#\s*include "(jit/[^"]+)"')


def rows_of(readme):
    """The rows of the table, without its heading."""
    section = readme.partition("\n## A second target\n")[2].partition("\n## ")[0]
    return [line for line in section.split("\n") if line.startswith("| `")]


def check(readme, read):
    """Returns the faults; read(path) is the text of a file of the project, or None."""
    rows = rows_of(readme)
    faults = [] if rows else ["jit/README.md: there is no table below '## A second target'"]
    for row in rows:
        quoted = QUOTED.findall(row)
        text = ""
        for name in filter(FILE.fullmatch, quoted):
            own = read("jit/" + name)
            if own is None:
                faults.append(f"jit/README.md: jit/{name} does not exist: correct the table")
                continue
            text += own + "".join(read(path) or "" for path in INCLUDE.findall(own))
        words = set(re.findall(r"\w+", text))
        for name in quoted:
            if not FILE.fullmatch(name) and not set(re.findall(r"\w+", name)) <= words:
                faults.append(f"jit/README.md: `{name}` is in none of the headers of its row: correct the table")
    return faults


def self_test():
    table = "\n## A second target\n\n| declared in | x |\n|---|---|\n| `a.h` | `One`, `Two::three` |\n"
    files = {"jit/a.h": '#include "jit/b.h"\nclass Two;\n', "jit/b.h": "One three"}
    cases = [(table, files, 0), (table, {"jit/a.h": "One Two"}, 1), (table, {}, 3), ("no table", files, 1)]
    wrong = [c for c in cases if len(check(c[0], c[1].get)) != c[2]]
    print(f"second_target: {len(cases) - len(wrong)} of {len(cases)} cases right")
    return bool(wrong)


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(sys.argv[1])
    faults = check((root / "jit/README.md").read_text(encoding="utf-8"),
                   lambda p: (root / p).read_text(encoding="utf-8") if (root / p).is_file() else None)
    print("\n".join(faults) if faults else "second_target: the table agrees with the headers")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
