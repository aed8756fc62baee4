#!/usr/bin/env python3
"""Does `uptier profile diff` tell a change from noise?

Bad news would be: more than 10 of 100 pairs of equal runs that differ anywhere beyond the noise, or fewer
than 90 of 100 pairs in which a change of 5 points in one method's share is found, in runs of 10 s.

equal    --pairs pairs of default runs (`run --profile`) of each program: how many differ beyond the noise
         by time, by executions, by either; the mean noise of the method that has most; which methods.
changed  --pairs pairs of mix.c, compiled twice with another constant: the second version calls state_round
         --extra % more often. 75 % raise its share of the time by about 5 points. How often that is found:
         state_round is beyond the noise, and moved up. Needs clang, lld and wasi-libc.

--times N lets programs run some N times as long (20: 10 s). --files K compares K files on each side.
--programs none leaves the equal runs out, --extra 0 the change. With --keep profiles stay in the folder, and
those that are there are read again, so that two versions of `diff` are compared on the same runs.
"""
import argparse, collections, json, os, shutil, statistics, subprocess, tempfile

import measure
from measure import PROGRAMS
from truth import GROWTH

MEASURES = ["time", "executions"]
CALL = "state_crc = state_round(text, (uint16_t)(state_crc ^ matrix_crc));"
OFTEN = "for (int n = 0; n < (i % 100 < EXTRA ? 2 : 1); ++n) " + CALL
CLANG = ["clang", "--target=wasm32-wasi", "-O2", "-std=gnu11", "-ffp-contract=off", "-Wl,--strip-debug",
         "-mbulk-memory", "-msign-ext", "-mnontrapping-fptoint", "-mmutable-globals", "-lm"]


class Runs:
    """Runs of one module, each with a profile of its own."""

    def __init__(self, tool, wasm, size, folder):
        self.tool, self.tail, self.folder, self.made = tool, [wasm, size], folder, 0
        os.makedirs(folder, exist_ok=True)

    def side(self, files):
        return [self.profile() for _ in range(files)]

    def profile(self):
        self.made += 1
        path = os.path.join(self.folder, f"{self.made}.upf")
        if not os.path.exists(path):
            command = [self.tool, "run", "--profile", path + ".part", *self.tail]
            p = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if p.returncode != 0:
                raise SystemExit(f"failed: {' '.join(command)}\n{p.stderr[:500]}")
            os.rename(path + ".part", path)
        return path


def changes(tool, before, after):
    """Returns {measure: its object in the JSON of `profile diff`}."""
    command = [tool, "profile", "diff", "--json", "--before", *before, "--after", *after]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {c["by"]: c for c in json.loads(out)["changes"]}


def row_of(change, name):
    return next((m for m in change["methods"] if m["name"] == name),
                {"share_a": 0, "share_b": 0, "moved": 0, "noise": 0, "beyond": False})


def summed_up(pairs):
    """Returns what `pairs` of equal runs came to."""
    beyond, who = collections.Counter(), collections.Counter()
    noise = {m: [] for m in MEASURES}
    for pair in pairs:
        beyond["either"] += any(c["beyond"] for c in pair.values())
        for by, c in pair.items():
            beyond[by] += c["beyond"] > 0
            who.update(f"{m['name']} ({by})" for m in c["methods"] if m["beyond"])
            noise[by].append(max(m["noise"] for m in c["methods"]))
    return {"pairs": len(pairs), "beyond": dict(beyond), "who": who.most_common(3),
            "noise": {by: statistics.mean(v) for by, v in noise.items() if v}}


def print_equal(name, r):
    b, n = r["beyond"], r["noise"]
    print(f"{name:<11}{r['pairs']:>6}{b.get('time', 0):>6}{b.get('executions', 0):>12}{b['either']:>8}"
          f"{100 * n.get('time', 0):>12.1f}{100 * n.get('executions', 0):>12.1f}  "
          + ", ".join(f"{who} {times}" for who, times in r["who"]), flush=True)


def compiled(folder, extra):
    with open(os.path.join(PROGRAMS, "src", "mix.c")) as f:
        text = f.read()
    if CALL not in text:
        raise SystemExit("mix.c: the call of state_round that is to be repeated is not there any more")
    source, wasm = (os.path.join(folder, f"mix{extra}.{kind}") for kind in ("c", "wasm"))
    with open(source, "w") as f:
        f.write(text.replace(CALL, OFTEN))
    subprocess.run([*CLANG, f"-DEXTRA={extra}", "-I", os.path.join(PROGRAMS, "src"), source, "-o", wasm],
                   check=True)
    return wasm


def measure_change(a, size, folder):
    sides = []
    for extra in (0, a.extra):
        wasm = compiled(folder, extra)
        sides.append(Runs(a.tool, wasm, size, os.path.join(folder, f"mix+{extra}-{size}")))
    pairs = [changes(a.tool, *(runs.side(a.files) for runs in sides)) for _ in range(a.pairs)]
    result = {"pairs": a.pairs, "extra": a.extra}
    for by in MEASURES:
        rows = [row_of(p[by], "state_round") for p in pairs]
        result[by] = {"found": sum(r["beyond"] and r["moved"] > 0 for r in rows),
                      **{k: statistics.mean(r[k] for r in rows)
                         for k in ("share_a", "share_b", "moved", "noise")}}
    result["either"] = sum(any(row_of(p[by], "state_round")["beyond"] for by in MEASURES) for p in pairs)
    return result


def print_change(r):
    print(f"\nmix with state_round called {r['extra']} % more often: found in {r['either']} of {r['pairs']} "
          "pairs by either")
    for by in MEASURES:
        m = r[by]
        print(f"  by {by:<11}{m['found']:>4}; share {100 * m['share_a']:.2f} to {100 * m['share_b']:.2f} %, "
              f"moved {100 * m['moved']:+.2f}, noise {100 * m['noise']:.2f}")


def sizes(a):
    for name, size in measure.chosen_programs(a):
        grow = GROWTH.get(name, lambda size, times: size * times)
        yield name, str(int(grow(float(size), a.times)))


def measure_all(a, folder):
    result = {"equal": {}}
    print(f"./dev bench diff --times {a.times:g} --files {a.files}\n\npairs of equal runs that differ beyond "
          f"the noise\n{'program':<11}{'pairs':>6}{'time':>6}{'executions':>12}{'either':>8}"
          f"{'noise: time':>12}{'executions':>12}  methods", flush=True)
    for name, size in sizes(a):
        wasm = os.path.join(PROGRAMS, "wasm", name + ".wasm")
        runs = Runs(a.tool, wasm, size, os.path.join(folder, f"{name}-{size}"))
        pairs = [changes(a.tool, runs.side(a.files), runs.side(a.files)) for _ in range(a.pairs)]
        result["equal"][name] = summed_up(pairs)
        print_equal(name, result["equal"][name])
    if a.extra:
        a.programs = "mix"
        result["changed"] = measure_change(a, dict(sizes(a))["mix"], folder)
        print_change(result["changed"])
    print(f"\n{measure.load_note()}")
    return result


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tool", required=True, help="path of the uptier tool")
    ap.add_argument("--programs", default="mix", help="comma separated, of equal runs")
    ap.add_argument("--pairs", type=int, default=100)
    ap.add_argument("--files", type=int, default=1, help="on each side of a pair")
    ap.add_argument("--times", type=float, default=20, help="how many times as long programs run")
    ap.add_argument("--extra", type=int, default=75, help="calls of state_round in 100 that are repeated")
    ap.add_argument("--keep", metavar="FOLDER", help="leave profiles there, read those that are")
    ap.add_argument("--json", help="writes every number to this file")
    a = ap.parse_args()
    if a.extra and not shutil.which("clang"):
        raise SystemExit("clang is missing: install clang, lld and wasi-libc, or leave the change out (--extra 0)")
    with tempfile.TemporaryDirectory() as scratch:
        result = measure_all(a, a.keep or scratch)
    if a.json:
        with open(a.json, "w") as f:
            json.dump(result, f, indent=1)


if __name__ == "__main__":
    main()
