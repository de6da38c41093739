"use strict";
// Where the viewer's data come from: here, from the server. `exported.js` has the same functions for exported files.
const source = (() => {
  const get = async (what, query = {}) => {
    const entries = Object.entries(query).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
    let answer;
    try {
      answer = await fetch("data/" + what + "?" + new URLSearchParams(entries.filter(([, value]) => value !== undefined)));
    } catch {
      throw new Error("The server does not answer. Is agentclinic view still running?");
    }
    const text = await answer.text();
    if (answer.ok) return JSON.parse(text);
    let told = text;
    try { told = JSON.parse(text).error; } catch { /* not one of the viewer's own messages */ }
    throw new Error(told);
  };
  return {
    live: true,
    runs: () => get("runs"),
    rows: (run, first, version) => get("rows", { run, first, version }),
    encounter: (run, row) => get("encounter", { run, case: row.name }),
    search: (run, text, first = 0) => get("search", { run, text, first }),
    compare: (runs) => get("compare", { run: runs }),
  };
})();
