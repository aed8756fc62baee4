#!/usr/bin/env python3
"""Opens the HTML report in a headless Chromium: what it shows, by keyboard, in light and in dark.

  report.py TOOL SOURCE_DIR WORK_DIR

Exit codes: 0 all is well, 1 something is not, 77 skipped (and said so): Chromium or wabt is absent.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import chromium  # noqa: E402

METHODS = 10_000
SECONDS_TO_OPEN = 2.0 if os.getloadavg()[0] < (os.cpu_count() or 1) else 10.0
HOSTILE = ["</script><script>window.hacked=1</script>", "<!--<script>", "]]>\\u0022",
           "\"><img src=x onerror=window.hacked=1>", "&lt;b&gt;", "{{data}}", "tab\there"]

failures = 0


def check(what, got, expected=True):
    global failures
    if got == expected:
        return
    failures += 1
    print(f"FAILED: {what}: {got!r}, expected {expected!r}", flush=True)


def run(*command):
    r = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if r.returncode != 0:
        raise RuntimeError(f"{command}: exit code {r.returncode}\n{r.stderr}")
    return r.stdout


def large_module(folder):
    """A program of METHODS methods with loops, some of which call each other."""
    lines = ["(module (memory 1)"]
    for i in range(METHODS):
        more = f"(call $f{i // 10} (i32.const 1))" if i >= 10 and i % 7 == 0 else f"(i32.const {i})"
        lines.append(f"""(func $f{i} (param $n i32) (result i32) (local $i i32) (local $s i32)
 (if (i32.lt_s (local.get $n) (i32.const 2)) (then (return (i32.const {i}))))
 (loop $l (local.set $s (i32.add (local.get $s) {more}))
  (local.set $i (i32.add (local.get $i) (i32.const 1)))
  (br_if $l (i32.lt_s (local.get $i) (local.get $n)))) (local.get $s))""")
    calls = "".join(f"(drop (call $f{i} (i32.const {2 + 20000 // (1 + i) % 300})))" for i in range(METHODS))
    lines.append(f"""(func $_start (export "_start") (local $k i32) (loop $again {calls}
 (br_if $again (i32.lt_s (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 40))))))""")
    (folder / "large.wat").write_text("\n".join(lines))
    run("wat2wasm", "--debug-names", folder / "large.wat", "-o", folder / "large.wasm")
    return folder / "large.wasm"


def hostile_profile(path):
    text = "uptier-profile 1\n"
    for i, name in enumerate(HOSTILE):
        quoted = name.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\x09")
        text += f'\nmethod 0x1 {i} "{quoted}" {{\n  calls {i + 1}\n  sampled 0\n  iterations 0\n' \
                f"  bursts 0\n  interval 1\n  cfg 0x5\n  block 1 {100 - i}\n}}\n"
    path.write_text(text)


class Page:
    """What the checks ask of an open page."""

    def __init__(self, browser):
        self.b = browser

    def __getattr__(self, name):
        return getattr(self.b, name)

    def text(self, selector):
        return self.b.evaluate(f"document.querySelector({json.dumps(selector)})?.textContent ?? null")

    def attribute(self, selector, name):
        return self.b.evaluate(f"document.querySelector({json.dumps(selector)})?.getAttribute({json.dumps(name)}) ?? null")

    def count(self, selector):
        return self.b.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")

    def focus(self):
        return self.b.evaluate("document.activeElement.id || document.activeElement.className || document.activeElement.tagName")

    def active_row(self):
        """The name in the row that the grid points to."""
        return self.b.evaluate("document.getElementById(document.getElementById('grid')"
                               ".getAttribute('aria-activedescendant'))?.firstChild.textContent")

    def names(self, n):
        return self.b.evaluate(f"[...document.querySelectorAll('#grid-body .c-name')].slice(0, {n}).map(e => e.textContent)")

    def tab_to(self, wanted, most=12):
        """Presses Tab until an element has the focus, which must be seen; returns whether it got it."""
        for _ in range(most):
            self.b.press("Tab")
            outlined = self.b.evaluate("(s => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 1)"
                                       "(getComputedStyle(document.activeElement))")
            check(f"the focus is seen on {self.focus()}", outlined)
            if self.focus() == wanted:
                return True
        return False


def check_shown(page, profile):
    """What stands in the table is what the profile holds."""
    blocks = {}
    for m in profile["methods"]:
        blocks[m["name"]] = sum(s["estimate"] or 0 for s in m["sites"] if s["kind"] == "block")
    order = sorted(blocks.values(), reverse=True)[:5]
    check("hottest first", [round(blocks[n]) for n in page.names(5)], [round(n) for n in order])
    check("rows announced", page.attribute("#grid", "aria-rowcount"), str(len(profile["methods"]) + 1))
    first = next(m for m in profile["methods"] if m["name"] == page.names(1)[0])
    cell = page.text("#grid-body .row .c-calls").replace("\u202f", "")
    check("calls of the hottest", cell if first["calls"] < 1e5 else "", str(first["calls"]) if first["calls"] < 1e5 else "")
    counted = [s["count"] for s in first["sites"] if s["kind"] == "block"]
    shown = page.evaluate("[...document.querySelectorAll('#detail table[aria-label=Blocks] tbody tr')]"
                          ".map(r => Number(r.cells[3].textContent.replaceAll('\\u202f', '')))")
    check("counts of its blocks", shown, counted)


def check_roles(page):
    for role, least in (("tablist", 1), ("tab", 5), ("tabpanel", 1), ("grid", 1), ("columnheader", 8),
                        ("row", 5), ("gridcell", 40), ("radiogroup", 1)):
        check(f"role {role}", page.count(f"[role={role}]") >= least)
    named = page.evaluate("[...document.querySelectorAll('button, input, [tabindex=\"0\"]')].filter(e => !e.hidden"
                          " && !(e.textContent.trim() || e.ariaLabel || e.labels?.length)).map(e => e.outerHTML)")
    check("every control has a name", named, [])


def check_methods_keys(page):
    stops = []
    for _ in range(7):
        page.press("Tab")
        stops.append(page.focus())
    check("tab order", stops[:5], ["theme", "tabs-methods", "filter", "grid", stops[4]])
    check("then what is shown of the method", stops[5].startswith("panels-"))
    page.press("Tab", shift=True, times=2)
    page.press("Tab", shift=True)
    check("back to the table", page.focus(), "grid")
    names = page.names(12)
    check("the first row is active", page.active_row(), names[0])
    page.press("ArrowDown", times=3)
    check("three down", page.active_row(), names[3])
    check("the detail follows", page.text("#method-name"), names[3])
    page.press("ArrowUp")
    check("one up", page.active_row(), names[2])
    page.press("End")
    page.press("Home")
    check("End and Home", page.active_row(), names[0])
    page.press("Enter")
    check("Enter goes to the method", page.focus(), "panels-sites")
    for panel in ("ir", "code", "decisions"):
        page.press("ArrowRight")
        check("its panels by arrows", page.focus(), "panels-" + panel)
    check("decisions", page.count("#detail table[aria-label=Decisions] tbody tr") > 0)
    check("what they do", "the code in service stays" in (page.text("#detail table[aria-label=Decisions] ~ .note") or ""))
    page.press("ArrowLeft", times=2)
    check("IR with counts", page.count("#detail .piece") > 1)
    page.press("ArrowLeft")
    page.press("/")
    check("slash goes to the filter", page.focus(), "filter")
    page.type(names[1].lower())
    check("filtered", names[1] in page.names(50) and page.count("#grid-body .row") < len(names) + 30)
    check("all match", all(names[1].lower() in n.lower() for n in page.names(50)))
    page.press("Escape")
    check("Escape clears", page.evaluate("document.getElementById('filter').value"), "")
    page.type("calls>0 tier:baseline")
    tiers = page.evaluate("[...document.querySelectorAll('#grid-body .c-tier')].every(e => e.textContent.startsWith('baseline'))")
    check("filter by tier", tiers and page.count("#grid-body .row") > 0)
    page.press("Escape")
    page.press("Tab", times=2)  # past the rows to the heads of columns
    page.press("Home")
    page.press("ArrowRight", times=3)
    page.press("Enter")
    check("sorted by keyboard", page.attribute("#head-calls", "aria-sort"), "descending")
    page.press("Enter")
    check("and back", page.attribute("#head-calls", "aria-sort"), "ascending")
    page.press("ArrowLeft")
    page.press("Enter")
    check("by share again", page.attribute("#head-share", "aria-sort"), "descending")


def check_other_views(page):
    page.evaluate("document.getElementById('theme').focus()")
    page.press("Tab")
    page.press("ArrowRight")
    check("the timeline's tab", page.attribute("#tabs-timeline", "aria-selected"), "true")
    check("its panel is shown", page.evaluate("!document.getElementById('view-timeline').hidden"))
    check("and no other", page.evaluate("document.getElementById('view-methods').hidden"))
    check("optimized code in time", page.count("#tracks .strip.optimized") > 0)
    check("decisions in time", page.count("#tracks .mark.v-up") > 0)
    check("to the tracks", page.tab_to("tracks"))
    width = "document.querySelector('#tracks .strip').getBoundingClientRect().width"
    tick = "document.querySelector('.axis .tick:last-child').textContent"
    before = page.evaluate(tick)
    page.press("+")
    check("plus zooms", page.evaluate(tick) != before)
    page.press("0")
    check("0 shows all", page.evaluate(tick), before)
    check("strips have widths", page.evaluate(width) > 0)
    heading = page.text("#view-timeline .under h2")
    page.press("ArrowDown")
    check("the next method's decisions", page.text("#view-timeline .under h2") != heading)
    page.evaluate("document.getElementById('theme').focus()")
    page.press("Tab")
    page.press("ArrowRight")
    check("the flame graph's tab", page.attribute("#tabs-flame", "aria-selected"), "true")
    check("to its frames", page.tab_to("flame-0"))
    outside = page.evaluate("""(frames => frames.filter(f => f.offsetLeft < -1 ||
      f.offsetLeft + f.offsetWidth > f.parentElement.clientWidth + 12).length)([...document.querySelectorAll('.frame')])""")
    check("frames lie inside", outside, 0)
    page.press("ArrowDown")
    check("down a frame", page.focus() != "flame-0")
    name = page.text("#flame-about b")
    page.press("Enter")
    check("zoomed", page.text(".frame:not(.above)").split("\u2002")[0], name)
    page.press("Escape")
    check("and out", page.text(".frame:not(.above)").split("\u2002")[0], "program")
    page.evaluate("document.getElementById('theme').focus()")
    page.press("Tab")
    page.press("ArrowRight")
    check("overlap", page.count("#view-overlap tbody tr") > 3)
    page.press("ArrowRight")
    check("overhead", page.count("#view-overhead tbody tr") > 10)
    page.press("Home")
    check("the first tab", page.attribute("#tabs-methods", "aria-selected"), "true")


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).slice(0, 3).map(Number)")


def contrast(page):
    """Of text on the page's ground, by WCAG's formula."""
    return page.evaluate("""(() => {
      const light = (c) => c.match(/[\\d.]+/g).slice(0, 3).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
      const ground = light(getComputedStyle(document.body).backgroundColor);
      return Math.min(...['body', '#provenance', 'th', '.note, #found'].map(q => document.querySelector(q)).filter(Boolean)
        .map(e => light(getComputedStyle(e).color)).map(l => (Math.max(l, ground) + .05) / (Math.min(l, ground) + .05)));
    })()""")


def check_program(tool, source, work, browser):
    wasm = source / "examples/programs/wasm/objects.wasm"
    for name, seed in (("a", 1), ("b", 2)):
        run(tool, "run", "--profile", work / f"{name}.upf", "-O", "loops=on", "-O", f"seed={seed}",
            "-O", "sample_hz=0", wasm)
    run(tool, "report", work / "a.upf", "--module", wasm, "--against", work / "b.upf", "-o", work / "a.html")
    profile = json.loads(run(tool, "profile", "show", "--json", work / "a.upf"))
    page = Page(browser)
    for scheme in ("light", "dark"):
        page.open((work / "a.html").as_uri(), scheme)
        light = sum(background(page)) > 3 * 128
        check(f"the ground in {scheme}", light, scheme == "light")
        check(f"contrast in {scheme} is 4.5 at least", contrast(page) >= 4.5)
        check_shown(page, profile)
        check_roles(page)
        check_methods_keys(page)
        check_other_views(page)
        page.evaluate("document.getElementById('theme').focus()")
        page.press("Enter", times=2 if scheme == "light" else 1)
        check("the theme's button turns it over", (sum(background(page)) > 3 * 128) != light)
        page.press("Enter", times=1 if scheme == "light" else 2)
        check("and back to auto", page.text("#theme"), "Theme: auto")
        page.screenshot(work / f"{scheme}.png")


def check_source(tool, source, work, browser):
    """The view of sources: each line has the executions and the share that the profile has, and the hottest
    line the strongest colour. The picture is source.png."""
    wasm = source / "tests/fuzz/corpus/dwarf/plain5.wasm"
    run(tool, "run", "--tier=instrumented", "--profile", work / "lines.upf", wasm)
    run(tool, "report", work / "lines.upf", "--module", wasm, "-o", work / "lines.html")
    lines = json.loads(run(tool, "profile", "show", "--lines", "--json", "--module", wasm, work / "lines.upf"))
    weight = "ns" if any(l.get("ns") for l in lines["lines"]) else "operations"
    expected = {l["line"]: l[weight] / sum(x[weight] for x in lines["lines"]) for l in lines["lines"]}
    page = Page(browser)
    page.open((work / "lines.html").as_uri())
    page.evaluate("document.getElementById('tabs-lines').click()")
    page.settle()
    check("the view of sources is shown", page.evaluate("!document.getElementById('view-lines').hidden"))
    rows = page.evaluate("""[...document.querySelectorAll('.source-line:not(.head)')].map(row => ({
      share: parseFloat(row.children[0].textContent), line: Number(row.children[2].textContent),
      heat: parseFloat(row.style.getPropertyValue('--heat')), colour: getComputedStyle(row).backgroundColor}))""")
    shown = {r["line"]: r for r in rows if r["heat"] > 0}
    check("its lines are those of the profile", sorted(shown), sorted(n for n, s in expected.items() if s > 0))
    off = [n for n in shown if abs(shown[n]["share"] - 100 * expected[n]) > 0.06]
    check("lines with another share", off, [])
    hottest = max(expected, key=expected.get)
    check("the hottest line has the most heat", shown[hottest]["heat"], 1)
    coldest = min(expected, key=expected.get)
    check("and another colour than the coldest", shown[hottest]["colour"] != shown[coldest]["colour"])
    page.screenshot(work / "source.png")


def check_time(tool, source, work, browser):
    """A profile with stack samples is ranked by time, with the shares that `profile top` has."""
    wasm = source / "examples/programs/wasm/mix.wasm"
    run(tool, "run", "--sample=5000", "--profile", work / "time.upf", wasm, "2000")
    run(tool, "report", work / "time.upf", "-o", work / "time.html")
    top = json.loads(run(tool, "profile", "top", "-n", "1000", "--json", work / "time.upf"))["methods"]
    shares = [m["time"]["share"] for m in top if "place" not in m and "calls" in m]
    page = Page(browser)
    page.open((work / "time.html").as_uri())
    page.settle()
    check("by time at first", page.attribute("#head-time", "aria-sort"), "descending")
    cells = page.evaluate("[...document.querySelectorAll('#grid-body .c-time')].map(e => parseFloat(e.textContent))")
    check("shares of time", cells[:5], [round(100 * s, 2) for s in shares[:5]])


def check_flame(tool, source, work, browser):
    """Widths of frames are in the proportion of the cycles that the loops of a run took. These are
    estimates: a loop is as wide as those in it where they come out longer together."""
    wasm = source / "examples/programs/wasm/mix.wasm"
    run(tool, "run", "--profile", work / "mix.upf", "-O", "loops=on", "--interval=1", "--policy=never", wasm)
    run(tool, "report", work / "mix.upf", "--module", wasm, "-o", work / "mix.html")
    page = Page(browser)
    page.open((work / "mix.html").as_uri() + "#flame")
    page.settle()
    frames = page.evaluate("""[...document.querySelectorAll('.frame')].map(f => [f.getAttribute('aria-label').split(', ')[0],
      Number(f.getAttribute('aria-level')), f.offsetLeft, f.getBoundingClientRect().width])""")
    loops = page.evaluate("""(d => d.loops.filter(l => d.methods.name[l[0]] === 'list_round').map(l => [l[1], l[2], l[4]]))
      (JSON.parse(document.getElementById('data').textContent))""")
    cycles = {(site, parent): n for site, parent, n in loops}
    check("loops of list_round nest", (2, 0) in cycles and (3, 2) in cycles)
    at = [f[0] for f in frames].index("list_round")
    outer = next(f for f in frames[at:] if f[0] == "loop 1" and f[1] == frames[at][1] + 1)
    inner = next(f for f in frames[frames.index(outer):] if f[0] == "loop 2" and f[1] == outer[1] + 1)
    whole = max(cycles[2, 0], sum(n for (_, parent), n in cycles.items() if parent == 2))
    check("inner by outer", abs(inner[3] / outer[3] - cycles[3, 2] / whole) < 0.01)
    check("inner lies in outer", outer[2] - 1 <= inner[2] and inner[2] + inner[3] <= outer[2] + outer[3] + 1)
    names = [f[0] for f in frames[:6]]
    check("callers above", names[0] == "program" and names.index("_start") < names.index("main"))
    for level in {f[1] for f in frames}:
        check(f"level {level} is no wider than the program",
              sum(f[3] for f in frames if f[1] == level) <= frames[0][3] * 1.001)


def check_hostile(tool, work, browser):
    hostile_profile(work / "hostile.txt")
    run(tool, "report", work / "hostile.txt", "-o", work / "hostile.html")
    html = (work / "hostile.html").read_text()
    check("no name ends a script", html.count("</script>"), html.count("<script"))
    page = Page(browser)
    page.open((work / "hostile.html").as_uri())
    check("nothing of a name has run", page.evaluate("window.hacked ?? null"), None)
    check("names stand as they are", page.names(len(HOSTILE)), HOSTILE)
    check("no element came of a name", page.count("img, b"), 0)


def check_large(tool, work, browser):
    wasm = large_module(work)
    run(tool, "run", "--profile", work / "large.upf", "-O", "loops=on", wasm)
    run(tool, "report", work / "large.upf", "--module", wasm, "-o", work / "large.html")
    page = Page(browser)
    for scheme in ("light", "dark"):
        seconds = min(page.open((work / "large.html").as_uri(), scheme) for _ in range(3))
        size = os.path.getsize(work / "large.html") / 1e6
        print(f"{METHODS} methods, {size:.1f} MB: open, drawn and ready for keys after {seconds:.2f} s ({scheme})")
        check(f"opens in {SECONDS_TO_OPEN} s ({seconds:.2f})", seconds < SECONDS_TO_OPEN)
        check("rows announced", int(page.attribute("#grid", "aria-rowcount")) > METHODS)
        check("few rows are in the document", page.count("#grid-body .row") < 100)
        page.evaluate("document.getElementById('grid').focus()")
        page.press("End")
        rows = int(page.attribute("#grid", "aria-rowcount")) - 1
        check("End is the last", page.attribute("#grid", "aria-activedescendant"), f"grid-body-row-{rows - 1}")
        check("and it is in sight", page.active_row() is not None)
        page.press("/")
        page.type("f4711")
        check("found among many", page.names(2), ["f4711"])
        for view in ("timeline", "flame", "overlap", "overhead"):
            page.evaluate(f"document.getElementById('tabs-{view}').click()")
            page.settle()
        page.evaluate("document.getElementById('tabs-timeline').click()")
        # The box is off from the start if no method changed its tier.
        page.evaluate("document.getElementById('changed').checked && document.getElementById('changed').click()")
        check("few tracks are in the document", 5 < page.count("#tracks .row") < 100)


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    tool, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    path = chromium.find()
    missing = "Chromium (Debian: chromium)" if path is None else None
    if missing is None and shutil.which("wat2wasm") is None:
        missing = "wat2wasm (Debian: wabt)"
    if missing:
        print(f"SKIPPED: the HTML report in a browser: {missing} is not installed")
        return 77
    work = pathlib.Path(sys.argv[3]).resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    with chromium.Browser(path) as browser:
        check_program(tool, source, work, browser)
        check_source(tool, source, work, browser)
        check_time(tool, source, work, browser)
        check_flame(tool, source, work, browser)
        check_hostile(tool, work, browser)
        check_large(tool, work, browser)
        check("the console is quiet, and nothing is asked of a network", browser.problems, [])
    print("report: " + (f"{failures} checks failed" if failures else "all checks passed"))
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
