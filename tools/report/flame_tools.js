// What the flame graph has beside the picture: a search, colours by how shares moved, a picture to keep.

// A text of an SVG document. Everything that is data goes through here.
const escaped = (text) =>
  String(text).replace(/[&<>"']/g, (c) => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;'})[c]);

// The frames as an SVG document that stands alone: a title on each frame says what it is.
//
//   frames   [{x, w (shares of the width), depth, text, label, color}]
const flameSvg = (name, frames) => {
  const WIDTH = 1200,
    HEIGHT = 20,
    TOP = 30;
  const deepest = frames.reduce((m, f) => Math.max(m, f.depth), 0);
  const height = TOP + (deepest + 1) * HEIGHT + 8;
  const rows = frames.map((f) => {
    const x = (f.x * WIDTH).toFixed(2),
      w = Math.max(0.3, f.w * WIDTH - 0.5).toFixed(2),
      y = TOP + f.depth * HEIGHT;
    const fits = Math.floor((f.w * WIDTH - 8) / 6.6);
    const text = fits < 3 ? '' : f.text.length > fits ? f.text.slice(0, fits - 1) + '\u2026' : f.text;
    return (
      `<g><title>${escaped(f.label)}</title><rect x="${x}" y="${y}" width="${w}" height="${HEIGHT - 1}" ` +
      `rx="2" fill="${escaped(f.color)}"/>` +
      (text ? `<text x="${(f.x * WIDTH + 4).toFixed(2)}" y="${y + 14}">${escaped(text)}</text>` : '') +
      '</g>'
    );
  });
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" ` +
    'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="11">' +
    `<rect width="100%" height="100%" fill="#fbfbfa"/><text x="6" y="19" font-size="14">${escaped(name)}</text>` +
    rows.join('') +
    '</svg>\n'
  );
};

// Offers a text as a file to save.
const saveText = (name, type, text) => {
  const link = make('a', {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

// How a method's share moved against the other profile, -1..1 of the largest move; none without one.
const movesOf = () => {
  if (!data.overlap) return null;
  const moved = new Map(data.overlap.methods.filter((m) => m[0] >= 0).map((m) => [m[0], m[3] - m[4]]));
  const most = [...moved.values()].reduce((m, d) => Math.max(m, Math.abs(d)), 0) || 1;
  return {of: (row) => (moved.get(row) || 0) / most, points: (row) => 100 * (moved.get(row) || 0)};
};
