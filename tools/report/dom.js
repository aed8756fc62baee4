// Making elements, and what several views share. Text only ever becomes text nodes.
const make = (tag, attributes = {}, ...children) => {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'style') for (const [p, v] of Object.entries(value)) e.style.setProperty(p, v);
    else if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
    else e.setAttribute(name, value === true ? '' : value);
  }
  e.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return e;
};
const byId = (id) => document.getElementById(id);

// A row of buttons of which one is chosen: one tab stop, arrow keys move the choice.
const chooser = (box, role, items, choose) => {
  const buttons = items.map(([id, text]) => {
    const b = make('button', {type: 'button', role, id: box.id + '-' + id}, text);
    b.addEventListener('click', () => select(id, true));
    return b;
  });
  const state = role === 'tab' ? 'aria-selected' : 'aria-checked';
  let chosen = null;
  const select = (id, focus) => {
    const at = items.findIndex((item) => item[0] === id);
    if (at < 0) return;
    buttons.forEach((b, i) => {
      b.setAttribute(state, i === at);
      b.tabIndex = i === at ? 0 : -1;
    });
    if (focus) buttons[at].focus();
    if (chosen === id) return;
    chosen = id;
    choose(id);
  };
  box.replaceChildren(...buttons);
  box.onkeydown = (event) => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    const at = items.findIndex((item) => item[0] === chosen);
    const to = step
      ? (at + step + items.length) % items.length
      : event.key === 'Home'
        ? 0
        : event.key === 'End'
          ? items.length - 1
          : -1;
    if (to < 0) return;
    event.preventDefault();
    select(items[to][0], true);
  };
  return select;
};

// A list of any length with rows of one height: only rows in sight are in the document. One tab
// stop; arrow keys, Page Up and Down, Home and End move the active row.
//
//   box                        scrolls; focus, or the box itself, is the tab stop
//   fill(row element, index)   makes the cells of a row
//   active(index)              a row became the active one
//   enter(index)               Enter, Space or a click
const virtualList = ({box, focus = box, height, itemRole, fill, active, enter}) => {
  const SPARE = 8;
  const inner = make('div', {class: 'virtual', role: 'presentation'});
  box.append(inner);
  focus.tabIndex = 0;
  let count = 0,
    at = 0,
    from = -1,
    to = -1;
  const id = (i) => box.id + '-row-' + i;
  const draw = (force) => {
    const first = Math.max(0, Math.floor(box.scrollTop / height) - SPARE);
    const last = Math.min(count, Math.ceil((box.scrollTop + box.clientHeight) / height) + SPARE);
    if (!force && first === from && last === to) return;
    from = first;
    to = last;
    const rows = [];
    for (let i = first; i < last; ++i) {
      const e = make('div', {
        id: id(i),
        role: itemRole,
        'aria-rowindex': itemRole === 'row' ? i + 2 : null,
        'aria-setsize': itemRole === 'option' ? count : null,
        'aria-posinset': itemRole === 'option' ? i + 1 : null,
        'aria-selected': i === at,
        class: 'row',
        style: {top: i * height + 'px', height: height + 'px'},
      });
      e.onclick = () => {
        move(i);
        enter(i);
      };
      fill(e, i);
      rows.push(e);
    }
    inner.replaceChildren(...rows);
    mark();
  };
  const mark = () => {
    for (const e of inner.children) e.setAttribute('aria-selected', e.id === id(at));
    if (count) focus.setAttribute('aria-activedescendant', id(at));
    else focus.removeAttribute('aria-activedescendant');
  };
  const move = (i, quiet) => {
    if (!count) return;
    at = Math.min(Math.max(i, 0), count - 1);
    const top = at * height;
    if (top < box.scrollTop) box.scrollTop = top;
    const over = top + height - (box.scrollTop + box.clientHeight);
    if (over > 0 && box.clientHeight > 0) box.scrollTop += over;
    draw(false);
    mark();
    if (!quiet) active(at);
  };
  box.addEventListener('scroll', () => draw(false), {passive: true});
  focus.addEventListener('keydown', (event) => {
    if (event.target !== focus) return;
    const page = Math.max(1, Math.floor(box.clientHeight / height) - 1);
    const step = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity}[
      event.key
    ];
    if (step !== undefined && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      move(at + step);
    } else if ((event.key === 'Enter' || event.key === ' ') && count) {
      event.preventDefault();
      enter(at);
    }
  });
  new ResizeObserver(() => draw(true)).observe(box);
  return {
    resize(n, index = 0) {
      count = n;
      at = Math.min(index, Math.max(0, n - 1));
      inner.style.height = n * height + 'px';
      draw(true);
    },
    redraw: () => draw(true),
    move,
    index: () => at,
  };
};

// A small table of text; columns that start with '#' are numbers.
const plainTable = (label, columns, rows) =>
  make(
    'table',
    {'aria-label': label},
    make(
      'thead',
      {},
      make(
        'tr',
        {},
        columns.map((c) =>
          make('th', {scope: 'col', class: c[0] === '#' ? 'number' : null}, c.replace('#', '')),
        ),
      ),
    ),
    make(
      'tbody',
      {},
      rows.map((cells) =>
        make(
          'tr',
          {},
          cells.map((cell, i) => make('td', {class: columns[i][0] === '#' ? 'number' : null}, cell)),
        ),
      ),
    ),
  );

const note = (...text) => make('p', {class: 'note'}, ...text);
// A bar behind a number.
const bar = (part) =>
  make(
    'span',
    {class: 'bar', 'aria-hidden': 'true'},
    make('span', {style: {width: (100 * Math.min(1, part)).toFixed(1) + '%'}}),
  );
