#!/usr/bin/env python3
"""Checks that files include their own floor and lower ones only, that members of a class are in one file,
and that files stay small.

  floors.py ROOT        prints file:line: rule for each break; exit 1 if there is any
  floors.py --self-test proves on small made-up trees that each rule can fail

The floors, lowest first: include/uptier < profile < sampler < jit < tiering. Beside them stand
tracing and embed, which see include/uptier only, and so do examples, whose includes in quotes may be their own
folder's. tools, bench and tests may include everything.

Floors have floors inside, SUBFLOORS: each folder includes itself and folders of lower groups only; those of one
group stand beside each other. In floors without such a table no circle of folders may include each other.

Members of a class are defined in one file: that of the header that declares it (x.cc for x.h), that of its
name (x_y.cc for XY), or one without a header of its own.
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
MOST_INCLUDES = 15  # of the project's headers, in a header

# Groups of folders, lowest first; "." stands for the files in the floor's own folder.
SUBFLOORS = {
    "profile": [["base"], ["data"], ["algebra"], ["trace"], ["upf", "image"], ["formats"]],
    "jit": [["target"], ["ir"], ["analysis"], ["frontend"], ["code"], ["symbols"], ["probes"], ["machine"],
            ["regalloc"], ["opt"], ["x64"], ["baseline"], ["compile"]],
    "tiering": [["policy", "report"], ["base"], ["live", "events"], ["model"], ["observe"], ["saved"],
                ["image"], ["compile", "serve"], ["control"], ["runtime"], ["c_api"]],
    "embed": [["dwarf"], ["source_map"], ["wasm"], ["wasi"]],
}

# Classes whose members may be in several files, by the header that declares them.
LICENSED = {
    # One file for each family of operations.
    "jit/x64/baseline_assembler.h": "BaselineAssembler",
    "jit/x64/lower_impl.h": "Lowering",
    "jit/x64/emit_impl.h": "Emitter",
    "jit/frontend/parse_impl.h": "FunctionParser",
    "jit/frontend/verify_impl.h": "Verifier",
    "embed/wasm/build_function.h": "FunctionTranslator",
    # One of the files is compiled with its own flags: its code runs while guest values are in
    # registers.
    "sampler/fast_sample.h": "FastSampling",
    "sampler/log_ring.h": "LogRing",
}

# The parts of the project that a folder may include; a folder that is not listed may include
# everything.
VISIBLE = {name: set(FLOORS[: i + 1]) for i, name in enumerate(FLOORS)}
VISIBLE["embed"] = {"include", "embed"}
VISIBLE["tracing"] = {"include", "tracing"}

# Standard and system headers that a folder must not know, with the reason.
THREADS = {"atomic", "barrier", "condition_variable", "future", "latch", "mutex", "pthread.h",
           "semaphore", "semaphore.h", "shared_mutex", "stop_token", "thread"}
CLOCKS = {"chrono", "ctime", "time.h", "sys/time.h"}
MACHINE_CODE = {"sys/mman.h", "asm/prctl.h"}
UNKNOWN = {"include": THREADS, "profile": THREADS | CLOCKS | MACHINE_CODE,
           "tiering/policy": THREADS | CLOCKS}  # decisions are pure

# Files whose code runs below guest frames and must not wait for a lock (tiering/runtime/guest.h).
# Code that must wait uses guest_waits, which counts the waits.
GUEST = {"baseline_frames", "call_events", "code_entries", "counters", "deopt", "frame_moves", "guest",
         "guest_calls", "guest_loops", "notes", "observed_rounds", "optimized_samples", "osr_exit",
         "trial_calls", "unattached_calls"}
LOCKING = re.compile(r"\b(?:lock_guard|unique_lock|scoped_lock|\w*[mM]utex\w*|Held|HeldState)\b")

PRIVATE_WORDS = re.compile(
    r"\b(asmjit|(?:std::)?(?:recursive_|shared_|timed_)*mutex\b|std::atomic\w*|pthread_\w+"
    r"|(?:profile|sampler|jit|tiering)::|namespace\s+(?:uptier::)?(?:profile|sampler|jit|tiering)\b)")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)

CLASS = re.compile(r"\b(?:class|struct)\s+(?:alignas\([^)]*\)\s+)?([A-Z]\w*)(?:::\w+)*(?:\s+final)?\s*(?::[^;{(]*)?\{")
# A definition begins in the first column: `Class::name(`, perhaps after its type.
MEMBER = re.compile(r"^(?!\s)(?:[\w:<>,&*\s~\[\]]+?[\s&*])?((?:[A-Z]\w*::)+)(?:~?\w+|operator[^\s(]*)\s*\(",
                    re.M)


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


def subfolder(path):
    """The folder inside of a floor that a path (as a list of parts) lies in; "." for its own files."""
    return path[1] if len(path) > 2 else "."


def rank_of(floor, folder):
    """How high a folder of a floor is, or None when it is in no group."""
    return next((i for i, group in enumerate(SUBFLOORS[floor]) if folder in group), None)


def check_subfloor(path, name):
    """Yields the rule that one include breaks inside of a floor."""
    parts = name.split("/")
    floor = path.parts[0]
    if floor not in SUBFLOORS or parts[0] != floor:
        return
    here, there = subfolder(path.parts), subfolder(parts)
    if here == there:
        return
    ranks = rank_of(floor, here), rank_of(floor, there)
    for folder, rank in zip((here, there), ranks):
        if rank is None:
            yield f"{floor}/{folder} is no folder of SUBFLOORS"
    if None not in ranks and ranks[0] <= ranks[1]:
        where = "beside" if ranks[0] == ranks[1] else "above"
        yield f"{floor}/{here} must not include {floor}/{there}, which is {where} it"


def check_file(root, path):
    """Yields (line, rule) for each break in one file; `path` is relative to `root`."""
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    folder = path.parts[0]
    lines = text.count("\n")
    if lines > MOST_LINES:
        yield lines, f"{lines} lines, more than {MOST_LINES}: split it by verb"
    if path.suffix == ".py":
        return
    is_guest = path.parent == pathlib.PurePath("tiering/runtime") and path.stem in GUEST
    includes = 0
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        include = INCLUDE.match(line)
        if is_guest and (word := LOCKING.search(line)):
            yield number, f"below guest frames nothing takes a lock: {word[0]}"
        if include and include[1] == "<" and include[2] in UNKNOWN.get("/".join(path.parts[:2]), ()):
            yield number, f"{path.parent}/ must not know <{include[2]}>"
        if include:
            for rule in check_include(path, include[1], include[2], folder):
                yield number, rule
            for rule in check_subfloor(path, include[2]):
                yield number, rule
            ours = included_folder(include[2]) is not None
            includes += ours
            if ours and path.suffix == ".h" and includes == MOST_INCLUDES + 1:
                yield number, f"more than {MOST_INCLUDES} headers of the project: split it, or declare"
        elif folder == "include" and (word := PRIVATE_WORDS.search(line)):
            yield number, f"public headers must not mention {word[0]}"


def circles(edges):
    """Yields each circle of a graph, {from: {to}}, as the sorted nodes that reach each other."""
    def reached(start):
        seen, todo = set(), [start]
        while todo:
            for to in edges.get(todo.pop(), ()):
                if to not in seen:
                    seen.add(to)
                    todo.append(to)
        return seen
    reach = {node: reached(node) for node in edges}
    done = set()
    for node in sorted(edges):
        if node in reach[node] and node not in done:
            circle = sorted(n for n in reach[node] if node in reach.get(n, ()))
            done.update(circle)
            yield circle


def check_circles(sources):
    """Yields each circle of folders in the floors that have no table."""
    edges = {}
    for path, text in sources.items():
        floor = path.parts[0]
        for line in text.split("\n"):
            include = INCLUDE.match(line)
            parts = include[2].split("/") if include else []
            if len(parts) < 2 or parts[0] != floor or floor in SUBFLOORS:
                continue
            here, there = subfolder(path.parts), subfolder(parts)
            if here != there:
                edges.setdefault(f"{floor}/{here}", set()).add(f"{floor}/{there}")
    for circle in circles(edges):
        yield f"{circle[0]}:1: folders include each other: {', '.join(circle)}"


def stem_of(path):
    """The name that a file and its header share: x of x.cc, x.h and x_impl.h."""
    return path.parent / path.stem.removesuffix("_impl")


def own_name(name):
    """The file name of a class: trap_report for TrapReport."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def declaring(name, path, declared, includes):
    """The file that declares the class whose members a file defines, or None when none is found."""
    for file in (path, path.with_suffix(".h"), path.with_name(path.stem + "_impl.h"), *includes):
        if name in declared.get(file, ()):
            return file
    headers = [file for file, names in declared.items() if name in names and file.suffix == ".h"]
    return headers[0] if len(headers) == 1 else None


def check_members(sources):
    """Yields each class whose members are in several files, or in the file of another class."""
    declared = {path: set(CLASS.findall(text)) for path, text in sources.items()}
    defined = {}  # (declaring file, class) -> {file: line}
    for path, text in sources.items():
        if path.suffix != ".cc":
            continue
        names = [match[2] for match in map(INCLUDE.match, text.split("\n")) if match]
        includes = [pathlib.PurePath("include" if n.startswith("uptier/") else "", n) for n in names]
        for match in MEMBER.finditer(text):
            name = match[1].split("::")[0]
            header = declaring(name, path, declared, includes)
            line = text.count("\n", 0, match.start(1)) + 1
            defined.setdefault((header or name, name), {}).setdefault(path, line)
    for (header, name), files in sorted(defined.items(), key=str):
        if LICENSED.get(str(header)) == name or header == name:
            continue
        home = [path for path in files
                if stem_of(header) == stem_of(path) or path.stem in (header.stem, own_name(name))]
        first = min(home or files)
        for path, line in sorted(files.items()):
            if path == first and home:
                continue
            if declared.get(path.with_suffix(".h")):
                yield f"{path}:{line}: a member of {name}, of {header}, in the file of another class"
            elif header.with_suffix(".cc") in sources:
                yield f"{path}:{line}: a member of {name} belongs in {header.with_suffix('.cc')}"
            elif path != first:
                yield f"{path}:{line}: members of {name} are in {first} too"


def check_tree(root):
    """Returns the sorted list of "file:line: rule" of a whole tree."""
    root = pathlib.Path(root)
    found = []
    sources = {}
    for folder in FLOORS + BESIDE + ["embed", "tools"]:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc") and path.is_file():
                text = path.read_text(encoding="utf-8", errors="replace")
                sources[pathlib.PurePath(path.relative_to(root))] = without_comments(text)
    found += check_circles(sources)
    found += check_members(sources)
    for folder in SIZED:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".c", ".py") and path.is_file():
                relative = path.relative_to(root)
                found += [f"{relative}:{n}: {rule}" for n, rule in check_file(root, relative)]
    return found


# (description, files, the expected line, or None for a tree that must pass)
CASES = [
    ("a clean tree", {
        "include/uptier/a.h": "#include <vector>\n#include \"uptier/b.h\"\n// a mutex, asmjit\n",
        "profile/p.cc": "#include \"profile/p.h\"\n#include \"uptier/a.h\"\n",
        "sampler/s.h": "#include \"profile/p.h\"\n#include <atomic>\n",
        "jit/ir/j.cc": "#include <asmjit/x86.h>\n#include \"sampler/s.h\"\n#include \"jit/ir/i.h\"\n",
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
    ("a lock below guest frames", {"tiering/runtime/deopt.cc": "\n  std::lock_guard lock(m);\n"},
     "tiering/runtime/deopt.cc:2: below guest frames nothing takes a lock: lock_guard"),
    ("the state mutex below guest frames",
     {"tiering/runtime/deopt.cc": "\n  HeldState lock(m);\n"},
     "tiering/runtime/deopt.cc:2: below guest frames nothing takes a lock: HeldState"),
    ("a decision that reads a clock", {"tiering/policy/p.cc": "#include <chrono>\n"},
     "tiering/policy/p.cc:1: tiering/policy/ must not know <chrono>"),
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
    ("a folder that includes a higher one", {"tiering/model/m.h": "\n#include \"tiering/observe/o.h\"\n"},
     "tiering/model/m.h:2: tiering/model must not include tiering/observe, which is above it"),
    ("folders that stand beside each other", {"tiering/serve/s.cc": "#include \"tiering/compile/c.h\"\n"},
     "tiering/serve/s.cc:1: tiering/serve must not include tiering/compile, which is beside it"),
    ("a folder without a place", {"jit/new/n.cc": "#include \"jit/ir/function.h\"\n"},
     "jit/new/n.cc:1: jit/new is no folder of SUBFLOORS"),
    ("a file in the floor's own folder", {"jit/ir/n.cc": "#include \"jit/n.h\"\n"},
     "jit/ir/n.cc:1: jit/. is no folder of SUBFLOORS"),
    ("folders that may include lower ones", {
        "tiering/control/c.cc": "#include \"tiering/serve/s.h\"\n#include \"tiering/compile/c.h\"\n",
        "tiering/base/b.h": "#include \"tiering/policy/p.h\"\n"}, None),
    ("a circle of folders", {
        "tracing/a/a.h": "#include \"tracing/b/b.h\"\n", "tracing/b/b.h": "#include \"tracing/c/c.h\"\n",
        "tracing/c/c.h": "#include \"tracing/a/a.h\"\n", "tracing/d/d.h": "#include \"tracing/a/a.h\"\n"},
     "tracing/a:1: folders include each other: tracing/a, tracing/b, tracing/c"),
    ("members of a class in two files", {
        "sampler/ring.h": "class Ring final : public Base {\n  void push();\n};\n",
        "sampler/pop.cc": "#include \"sampler/ring.h\"\nstd::vector<int>\nRing::pop(int n) {\n}\n",
        "sampler/ring.cc": "#include \"sampler/ring.h\"\n// Ring::gone() {\nRing::Ring(int n)\n    : n_(n) {}\n"},
     "sampler/pop.cc:3: a member of Ring belongs in sampler/ring.cc"),
    ("members of a class that no include of the file declares, in two files", {
        "sampler/ring.h": "struct Ring {\n};\n", "sampler/all.h": "#include \"sampler/ring.h\"\n",
        "sampler/a.cc": "#include \"sampler/all.h\"\nvoid Ring::a() {}\n",
        "sampler/b.cc": "#include \"sampler/all.h\"\nvoid Ring::b() {}\n"},
     "sampler/b.cc:2: members of Ring are in sampler/a.cc too"),
    ("a member in the file of another class", {
        "sampler/a.h": "class A {\n};\n", "sampler/b.h": "struct B {\n};\n",
        "sampler/b.cc": "#include \"sampler/a.h\"\n#include \"sampler/b.h\"\nvoid B::b() {}\nvoid A::a() {}\n"},
     "sampler/b.cc:4: a member of A, of sampler/a.h, in the file of another class"),
    ("a member apart from the file of its header", {
        "sampler/a.h": "class A {\n};\n", "sampler/a.cc": "int free_function() {}\n",
        "sampler/b.cc": "#include \"sampler/a.h\"\nA::Inner A::a() {}\n"},
     "sampler/b.cc:2: a member of A belongs in sampler/a.cc"),
    ("members where they belong", {
        "include/uptier/a.h": "class A {\n};\n", "tiering/base/a.cc": "#include \"uptier/a.h\"\nvoid A::a() {}\n",
        "tiering/base/b.cc": "struct B {\n  A make();\n};\nA B::make() {\n  return A::a();\n}\n",
        "jit/ir/two_words.cc": "#include \"jit/ir/c.h\"\nvoid TwoWords::d() {}\n",
        "jit/ir/e.h": "struct TwoWords {\n};\n", "jit/ir/e.cc": "int free_function() {}\n",
        "jit/ir/c_impl.h": "class C {\n};\n", "jit/ir/c.h": "class D {\n};\n",
        "jit/ir/c.cc": "#include \"jit/ir/c.h\"\n#include \"jit/ir/c_impl.h\"\nvoid C::c() {}\nvoid D::d() {}\n",
        "sampler/log_ring.h": "class LogRing {\n};\n",
        "sampler/log_ring.cc": "#include \"sampler/log_ring.h\"\nvoid LogRing::a() {}\n",
        "sampler/log_push.cc": "#include \"sampler/log_ring.h\"\nvoid LogRing::b() {}\n"}, None),
    ("a header of too many", {
        "tiering/model/m.h": "".join(f"#include \"uptier/a{i}.h\"\n" for i in range(16)) + "#include <set>\n"},
     "tiering/model/m.h:16: more than 15 headers of the project: split it, or declare"),
    ("a header of as many as may be", {
        "tiering/model/m.h": "".join(f"#include \"uptier/a{i}.h\"\n" for i in range(15)) + "#include <set>\n",
        "tiering/model/m.cc": "".join(f"#include \"uptier/a{i}.h\"\n" for i in range(16))}, None),
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
