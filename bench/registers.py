"""What share of the instructions that optimized code executes moves values about, and saves registers?

Bad news: a share that no value needed, such as saving registers around calls that change few.

valgrind counts each instruction of one run (callgrind --dump-instr), the runtime leaves the bytes
(jit_dump), objdump says what they are. Counts do not depend on how loaded the machine is. Each
program runs with the profile that an earlier run has saved, tiers by default. Of optimized code:

  frame    what makes a frame, asks for stack and takes the frame down
  save     pushes and pops of callee-saved registers
  spill    stores to the frame's slots
  reload   loads of them; reloads that are part of another instruction are `folded`
  move     copies of registers
  call     calls and returns; `jump`: jumps without a condition

`--hot N` lists the N instructions that run most, with their neighbours. `--methods N` adds a row for each
of the N methods that execute most. `--fresh` takes no profile: everything is optimized before its first
call.
"""
import argparse, collections, os, re, shutil, struct, subprocess, tempfile

from programs import PROGRAMS, read_programs

SIZES = {"bintrees": "13", "mandel": "200", "spectral": "300", "onecall": "100", "nbody": "60000",
         "store": "150", "lz": "32"}
FIXED = ["workers=0", "measure_rates=off", "adaptive=off"]  # so that no clock decides
CLASSES = ["frame", "save", "spill", "reload", "folded", "move", "call", "jump", "other"]


def read_codes(path):
    """Returns [(address, name, bytes)] of a jit dump; of code at one address the last."""
    data, at, codes = open(path, "rb").read(), 40, {}
    while at < len(data):
        kind, size, _ = struct.unpack_from("<IIQ", data, at)
        if kind == 0:
            address, _, length, _ = struct.unpack_from("<QQQQ", data, at + 24)
            end = data.index(b"\0", at + 56)
            codes[address] = (address, data[at + 56 : end].decode(), data[end + 1 : end + 1 + length])
        at += size
    return sorted(codes.values())


def read_counts(path):
    """Returns {address: executions} of code that belongs to no file, and the sum of everything."""
    counts, names, unknown, address, skip, total = collections.Counter(), {}, False, 0, False, 0
    for line in open(path):
        if line.startswith("ob="):
            m = re.match(r"ob=\((\d+)\)(?: (.*))?", line)
            if m[2]:
                names[m[1]] = m[2].strip()
            unknown = names[m[1]] == "???"
        elif line.startswith("cob="):
            m = re.match(r"cob=\((\d+)\)(?: (.*))?", line)
            if m[2]:
                names[m[1]] = m[2].strip()
        elif line.startswith("calls="):
            skip = True
        elif line.startswith("totals:"):
            total = int(line.split()[1])
        elif line[:1] in "0+-*" and line.strip():
            parts = line.split()
            step = parts[0]
            address = (address if step == "*" else address + int(step) if step[0] in "+-"
                       else int(step, 16))
            if not skip and unknown:
                counts[address] += int(parts[2])
            skip = False
    return counts, total


def disassemble(code, scratch):
    address, _, data = code
    path = os.path.join(scratch, "code")
    with open(path, "wb") as f:
        f.write(data)
    text = subprocess.run(["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel",
                           "--no-show-raw-insn", f"--adjust-vma={address:#x}", path],
                          capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        m = re.match(r"\s*([0-9a-f]+):\s+(.*\S)", line)
        if m:
            yield int(m[1], 16), re.sub(r"\s+", " ", m[2])


def class_of(text):
    op, _, rest = text.partition(" ")
    if op in ("push", "pop"):
        return "frame" if rest == "rbp" else "save"
    if op == "leave" or rest.startswith(("rbp,rsp", "rsp,", "r11,QWORD PTR fs:")):
        return "frame"
    if op in ("call", "ret"):
        return "call"
    if op == "jmp":
        return "jump"
    first, _, second = rest.partition(",")
    slot = r"\[rbp-0x[0-9a-f]+\]"
    moves = op.startswith("mov") or op.startswith("vmov")
    if moves and re.search(slot, first):
        return "spill"
    if re.search(slot, rest):
        return "reload" if moves else "folded"
    register = r"(?:[re](?:[abcd]x|[sd]i)|r\d+d?|xmm\d+)"
    if moves and "zx" not in op and re.fullmatch(rf"{register}(,{register})+", rest):
        return "move" if first != second else "other"
    return "other"


def measure(tool, name, size, scratch, options, profiles=None, fresh=False):
    """Returns [(method, address, instruction, executions)] and the sum of all, ours included."""
    run = [os.path.join(PROGRAMS, "wasm", name + ".wasm")] + ([size] if size else [])
    profile, out = os.path.join(scratch, name + ".upf"), os.path.join(scratch, name + ".cg")
    kept = os.path.join(profiles or scratch, name + ".upf")
    if not fresh and not os.path.exists(kept):
        subprocess.run([tool, "run", "--profile", kept, *run], check=True,
                       stdout=subprocess.DEVNULL)
    if profiles and not fresh:
        shutil.copy(kept, profile)
    tiers = ["--tier=optimized"] if fresh else ["--profile", profile]
    command = ["valgrind", "--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={out}",
               tool, "run", *tiers, "-O", "jit_dump=on", *options, *run]
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    dump = f"/tmp/jit-{p.pid}.dump"
    if p.wait() != 0:
        raise SystemExit(f"failed: {' '.join(command)}")
    codes = [c for c in read_codes(dump) if "[optimized" in c[1]]
    os.unlink(dump)
    counts, total = read_counts(out)
    rows = []
    for code in codes:
        for address, text in disassemble(code, scratch):
            rows.append((code[1], address, text, counts.get(address, 0)))
    return rows, total


def print_hot(rows, most):
    hot = sorted(range(len(rows)), key=lambda k: -rows[k][3])[:most]
    shown, last = set(), None
    for k in hot:
        shown.update(range(max(0, k - 2), min(len(rows), k + 3)))
    for k in sorted(shown):
        name, address, text, count = rows[k]
        if name != last:
            print(f"\n{name}")
        last = name
        print(f"  {address:x} {count:>12,} {class_of(text):7} {text}")


def print_row(name, rows, total=None):
    sums = collections.Counter()
    for _, _, text, count in rows:
        sums[class_of(text)] += count
    whole = sum(sums.values())
    shares = " ".join(f"{100 * sums[c] / max(1, whole):6.2f}%" for c in CLASSES)
    print(f"{name:24} {whole:12,} {'' if total is None else f'{total:,}':>12} {shares}", flush=True)


def print_methods(rows, most):
    of = collections.defaultdict(list)
    for row in rows:
        of[row[0].split(" [")[0]].append(row)
    for name in sorted(of, key=lambda n: -sum(r[3] for r in of[n]))[:most]:
        print_row(f"  {name:.22}", of[name])


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    a.add_argument("--tool", required=True, help="path of the uptier tool")
    a.add_argument("--programs", help="comma separated; all by default")
    a.add_argument("--profiles", metavar="DIR", help="keeps profiles there and takes what is there")
    a.add_argument("--hot", type=int, default=0, metavar="N")
    a.add_argument("--methods", type=int, default=0, metavar="N")
    a.add_argument("--fresh", action="store_true")
    a.add_argument("-O", dest="options", action="append", default=[], metavar="NAME=VALUE")
    arguments = a.parse_args()
    wanted = arguments.programs.split(",") if arguments.programs else None
    options = [x for o in FIXED + arguments.options for x in ("-O", o)]
    print(f"{'program':24} {'optimized':>12} {'all':>12} " + " ".join(f"{c:>7}" for c in CLASSES))
    with tempfile.TemporaryDirectory() as scratch:
        for name, *_ in read_programs():
            if wanted is not None and name not in wanted:
                continue
            rows, total = measure(arguments.tool, name, SIZES.get(name), scratch, options,
                                  arguments.profiles, arguments.fresh)
            print_row(name, rows, total)
            print_methods(rows, arguments.methods)
            if arguments.hot:
                print_hot(rows, arguments.hot)


if __name__ == "__main__":
    main()
