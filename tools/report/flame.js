// The flame graph (an icicle: callers above): inclusive cycles of timed loops, or executions of
// blocks where no loop was timed.
//
//   method -> its outermost loops -> loops inside, and methods called from there
//
// A callee's cycles are dealt to its callers by how often each called it, as gprof does. A method is
// entered once on a path, so recursion ends; children never add up to more than their parent.
const PROGRAM = -1;
const REST = -2; // frames too narrow to show

const flameModel = (unit) => {
  const timed = unit === 'cycles';
  const total = new Array(ROWS).fill(0);
  // Cycles of a loop are with those of what it calls; without knowing which calls it holds, methods
  // stand side by side.
  const known = timed && !data.has_module ? [] : data.calls;
  const callsFrom = group(known, (c) => c[0]);
  const callsTo = new Array(ROWS).fill(0);
  for (const c of known) if (c[0] !== c[2]) callsTo[c[2]] += c[3];
  const loops = (row, parent) => (timed ? (loopsOf.get(row) || []).filter((l) => l[2] === parent) : []);
  // Calls in one timed loop (0: in none), not those in a timed loop inside of it.
  const calls = (row, loop) =>
    (callsFrom.get(row) || []).filter((c) => c[0] !== c[2] && (!timed || c[1] === loop));
  const dealt = (c) => (callsTo[c[2]] ? (total[c[2]] * c[3]) / callsTo[c[2]] : 0);
  const own = (row) => (timed ? loops(row, 0).reduce((s, l) => s + l[4], 0) : methods.executions[row]);
  // Totals, callees first. An explicit stack: chains of calls may be long.
  const state = new Uint8Array(ROWS);
  const visit = (start) => {
    const stack = [[start, 0]];
    while (stack.length) {
      const top = stack[stack.length - 1];
      const row = top[0];
      if (top[1]++ === 0) {
        if (state[row]) {
          stack.pop();
          continue;
        }
        state[row] = 1;
        for (const c of callsFrom.get(row) || []) if (!state[c[2]]) stack.push([c[2], 0]);
      } else {
        stack.pop();
        if (state[row] === 2) continue;
        state[row] = 2;
        total[row] = own(row) + calls(row, 0).reduce((s, c) => s + dealt(c), 0);
      }
    }
  };
  for (let r = 0; r < ROWS; ++r) visit(r);
  // Roots: what nobody was seen to call, and then what is reached from no root.
  const reached = new Uint8Array(ROWS);
  const reach = (start) => {
    const stack = [start];
    while (stack.length) {
      const row = stack.pop();
      if (reached[row]) continue;
      reached[row] = 1;
      for (const c of callsFrom.get(row) || []) stack.push(c[2]);
    }
  };
  const roots = [];
  const byTotal = methods.name
    .map((_, r) => r)
    .filter((r) => total[r] > 0)
    .sort((a, b) => total[b] - total[a]);
  for (const r of byTotal)
    if (!callsTo[r]) {
      roots.push(r);
      reach(r);
    }
  for (const r of byTotal)
    if (!reached[r]) {
      roots.push(r);
      reach(r);
    }
  const fit = (value, nodes) => {
    const sum = nodes.reduce((s, n) => s + n.value, 0);
    if (sum > value) for (const n of nodes) n.value *= value / sum;
    return nodes.sort((a, b) => b.value - a.value);
  };
  const onPath = (node, row) => {
    for (let n = node; n; n = n.up) if (n.row === row && !n.loop) return true;
    return false;
  };
  const children = (node) => {
    if (node.row === REST) return [];
    if (node.row < 0)
      return fit(
        node.value,
        roots.map((r) => ({row: r, loop: 0, value: total[r], up: node})),
      );
    const whole = node.loop ? node.cycles : total[node.row];
    const part = whole ? node.value / whole : 0;
    const inner = loops(node.row, node.loop).map((l) => ({
      row: node.row,
      loop: l[1],
      cycles: l[4],
      value: l[4] * part,
      up: node,
    }));
    const called = calls(node.row, node.loop)
      .filter((c) => !onPath(node, c[2]))
      .map((c) => ({row: c[2], loop: 0, value: dealt(c) * part, up: node}));
    return fit(
      node.value,
      [...inner, ...called].filter((n) => n.value > 0),
    );
  };
  return {root: {row: PROGRAM, loop: 0, value: roots.reduce((s, r) => s + total[r], 0), up: null}, children};
};

const flameView = (open) => {
  const view = make('div', {class: 'stack'});
  const units = data.loops.length
    ? [
        ['cycles', 'Loop cycles'],
        ['executions', 'Block executions'],
      ]
    : [['executions', 'Block executions']];
  const unitBox = make('div', {id: 'unit', class: 'chooser', role: 'radiogroup', 'aria-label': 'Unit'});
  const box = make('div', {
    id: 'flame',
    class: 'flame',
    role: 'tree',
    'aria-label': 'Flame graph; arrow keys move, Enter zooms, Escape zooms out, O opens the method',
  });
  const about = make('p', {id: 'flame-about', class: 'about', role: 'status'});
  const search = make('input', {
    type: 'search',
    id: 'flame-search',
    placeholder: 'name \u2026',
    'aria-label': 'Mark the frames whose name holds this',
    spellcheck: 'false',
    autocomplete: 'off',
  });
  const found = make('span', {id: 'flame-found', class: 'dim', role: 'status'});
  const save = make('button', {type: 'button', id: 'flame-save'}, 'Save SVG');
  const moves = movesOf();
  const compare = make('input', {type: 'checkbox', id: 'flame-compare'});
  let model = null,
    top = null,
    shown = [],
    at = 0,
    unit = '';
  const LEAST = 0.0015,
    HEIGHT = 22,
    DEPTH = 48;
  const title = (n) =>
    n.row === REST
      ? whole(n.count) + ' smaller'
      : n.row < 0
        ? 'program'
        : n.loop
          ? loopName(n.row, n.loop)
          : methods.name[n.row];
  const tell = (n) => {
    const path = [];
    for (let p = n; p; p = p.up) path.unshift(title(p));
    const loop = n.loop ? (loopsOf.get(n.row) || []).find((l) => l[1] === n.loop) : null;
    about.replaceChildren(
      make('b', {}, title(n)),
      ' \u2002' +
        short(n.value) +
        ' ' +
        unit +
        ' \u2002' +
        percent(n.value / (model.root.value || 1)) +
        (compare.checked && moves && n.row >= 0
          ? ' \u2002' + (moves.points(n.row) >= 0 ? '+' : '\u2212') + Math.abs(moves.points(n.row)).toFixed(2) + ' points of all executions'
          : '') +
        (loop
          ? ' \u2002' +
            short(loop[7]) +
            ' entries, ' +
            short(loop[8]) +
            ' iterations' +
            (loop[3] ? ', at 0x' + loop[3].toString(16) : '')
          : ''),
      make('span', {class: 'dim path'}, path.join(' \u203a ')),
    );
  };
  const moved = (s) => (compare.checked && moves && s.n.row >= 0 && !s.above ? Math.abs(moves.of(s.n.row)) : 0);
  const movedClass = (s) => {
    if (!compare.checked || !moves) return '';
    return ' compared' + (s.n.row < 0 ? '' : moves.of(s.n.row) > 0 ? ' more' : ' less');
  };
  // Marks what the search names; of frames inside of others that are marked only the outer ones add up.
  const mark = () => {
    const word = search.value.trim().toLowerCase();
    const hits = (n) => word !== '' && n.row >= 0 && title(n).toLowerCase().includes(word);
    let sum = 0;
    shown.forEach((s, i) => {
      const hit = hits(s.n);
      box.children[i].classList.toggle('hit', hit);
      box.children[i].classList.toggle('faded', word !== '' && !hit);
      let inside = false;
      for (let p = s.n.up; p; p = p.up) inside ||= hits(p);
      if (hit && !inside) sum += s.n.value;
    });
    found.textContent = word === '' ? '' : percent(sum / (model.root.value || 1)) + ' of all is in what matches';
  };
  const draw = () => {
    shown = [];
    const path = [];
    for (let p = top; p; p = p.up) path.unshift(p);
    path.forEach((n, depth) => shown.push({n, depth, x: 0, w: 1, above: depth < path.length - 1}));
    const place = (n, depth, x, w) => {
      if (depth > DEPTH) return;
      let left = x;
      const rest = {row: REST, loop: 0, value: 0, up: n, count: 0};
      for (const c of model.children(n)) {
        const width = n.value ? (w * c.value) / n.value : 0;
        if (width < LEAST) {
          rest.value += c.value;
          rest.count++;
          continue;
        }
        shown.push({n: c, depth, x: left, w: width});
        place(c, depth + 1, left, width);
        left += width;
      }
      const width = n.value ? (w * rest.value) / n.value : 0;
      if (width >= LEAST) shown.push({n: rest, depth, x: left, w: width});
    };
    place(top, path.length, 0, 1);
    const deepest = shown.reduce((m, s) => Math.max(m, s.depth), 0);
    box.style.height = (deepest + 1) * HEIGHT + 'px';
    box.replaceChildren(
      ...shown.map((s, i) => {
        const part = s.n.value / (model.root.value || 1);
        const e = make(
          'div',
          {
            role: 'treeitem',
            id: 'flame-' + i,
            tabindex: '-1',
            'aria-level': s.depth + 1,
            'aria-label': title(s.n) + ', ' + percent(part),
            class:
              'frame' +
              (s.n.loop ? ' loop' : '') +
              (s.above || s.n.row === REST ? ' above' : '') +
              (s.w < 0.02 ? ' narrow' : '') +
              movedClass(s),
            style: {
              '--moved': moved(s).toFixed(3),
              left: 100 * s.x + '%',
              width: 100 * s.w + '%',
              top: s.depth * HEIGHT + 'px',
              '--heat': Math.sqrt(s.above ? 0 : part).toFixed(3),
            },
          },
          s.w > 0.025 ? title(s.n) + (s.w > 0.09 ? '\u2002' + percent(part, 1) : '') : '',
        );
        e.onclick = () => {
          at = i;
          zoom(s.n);
        };
        e.onmouseenter = () => tell(s.n);
        return e;
      }),
    );
    at = path.length - 1;
    focusAt(at, false);
    mark();
  };
  search.addEventListener('input', mark);
  compare.addEventListener('change', draw);
  save.addEventListener('click', () => {
    const frames = shown.map((s, i) => ({
      x: s.x,
      w: s.w,
      depth: s.depth,
      text: title(s.n),
      label: box.children[i].getAttribute('aria-label'),
      color: svgColor(s),
    }));
    saveText('flame.svg', 'image/svg+xml', flameSvg(data.name + ', ' + unit, frames));
  });
  // Opaque colours over the light background, as the page has them.
  const svgColor = (s) => {
    const part = s.n.value / (model.root.value || 1);
    const [rgb, alpha] =
      s.above || s.n.row === REST
        ? [[200, 200, 196], 0.5]
        : compare.checked && moves
          ? [moves.of(s.n.row) > 0 ? [168, 80, 15] : [0, 104, 138], 0.08 + 0.6 * moved(s)]
          : s.n.loop
            ? [[128, 134, 142], 0.16 + 0.34 * Math.sqrt(part)]
            : [[0, 104, 138], 0.14 + 0.36 * Math.sqrt(part)];
    return 'rgb(' + rgb.map((c) => Math.round(251 + (c - 251) * alpha)).join(',') + ')';
  };
  const focusAt = (i, take = true) => {
    at = i;
    shown.forEach((_, k) => {
      box.children[k].tabIndex = k === i ? 0 : -1;
    });
    if (take) box.children[i].focus();
    tell(shown[i].n);
  };
  const zoom = (n, keep = document.activeElement) => {
    if (n.row === REST) return;
    const inside = box.contains(keep);
    top = n;
    draw();
    if (inside) focusAt(at);
  };
  const near = (step) => {
    const s = shown[at];
    if (step === 'up') return shown.findIndex((o) => o.n === s.n.up);
    if (step === 'down') return shown.findIndex((o) => o.n.up === s.n);
    const row = shown
      .map((o, i) => i)
      .filter((i) => shown[i].depth === s.depth)
      .sort((a, b) => shown[a].x - shown[b].x);
    return row[row.indexOf(at) + step] ?? -1;
  };
  box.addEventListener('keydown', (event) => {
    const step = {ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const to = near(step);
      if (to >= 0) focusAt(to);
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      zoom(shown[at].n);
    } else if (event.key === 'Escape' && top.up) {
      zoom(top.up);
    } else if (event.key === 'o' && shown[at].n.row >= 0) {
      open(shown[at].n.row);
    }
  });
  const compared = moves
    ? make('label', {}, compare, ' changes against ' + data.overlap.name)
    : null;
  view.append(make('div', {class: 'bar-line'}, unitBox, search, found, compared, make('span', {class: 'gap'}), save));
  view.append(about, box);
  view.append(
    note(
      data.has_module
        ? 'Cycles of a callee are dealt to its callers by how often each called it.'
        : 'Without --module it is not known which calls a loop holds: methods with timed loops stand side by side, ' +
            'and the cycles of a callee are in its caller\u2019s loops, too.',
    ),
  );
  if (!data.loops.length)
    view.append(
      note(
        'No loop was timed. With -O loops=on a run times loops while it samples; uptier run --loops times all.',
      ),
    );
  const select = chooser(unitBox, 'radio', units, (id) => {
    unit = id;
    model = flameModel(id);
    top = model.root;
    draw();
  });
  select(units[0][0]);
  return {view, shown() {}, choose() {}};
};
