#!/usr/bin/env python3
"""Reads traces of `uptier run --events FILE.json` with the importer of Chrome's developer tools.

  trace_import.py TOOL SOURCE_DIR WORK_DIR

Every slice of every thread must arrive. The importer is the node package
@paulirish/trace_engine: install it where `npm root -g` says, or in a folder node_modules that
UPTIER_NODE_MODULES names. Exit codes: 0 all is well, 1 something is not, 77 skipped (and said so).
"""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys

PACKAGE = "@paulirish/trace_engine"
SCRIPT = """
import fs from 'node:fs';
globalThis.window ??= globalThis;
const engine = await import(process.argv[2]);
const processor = engine.Processor.TraceProcessor.createWithAllHandlers();
await processor.parse(JSON.parse(fs.readFileSync(process.argv[3])).traceEvents, {});
const threads = {};
for (const process of (processor.data ?? processor.parsedTrace).Renderer.processes.values()) {
  for (const [id, thread] of process.threads) {
    threads[id] = {entries: thread.entries.length, depth: thread.tree?.maxDepth ?? 0};
  }
}
console.log(JSON.stringify(threads));
"""


def package_folder():
    folders = [os.environ.get("UPTIER_NODE_MODULES")]
    if shutil.which("npm"):
        folders.append(subprocess.run(["npm", "root", "-g"], capture_output=True, text=True).stdout.strip())
    return next((p for f in folders if f and (p := pathlib.Path(f) / PACKAGE).is_dir()), None)


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    package = package_folder() if shutil.which("node") else None
    if package is None:
        print(f"SKIPPED: traces in the importer of Chrome's developer tools: {PACKAGE} is not installed")
        return 77
    tool, source, work = (pathlib.Path(a).resolve() for a in sys.argv[1:])
    work.mkdir(parents=True, exist_ok=True)
    script = work / "import.mjs"
    script.write_text(SCRIPT)
    entry = json.loads((package / "package.json").read_text()).get("main", "index.js")
    failures = 0
    for words in (["mix"], ["objects"], ["-O", "workers=0", "phases"], ["--stress=osr=every:3,osr_out=every:5", "phases"]):
        name = words[-1]
        trace = work / "e.json"
        subprocess.run([tool, "run", *words[:-1], "--events", trace, source / f"examples/programs/wasm/{name}.wasm"],
                       check=True, stdout=subprocess.DEVNULL)
        slices = collections.Counter(str(e["tid"]) for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X")
        p = subprocess.run(["node", script, package / entry, trace], capture_output=True, text=True)
        if p.returncode != 0:
            print(f"FAILED: {words}: the importer refuses the file: {p.stderr[-500:]}")
            return 1
        threads = json.loads(p.stdout.splitlines()[-1])
        arrived = {t: v["entries"] for t, v in threads.items() if v["entries"]}
        depth = max(v["depth"] for v in threads.values())
        print(f"{' '.join(words)}: {sum(arrived.values())} slices of {len(arrived)} threads, {depth} deep")
        if arrived != dict(slices) or depth < 2:
            failures += 1
            print(f"FAILED: {words}: {dict(slices)} slices were written, {arrived} arrived")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
