// Puts the page together: header, key figures, views. Views are made when they are first shown.
const VIEWS = {
  methods: ['Methods', methodsView],
  timeline: ['Timeline', timelineView],
  flame: ['Flame graph', flameView],
  overlap: ['Overlap', overlapView],
  overhead: ['Overhead', overheadView],
  lines: ['Source', linesView],
};
const made = new Map();
let current = '';

const show = (id) => {
  if (!VIEWS[id]) id = 'methods';
  if (!made.has(id)) {
    const panel = make('div', {
      id: 'view-' + id,
      role: 'tabpanel',
      'aria-labelledby': 'tabs-' + id,
      class: 'view',
    });
    byId('views').append(panel);
    const view = VIEWS[id][1](openMethod);
    panel.append(view.view);
    made.set(id, {panel, view});
  }
  for (const [other, {panel}] of made) panel.hidden = other !== id;
  current = id;
  made.get(id).view.shown();
};
const openMethod = (row) => {
  selectTab('methods');
  made.get('methods').view.choose(row);
  byId('grid').focus();
};

const header = () => {
  const i = data.info;
  byId('name').textContent = data.name;
  const when = i.time ? new Date(i.time * 1000).toISOString().replace('T', ' ').slice(0, 16) + ' UTC' : '';
  byId('provenance').textContent = [
    i.engine,
    i.host && 'on ' + i.host,
    when,
    i.runs ? whole(i.runs) + (i.runs === 1 ? ' run' : ' runs') : '',
    i.schedule,
  ]
    .filter(Boolean)
    .join(' \u00b7 ');
  const s = data.summary;
  const half = s.percentiles.find((p) => p[0] === 0.5);
  const optimized = tier.filter((t, row) => t === 2).length;
  const figures = [
    ['methods', whole(ROWS)],
    ['blocks executed', whole(s.executed) + ' of ' + whole(s.blocks)],
    ['executions', short(s.executions)],
    ['samples', short(samples.reduce((a, b) => a + b, 0))],
    half && half[1] ? ['half of it in', whole(half[1]) + (half[1] === 1 ? ' block' : ' blocks')] : null,
    timeline ? ['optimized at the end', whole(optimized)] : null,
    timeline ? ['length of the run', time(timeline.length)] : null,
    timeline && timeline.figures.overhead_share !== undefined
      ? ['overhead', percent(timeline.figures.overhead_share)]
      : null,
    data.overlap ? ['overlap', percent(data.overlap.value)] : null,
  ];
  byId('figures').append(
    ...figures
      .filter(Boolean)
      .map(([name, text]) => make('div', {}, make('dt', {}, name), make('dd', {}, text))),
  );
  if (data.warnings.length) {
    byId('warnings').hidden = false;
    byId('warnings').append(
      make(
        'ul',
        {},
        data.warnings.map((w) => make('li', {}, w)),
      ),
    );
  }
};

// Light, dark, or as the machine has it. A file's storage may be refused.
const THEMES = ['auto', 'light', 'dark'];
const themes = () => {
  let theme = 'auto';
  try {
    theme = localStorage.getItem('uptier-theme') || 'auto';
  } catch {
    /* as if nothing were stored */
  }
  const set = () => {
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    byId('theme').textContent = 'Theme: ' + theme;
    try {
      localStorage.setItem('uptier-theme', theme);
    } catch {
      /* it lasts as long as the page */
    }
  };
  byId('theme').addEventListener('click', () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    set();
  });
  if (!THEMES.includes(theme)) theme = 'auto';
  set();
};

header();
themes();
const selectTab = chooser(
  byId('tabs'),
  'tab',
  Object.entries(VIEWS).map(([id, [text]]) => [id, text]),
  (id) => {
    show(id);
    history.replaceState(null, '', '#' + id);
  },
);
for (const b of byId('tabs').children) b.setAttribute('aria-controls', b.id.replace('tabs-', 'view-'));
document.addEventListener('keydown', (event) => made.get(current)?.view.key?.(event));
selectTab(VIEWS[location.hash.slice(1)] ? location.hash.slice(1) : 'methods');
document.documentElement.dataset.ready = String(Math.round(performance.now()));
