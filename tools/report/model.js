// The data as the views ask for it. tools/report_data.h has the orders of the arrays.
const read = (id) => JSON.parse(document.getElementById(id).textContent);
const data = read('data');
const PART_ROWS = 256;

const KIND = {block: 1, edge: 2, target: 3, value: 4, loop: 5, log: 6, counter: 7, range: 8, gauge: 9};
const TIERS = ['host', 'baseline', 'optimized'];

const methods = data.methods;
// Methods of several modules that have the same name say which module they are of.
{
  const times = new Map();
  for (const n of methods.name) times.set(n, (times.get(n) || 0) + 1);
  methods.name = methods.name.map((n, r) =>
    times.get(n) > 1 ? n + ' \u00b7 ' + methods.module[r].slice(2, 8) + '#' + methods.index[r] : n,
  );
}
const ROWS = methods.name.length;
const timeline = data.timeline;

const group = (list, key) => {
  const groups = new Map();
  for (const item of list) {
    const k = key(item);
    if (!groups.has(k)) groups.set(k, []);
    groups.get(k).push(item);
  }
  return groups;
};

const versionsOf = group(timeline ? timeline.versions : [], (v) => v[0]);
const decisionsOf = group(timeline ? timeline.decisions : [], (d) => d[0]);
const loopsOf = group(data.loops, (l) => l[0]);
// The site behind those of a method's loops is that of its body.
const loopName = (row, site) => (site - 1 === methods.loops[row] ? 'body' : 'loop ' + (site - 1));
const verbOf = (d) => timeline.verbs[d[2]];
// What decisions do; the reason beside them says why.
const MEANING = {
  keep: 'the code in service stays',
  recompile: 'optimized without its profile',
  specialize:
    'optimized by its profile; where the reason names a parameter, a version for the value that it nearly always has, behind a guard',
  roll_back: 'calls go to the version before, or to baseline code',
  re_instrument: 'observed again, since what it does has changed',
  ban: 'not tried again',
  osr_out: 'a frame of older code goes on in newer code',
  find: 'a stack sample was in it for the first time',
  match: 'the saved profile belongs to other code; matching parts were taken over',
  drop: 'the saved profile belongs to other code and is not used',
};
const meaningsOf = (list) =>
  [...new Set(list.map(verbOf))].filter((v) => Object.hasOwn(MEANING, v)).map((v) => v + ': ' + MEANING[v]);

// What was seen at the sites of a method; parts are parsed when they are first needed.
const parts = new Map();
const detailOf = (row) => {
  const part = Math.floor(row / PART_ROWS);
  if (!parts.has(part)) parts.set(part, read('part-' + part));
  return parts.get(part)[row % PART_ROWS];
};

// Columns that follow from the others.
const totalExecutions = methods.executions.reduce((a, b) => a + b, 0);
const share = methods.executions.map((n) => (totalExecutions ? n / totalExecutions : 0));
const samples = methods.sampled.map((n, i) => n + methods.bursts[i]);
const sumOf = (row, at) => (versionsOf.get(row) || []).reduce((sum, v) => sum + v[at], 0);
const codeBytes = methods.name.map((_, row) =>
  (versionsOf.get(row) || []).reduce((sum, v) => sum + (v[5] ? 0 : v[6]), 0),
);
const compileNs = methods.name.map((_, row) => sumOf(row, 7));
// The best that calls reached at the end, or that was entered at a loop.
const tier = methods.name.map((_, row) => {
  const list = (versionsOf.get(row) || []).filter((v) => !v[5] && v[2] === 0);
  return list.length ? Math.max(...list.map((v) => v[1])) : -1;
});
const enteredAtLoop = (row) =>
  (versionsOf.get(row) || []).some((v) => v[1] === 2 && v[3] && !v[5]) &&
  !(versionsOf.get(row) || []).some((v) => v[1] === 2 && !v[3] && !v[5]);
const tierText = (row) => (tier[row] < 0 ? '' : TIERS[tier[row]] + (enteredAtLoop(row) ? ' loop' : ''));
const changes = methods.name.map(
  (_, row) => (decisionsOf.get(row) || []).filter((d) => verbOf(d) !== 'keep').length,
);

// Numbers for people: few digits, one width.
const whole = (n) => Math.round(n).toLocaleString('en-US').replace(/,/g, '\u202f');
const short = (n) => {
  if (n === null || n === undefined) return '\u2013';
  for (const [unit, mark] of [
    [1e15, 'P'],
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
  ]) {
    if (n >= unit) return (n / unit).toPrecision(3) + '\u202f' + mark;
  }
  return n >= 1e5 ? (n / 1e3).toPrecision(3) + '\u202fk' : whole(n);
};
const percent = (x, digits = 2) => (100 * x).toFixed(digits) + '\u202f%';
const time = (ns) => {
  for (const [unit, mark] of [
    [1e9, 's'],
    [1e6, 'ms'],
    [1e3, '\u00b5s'],
  ]) {
    if (ns >= unit) return (ns / unit).toPrecision(3) + '\u202f' + mark;
  }
  return whole(ns) + '\u202fns';
};
const bytes = (n) =>
  n >= 1 << 20
    ? (n / (1 << 20)).toFixed(1) + '\u202fMiB'
    : n >= 10240
      ? (n / 1024).toFixed(0) + '\u202fKiB'
      : whole(n) + '\u202fB';
// How hot, 0..1: by orders of magnitude, three of them below the most.
const heat = (n, most) => (n > 0 && most > 0 ? Math.max(0.06, 1 + Math.log10(n / most) / 3) : 0);
