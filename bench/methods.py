"""What does a method take that a program never calls?

Bad news: pages or time that grow with methods nobody calls faster than in another build (`--against`).

A module of WebAssembly has `--methods` small functions, of which `--called` parts of 100 are called once, spread
evenly. Each build runs it once a round, in turns; the same module with as few functions as are called is the
program without the rest. Faults are those of the process that touch a page for the first time, the least of
all rounds, seconds its CPU time, user and system, likewise. Bytes a method are the faults that the rest adds,
as bytes, over the methods of the rest: what the runtime, the engine and their allocator keep of each.
"""
import argparse, os, resource, subprocess, tempfile

PAGE = resource.getpagesize()


def source(methods, called):
    """`called` of `methods` functions, spread evenly, are called by _start."""
    step = methods / called
    chosen = {int(i * step) for i in range(called)}
    functions, calls = [], []
    for i in range(methods):
        functions.append(f"(func $f{i} (param $x i32) (param $y i32) (result i32) "
                         f"(if (result i32) (i32.lt_u (local.get $x) (i32.const {i})) "
                         f"(then (i32.add (local.get $x) (local.get $y))) (else (local.get $y))))")
        if i in chosen:
            calls.append(f"(drop (call $f{i} (i32.const {i}) (i32.const 1)))")
    return ('(module (memory (export "memory") 1)\n' + "\n".join(functions) +
            '\n(func (export "_start")\n' + "\n".join(calls) + "))\n")


def compiled(directory, methods, called):
    text = os.path.join(directory, f"{methods}.wat")
    with open(text, "w") as f:
        f.write(source(methods, called))
    wasm = text[:-3] + "wasm"
    subprocess.run(["wat2wasm", text, "-o", wasm], check=True)
    return wasm


def run(tool, options, wasm):
    """Returns the faults and the CPU seconds of one run."""
    command = [tool, "run"] + [word for o in options for word in ("-O", o)] + [wasm]
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    if status != 0:
        raise SystemExit(f"failed: {' '.join(command)}")
    return usage.ru_minflt, usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tool", required=True, help="path of the uptier tool")
    parser.add_argument("--against", help="path of another build's")
    parser.add_argument("--methods", type=int, default=100_000)
    parser.add_argument("--called", type=int, default=5, help="parts of 100")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-O", action="append", default=[], metavar="OPTION=VALUE", dest="options")
    a = parser.parse_args()
    called = a.methods * a.called // 100
    tools = ([a.against] if a.against else []) + [a.tool]
    print(f"load {os.getloadavg()[0]:.1f}, {a.rounds} rounds, {a.methods} methods, {called} called")
    print(f"{'build':<40} {'faults':>8} {'seconds':>8} {'bytes a method':>15}")
    with tempfile.TemporaryDirectory() as directory:
        modules = {n: compiled(directory, n, called) for n in (called, a.methods)}
        runs = {(t, n): [] for t in tools for n in modules}
        for _ in range(a.rounds):
            for tool, n in runs:
                runs[tool, n].append(run(tool, a.options, modules[n]))
        for tool in tools:
            faults, seconds = (min(column) for column in zip(*runs[tool, a.methods]))
            few = min(f for f, _ in runs[tool, called])
            each = (faults - few) * PAGE / (a.methods - called)
            print(f"{tool[-40:]:<40} {faults:>8} {seconds:>8.3f} {each:>15.0f}")
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
