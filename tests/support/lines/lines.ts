// A program whose lines the tests know; build.sh makes as.wasm and its map of it.
function square(x: i32): i32 {
  return x * x + 1; // line 3
}

export function divide(a: i32, b: i32): i32 {
  return a / b; // line 7
}

export function never(a: i32): i32 {
  if (a > 3) return 1;
  return divide(a, 2);
}

export function _start(): void {
  let s = 0;
  for (let i = 0; i < 2000; i++) {
    if (i % 3 == 0) {
      s += square(i); // line 19
    } else {
      s -= i;
    }
  }
  if (divide(s, 3) == 7) never(4);
}
