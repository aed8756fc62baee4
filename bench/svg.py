"""Line charts as SVG text: one thin line a program, a thick one for their mean.

Readable on light and dark pages: colours are classes, and a media query turns them. Whoever hovers
over a line sees its name; the lines that end lowest and highest are labelled.
"""
import dataclasses, math
from html import escape

WIDTH, HEIGHT = 860, 430
LEFT, RIGHT, TOP, BOTTOM = 64, 112, 62, 62

STYLE = """
.page{fill:#fff}text{font:12px system-ui,sans-serif;fill:#333}.title{font-size:15px;font-weight:600}
.note{font-size:10px;fill:#666}.grid{stroke:#e2e2e2}.one{fill:none;stroke:#7a93b8;opacity:.75}
.one:hover{stroke:#d9480f;stroke-width:2.5;opacity:1}.mean{fill:none;stroke:#1c5fb8;stroke-width:3}
.dot{fill:#1c5fb8}.value{font-weight:600;fill:#1c5fb8}
@media(prefers-color-scheme:dark){.page{fill:#16191d}text{fill:#d6d6d6}.note{fill:#9a9a9a}
.grid{stroke:#333a42}.one{stroke:#6d85a8}.mean{stroke:#79b0ff}.dot,.value{fill:#79b0ff}}
"""


@dataclasses.dataclass
class Chart:
    title: str
    note: str  # the command that measured it, and the load of the machine
    y_title: str
    x_title: str
    names: list  # of the places on the x axis, evenly spaced
    rows: dict   # {program: [y at each place]}
    mean: str    # the name of the thick line
    scale: object  # [all y] -> (ticks, y -> 0 at the bottom .. 1 at the top)


def linear_below_100(values):
    """From the lowest value, rounded down, to 100."""
    span = max(100 - min(values), 1)
    step = next(s for s in (0.2, 0.5, 1, 2, 5, 10, 20, 25) if span / s <= 8 or s == 25)
    low = max(0, math.floor(min(values) / step) * step)
    ticks = [low + i * step for i in range(int((100 - low) / step + 0.5) + 1)]
    return ticks, lambda y: (y - low) / (100 - low)


def logarithmic(values):
    """From 0.1, where all that is less is drawn, to the power of ten (or 3) above the greatest."""
    ticks = [0.1]
    while ticks[-1] < max(values):
        ticks.append(round(ticks[-1] * (3 if len(ticks) % 2 else 10 / 3), 1))
    return ticks, lambda y: math.log(max(y, 0.1) / 0.1) / math.log(ticks[-1] / 0.1)


def number(y):
    return f"{y:.1f}" if abs(y) < 99.95 else f"{y:.0f}"


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def path(points, kind, name):
    d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path class="{kind}" d="{d}"><title>{escape(name)}</title></path>'


def axes(chart, ticks, place_x, place_y):
    out = [text(LEFT, 22, chart.title, "title"), text(LEFT, 40, chart.note, "note"),
           text(LEFT, TOP - 8, chart.y_title), text(WIDTH - RIGHT, HEIGHT - 16, chart.x_title,
                                                    anchor="end")]
    for t in ticks:
        y = place_y(t)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(text(LEFT - 8, y + 4, f"{t:g}", anchor="end"))
    for i, name in enumerate(chart.names):
        out.append(text(place_x(i), HEIGHT - BOTTOM + 20, name, anchor="middle"))
    return out


def end_labels(ends):
    """Labels for the lowest and the highest line's end, [(y, name)], at least a line apart."""
    low, high = max(ends), min(ends)
    y_high = min(high[0], low[0] - 14)
    x = WIDTH - RIGHT + 8
    return [text(x, low[0] + 4, low[1], "note"), text(x, y_high + 4, high[1], "note")]


def render(chart):
    """Returns the SVG. Needs at least one row."""
    ticks, scaled = chart.scale([y for row in chart.rows.values() for y in row])
    step = (WIDTH - LEFT - RIGHT) / max(len(chart.names) - 1, 1)
    place_x = lambda i: LEFT + i * step
    place_y = lambda y: HEIGHT - BOTTOM - scaled(y) * (HEIGHT - TOP - BOTTOM)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
           f"<title>{escape(chart.title)}</title><style>{STYLE}</style>",
           f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>']
    out += axes(chart, ticks, place_x, place_y)
    for name, row in chart.rows.items():
        words = name + ": " + ", ".join(f"{n} {number(y)} %" for n, y in zip(chart.names, row))
        out.append(path([(place_x(i), place_y(y)) for i, y in enumerate(row)], "one", words))
    means = [sum(c) / len(c) for c in zip(*chart.rows.values())]
    out.append(path([(place_x(i), place_y(y)) for i, y in enumerate(means)], "mean", chart.mean))
    for i, y in enumerate(means):
        out.append(f'<circle class="dot" cx="{place_x(i):.1f}" cy="{place_y(y):.1f}" r="3.5"/>')
        out.append(text(place_x(i), place_y(y) - 9, number(y), "value", "middle"))
    out += end_labels([(place_y(row[-1]), name) for name, row in chart.rows.items()])
    return "\n".join(out + ["</svg>"]) + "\n"


def write(file, chart):
    with open(file, "w") as f:
        f.write(render(chart))
