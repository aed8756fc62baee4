// The table of methods: sorted by any column, filtered by words, with the chosen method beside it.
const COLUMNS = [
  {id: 'name', title: 'Method', text: (r) => methods.name[r]},
  {id: 'tier', title: 'Tier', text: tierText, value: (r) => tier[r], when: timeline},
  {
    id: 'time',
    title: 'Time',
    help: 'of the processor time, in the method itself, by stack samples',
    value: (r) => methods.ns[r] / data.sampled_ns,
    text: (r) => percent(methods.ns[r] / data.sampled_ns),
    bar: true,
    when: data.sampled_ns,
  },
  {
    id: 'total',
    title: 'Total',
    help: 'of the processor time, with all that the method called',
    value: (r) => methods.total_ns[r] / data.sampled_ns,
    text: (r) => percent(methods.total_ns[r] / data.sampled_ns),
    when: data.sampled_ns,
  },
  {
    id: 'share',
    title: data.sampled_ns ? 'Blocks' : 'Share',
    help: 'of all executions of blocks',
    value: (r) => share[r],
    text: (r) => percent(share[r]),
    bar: !data.sampled_ns,
  },
  {id: 'calls', title: 'Calls', value: (r) => methods.calls[r]},
  {id: 'samples', title: 'Samples', help: 'sampled calls and bursts of loops', value: (r) => samples[r]},
  {
    id: 'cycles',
    title: 'Loop cycles',
    help: 'of the outermost timed loops',
    value: (r) => methods.cycles[r] ?? -1,
    text: (r) => short(methods.cycles[r]),
    when: data.loops.length,
  },
  {id: 'executions', title: 'Executions', help: 'of blocks, estimated', value: (r) => methods.executions[r]},
  {id: 'iterations', title: 'Iterations', value: (r) => methods.iterations[r]},
  {
    id: 'code',
    title: 'Code',
    help: 'bytes in service',
    value: (r) => codeBytes[r],
    text: (r) => (codeBytes[r] ? bytes(codeBytes[r]) : '\u2013'),
    when: timeline,
  },
  {
    id: 'compile',
    title: 'Compiling',
    value: (r) => compileNs[r],
    text: (r) => (compileNs[r] ? time(compileNs[r]) : '\u2013'),
    when: timeline,
  },
  {
    id: 'changes',
    title: 'Changes',
    help: 'decisions other than to keep things as they are',
    value: (r) => changes[r],
    when: timeline,
  },
].filter((c) => !('when' in c) || c.when);
const columnOf = (id) => COLUMNS.find((c) => c.id === id);

// Words of a filter: text that the name holds, tier:..., or COLUMN>NUMBER and COLUMN<NUMBER.
// A share is in percent.
const wordTest = (word) => {
  const compared = /^(\w+)([<>])([\d.eE+]+)$/.exec(word);
  const column = compared && columnOf(compared[1].toLowerCase());
  if (column && column.value) {
    const limit = Number(compared[3]) / (['share', 'time', 'total'].includes(column.id) ? 100 : 1);
    return (r) => (compared[2] === '>' ? column.value(r) > limit : column.value(r) < limit);
  }
  if (word.startsWith('tier:')) return (r) => tierText(r).startsWith(word.slice(5));
  return (r) => lowerNames[r].includes(word);
};
const lowerNames = methods.name.map((n) => n.toLowerCase());

const methodsView = (open) => {
  let rows = [],
    sort = {id: data.sampled_ns ? 'time' : 'share', down: true},
    chosen = -1;
  const filter = make('input', {
    type: 'search',
    id: 'filter',
    placeholder: 'name, tier:optimized, calls>1000 \u2026',
    'aria-label': 'Filter methods',
    'aria-describedby': 'filter-help',
    spellcheck: 'false',
    autocomplete: 'off',
  });
  const found = make('span', {id: 'found', role: 'status'});
  const headRow = make('div', {role: 'row', class: 'row head-row', 'aria-rowindex': '1'});
  const headBox = make('div', {class: 'grid-head', role: 'rowgroup'}, headRow);
  const body = make('div', {id: 'grid-body', class: 'grid-body', role: 'rowgroup', tabindex: '-1'});
  const grid = make(
    'div',
    {
      id: 'grid',
      role: 'grid',
      'aria-label': 'Methods; arrow keys move, Enter shows one',
      'aria-colcount': COLUMNS.length,
    },
    headBox,
    body,
  );
  const detail = make('section', {id: 'detail', 'aria-label': 'The chosen method'});
  const view = make(
    'div',
    {class: 'split'},
    make(
      'div',
      {class: 'pane'},
      make(
        'div',
        {class: 'bar-line'},
        filter,
        found,
        make(
          'span',
          {id: 'filter-help', class: 'hidden'},
          'Words must all match. Slash jumps here, Escape clears.',
        ),
      ),
      grid,
    ),
    detail,
  );

  const heads = COLUMNS.map((c, i) => {
    const b = make('button', {type: 'button', tabindex: i ? -1 : 0, title: c.help}, c.title);
    b.addEventListener('click', () => sortBy(c.id));
    return make('div', {role: 'columnheader', class: 'cell c-' + c.id, id: 'head-' + c.id}, b);
  });
  headRow.append(...heads);
  headRow.addEventListener('keydown', (event) => {
    const at = heads.findIndex((h) => h.contains(document.activeElement));
    const to = at + ({ArrowRight: 1, ArrowLeft: -1}[event.key] || 0);
    if (event.key === 'ArrowDown') {
      event.preventDefault();
      grid.focus();
    }
    if (to === at || to < 0 || to >= heads.length) return;
    event.preventDefault();
    heads.forEach((h, i) => {
      h.firstChild.tabIndex = i === to ? 0 : -1;
    });
    heads[to].firstChild.focus();
  });

  const list = virtualList({
    box: body,
    focus: grid,
    height: 26,
    itemRole: 'row',
    fill: (e, i) => {
      const r = rows[i];
      e.dataset.row = r;
      if (r === chosen) e.classList.add('chosen');
      for (const c of COLUMNS) {
        const text = c.text ? c.text(r) : short(c.value(r));
        e.append(
          make(
            'div',
            {role: 'gridcell', class: 'cell c-' + c.id, title: c.id === 'name' ? text : null},
            c.bar ? bar(c.value(r) / (most[c.id] || 1)) : null,
            text,
          ),
        );
      }
    },
    active: (i) => show(rows[i]),
    enter: (i) => {
      show(rows[i], true);
      detail.querySelector('[role=radio][tabindex="0"]')?.focus();
    },
  });
  const most = {};
  for (const c of COLUMNS.filter((column) => column.bar)) {
    most[c.id] = methods.name.reduce((a, _, r) => Math.max(a, c.value(r)), 0);
  }

  // The detail follows the active row, but not each row that a held key passes.
  let waiting = 0;
  const show = (r, now) => {
    if (r === undefined) return;
    chosen = r;
    for (const e of body.querySelectorAll('.row')) e.classList.toggle('chosen', Number(e.dataset.row) === r);
    clearTimeout(waiting);
    const draw = () => {
      detail.replaceChildren(...methodDetail(r, open));
    };
    if (now) draw();
    else waiting = setTimeout(draw, 40);
  };

  const order = () => {
    const column = columnOf(sort.id);
    const key = column.value
      ? (a, b) => column.value(a) - column.value(b)
      : (a, b) => (lowerNames[a] < lowerNames[b] ? -1 : lowerNames[a] > lowerNames[b] ? 1 : 0);
    const sign = sort.down ? -1 : 1;
    rows.sort((a, b) => sign * key(a, b) || a - b);
  };
  const apply = () => {
    const tests = filter.value.toLowerCase().split(/\s+/).filter(Boolean).map(wordTest);
    rows = [];
    for (let r = 0; r < ROWS; ++r) if (tests.every((t) => t(r))) rows.push(r);
    order();
    found.textContent =
      rows.length === ROWS ? whole(ROWS) + ' methods' : whole(rows.length) + ' of ' + whole(ROWS);
    grid.setAttribute('aria-rowcount', rows.length + 1);
    body.scrollTop = 0;
    list.resize(rows.length, Math.max(0, rows.indexOf(chosen)));
    if (rows.includes(chosen)) list.move(rows.indexOf(chosen), true);
  };
  const sortBy = (id) => {
    sort = {id, down: sort.id === id ? !sort.down : id !== 'name'};
    heads.forEach((h, i) => {
      const on = COLUMNS[i].id === sort.id;
      h.setAttribute('aria-sort', on ? (sort.down ? 'descending' : 'ascending') : 'none');
    });
    apply();
  };
  filter.addEventListener('input', apply);
  filter.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      filter.value = '';
      apply();
    }
    if (event.key === 'ArrowDown') {
      event.preventDefault();
      grid.focus();
    }
  });
  sort.down = false;
  sortBy(sort.id);
  if (rows.length) {
    chosen = rows[0];
    show(chosen, true);
  } else detail.append(note('The profile holds no methods.'));
  return {
    view,
    shown: () => list.redraw(),
    key: (event) => {
      if (event.key !== '/' || /^(INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
      event.preventDefault();
      filter.focus();
    },
    choose: (r) => {
      if (!rows.includes(r)) {
        filter.value = '';
        apply();
      }
      list.move(rows.indexOf(r), true);
      show(r, true);
    },
  };
};
