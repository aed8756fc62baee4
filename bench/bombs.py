"""What do modules take that are made to be expensive to compile?

Bad news: a bomb whose time or memory grows faster than its size (`--twice` runs each at double size too), one
that runs into the time limit, or one that takes many times what node takes.

A bomb is a module of WebAssembly that does next to nothing when it runs. Each runs once a round, in turns with
node's engine (Debian's nodejs); the table has the least of the rounds: seconds that passed, CPU seconds of the
process with all of its threads, and its peak memory. `--out DIR` keeps the modules.
"""
import argparse, os, shutil, signal, subprocess, tempfile, time

I32 = 0x7F
GET, SET, CONST, ADD, CALL, END = 0x20, 0x21, 0x41, 0x6A, 0x10, 0x0B
BLOCK, LOOP, IF, ELSE, BR, BR_IF, BR_TABLE, TEE, DROP, EMPTY = (
    0x02, 0x03, 0x04, 0x05, 0x0C, 0x0D, 0x0E, 0x22, 0x1A, 0x40)

NODE = """
const m = new WebAssembly.Module(require('fs').readFileSync(process.argv[1]));
new WebAssembly.Instance(m, {}).exports._start();
"""


def leb(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def signed(n):
    out = bytearray()
    while not -64 <= n < 64:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n & 0x7F)
    return bytes(out)


def op(code, n=None):
    return bytes([code]) + (leb(n) if n is not None else b"")


def const(n):
    return bytes([CONST]) + signed(n)


def section(number, body):
    return bytes([number]) + leb(len(body)) + body


def vector(items):
    return leb(len(items)) + b"".join(items)


def functype(params, results):
    return bytes([0x60]) + leb(params) + bytes([I32]) * params + leb(results) + bytes([I32]) * results


def code(locals_, body):
    declared = b"\x01" + leb(locals_) + bytes([I32]) if locals_ else b"\x00"
    whole = declared + body + bytes([END])
    return leb(len(whole)) + whole


def module(functions, types=()):
    """functions: (type index, locals, body); the last one is exported as _start. Type 0: nothing to nothing."""
    types = [functype(0, 0), *types]
    return (b"\0asm\1\0\0\0" + section(1, vector(types)) + section(3, vector([leb(f[0]) for f in functions]))
            + section(7, vector([b"\x06_start\x00" + leb(len(functions) - 1)]))
            + section(10, vector([code(locals_, body) for _, locals_, body in functions])))


def count_down(local):
    """Once round the innermost loop for a local that is 0."""
    return op(GET, local) + const(1) + op(ADD) + op(TEE, local) + const(1) + b"\x4a" + op(BR_IF, 0)  # i32.gt_s


def sum_of(count):
    return const(0) + b"".join(op(GET, i) + op(ADD) for i in range(count)) + op(DROP)


def loops(k):
    """K loops side by side over K locals, which are read in the end."""
    body = b"".join(op(LOOP) + bytes([EMPTY]) + count_down(i) + op(END) for i in range(k))
    return module([(0, k, body + sum_of(k))])


def nest(k):
    """K loops in each other over K locals, all of which the innermost reads."""
    tails = b"".join(count_down(i) + op(END) for i in range(k))
    return module([(0, k, (op(LOOP) + bytes([EMPTY])) * k + sum_of(k) + tails + sum_of(k))])


def writes(k):
    """K loops in each other; the innermost writes all of the K locals."""
    sets = b"".join(const(i) + op(SET, i) for i in range(k))
    tails = b"".join(const(0) + op(BR_IF, 0) + op(END) for i in range(k))
    return module([(0, k, (op(LOOP) + bytes([EMPTY])) * k + sum_of(k) + sets + tails + sum_of(k))])


def blocks(k):
    """K blocks in each other, left from the middle to each of them."""
    outs = b"".join(const(0) + op(BR_IF, i) for i in range(k))
    return module([(0, 1, (op(BLOCK) + bytes([EMPTY])) * k + outs + op(END) * k)])


def webs(k):
    """A chain of K choices, each of which writes two of K locals, one on either way."""
    body = b"".join(op(GET, i) + op(IF) + bytes([EMPTY]) + const(1) + op(SET, i) + op(ELSE) + const(2)
                    + op(SET, (i + 1) % k) + op(END) for i in range(k))
    return module([(0, k, body + sum_of(k))])


def table(k):
    """One br_table to K blocks, behind each of which a local of its own is written."""
    targets = op(GET, 0) + op(BR_TABLE, k - 1) + b"".join(leb(i) for i in range(k))
    ends = b"".join(op(END) + const(i) + op(SET, i) for i in range(k))
    return module([(0, k, (op(BLOCK) + bytes([EMPTY])) * k + targets + ends + sum_of(k))])


def operands(k):
    """K values on the operand stack, while K loops run."""
    values = b"".join(op(GET, 0) + const(i) + op(ADD) for i in range(k))
    body = values + (op(LOOP) + bytes([EMPTY]) + const(0) + op(BR_IF, 0) + op(END)) * k
    return module([(0, 1, body + op(ADD) * (k - 1) + op(DROP))])


def adds(k):
    """K additions in one body."""
    return module([(0, 1, op(GET, 0) + (const(1) + op(ADD)) * k + op(SET, 0))])


def calls(k):
    """K calls in one body."""
    return module([(0, 0, b""), (0, 0, op(CALL, 0) * k)])


def functions(k):
    """K functions, none of which is called."""
    return module([(0, 0, b"")] * (k + 1))


def chain(k):
    """K functions, each of which calls the next."""
    return module([(0, 0, b"")] + [(0, 0, op(CALL, i)) for i in range(k)])


def params(k):
    """A function of 1,000 parameters, called K times with constants."""
    one = const(7) * 1000 + op(CALL, 0)
    return module([(1, 0, b""), (0, 0, one * k)], [functype(1000, 0)])


def locals_(k):
    """A body with K locals that uses each of them once."""
    return module([(0, k, b"".join(const(i) + op(SET, i) for i in range(k)) + sum_of(k))])


BOMBS = [(loops, 5000), (nest, 5000), (writes, 5000), (blocks, 20_000), (webs, 5000), (table, 10_000),
         (operands, 20_000), (adds, 1_000_000), (calls, 1_000_000), (functions, 999_999), (chain, 10_000),
         (params, 500), (locals_, 10_000)]


def write_apart(path, make, size):
    """In a process of its own: the peak of a child is that of its parent at least."""
    pid = os.fork()
    if pid == 0:
        with open(path, "wb") as f:
            f.write(make(size))
        os._exit(0)
    if os.waitpid(pid, 0)[1] != 0:
        raise SystemExit(f"{path}: not written")


def run(command, limit):
    """Returns what one run took: (seconds, CPU seconds, bytes), and how it failed, or nothing."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        signal.signal(signal.SIGALRM, lambda *_: p.kill())
        signal.alarm(limit)
        _, status, usage = os.wait4(p.pid, 0)
        signal.alarm(0)
        took = time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
        errors.seek(0)
        text = errors.read().decode(errors="replace").strip().split("\n")[-1]
    if status == signal.SIGKILL:
        return took, f"killed after {limit} s"
    return took, None if status == 0 else text[:90] or f"status {status}"


def least(runs):
    """Returns the least of each column, and a failure if there was one."""
    return [min(c) for c in zip(*(took for took, _ in runs))], next((f for _, f in runs if f), None)


def cell(result):
    if result is None:
        return f"{'':>24}"
    (seconds, cpu, peak), _ = result
    return f"{seconds:>8.2f} {cpu:>7.2f} {peak / 2**20:>7.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tool", required=True, help="path of the uptier tool")
    parser.add_argument("--against", help="path of another build's")
    parser.add_argument("--bombs", help="comma separated; all by default")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--limit", type=int, default=60, help="seconds of one run")
    parser.add_argument("--scale", type=float, default=1, help="of all sizes")
    parser.add_argument("--twice", action="store_true", help="at double size as well")
    parser.add_argument("--out", help="folder that the modules stay in")
    parser.add_argument("-O", action="append", default=[], metavar="OPTION=VALUE", dest="options")
    a = parser.parse_args()
    wanted = a.bombs.split(",") if a.bombs else None
    node = shutil.which("nodejs") or shutil.which("node")
    if node is None:
        print("NOTE: there is no node (Debian: nodejs), so nothing is compared with it")
    sides = {"uptier": [a.tool, "run"] + [w for o in a.options for w in ("-O", o)]}
    if a.against:
        sides = {"against": [a.against, "run"]} | sides
    if node:
        sides["node"] = [node, "-e", NODE]
    print(f"load {os.getloadavg()[0]:.1f}, {a.rounds} rounds; seconds, CPU seconds, peak MiB")
    print(f"{'bomb':<10} {'size':>8} {'KB':>6} " + " | ".join(f"{s:>24}" for s in sides))
    directory = a.out or tempfile.mkdtemp()
    os.makedirs(directory, exist_ok=True)
    for make, size in BOMBS:
        name = make.__name__.strip("_")
        if wanted and name not in wanted:
            continue
        for k in [int(size * a.scale)] + ([int(2 * size * a.scale)] if a.twice else []):
            path = os.path.join(directory, f"{name}-{k}.wasm")
            write_apart(path, make, k)
            runs = {side: [] for side in sides}
            for _ in range(a.rounds):
                for side, command in sides.items():
                    runs[side].append(run(command + [path], a.limit))
            results = {side: least(r) for side, r in runs.items()}
            print(f"{name:<10} {k:>8} {os.path.getsize(path) // 1000:>6} "
                  + " | ".join(cell(results[s]) for s in sides), flush=True)
            for side, (_, failure) in results.items():
                if failure:
                    print(f"{'':<10} {side}: {failure}")
    if not a.out:
        shutil.rmtree(directory)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
