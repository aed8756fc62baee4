"""What does a loop take that waits for a selection, by how often the condition changes?

Bad news: a row in which the tool is slower than a build that leaves selections alone (`--against`).

  chase     p = c ? p->left : p->right      an address that the next round begins with
  greatest  m = x > m ? x : m               a value that the next round begins with
  where     *(c ? &a : &b) += 1             one of two places, both read in the next round
  parts     *(c ? low++ : high--) = x       one of two places, neither of which is read

c is 0 but in the given share of rounds, by chance. A program of WebAssembly calls the loop again and
again, 1,024 rounds each, and is optimized with what was seen of it; the numbers are nanoseconds of CPU
time a round, the least of some runs, builds interleaved, less what the program takes without the loop.
"""
import argparse, os, resource, subprocess, tempfile

SHARES = (0, 1 / 256, 1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 2)
CALLS = 40_000

# All such programs share these two. RANDOM makes random numbers of 24 bits. START calls the
# function that is timed; each call passes the address of one of the stretches of 4 KiB after the
# first page. The operand of START is the number of these stretches, less one.
RANDOM = """  (global $s (mut i32) (i32.const 88172645))
  (func $random (result i32)
    (global.set $s (i32.xor (global.get $s) (i32.shl (global.get $s) (i32.const 13))))
    (global.set $s (i32.xor (global.get $s) (i32.shr_u (global.get $s) (i32.const 17))))
    (global.set $s (i32.xor (global.get $s) (i32.shl (global.get $s) (i32.const 5))))
    (i32.shr_u (global.get $s) (i32.const 8)))
"""
START = """  (func (export "_start") (local $k i32)
    (call $fill)
    (local.set $k (i32.const {calls}))
    (loop $l
      (drop (call ${what}
        (i32.add (i32.const 65536) (i32.shl (i32.and (local.get $k) (i32.const %d)) (i32.const 12)))
        (i32.const {rounds})))
      (br_if $l (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))))
"""

SOURCE = """(module (memory (export "memory") 4)
""" + RANDOM + """  (func $fill (local $p i32) (local $high i32)
    (local.set $p (i32.const 131072))
    (loop $l
      (local.set $p (i32.sub (local.get $p) (i32.const 4)))
      (i32.store (local.get $p)
        (if (result i32) (i32.lt_u (i32.and (call $random) (i32.const 65535)) (i32.const {share}))
          (then (local.tee $high (i32.add (local.get $high) (i32.const 1))))
          (else (i32.const 0))))
      (br_if $l (i32.gt_u (local.get $p) (i32.const 65536))))
    (local.set $p (i32.const 32768))
    (loop $l
      (local.set $p (i32.sub (local.get $p) (i32.const 4)))
      (i32.store (local.get $p) (i32.and (call $random) (i32.const 0x7ff8)))
      (br_if $l (local.get $p))))
  (func $chase (param $c i32) (param $n i32) (result i32) (local $p i32)
    (loop $l
      (local.set $p
        (select (i32.load offset=4 (local.get $p)) (i32.load (local.get $p))
                (i32.load (local.get $c))))
      (local.set $c (i32.add (local.get $c) (i32.const 4)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $p))
  (func $greatest (param $c i32) (param $n i32) (result i32) (local $m i32) (local $x i32)
    (loop $l
      (local.set $x (i32.load (local.get $c)))
      (local.set $m (select (local.get $x) (local.get $m)
                            (i32.gt_s (local.get $x) (local.get $m))))
      (local.set $c (i32.add (local.get $c) (i32.const 4)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $m))
  (func $where (param $c i32) (param $n i32) (result i32) (local $p i32) (local $both i32)
    (loop $l
      (local.set $p (select (i32.const 40000) (i32.const 40004)
        (i32.load (i32.add (local.get $c) (i32.shr_u (local.get $both) (i32.const 31))))))
      (i32.store (local.get $p) (i32.add (i32.load (local.get $p)) (i32.const 1)))
      (local.set $both (i32.or (i32.load (i32.const 40000)) (i32.load (i32.const 40004))))
      (local.set $c (i32.add (local.get $c) (i32.const 4)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $both))
  (func $parts (param $c i32) (param $n i32) (result i32)
    (local $low i32) (local $high i32) (local $x i32)
    (local.set $low (i32.const 40000))
    (local.set $high (i32.const 60000))
    (loop $l
      (local.set $x (i32.ne (i32.load (local.get $c)) (i32.const 0)))
      (i32.store (select (local.get $low) (local.get $high) (local.get $x)) (local.get $n))
      (local.set $low (i32.add (local.get $low) (i32.shl (local.get $x) (i32.const 2))))
      (local.set $high
        (i32.sub (local.get $high) (i32.shl (i32.xor (local.get $x) (i32.const 1)) (i32.const 2))))
      (local.set $c (i32.add (local.get $c) (i32.const 4)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $low))
""" + START % 15


def seconds(tool, program):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([tool, "run", program], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def rounds_table(description, name, source, rows):
    """Prints ns a round for each of `rows`: what they are called, and what `source` is filled with."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tool", required=True, help="the uptier program")
    parser.add_argument("--against", help="that of another build")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    tools = [t for t in (options.against, options.tool) if t]
    print(f"load {os.getloadavg()[0]:.1f}; ns a round of {' and of '.join(tools)}")
    with tempfile.TemporaryDirectory() as folder:
        text, program = os.path.join(folder, name + ".wat"), os.path.join(folder, name + ".wasm")

        def times(fields, rounds):
            with open(text, "w") as out:
                out.write(source.format(calls=CALLS, rounds=rounds, **fields))
            subprocess.run(["wat2wasm", text, "-o", program], check=True)
            runs = [[seconds(t, program) for t in tools] for _ in range(options.runs)]
            return [min(r[t] for r in runs) for t in range(len(tools))]

        for label, fields in rows:
            whole, nothing = times(fields, 1024), times(fields, 1)
            ns = [(a - b) / CALLS / 1023 * 1e9 for a, b in zip(whole, nothing)]
            print(label + "".join(f"{n:9.2f}" for n in ns), flush=True)


if __name__ == "__main__":
    rounds_table(__doc__, "selects", SOURCE,
                 [(f"{what:9}{share:9.4f}", {"what": what, "share": int(share * 65536)})
                  for what in ("chase", "greatest", "where", "parts") for share in SHARES])
