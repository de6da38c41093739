"use strict";
// The list of encounters and the sorting of tables; encounter.js draws a transcript.
(() => {
  const PAGE = 10;
  const { make, byId } = dom;
  const whole = new Promise((done) => {
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", done, { once: true });
    else done();
  });

  dom.theme(byId("theme"));

  // A link to a folded section unfolds it.
  const unfold = (address) => {
    const folded = /^#[\w-]+$/.test(address) && document.querySelector(address + " > .fold");
    if (folded) folded.open = true;
  };
  document.addEventListener("click", (event) => { const link = event.target.closest("a[href^='#']"); if (link) unfold(link.hash); });
  addEventListener("hashchange", () => unfold(location.hash));
  unfold(location.hash);

  // Packed blocks: JSON, compressed (zlib), in base64. Unpacked on demand; the last few are kept.

  const kept = new Map();
  const unpack = (id) => {
    if (!kept.has(id)) {
      if (kept.size > 12) kept.delete(kept.keys().next().value);
      kept.set(id, read(id));
    }
    return kept.get(id);
  };
  const read = async (id) => {
    await whole;
    const bytes = Uint8Array.from(atob(byId(id).textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };

  // The list

  const NAME = 0, OUTCOME = 1, SHOWN = 2, TRUTH = 3, SAID = 4, SURE = 5, TURNS = 6, WHY = 7, KIND = 8, BLOCK = 9, PLACE = 10, ADDRESS = 11, CHART = 12, REGRET = 13;
  let runs = [];
  let solvable = false; // the list has a column for the regret
  let found = [];
  let page = 0;
  const loaded = (async () => {
    await whole;
    for (let run = 0; byId("index-" + run); run += 1) runs.push(await read("index-" + run));
    solvable = runs.some((run) => run.rows.some((row) => row[REGRET] !== null));
  })();

  const filter = () => {
    const only = byId("f-run") ? byId("f-run").value : "";
    const outcome = byId("f-outcome").value;
    const wanted = byId("f-text").value.trim().toLowerCase();
    found = [];
    runs.forEach((run, r) => {
      if (only !== "" && Number(only) !== r) return;
      run.rows.forEach((row, place) => {
        if (outcome === "not right" ? row[OUTCOME] === "diagnosed_right" : outcome !== "all" && row[OUTCOME] !== outcome) return;
        if (wanted && ![NAME, TRUTH, SAID, WHY, KIND, SHOWN].some((key) => String(row[key]).toLowerCase().includes(wanted))) return;
        found.push([r, place]);
      });
    });
    if (order) found.sort((a, b) => order.sign * compare(order.key(a), order.key(b)));
    page = 0;
    list();
  };

  // Sorting. The head of each column becomes a button; unknown values come first, numbers before words.

  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
  let order = null;
  const KEYS = { run: ([r]) => r, case: ([r, place]) => place, outcome: SHOWN, truth: TRUTH, diagnosis: SAID, confidence: SURE, turns: TURNS, regret: REGRET, why: WHY };
  const sortable = (table, sort) => table.querySelectorAll("thead th").forEach((head, column) => {
    const name = head.textContent.trim();
    const cells = [...table.tBodies[0].rows].map((row) => row.cells[column]);
    if (!name || cells.length < 2 || cells.every((cell) => !cell || !cell.textContent.trim())) return;
    head.replaceChildren(make("button", { class: "sort", type: "button", click: () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(column, name, down ? -1 : 1);
    } }, name));
  });
  const shownValue = (row, column) => {
    const text = row.cells[column].textContent.trim();
    if (text === "–") return -Infinity;
    const number = row.cells[column].classList.contains("num") ? parseFloat(text.replace(/[^\d.+-]*/, "").replaceAll(",", "")) : NaN;
    return Number.isNaN(number) ? text : number;
  };
  document.querySelectorAll("main table").forEach((table) => {
    if (table.tBodies[0].id === "rows" || table.closest(".where")) return;
    sortable(table, (column, name, sign) => {
      const rows = [...table.tBodies[0].rows];
      table.tBodies[0].append(...rows.sort((a, b) => sign * compare(shownValue(a, column), shownValue(b, column))));
    });
  });
  sortable(byId("rows").parentElement, (column, name, sign) => {
    const key = KEYS[name];
    const value = ([r, place]) => { const held = runs[r].rows[place][key]; return held === null ? -1 : held; };
    order = { sign, key: typeof key === "function" ? key : value };
    loaded.then(filter);
  });

  const list = () => {
    const rows = found.slice(page * PAGE, (page + 1) * PAGE).map(([r, place]) => line(r, place));
    byId("rows").replaceChildren(...rows);
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    byId("count").textContent = found.length.toLocaleString("en") + (found.length === 1 ? " encounter" : " encounters");
    byId("p-where").textContent = "page " + (page + 1) + " of " + pages;
    byId("p-back").disabled = page === 0;
    byId("p-next").disabled = page + 1 >= pages;
    byId("pager").hidden = pages === 1;
  };

  const line = (r, place) => {
    const run = runs[r], row = run.rows[place];
    const cell = (name, className, content) => make("td", { class: className, "data-head": name }, content);
    const label = "Transcript of case " + row[NAME];
    const opener = make("button", { class: "open", type: "button", "data-run": r, "data-place": place, "aria-label": label }, row[NAME]);
    return make("tr", {},
      run.several && cell("run", null, run.letter),
      make("th", { scope: "row", "data-head": "case" }, opener),
      cell("outcome", null, make("span", { class: "tag o-" + row[OUTCOME] }, row[SHOWN])),
      cell("truth", null, row[TRUTH]),
      cell("diagnosis", null, row[SAID] || "–"),
      cell("confidence", "num", row[SURE] === null ? "–" : Math.round(100 * row[SURE]) + "%"),
      cell("turns", "num", row[TURNS] === null ? "–" : String(row[TURNS])),
      solvable && cell("regret", "num", row[REGRET] === null ? "–" : row[REGRET].toFixed(1)),
      cell("why", "why", dom.bound(row[WHY])));
  };

  const turn = (step) => { page += step; list(); byId("encounters").scrollIntoView(); };
  byId("p-back").addEventListener("click", () => turn(-1));
  byId("p-next").addEventListener("click", () => turn(1));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("input", () => loaded.then(filter));
  loaded.then(() => { byId("filters").hidden = false; filter(); open_by_address(); });

  // A transcript

  const dialog = byId("transcript");
  let current = null;

  const open = async (r, place, turn) => {
    await loaded;
    const row = runs[r] && runs[r].rows[place];
    if (!row) return;
    const told = (await unpack("pack-" + r + "-" + row[BLOCK]))[row[PLACE]];
    const chart = row[CHART] && (await unpack("chart-" + row[CHART][0]))[row[CHART][1]];
    current = [r, place];
    byId("t-title").textContent = (runs[r].several ? runs[r].letter + " · " : "") + "Case " + row[NAME] + ": " + row[SHOWN];
    const at = position();
    byId("t-back").disabled = at <= 0;
    byId("t-next").disabled = at < 0 || at + 1 >= found.length;
    if (!dialog.open) dialog.showModal();
    byId("t-body").scrollTop = 0;
    const address = "#transcript/" + row[ADDRESS] + (runs[r].several ? "@" + runs[r].letter : "");
    const link = (there) => address + "/turn-" + there;
    history.replaceState(null, "", turn ? link(turn) : address);
    renderEncounter(byId("t-encounter"), { ...told, chart }, { link, moved: (there) => history.replaceState(null, "", link(there)), turn });
  };

  const position = () => found.findIndex(([r, place]) => current && r === current[0] && place === current[1]);
  const step = (by) => { const next = found[position() + by]; if (next) open(next[0], next[1]); };

  document.addEventListener("click", (event) => {
    const opener = event.target.closest(".open");
    if (opener) open(Number(opener.dataset.run), Number(opener.dataset.place));
  });
  byId("t-close").addEventListener("click", () => dialog.close());
  byId("t-back").addEventListener("click", () => step(-1));
  byId("t-next").addEventListener("click", () => step(1));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => history.replaceState(null, "", location.pathname + location.search));

  const open_by_address = () => {
    const parts = location.hash.match(/^#transcript\/(.+?)(?:@(\w+))?(?:\/turn-(\d+))?$/);
    if (!parts) return;
    const r = parts[2] ? runs.findIndex((run) => run.letter === parts[2]) : 0;
    if (runs[r]) open(r, runs[r].rows.findIndex((row) => row[ADDRESS] === parts[1]), Number(parts[3]));
  };
})();
