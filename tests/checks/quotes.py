#!/usr/bin/env python3
"""Checks that the code in a guide is the code that there is.

  quotes.py GUIDE.md FOLDER...   every ```cpp block of the guide must stand, line by line and in one
                                 piece, in a source below one of the folders; exit 1 if any does not

Indentation counts, so that a quote can be found again.
"""
import pathlib
import re
import sys


def blocks(text):
    """Yields (line, code) of each fenced C++ block."""
    for match in re.finditer(r"^```cpp\n(.*?)^```$", text, re.M | re.S):
        yield text.count("\n", 0, match.start()) + 1, match.group(1)


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    guide = pathlib.Path(sys.argv[1])
    sources = []
    for folder in sys.argv[2:]:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".c"):
                sources.append(path.read_text(encoding="utf-8"))
    found = wrong = 0
    for line, code in blocks(guide.read_text(encoding="utf-8")):
        found += 1
        if not any(code in source for source in sources):
            wrong += 1
            print(f"{guide.name}:{line}: this is not in the sources any more:\n{code}")
    print(f"quotes: {found - wrong} of {found} stand in the sources")
    return wrong != 0 or found == 0


if __name__ == "__main__":
    sys.exit(main())
