// The tier timeline: a row a method, what code was in service when, and what was decided.
const timelineView = (open) => {
  const view = make('div', {class: 'stack'});
  if (!timeline || !timeline.length) {
    view.append(
      note(
        'The file holds no timeline. It is written with the profile of a run: uptier run --profile prog.upf prog.wasm',
      ),
    );
    return {view, shown() {}, choose() {}};
  }
  const end = timeline.length;
  let from = 0,
    to = end,
    rows = [];
  const first = (row) => {
    const optimized = (versionsOf.get(row) || []).filter((v) => v[1] === 2).map((v) => v[4]);
    return optimized.length ? Math.min(...optimized) : Infinity;
  };
  const all = methods.name.map((_, r) => r).filter((r) => versionsOf.has(r) || decisionsOf.has(r));
  const orders = {
    heat: (a, b) => share[b] - share[a] || a - b,
    start: (a, b) => (first(a) === first(b) ? share[b] - share[a] || a - b : first(a) - first(b)),
  };
  const changed = make('input', {type: 'checkbox', id: 'changed', checked: true});
  const orderBox = make('div', {id: 'order', class: 'chooser', role: 'radiogroup', 'aria-label': 'Order'});
  let order = 'heat';
  const axis = make('div', {class: 'axis', 'aria-hidden': 'true'});
  const box = make('div', {
    id: 'tracks',
    class: 'tracks',
    role: 'listbox',
    'aria-label': 'Methods in time; up and down move, plus and minus zoom, left and right pan, Enter opens',
  });
  const under = make('section', {
    class: 'under',
    tabindex: '0',
    'aria-label': 'Decisions of the active method',
  });
  const place = (t) => (100 * (t - from)) / (to - from);

  const strip = (v) => {
    const a = Math.max(v[4], from),
      b = Math.min(v[5] || end, to);
    if (b < from || a > to) return null;
    const kind = (v[2] ? 'copy ' : '') + (v[3] ? 'osr ' : '') + TIERS[v[1]];
    return make('span', {
      class: 'strip ' + kind,
      style: {left: place(a) + '%', width: Math.max(0, place(b) - place(a)) + '%'},
    });
  };
  const mark = (d) =>
    d[1] < from || d[1] > to
      ? null
      : make('span', {
          class:
            'mark v-' +
            (verbOf(d) === 'keep' ? 'keep' : /specialize|recompile/.test(verbOf(d)) ? 'up' : 'other'),
          style: {left: place(d[1]) + '%'},
        });
  const words = (row) => {
    const list = (versionsOf.get(row) || []).map(
      (v) => TIERS[v[1]] + (v[2] ? ' instrumented' : '') + ' at ' + time(v[4]),
    );
    return methods.name[row] + ': ' + (list.join(', ') || 'not compiled');
  };
  const list = virtualList({
    box,
    height: 24,
    itemRole: 'option',
    fill: (e, i) => {
      const row = rows[i];
      e.setAttribute('aria-label', words(row));
      // Of marks that would lie on one another one is enough.
      const seen = new Set();
      const marks = (decisionsOf.get(row) || []).filter((d) => {
        const key = verbOf(d) + Math.round(place(d[1]) * 5);
        return !seen.has(key) && seen.add(key);
      });
      e.append(
        make('span', {class: 'label'}, methods.name[row]),
        make('span', {class: 'track'}, (versionsOf.get(row) || []).map(strip), marks.map(mark)),
      );
    },
    active: (i) => tell(rows[i]),
    enter: (i) => tell(rows[i]),
  });
  const tell = (row) => {
    if (row === undefined) return under.replaceChildren();
    under.replaceChildren(
      make(
        'div',
        {class: 'bar-line'},
        make('h2', {}, methods.name[row]),
        make('button', {type: 'button', onclick: () => open(row)}, 'Show its counts'),
      ),
      ...versionsPanel(row),
      ...decisionsPanel(row).filter(Boolean),
    );
  };
  const drawAxis = () => {
    const width = to - from;
    const rough = width / 8,
      power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
    const ticks = [];
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      ticks.push(make('span', {class: 'tick', style: {left: place(t) + '%'}}, t ? time(t) : '0'));
    }
    axis.replaceChildren(make('span', {class: 'label'}, 'method'), make('span', {class: 'track'}, ticks));
  };
  const apply = () => {
    const chosen = rows[list.index()];
    rows = all.filter((r) => !changed.checked || changes[r]).sort(orders[order]);
    count.textContent = whole(rows.length) + ' of ' + whole(all.length) + ' methods';
    list.resize(rows.length, Math.max(0, rows.indexOf(chosen)));
    tell(rows[list.index()]);
  };
  const zoom = (factor, shift = 0) => {
    const middle = (from + to) / 2 + shift * (to - from);
    const half = Math.min(end, Math.max(1000, (to - from) * factor)) / 2;
    from = Math.max(0, Math.min(middle - half, end - 2 * half));
    to = from + 2 * half;
    drawAxis();
    list.redraw();
  };
  box.addEventListener('keydown', (event) => {
    const act = {'+': [0.5], '=': [0.5], '-': [2], ArrowLeft: [1, -0.2], ArrowRight: [1, 0.2], 0: [Infinity]}[
      event.key
    ];
    if (!act || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    zoom(...act);
  });
  const count = make('span', {role: 'status', class: 'dim'});
  changed.addEventListener('change', apply);
  const selectOrder = chooser(
    orderBox,
    'radio',
    [
      ['heat', 'Hottest first'],
      ['start', 'First optimized first'],
    ],
    (id) => {
      order = id;
      apply();
    },
  );
  const button = (text, label, ...act) =>
    make('button', {type: 'button', 'aria-label': label, onclick: () => zoom(...act)}, text);
  const legend = make(
    'p',
    {class: 'legend'},
    [
      ['strip baseline', 'baseline'],
      ['strip optimized', 'optimized'],
      ['strip osr optimized', 'entered at a loop'],
      ['strip copy baseline', 'instrumented copy'],
      ['mark v-up', 'optimize'],
      ['mark v-other', 'other change'],
      ['mark v-keep', 'kept'],
    ].map(([c, text]) => make('span', {}, make('span', {class: 'sample'}, make('span', {class: c})), text)),
  );
  view.append(
    make(
      'div',
      {class: 'bar-line'},
      orderBox,
      make('label', {}, changed, ' only methods that changed'),
      count,
      make('span', {class: 'gap'}),
      button('+', 'Zoom in', 0.5),
      button('\u2212', 'Zoom out', 2),
      button('All', 'Whole run', Infinity),
    ),
    legend,
    axis,
    box,
    under,
  );
  drawAxis();
  selectOrder('heat');
  if (!rows.length) {
    changed.checked = false;
    apply();
  }
  if (data.info.runs > 1)
    legend.append(
      make(
        'span',
        {},
        'Of the run that wrote the file last; counts elsewhere are of all ' +
          whole(data.info.runs) +
          ' runs.',
      ),
    );
  if (timeline.left_out)
    view.append(note(whole(timeline.left_out) + ' decisions found no room in the file.'));
  return {view, shown: () => list.redraw(), choose() {}};
};
