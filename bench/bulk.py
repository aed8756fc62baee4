"""What do fill and copy loops take, by their length, and from which length on is one operation less?

Bad news: a loop below 32 rounds that takes much longer than the same loop of a build without the
pass (`--against`), or one above that gains nothing.

A program of WebAssembly calls a function with a loop over bytes a million times or so; the numbers
are nanoseconds of CPU time a call, the least of five runs, builds interleaved.
"""
import argparse, os, resource, subprocess, tempfile

LENGTHS = (8, 16, 31, 34, 64, 256, 1000, 10000)

SOURCE = """(module (memory (export "memory") 2)
  (func $fill (param $p i32) (param $q i32) (param $n i32)
    (loop $l
      (i32.store8 (local.get $p) (local.get $q))
      (local.set $p (i32.add (local.get $p) (i32.const 1)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
  (func $copy (param $p i32) (param $q i32) (param $n i32)
    (loop $l
      (i32.store8 (local.get $p) (i32.load8_u (local.get $q)))
      (local.set $p (i32.add (local.get $p) (i32.const 1)))
      (local.set $q (i32.add (local.get $q) (i32.const 1)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
  (func (export "_start") (local $k i32) (local $n i32)
    (local.set $k (i32.const {calls}))
    (local.set $n (i32.load (i32.const 0)))
    (loop $l
      (call ${what} (i32.const 1001) (i32.const 50003) (local.get $n))
      (br_if $l (local.tee $k (i32.sub (local.get $k) (i32.const 1))))))
  (data (i32.const 0) "{length}"))
"""


def seconds(tool, program):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([tool, "run", "--tier=optimized", program], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True, help="the uptier program")
    parser.add_argument("--against", help="that of another build")
    options = parser.parse_args()
    tools = [t for t in (options.against, options.tool) if t]
    print(f"load {os.getloadavg()[0]:.1f}; ns a call of {' and of '.join(tools)}")
    with tempfile.TemporaryDirectory() as folder:
        text, program = os.path.join(folder, "bulk.wat"), os.path.join(folder, "bulk.wasm")
        for what in ("fill", "copy"):
            for length in LENGTHS:
                calls = 800_000_000 // (length + 250)
                word = "".join(f"\\{b:02x}" for b in length.to_bytes(4, "little"))
                with open(text, "w") as out:
                    out.write(SOURCE.format(calls=calls, what=what, length=word))
                subprocess.run(["wat2wasm", text, "-o", program], check=True)
                rounds = [[seconds(t, program) for t in tools] for _ in range(5)]
                least = [min(r[t] for r in rounds) / calls * 1e9 for t in range(len(tools))]
                print(f"{what} {length:6}" + "".join(f"{ns:10.1f}" for ns in least), flush=True)


if __name__ == "__main__":
    main()
