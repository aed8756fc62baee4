#!/usr/bin/env python3
"""How long people wait for a build: a fresh clone, no compiler cache.

  build.py [--commit COMMIT] [--only NAME,...] [--json FILE]

  run            ./dev run, from a clone without a build to the program's output
  test           ./dev test after that; alone: the same in another clone, where run has not built anything
  edit           one line of a file in tiering/ is changed, and a test of that folder runs
  edit of a test one line of a test is changed, and it runs

The answer is bad news if run takes more than 4 minutes, test alone more than 12, or an edit more
than 20 seconds, on two idle cores. Packages are not installed here: they have to be there.
"""
import argparse, json, os, pathlib, subprocess, sys, tempfile, time

SOURCE = "tiering/policy/policy.cc"
TEST = "tests/tiering/policy/policy_test.cc"
SUITE = "Policy"
NAMES = ["run", "test", "edit", "edit-test", "test-alone"]


def timed(command, tree):
    """Runs a command; returns its wall and CPU seconds."""
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    start, before = time.monotonic(), os.times()
    done = subprocess.run(command, cwd=tree, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wall, after = time.monotonic() - start, os.times()
    if done.returncode != 0:
        raise SystemExit(f"failed: {' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-1000:]}")
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return {"wall_s": round(wall, 1), "cpu_s": round(cpu, 1)}


def clone(commit, folder):
    root = pathlib.Path(__file__).resolve().parent.parent
    subprocess.run(["git", "clone", "-q", root, folder], check=True)
    subprocess.run(["git", "checkout", "-q", commit], cwd=folder, check=True)
    return folder


def edited(tree, path):
    with open(pathlib.Path(tree) / path, "a", encoding="utf-8") as f:
        f.write("// edited\n")


def measure(commit, wanted, folder):
    tree = clone(commit, os.path.join(folder, "one"))
    results = {}

    def note(name, command, where=tree):
        if name not in wanted:
            return
        print(f"build: {name}: {' '.join(command)}", file=sys.stderr, flush=True)
        results[name] = timed(command, where)

    note("run", ["./dev", "run"])
    note("test", ["./dev", "test"])
    if "edit" in wanted or "edit-test" in wanted:
        timed(["./dev", "test", "-R", f"^{SUITE}\\."], tree)  # all is built
    for name, path in [("edit", SOURCE), ("edit-test", TEST)]:
        if name in wanted:
            edited(tree, path)
        note(name, ["./dev", "test", "-R", f"^{SUITE}\\."])
    if "test-alone" in wanted:
        other = clone(commit, os.path.join(folder, "other"))
        note("test-alone", ["./dev", "test"], other)
    return results


def main():
    parser = argparse.ArgumentParser(description="How long a build takes, without a compiler cache.")
    parser.add_argument("--commit", default="HEAD", help="what is measured (HEAD)")
    parser.add_argument("--only", default=",".join(NAMES), help="of " + ", ".join(NAMES))
    parser.add_argument("--json", help="writes the numbers to this file")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",")
    if unknown := sorted(set(wanted) - set(NAMES)):
        parser.error(f"--only: no such part: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    commit = subprocess.run(["git", "rev-parse", "--short", arguments.commit], check=True, text=True,
                            capture_output=True, cwd=os.path.dirname(__file__)).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="uptier-build-") as folder:
        results = measure(commit, wanted, folder)
    print(f"commit {commit}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the end")
    print(f"{'':12}{'wall':>10}{'CPU':>10}   (lower is better)")
    for name, r in results.items():
        print(f"{name:12}{r['wall_s']:8.1f} s{r['cpu_s']:8.1f} s")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"commit": commit, **results}, indent=1))


if __name__ == "__main__":
    main()
