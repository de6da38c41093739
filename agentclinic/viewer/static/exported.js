"use strict";
// Where the viewer's data come from: here, from exported files. `served.js` has the same functions for a server.
// A page opened from a file may not fetch, but may load scripts; each calls `exported` with its name and its packed data.
const arrived = new Map();
const exported = (name, packed) => arrived.get(name)(packed);
const source = (() => {
  const address = (name) => {
    if (!/^[\w-]+$/.test(name)) throw new Error("no such file: " + name);
    return "data/" + name + ".js";
  };
  const policy = window.trustedTypes ? trustedTypes.createPolicy("exported", { createScriptURL: address }) : { createScriptURL: address };
  const kept = new Map();
  const KEPT = 24; // files in memory: the reader goes back and forth between neighbors

  const load = (name) => {
    if (!kept.has(name)) {
      if (kept.size >= KEPT) kept.delete(kept.keys().next().value);
      kept.set(name, read(name));
    }
    return kept.get(name);
  };
  const read = async (name) => {
    const script = document.createElement("script");
    const packed = await new Promise((done, failed) => {
      arrived.set(name, done);
      script.src = policy.createScriptURL(name);
      script.onerror = () => failed(new Error("data/" + name + ".js is missing from this folder; export the runs again."));
      document.head.append(script);
    });
    script.remove();
    arrived.delete(name);
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };
  const runs = () => load("runs");
  const find = async (name) => {
    const run = (await runs()).runs.find((one) => one.name === name);
    if (!run) throw new Error("There is no run " + name + " in this export.");
    return run;
  };

  const SNIPPET = 60;
  const flat = (text) => text.split(/\s+/).join(" ").trim();
  const firstSaid = (said, wanted) => {
    for (const [turn, text] of said) {
      const whole = flat(text);
      const at = whole.toLowerCase().indexOf(wanted);
      if (at < 0) continue;
      const [start, end] = [Math.max(0, at - SNIPPET), at + wanted.length + SNIPPET];
      return [turn, (start ? "…" : "") + whole.slice(start, end) + (end < whole.length ? "…" : "")];
    }
    return null;
  };

  return {
    live: false,
    runs,
    rows: async (name, first) => {
      const run = await find(name);
      const { part } = await runs();
      const at = Math.ceil(first / part);
      const rows = at < run.rows ? await load(run.place + "-rows-" + at) : [];
      return { version: "exported", first, rows, more: at + 1 < run.rows, run };
    },
    encounter: async (name, row) => {
      const [block, position] = row.block;
      return (await load((await find(name)).place + "-shown-" + block))[position];
    },
    search: async (name, text, block = 0) => {
      const run = await find(name);
      if (!run.said) return { found: [], next: null };
      const wanted = flat(text).toLowerCase();
      const said = await load(run.place + "-said-" + block);
      const found = said.map(([row, turns]) => [row, firstSaid(turns, wanted)]).filter(([, hit]) => hit).map(([row, hit]) => [row, ...hit]);
      return { found, next: block + 1 < run.said ? block + 1 : null };
    },
    compare: async (names) => {
      const { runs: all } = await runs();
      const order = all.map((run) => run.name).filter((name) => names.includes(name));
      const found = (await load("compared"))[order.join("\n")];
      if (!found) throw new Error("This export compares only all its runs or, if there are at most six, any two. For others, run: agentclinic compare " + names.join(" "));
      if (found.error) throw new Error(found.error);
      return found;
    },
  };
})();
