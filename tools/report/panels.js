// Overlap with another profile, and what observing cost.
const overlapView = (open) => {
  const view = make('div', {class: 'stack'});
  const o = data.overlap;
  if (!o) {
    view.append(
      note('Nothing is compared. uptier report prog.upf --against other.upf shows how alike the two are.'),
    );
    return {view, shown() {}, choose() {}};
  }
  const difference = (m) => (1 - m[2]) * Math.max(m[3], m[4]) + Math.abs(m[3] - m[4]);
  const sorted = [...o.methods].sort((a, b) => difference(b) - difference(a));
  const meter = (name, value) =>
    make(
      'div',
      {class: 'meter'},
      make('span', {}, name),
      bar(value),
      make('span', {class: 'number'}, percent(value)),
    );
  view.append(
    make(
      'p',
      {class: 'big'},
      make('b', {}, percent(o.value)),
      ' of ' + o.kind + ' counts are shared with ',
      make('b', {}, o.name),
    ),
    make(
      'div',
      {class: 'meters'},
      o.kinds.map(([k, v]) => meter(k.replace('_', ' '), v)),
      meter('only here', o.only[0]),
      meter('only there', o.only[1]),
      meter('not comparable', Math.max(...o.mismatched)),
    ),
    note(
      'Overlap is the sum of the lesser shares, 100\u202f% for equal profiles. Below, the methods that differ most.',
    ),
  );
  const most = sorted.reduce((m, x) => Math.max(m, x[3], x[4]), 0) || 1;
  const table = plainTable(
    'Methods that differ most',
    ['Method', '#Overlap', '#Here', '#There', '#Moved', ''],
    sorted
      .slice(0, 200)
      .map((m) => [
        m[0] >= 0 ? make('button', {type: 'button', class: 'link', onclick: () => open(m[0])}, m[1]) : m[1],
        percent(m[2], 1),
        [bar(m[3] / most), percent(m[3])],
        [bar(m[4] / most), percent(m[4])],
        (m[4] >= m[3] ? '+' : '\u2212') + percent(Math.abs(m[4] - m[3])),
        m[5] ? 'other code, or other things observed' : '',
      ]),
  );
  view.append(make('div', {class: 'wide'}, table));
  if (sorted.length > 200)
    view.append(note(whole(sorted.length - 200) + ' more methods, which differ less.'));
  return {view, shown() {}, choose() {}};
};

const LOSSES = {
  samples_without_copy: 'samples that were due before there was an instrumented copy',
  slabs_refused: 'methods left out: the budget of counters was spent',
  flushes_delayed: 'flushes delayed: the ring was full',
  requests_dropped: 'compile requests dropped: the queue was full',
  compiles_failed: 'compilations that failed',
  code_refused: 'compilations refused: the budget of code was spent',
  evictions: 'methods that gave up their code for others',
  methods_forgotten: 'removed methods of which nothing is known any more',
  decisions_forgotten: 'decisions that are not kept any more',
  versions_forgotten: 'freed versions that are not listed any more',
  calls_unattached: 'calls on threads that are not attached, which nothing else counted',
  keys_shared: 'methods whose key another method with another name or body has',
  unstable_bodies: 'methods that were described differently each time, and given up',
  traps_lost: 'traps that the host raised where nobody took them',
  trace_events_lost: 'trace events lost: its file could not be written',
  log_records: 'log records overwritten unread',
  loops_full: 'loop executions not timed: too many under way',
  loops_stale: 'loop executions not timed: their end was not seen',
  loops_spoiled: 'loop executions not timed: recursion',
  polls_refused: 'versions whose loops cannot be left for newer code',
};

const overheadView = (open) => {
  const view = make('div', {class: 'stack'});
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  const calls = sum(methods.calls),
    sampled = sum(methods.sampled),
    iterations = sum(methods.iterations);
  const columns = make('div', {class: 'columns'});
  view.append(columns);
  const f = timeline ? timeline.figures : {};
  const has = (name) => f[name] !== undefined;
  const rows = (label, list) =>
    make('section', {}, make('h2', {}, label), plainTable(label, ['', '#'], list.filter(Boolean)));
  columns.append(
    rows('Observing', [
      ['calls', short(calls)],
      ['of these sampled', short(sampled) + ' (' + percent(calls ? sampled / calls : 0) + ')'],
      ['loop iterations', short(iterations)],
      ['bursts', short(sum(methods.bursts))],
      has('overhead_share')
        ? ['cost, of processor time, as measured', percent(f.overhead_share)]
        : ['cost', timeline ? 'not measured: no budget' : 'not in the file'],
      has('overhead_budget') && f.overhead_budget ? ['budget', percent(f.overhead_budget)] : null,
    ]),
  );
  if (!timeline) {
    view.append(
      note(
        'What compiling took and what was lost is in the timeline of a run, which this file does not hold.',
      ),
    );
    return {view, shown() {}, choose() {}};
  }
  const byTier = (t, copy) => timeline.versions.filter((v) => v[1] === t && v[2] === copy);
  const compiled = (name, list) =>
    list.length ? [name, short(list.length) + ' in ' + time(sum(list.map((v) => v[7])))] : null;
  columns.append(
    rows('Compiling', [
      ['length of the run', time(timeline.length)],
      [
        'compiling, all together',
        time(f.compile_ns_total || 0) +
          ' (' +
          percent((f.compile_ns_total || 0) / timeline.length, 1) +
          ' of it)',
      ],
      compiled('baseline', byTier(1, 0)),
      compiled('baseline, instrumented', byTier(1, 1)),
      compiled('optimized', byTier(2, 0)),
      compiled('optimized, instrumented', byTier(2, 1)),
      ['an IR instruction, optimizing', time(f.compile_rate_ns || 0)],
      ['code in service', bytes(f.code_bytes_in_service || 0)],
      ['code given back', bytes(f.code_bytes_freed || 0)],
    ]),
  );
  if (f.saved_runs) {
    columns.append(
      rows('Saved profile', [
        ['runs before this one', whole(f.saved_runs)],
        ['methods known from them', whole(f.saved_methods)],
        ['dropped: other code', whole(f.saved_stale)],
        ['optimized at their first call', whole(f.saved_compiled)],
      ]),
    );
  }
  const lost = Object.entries(LOSSES).filter(([name]) => f[name]);
  columns.append(
    make(
      'section',
      {},
      make('h2', {}, 'Losses'),
      lost.length
        ? plainTable(
            'Losses',
            ['', '#'],
            lost.map(([name, text]) => [text, whole(f[name])]),
          )
        : note('Nothing was lost or refused.'),
    ),
  );
  const costly = methods.name
    .map((_, r) => r)
    .filter((r) => compileNs[r])
    .sort((a, b) => compileNs[b] - compileNs[a])
    .slice(0, 20);
  const most = costly.length ? compileNs[costly[0]] : 1;
  view.append(
    make('h2', {}, 'Methods that took longest to compile'),
    make(
      'div',
      {class: 'wide'},
      plainTable(
        'Methods that took longest to compile',
        ['Method', '#Compiling', '#Code in service', '#Share of executions'],
        costly.map((r) => [
          make('button', {type: 'button', class: 'link', onclick: () => open(r)}, methods.name[r]),
          [bar(compileNs[r] / most), time(compileNs[r])],
          bytes(codeBytes[r]),
          percent(share[r]),
        ]),
      ),
    ),
  );
  return {view, shown() {}, choose() {}};
};
