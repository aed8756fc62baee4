"""What the program benchmarks share: programs, runs of the tool, medians of interleaved rounds.

Time is the CPU time of the guest's thread, user and system: the worker that compiles beside it is
not in it, nor is waiting for a busy machine. Law of ratios: every configuration runs once in each
round, a ratio is taken within its round, and what is reported is the median over rounds with the
lowest and the highest.
"""
import json, os, re, statistics, subprocess, sys, tempfile

from programs import PROGRAMS, geomean, read_programs

NEVER = 1 << 27  # the widest interval there is: no call is sampled
KINDS = ["block", "edge", "call_target", "value", "loop"]


def add_arguments(parser):
    parser.add_argument("--tool", required=True, help="path of the uptier tool")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3, help="runs that an overlap is the median of")
    parser.add_argument("--programs", help="comma separated; all by default")
    parser.add_argument("--test-size", action="store_true", help="small runs: quick, less precise")
    parser.add_argument("--json", help="writes every number to this file")


def chosen_programs(arguments):
    wanted = arguments.programs.split(",") if arguments.programs else None
    return [p for p in read_programs() if wanted is None or p[0] in wanted]


def guest_seconds(command):
    """Runs a command; returns the CPU seconds of its first thread, which is the guest's."""
    with tempfile.TemporaryFile() as errors:
        p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)  # it has ended, its figures are kept
        with open(f"/proc/{p.pid}/task/{p.pid}/schedstat") as f:
            seconds = int(f.read().split()[0]) / 1e9
        if p.wait() != 0:
            errors.seek(0)
            raise SystemExit(f"failed: {' '.join(command)}\n{errors.read().decode()[:500]}")
    return seconds


class Program:
    """One program at one size, and the command lines that run it."""

    def __init__(self, arguments, name, size):
        self.tool, self.name = arguments.tool, name
        wasm = os.path.join(PROGRAMS, "wasm", name + ".wasm")
        self.tail = [wasm] + ([] if arguments.test_size else [size])

    def command(self, options, trace=None, seed=None):
        out = [self.tool, "run"]
        for o in options + ([f"seed={seed}"] if seed else []):
            out += ["-O", o]
        return out + (["--trace", trace] if trace else []) + self.tail

    def overlaps(self, truth, options, scratch, seed=None):
        """Runs it traced; returns {kind: overlap of its profile with `truth`, a trace}."""
        trace = os.path.join(scratch, f"{self.name}.trace")
        guest_seconds(self.command(options, trace, seed))
        r = subprocess.run([self.tool, "trace", "overlap", truth, trace], stdout=subprocess.PIPE,
                           check=True)
        rows = re.findall(r"^  (\w+) +([0-9.]+)$", r.stdout.decode(), re.M)
        return {kind: float(value) for kind, value in rows}


    def events(self, trace):
        """Returns {kind: how many executions a trace counted}."""
        r = subprocess.run([self.tool, "trace", "profile", "--json", trace], stdout=subprocess.PIPE,
                           check=True)
        sums = dict.fromkeys(KINDS, 0)
        for method in json.loads(r.stdout)["methods"]:
            for site in method["sites"]:
                if site["kind"] in sums:
                    sums[site["kind"]] += events_of(site)
        return sums


def events_of(site):
    """The executions that a site of `uptier trace profile --json` has counted."""
    counts = [site[k] for k in ("count", "entries", "other") if k in site] + site.get("table", [])
    if site["kind"] == "value":
        counts = counts[:1]  # `other` and the table are parts of it
    return sum(c["count"] if isinstance(c, dict) else c for c in counts)


# Everything below stays in baseline code, so that what differs is what observes it.
PLAIN = ["tier=baseline"]
EXHAUSTIVE = ["tier=instrumented"]  # every call and iteration counts, and no check decides it


def fixed(interval):
    return ["policy=never", "adaptive=off", f"interval={interval}"]


def adaptive(budget=None):
    return ["policy=never"] + ([] if budget is None else [f"overhead_budget={budget}"])


def timed_rounds(program, configurations, rounds):
    """Returns {name: [seconds of each round]} for configurations {name: options}."""
    times = {name: [] for name in configurations}
    for r in range(rounds):
        # To and fro, so that no configuration always runs after the same other one.
        for name, options in list(configurations.items())[:: -1 if r % 2 else 1]:
            times[name].append(guest_seconds(program.command(options)))
    return times


def median_overlaps(program, truth, options, scratch, seeds):
    """Returns {kind: (median, lowest, highest)} over that many seeds."""
    runs = [program.overlaps(truth, options, scratch, seed) for seed in range(1, seeds + 1)]
    return {kind: spread([r[kind] for r in runs]) for kind in runs[0]}


def spread(values):
    return statistics.median(values), min(values), max(values)


def ratios(times, name, base):
    return spread([a / b for a, b in zip(times[name], times[base])])


def percent(ratio):
    """The text of a (median, lowest, highest) ratio as what it is above 1."""
    m, low, high = (100 * (r - 1) for r in ratio)
    return f"{m:+.1f} ({low:+.1f} {high:+.1f})"


def mean_ratio(all_ratios):
    return geomean([max(r[0], 1e-9) for r in all_ratios])


def load_note():
    """What else the machine did when the run ended, to be printed beside every table."""
    one, five, _ = os.getloadavg()
    return f"load average {one:.1f} (1 min), {five:.1f} (5 min) on {os.cpu_count()} CPUs"


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text:<50}", end="", file=sys.stderr)
