"use strict";
// Text from records reaches the page as text (textContent), never as markup.
(() => {
  const PAGE = 25;
  const byId = (id) => document.getElementById(id);
  const whole = new Promise((done) => {
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", done, { once: true });
    else done();
  });

  const make = (name, className, text) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined && text !== null) element.textContent = text;
    return element;
  };

  // Light and dark

  const theme = byId("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  dark.addEventListener("change", nameTheme);
  theme.hidden = false;
  nameTheme();

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

  const NAME = 0, OUTCOME = 1, SHOWN = 2, TRUTH = 3, SAID = 4, SURE = 5, TURNS = 6, WHY = 7, KIND = 8, BLOCK = 9, PLACE = 10, ADDRESS = 11;
  let runs = [];
  let found = [];
  let page = 0;
  const loaded = (async () => {
    await whole;
    for (let run = 0; byId("index-" + run); run += 1) runs.push(await read("index-" + run));
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
  const KEYS = { run: ([r]) => r, scenario: ([r, place]) => place, outcome: SHOWN, truth: TRUTH, diagnosis: SAID, sure: SURE, turns: TURNS, why: WHY };
  const sortable = (table, sort) => table.querySelectorAll("thead th").forEach((head, column) => {
    const name = head.textContent.trim();
    const cells = [...table.tBodies[0].rows].map((row) => row.cells[column]);
    if (!name || cells.length < 2 || cells.every((cell) => !cell || !cell.textContent.trim())) return;
    const button = make("button", "sort", name);
    button.type = "button";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(column, name, down ? -1 : 1);
    });
  });
  const shownValue = (row, column) => {
    const text = row.cells[column].textContent.trim();
    if (text === "–") return -Infinity;
    const number = row.cells[column].classList.contains("num") ? parseFloat(text.replace(/[^\d.+-]*/, "").replaceAll(",", "")) : NaN;
    return Number.isNaN(number) ? text : number;
  };
  document.querySelectorAll("main table").forEach((table) => {
    if (table.tBodies[0].id === "rows") return;
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
    const tr = make("tr");
    const cell = (name, className, text) => {
      const made = make("td", className, text);
      made.dataset.head = name;
      return made;
    };
    if (run.several) tr.append(cell("run", "", run.letter));
    const head = make("th");
    head.dataset.head = "scenario";
    head.scope = "row";
    const opener = make("button", "open", row[NAME]);
    opener.type = "button";
    opener.dataset.run = r;
    opener.dataset.place = place;
    opener.setAttribute("aria-label", "Transcript of scenario " + row[NAME]);
    head.append(opener);
    const outcome = cell("outcome", "");
    outcome.append(make("span", "tag o-" + row[OUTCOME], row[SHOWN]));
    tr.append(head, outcome, cell("truth", "", row[TRUTH]), cell("diagnosis", "", row[SAID] || "–"));
    tr.append(cell("sure", "num", row[SURE] === null ? "–" : Math.round(100 * row[SURE]) + "%"));
    tr.append(cell("turns", "num", row[TURNS] === null ? "–" : row[TURNS]), cell("why", "why", row[WHY]));
    return tr;
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
  const PLAIN = { chart: "from the chart", chart_equivalent: "from another test in the chart", default_negative: "denied: not in the chart", default_normal: "normal by default: not in the chart", unavailable: "not available: not in the chart" };

  const open = async (r, place) => {
    await loaded;
    const row = runs[r] && runs[r].rows[place];
    if (!row) return;
    const told = (await unpack("pack-" + r + "-" + row[BLOCK]))[row[PLACE]];
    current = [r, place];
    byId("t-title").textContent = (runs[r].several ? runs[r].letter + " · " : "") + "Scenario " + row[NAME] + ": " + row[SHOWN];
    byId("t-body").replaceChildren(...shown(told, row));
    const at = position();
    byId("t-back").disabled = at <= 0;
    byId("t-next").disabled = at < 0 || at + 1 >= found.length;
    if (!dialog.open) dialog.showModal();
    byId("t-body").scrollTop = 0;
    history.replaceState(null, "", "#transcript/" + row[ADDRESS] + (runs[r].several ? "@" + runs[r].letter : ""));
  };

  const position = () => found.findIndex(([r, place]) => current && r === current[0] && place === current[1]);
  const step = (by) => { const next = found[position() + by]; if (next) open(next[0], next[1]); };

  // Laying out one word of a megabyte takes a browser minutes, so long texts are shown in pieces on demand.
  const LONG = 6000;
  const text = (name, className, words) => {
    const box = make(name, className, words.length > LONG ? words.slice(0, LONG) : words);
    if (words.length <= LONG) return [box];
    const more = make("button", "", "Show more (" + words.length.toLocaleString("en") + " characters)");
    more.type = "button";
    let at = LONG;
    more.addEventListener("click", () => {
      box.append(words.slice(at, at + LONG));
      at += LONG;
      more.hidden = at >= words.length;
    });
    return [box, more];
  };

  const shown = (told, row) => {
    const parts = [];
    const facts = make("dl");
    const fact = (name, value) => { if (value) facts.append(make("dt", "", name), make("dd", "", value)); };
    if (told.door) { fact("At the door", told.door[0]); fact("Task", told.door[1]); }
    fact("Truth", told.truth);
    fact("Diagnosis", told.said);
    if (told.judge) fact("Judge", told.judge.filter(Boolean).join(": ").replaceAll("_", " "));
    if (told.fault) fact("Fault", told.fault[0] + ", " + told.fault[1] + ": " + told.fault[2]);
    fact("Why", row[WHY]);
    parts.push(facts);
    if (told.text) parts.push(make("p", "note", "This run kept the dialogue as one text."), ...text("div", "told", told.text));
    (told.turns || []).forEach((said) => parts.push(utterance(said)));
    if (!told.text && !told.turns) parts.push(make("p", "note", "No transcript was kept."));
    return parts;
  };

  const utterance = (said) => {
    const box = make("div", "turn" + (said.r === "doctor" ? " doctor" : ""));
    const who = make("div", "who");
    who.append(make("b", "", said.r), "turn " + said.n + (said.a && said.a !== "question" ? ", " + said.a : ""));
    const what = make("div");
    // A plan is much longer than the words that follow it: folded, to keep the dialogue readable.
    if (said.r === "planner") {
      const plan = make("details");
      plan.append(make("summary", "", "Planning notes"), ...text("p", "text", said.t));
      what.append(plan);
    } else what.append(...text("p", "text", said.t));
    box.append(who, what);
    const more = make("div", "more");
    (said.d || []).forEach(([topic, from]) => {
      const known = Object.hasOwn(PLAIN, from);
      more.append(make("span", "from" + (known ? " " + from : ""), topic + ": " + (known ? PLAIN[from] : from)));
    });
    if (said.h) more.append(odds(said));
    (said.x || []).forEach((note) => more.append(make("div", "", "Note: " + note)));
    if (more.childNodes.length) what.append(more);
    return box;
  };

  const odds = (said) => {
    const box = make("details");
    const scores = said.s === "planner_score";
    const first = said.h[0];
    const number = (value) => (value === null || value === undefined ? "–" : scores ? value.toFixed(2) : (100 * value).toFixed(value < 0.1 ? 1 : 0) + "%");
    box.append(make("summary", "", "Differential (" + said.s.replace("_", " ") + ")" + (first ? ": " + first[0] + " " + number(first[1]) : "")));
    const rows = said.h.map((entry) => entry);
    if (said.o !== null && said.o !== undefined) rows.push(["anything else", said.o]);
    const grid = make("div", "odds");
    const most = scores ? Math.max(...rows.map((entry) => Math.abs(entry[1] || 0)), 1e-9) : 1;
    rows.forEach(([name, value]) => {
      const bar = make("i");
      bar.style.width = Math.max(0, Math.min(100, (100 * (value || 0)) / most)) + "%";
      const cell = make("span");
      cell.append(bar);
      grid.append(make("span", "", name), cell, make("span", "n", number(value)));
    });
    box.append(grid);
    return box;
  };

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
    const parts = location.hash.match(/^#transcript\/(.+?)(?:@(\w+))?$/);
    if (!parts) return;
    const r = parts[2] ? runs.findIndex((run) => run.letter === parts[2]) : 0;
    if (runs[r]) open(r, runs[r].rows.findIndex((row) => row[ADDRESS] === parts[1]));
  };
})();
