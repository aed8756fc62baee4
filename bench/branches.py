"""What does a short branch take in a loop, by how its condition changes?

Bad news: a row in which the tool is slower than another build (`--against`) or than the better of the two
forms, the branch and the selection.

  count   if (c) n += x                   a way and the end of a branch
  step    if (c) m = (m << 1 ^ x) + 1     a way that the next round waits for
  wait    m = c[m >> 31] ? m + 1 : m / 2  a condition that is read where the last round says

The condition is 1

  P       in that share of rounds, by chance
  every N in one of N rounds
  runs N  for N rounds, and then 0 for N rounds

A program of WebAssembly calls the loop again and again, 1,024 rounds each, and is optimized with what was
seen of it; the numbers are nanoseconds of CPU time a round, the least of some runs, builds interleaved,
less what the program takes without the loop.
"""
from selects import RANDOM, START, rounds_table

PATTERNS = [(f"{p:.4f}", "(i32.lt_u (i32.and (call $random) (i32.const 65535)) (i32.const %d))" % (p * 65536))
            for p in (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)]
PATTERNS += [(f"every {n}", "(i32.eqz (i32.rem_u (local.get $k) (i32.const %d)))" % n) for n in (2, 3, 5)]
PATTERNS += [(f"runs {n}", "(i32.and (i32.div_u (local.get $k) (i32.const %d)) (i32.const 1))" % n)
             for n in (2, 16, 256)]

SOURCE = """(module (memory (export "memory") 33)
""" + RANDOM + """  (func $fill (local $k i32)
    (loop $l
      (i32.store (i32.add (i32.const 65536) (i32.shl (local.get $k) (i32.const 2))) {pattern})
      (br_if $l (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 524288)))))
  (func $count (param $c i32) (param $n i32) (result i32) (local $m i32)
    (loop $l
      (if (i32.load (local.get $c))
        (then (local.set $m (i32.add (local.get $m) (local.get $n)))))
      (local.set $c (i32.add (local.get $c) (i32.const 4)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $m))
  (func $step (param $c i32) (param $n i32) (result i32) (local $m i32)
    (loop $l
      (if (i32.load (local.get $c))
        (then (local.set $m
          (i32.add (i32.xor (i32.shl (local.get $m) (i32.const 1)) (local.get $n)) (i32.const 1)))))
      (local.set $c (i32.add (local.get $c) (i32.const 4)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $m))
  (func $wait (param $c i32) (param $n i32) (result i32) (local $m i32)
    (loop $l
      (if (i32.load (i32.add (local.get $c) (i32.shr_u (local.get $m) (i32.const 31))))
        (then (local.set $m (i32.add (local.get $m) (i32.const 1))))
        (else (local.set $m (i32.shr_u (local.get $m) (i32.const 1)))))
      (local.set $c (i32.add (local.get $c) (i32.const 4)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $m))
""" + START % 511


if __name__ == "__main__":
    rounds_table(__doc__, "branches", SOURCE,
                 [(f"{what:6}{name:>10}", {"what": what, "pattern": pattern})
                  for what in ("count", "step", "wait") for name, pattern in PATTERNS])
