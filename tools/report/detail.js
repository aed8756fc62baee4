// One method: where it stands, its blocks with their counts as heat, its code, its decisions.
const MOST_BLOCKS = 2000;

const sitesBy = (sites, kind) => (sites || []).filter((s) => s[0] === kind);
const blockCounts = (detail) => new Map(sitesBy(detail.sites, KIND.block).map((s) => [s[1], s]));
const interval = (s) => (s.length > 4 ? whole(s[4]) + ' \u2013 ' + whole(s[5]) : '');

// Who was called, as links, with shares.
const targetList = (site, open) => {
  const total = site[2] || 1;
  const items = site[4]
    .slice(0, 8)
    .map(([who, n]) =>
      make(
        'li',
        {},
        typeof who === 'number' && who >= 0
          ? make('button', {type: 'button', class: 'link', onclick: () => open(who)}, methods.name[who])
          : String(who),
        '\u2002' + percent(n / total, 1),
      ),
    );
  const rest = total - site[4].slice(0, 8).reduce((sum, e) => sum + e[1], 0);
  if (rest > 0.0005 * total)
    items.push(make('li', {class: 'dim'}, 'others\u2002' + percent(rest / total, 1)));
  return make('ul', {class: 'inline'}, items);
};
const valueList = (site) => {
  const total = site[2] || 1;
  return make(
    'ul',
    {class: 'inline'},
    site[7]
      .slice(0, 8)
      .map(([v, n]) => make('li', {}, make('code', {}, v), '\u2002' + percent(n / total, 1))),
  );
};

const blocksPanel = (row, detail, open) => {
  const blocks = sitesBy(detail.sites, KIND.block);
  const most = blocks.reduce((m, s) => Math.max(m, s[3] || 0), 0);
  const edges = sitesBy(detail.sites, KIND.edge);
  const out = group(
    edges.filter((s) => detail.edges && detail.edges[s[1] - 1]),
    (s) => detail.edges[s[1] - 1][0],
  );
  const leaving = (site) => {
    const list = out.get(site) || [];
    const total = list.reduce((sum, s) => sum + (s[3] || 0), 0);
    return list.map((s) =>
      make(
        'li',
        {},
        '\u2192\u2009' + detail.edges[s[1] - 1][1] + '\u2002',
        make('span', {class: 'dim'}, total ? percent((s[3] || 0) / total, 1) : 'never'),
      ),
    );
  };
  const rows = blocks
    .slice(0, MOST_BLOCKS)
    .map((s) => [
      String(s[1]),
      make(
        'span',
        {class: 'heat', style: {'--heat': heat(s[3] || 0, most).toFixed(3)}},
        s[3] === null ? 'unknown' : whole(s[3]),
      ),
      interval(s),
      whole(s[2]),
      make('ul', {class: 'inline'}, leaving(s[1])),
    ]);
  const made = [];
  if (rows.length) {
    const head = ['#Block', '#Executions', '#95\u202f% between', '#Counted', 'Goes to'];
    const drop = detail.edges ? 5 : 4;
    const table = plainTable(
      'Blocks',
      head.slice(0, drop),
      rows.map((r) => r.slice(0, drop)),
    );
    table.classList.add('heats');
    made.push(table);
  }
  if (blocks.length > MOST_BLOCKS) made.push(note(whole(blocks.length - MOST_BLOCKS) + ' more blocks'));
  if (!detail.edges && edges.length) {
    made.push(
      make('h3', {}, 'Edges'),
      plainTable(
        'Edges',
        ['#Edge', '#Executions', '#95\u202f% between', '#Counted'],
        edges.slice(0, MOST_BLOCKS).map((s) => [String(s[1]), whole(s[3] || 0), interval(s), whole(s[2])]),
      ),
      note('Which blocks an edge joins is shown with --module.'),
    );
  }
  const sites = sitesPanel(row, detail, open);
  if (!rows.length && !sites.length) made.push(note('Nothing is observed in this method.'));
  return [...sites, ...(sites.length && rows.length ? [make('h3', {}, 'Blocks')] : []), ...made];
};

// Loops, targets, values and what else is not control flow.
const sitesPanel = (row, detail, open) => {
  const made = [];
  const loops = sitesBy(detail.sites, KIND.loop).filter((s) => s[2] || s[3]);
  if (loops.length) {
    made.push(
      make('h3', {}, 'Loops'),
      plainTable(
        'Loops',
        ['#Loop', '#Entries', '#Iterations', '#Trips', '#Timed', '#Cycles', '#95\u202f% between'],
        loops.map((s) => [
          loopName(row, s[1]).replace('loop ', ''),
          short(s[2]),
          short(s[3]),
          s[2] ? (s[3] / s[2]).toFixed(1) : '\u2013',
          short(s[4]),
          short(s[5]),
          s[5] === null ? '' : short(s[6]) + ' \u2013 ' + short(s[7]),
        ]),
      ),
    );
  }
  const targets = sitesBy(detail.sites, KIND.target).filter((s) => s[2]);
  if (targets.length) {
    made.push(
      make('h3', {}, 'Call targets'),
      plainTable(
        'Call targets',
        ['#Site', '#Calls', 'Reached'],
        targets.map((s) => [String(s[1]), short(s[2]), targetList(s, open)]),
      ),
    );
  }
  const values = sitesBy(detail.sites, KIND.value).filter((s) => s[2]);
  if (values.length) {
    made.push(
      make('h3', {}, 'Values'),
      plainTable(
        'Values',
        ['#Site', '#Seen', '#Least', '#Mean', '#Greatest', 'Often'],
        values.map((s) => [
          String(s[1]),
          short(s[2]),
          s[4] ?? '',
          s[6] === null ? '' : s[6].toPrecision(4),
          s[5] ?? '',
          valueList(s),
        ]),
      ),
    );
  }
  const names = {[KIND.counter]: 'counter', [KIND.range]: 'range', [KIND.gauge]: 'gauge', [KIND.log]: 'log'};
  const others = (detail.sites || []).filter((s) => names[s[0]]);
  if (others.length) {
    made.push(
      make('h3', {}, "The host's own"),
      plainTable(
        'Sites of the host',
        ['Kind', '#Site', '#Value', ''],
        others.map((s) => [
          names[s[0]],
          String(s[1]),
          whole(s[0] === KIND.counter ? s[3] || 0 : s[2]),
          s[0] === KIND.range && s[3] !== null
            ? s[3] + ' \u2026 ' + s[4]
            : s[0] === KIND.log
              ? s[3] + ' lost'
              : '',
        ]),
      ),
    );
  }
  return made;
};

// Code in pieces, each with the count of its block beside it. Sites of calls name what they reached.
const codePanel = (pieces, detail, open) => {
  const counts = blockCounts(detail);
  const most = Math.max(0, ...[...counts.values()].map((s) => s[3] || 0));
  const targets = new Map(sitesBy(detail.sites, KIND.target).map((s) => [s[1], s]));
  const values = new Map(sitesBy(detail.sites, KIND.value).map((s) => [s[1], s]));
  return [
    make(
      'div',
      {class: 'code', role: 'group', 'aria-label': 'Code'},
      pieces.map(([site, inlined, text]) => {
        const seen = inlined ? undefined : counts.get(site);
        const n = seen ? seen[3] || 0 : null;
        const mark = inlined ? 'in ' + inlined : n === null ? '' : short(n);
        const lines = text.split('\n');
        const out = [];
        let plain = [];
        for (const line of lines) {
          plain.push(line);
          const at = /\b(?:site|probe \w+) (\d+)/.exec(line);
          const extra = at && (targets.get(Number(at[1])) || values.get(Number(at[1])));
          if (!extra || !extra[2] || /^b\d/.test(line)) continue;
          out.push(
            make('pre', {}, plain.join('\n')),
            make(
              'div',
              {class: 'seen'},
              extra[0] === KIND.target ? targetList(extra, open) : valueList(extra),
            ),
          );
          plain = [];
        }
        if (plain.some((l) => l)) out.push(make('pre', {}, plain.join('\n').replace(/\n+$/, '')));
        return make(
          'div',
          {class: 'piece', style: {'--heat': heat(n || 0, most).toFixed(3)}},
          make('div', {class: 'gutter'}, make('span', {title: inlined ? 'in ' + inlined : null}, mark)),
          make('div', {class: 'lines'}, out),
        );
      }),
    ),
  ];
};

const decisionsPanel = (row) => {
  const list = decisionsOf.get(row) || [];
  if (!list.length) return [note('No decisions are recorded.')];
  const made = plainTable(
    'Decisions',
    ['#At', 'Decision', '#Calls', '#Samples', '#Iterations', 'Reason'],
    list.slice(0, 500).map((d) => [time(d[1]), verbOf(d), short(d[3]), short(d[4]), short(d[5]), d[6]]),
  );
  for (const [i, tr] of [...made.tBodies[0].rows].entries())
    if (verbOf(list[i]) === 'keep') tr.classList.add('dim');
  const meanings = meaningsOf(list);
  return [
    made,
    list.length > 500 ? note(whole(list.length - 500) + ' more') : null,
    meanings.length ? note(meanings.join('. ') + '.') : null,
  ];
};

const versionsPanel = (row) => {
  const list = versionsOf.get(row) || [];
  if (!list.length) return [];
  return [
    plainTable(
      'Versions',
      ['Version', '#From', '#To', '#Bytes', '#Compiled in', '#Inlined'],
      list.map((v) => [
        TIERS[v[1]] + (v[2] ? ', instrumented' : '') + (v[3] ? ', entered at loop ' + (v[3] - 1) : ''),
        time(v[4]),
        v[5] ? time(v[5]) : 'end',
        whole(v[6]),
        time(v[7]),
        whole(v[8]),
      ]),
    ),
  ];
};

let lastPanel = 'sites';
const methodDetail = (row, open) => {
  const detail = detailOf(row);
  const fact = (name, text) => make('div', {}, make('dt', {}, name), make('dd', {}, text));
  const panels = [['sites', 'Counts', () => blocksPanel(row, detail, open)]];
  if (detail.ir)
    panels.push([
      'ir',
      'IR',
      () =>
        codePanel(
          detail.ir.map(([s, t]) => [s, '', t]),
          detail,
          open,
        ),
    ]);
  if (detail.code)
    panels.push(['code', 'Machine code', () => [note(detail.made), ...codePanel(detail.code, detail, open)]]);
  if (timeline)
    panels.push(['decisions', 'Decisions', () => [...versionsPanel(row), ...decisionsPanel(row)]]);
  const box = make('div', {
    id: 'panels',
    role: 'radiogroup',
    'aria-label': 'What is shown of the method',
    class: 'chooser',
  });
  const body = make('div', {class: 'panel', tabindex: '0', role: 'region', 'aria-label': 'Details'});
  const select = chooser(box, 'radio', panels, (id) => {
    lastPanel = id;
    body.replaceChildren(
      ...panels
        .find((p) => p[0] === id)[2]()
        .filter(Boolean),
    );
    body.scrollTop = 0;
    // Code begins where it is hot: its first screen is often what runs once.
    const hottest = [...body.querySelectorAll('.piece')].reduce(
      (best, e) => (Number(e.style.getPropertyValue('--heat')) > Number(best?.style.getPropertyValue('--heat') || 0) ? e : best),
      null,
    );
    if (id === 'code' && hottest) body.scrollTop = Math.max(0, hottest.offsetTop - body.offsetTop - 48);
  });
  select(panels.some((p) => p[0] === lastPanel) ? lastPanel : 'sites');
  const rate = methods.interval[row] ? '1 in ' + methods.interval[row] : 'mixed';
  return [
    make('h2', {id: 'method-name'}, methods.name[row]),
    make(
      'dl',
      {class: 'facts'},
      timeline ? fact('tier', tierText(row) || 'not compiled') : null,
      data.sampled_ns ? fact('time', percent(methods.ns[row] / data.sampled_ns)) : null,
      data.sampled_ns ? fact('with callees', percent(methods.total_ns[row] / data.sampled_ns)) : null,
      fact(data.sampled_ns ? 'blocks' : 'share', percent(share[row])),
      fact('calls', short(methods.calls[row])),
      fact('samples', short(samples[row])),
      fact('interval', rate),
      methods.behind[row]
        ? fact('estimates', make('span', {title: 'it ran in optimized code that counts nothing'}, 'behind'))
        : null,
      methods.cycles[row] === null ? null : fact('loop cycles', short(methods.cycles[row])),
      fact(
        'function',
        make(
          'span',
          {title: 'module ' + methods.module[row] + ', shape ' + methods.cfg[row]},
          '#' + methods.index[row] + ' of ' + methods.module[row].slice(2, 8),
        ),
      ),
    ),
    box,
    body,
  ];
};
