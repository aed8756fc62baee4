// Runs a WASI program under node, for comparison; its exit code is the program's, 134 after a trap,
// 125 if the module cannot be loaded, 2 after wrong usage.
//
// Usage: node [V8 options] node_wasi.mjs [--dir HOST[::GUEST]]... [--env NAME=VALUE]... FILE [ARG]...
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { setFlagsFromString } from "node:v8";

// Node 20 often crashes in WASI's fast API calls once a program's memory has grown (8 of 10 runs of
// compress at bench size; none without them). The programs make too few calls to be slower for it.
setFlagsFromString("--no-turbo-fast-api-calls");

// node:wasi announces itself as experimental; the programs' output must stay clean.
process.removeAllListeners("warning");

function fail(code, message) {
  process.stderr.write(`node_wasi: ${message}\n`);
  process.exit(code);
}

function parse(words) {
  const preopens = {};
  const env = {};
  let at = 0;
  for (; at < words.length && words[at].startsWith("--"); at += 2) {
    const value = words[at + 1];
    if (value === undefined) fail(2, `${words[at]} needs a value`);
    if (words[at] === "--dir") {
      const [host, guest = host] = value.split("::");
      preopens[guest] = host;
    } else if (words[at] === "--env") {
      const equals = value.indexOf("=");
      if (equals < 1) fail(2, "--env needs NAME=VALUE");
      env[value.slice(0, equals)] = value.slice(equals + 1);
    } else {
      fail(2, `unknown option ${words[at]}`);
    }
  }
  if (at >= words.length) fail(2, "no file named");
  return { preopens, env, file: words[at], args: words.slice(at + 1) };
}

async function load(file, wasi) {
  try {
    const module = await WebAssembly.compile(await readFile(file));
    return await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasi.wasiImport });
  } catch (error) {
    return fail(125, `${file}: ${error.message}`);
  }
}

const { WASI } = await import("node:wasi");
const { preopens, env, file, args } = parse(process.argv.slice(2));
const argv = [basename(file), ...args];
const wasi = new WASI({ version: "preview1", args: argv, env, preopens, returnOnExit: true });
const instance = await load(file, wasi);
try {
  process.exitCode = wasi.start(instance);
} catch (error) {
  fail(134, `${file}: ${error.message}`);
}
