// Source lines with their counts as heat: a list of files, and the chosen one as text.
const linesView = () => {
  const view = make('div', {class: 'stack'});
  const l = data.lines;
  if (!l || !l.files || !l.files.length) {
    view.append(
      note(
        l && l.none
          ? l.none
          : 'Lines are those of the module: uptier report prog.upf --module prog.wasm, of a program built with -g.',
      ),
    );
    return {view, shown() {}, choose() {}};
  }
  const weight = (line) => (l.timed ? line[3] : line[2]);
  const all = l.files.reduce((sum, f) => sum + f.weight, 0) || 1;
  const most = l.files.reduce((m, f) => f.lines.reduce((n, line) => Math.max(n, weight(line)), m), 0);
  const listing = make('div', {class: 'source', tabindex: '0', role: 'region', 'aria-label': 'Source lines'});

  // Every line of the text, or, without it, the lines that ran.
  const rowsOf = (f) => {
    const known = new Map(f.lines.map((line) => [line[0], line]));
    const numbers = f.text ? f.text.map((_, i) => i + 1) : f.lines.map((line) => line[0]);
    return numbers.map((n) => [n, known.get(n), f.text ? f.text[n - 1] : '']);
  };
  const row = ([number, line, text]) =>
    make(
      'div',
      {class: 'source-line', style: {'--heat': (line ? heat(weight(line), most) : 0).toFixed(3)}},
      make('span', {class: 'number'}, line ? percent(weight(line) / all, 1) : ''),
      make('span', {class: 'number'}, line ? short(line[1]) : ''),
      make('span', {class: 'number dim'}, String(number)),
      make('code', {}, text || (line ? line[4] : '')),
    );
  const showFile = (at) => {
    const f = l.files[at];
    listing.replaceChildren(
      f.missing ? note(f.missing) : '',
      make(
        'div',
        {class: 'source-line head'},
        make('span', {class: 'number'}, l.timed ? 'Time' : 'Operations'),
        make('span', {class: 'number'}, 'Executions'),
        make('span', {class: 'number'}, 'Line'),
        make('span', {}, f.name),
      ),
      ...rowsOf(f).map(row),
    );
  };
  const files = make(
    'select',
    {id: 'source-file', 'aria-label': 'File', onchange: () => showFile(Number(files.value))},
    l.files.map((f, i) => make('option', {value: String(i)}, percent(f.weight / all, 1) + '  ' + f.name)),
  );
  view.append(
    make('p', {}, make('label', {for: 'source-file'}, 'File '), files),
    note(
      l.timed
        ? 'Executions of a line are those of its most frequent block. Time is an estimate: samples know functions, and the time of a function is divided among its lines by operations.'
        : 'Executions of a line are those of its most frequent block. Operations are weighed by how often each ran.',
    ),
    listing,
  );
  showFile(0);
  return {view, shown() {}, choose() {}};
};
