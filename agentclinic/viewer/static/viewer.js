"use strict";
// The viewer: runs, one run, a comparison, one encounter, two side by side. What is shown is decided by the address alone:
// #run=NAME&case=12&turn=3&with=OTHER, with the filters of the lists beside it. `source` brings the data.
(() => {
  const { make, byId } = dom;
  const PAGE = 50; // rows on a page: a screen or two
  const WAIT = 1000; // milliseconds between two looks for something new
  const main = byId("main");

  // The address

  const address = () => new URLSearchParams(location.hash.slice(1));
  const href = (changes, from = address()) => {
    const made = new URLSearchParams(from);
    for (const [name, value] of Object.entries(changes)) {
      made.delete(name);
      [value].flat().forEach((one) => { if (one !== null && one !== undefined && one !== "") made.append(name, one); });
    }
    return "#" + made;
  };
  const go = (changes, from) => { location.hash = href(changes, from); };
  const amend = (changes) => { history.replaceState(null, "", href(changes)); view.update(); };
  const plain = () => new URLSearchParams();

  // What screen readers are told

  const announce = (text) => { byId("status").textContent = text; };
  const notice = (text, kind = "warn") => make("p", { class: kind, role: "alert" }, text);

  // The list of runs, and the rows of each run as far as they are loaded

  let shelf = null; // what source.runs() gave
  const runs = async (fresh = false) => {
    if (fresh || !shelf) shelf = await source.runs();
    byId("private").hidden = !shelf.private;
    return shelf;
  };

  const feeds = new Map();
  const feed = (name) => {
    if (!feeds.has(name)) feeds.set(name, { name, rows: [], byName: new Map(), version: undefined, more: true, run: null });
    return feeds.get(name);
  };
  const pull = async (of) => {
    const { columns } = await runs();
    const got = await source.rows(of.name, of.rows.length, of.version);
    if (got.first < of.rows.length || (of.version !== undefined && of.version !== got.version)) { of.rows = []; of.byName.clear(); }
    got.rows.forEach((values) => {
      const row = Object.fromEntries(columns.map((name, place) => [name, values[place]]));
      row.block = values[columns.length]; // only in exported files
      row.words = [row.name, row.truth, row.answer, row.specialty, row.why].join("\n").toLowerCase();
      of.rows.push(row);
      of.byName.set(row.name, row);
    });
    of.version = got.version;
    of.more = got.more;
    of.run = got.run;
    return got.rows.length;
  };
  // The row that `fits`; loads more rows until it is found.
  const sought = async (of, fits) => {
    let at = 0;
    for (;;) {
      for (; at < of.rows.length; at += 1) if (fits(of.rows[at])) return of.rows[at];
      if (!of.more) return null;
      await pull(of);
      if (at > of.rows.length) at = 0;
    }
  };

  // Repeats a look for something new until the view is left: at once while there is more to read, later otherwise.
  const following = (look) => {
    let left = false;
    let timer = 0;
    const again = async () => {
      if (left) return;
      let more = false;
      let failed = false;
      try { more = await look(); failure(""); } catch (error) { if (!left) failure(error.message); failed = true; }
      if (left || (!source.live && !more)) return;
      timer = setTimeout(() => (document.hidden ? document.addEventListener("visibilitychange", again, { once: true }) : again()), more && !failed ? 0 : WAIT);
    };
    again();
    return () => { left = true; clearTimeout(timer); };
  };
  const listening = async () => { await runs(true); return false; }; // says when the server is gone
  let told = null;
  const failure = (text) => {
    if (told && told.textContent === text && told.isConnected) return;
    if (told) told.remove();
    told = text ? notice(text, "notice") : null;
    if (told) main.prepend(told);
  };

  // Tables: the columns have a name, a label, a cell and, to be sorted by, a value

  const collator = new Intl.Collator("en", { numeric: true }); // made once: thousands of rows are compared
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : collator.compare(a, b));
  const sorted = (rows, columns, by) => {
    const column = columns.find((one) => one.name === (by || "").replace(/^-/, "") && one.value);
    if (!column) return rows;
    const sign = by.startsWith("-") ? -1 : 1;
    const empty = (value) => value === null || value === undefined || value === "";
    // What is not known comes last either way.
    const keyed = rows.map((row) => [column.value(row), row]);
    keyed.sort(([a], [b]) => (empty(a) || empty(b) ? empty(a) - empty(b) : sign * compare(a, b)));
    return keyed.map(([, row]) => row);
  };
  const table = (caption, columns) => {
    const heads = columns.map((column) => {
      const sort = () => amend({ sort: address().get("sort") === column.name ? "-" + column.name : column.name, page: null });
      const inside = column.value ? make("button", { type: "button", class: "sort", click: sort }, column.label) : make("span", { class: column.hidden ? "hidden" : null }, column.label);
      return make("th", { scope: "col", class: column.number ? "num" : null, "data-column": column.name }, inside);
    });
    const body = make("tbody");
    const element = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      make("table", { class: "stacked" }, make("caption", { class: "hidden" }, caption), make("thead", {}, make("tr", {}, heads)), body));
    const show = (rows, by) => {
      columns.forEach((column, place) => {
        const order = by === column.name ? "ascending" : by === "-" + column.name ? "descending" : null;
        if (order) heads[place].setAttribute("aria-sort", order);
        else heads[place].removeAttribute("aria-sort");
      });
      const held = body.contains(document.activeElement) ? document.activeElement.dataset.row : null;
      body.replaceChildren(...rows.map((row) => make("tr", { "data-row": row.name }, columns.map((column, place) => {
        const head = place === (columns[0].hidden ? 1 : 0);
        return make(head ? "th" : "td", { scope: head ? "row" : null, class: column.number ? "num" : null, "data-head": column.label, "data-column": column.name }, column.cell(row));
      }))));
      if (held !== null) focusRow(body, held);
    };
    return { element, body, show };
  };
  const focusRow = (body, name) => {
    const link = [...body.querySelectorAll("a[data-row]")].find((one) => one.dataset.row === name);
    if (link) { link.focus(); link.closest("tr").scrollIntoView({ block: "nearest" }); }
    return Boolean(link);
  };
  const stepRow = (body, by) => {
    const links = [...body.querySelectorAll("a[data-row]")];
    const at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
    if (next) { next.focus(); next.closest("tr").scrollIntoView({ block: "nearest" }); }
  };
  const DASH = "–";
  const known = (value) => (value === null || value === undefined || value === "" ? DASH : value);
  const dollars = (value) => (value === null || value === undefined ? DASH : "$" + value.toLocaleString("en", value >= 10 || Number.isInteger(value) ? { maximumFractionDigits: 0 } : { minimumFractionDigits: 2, maximumFractionDigits: value < 0.1 ? 4 : 2 }));
  const plural = (count, one) => count.toLocaleString("en") + " " + one + (count === 1 ? "" : "s");
  const pairs = (entries) => make("dl", { class: "facts" }, entries.filter(([, value]) => value).map(([name, value, more]) => make("div", {}, make("dt", {}, name), make("dd", {}, value, more && make("small", {}, " " + more)))));
  const field = (label, control) => make("label", {}, label, control);
  const form = (...fields) => make("form", { class: "filters", role: "search", submit: (event) => event.preventDefault() }, fields);
  const title = (text, ...about) => {
    document.title = text + " – AgentClinic viewer";
    byId("title").replaceChildren(...dom.named(text));
    byId("about").replaceChildren(...about.filter(Boolean).map((one) => make("span", {}, one)));
  };
  const path = (...steps) => {
    byId("path").hidden = steps.filter(Boolean).length < 2;
    byId("path").replaceChildren(...steps.filter(Boolean).flatMap((step, place) => [place > 0 && make("span", { "aria-hidden": "true" }, "›"), step]).filter(Boolean));
  };
  const step = (text, to) => (to === undefined ? make("b", { "aria-current": "page" }, dom.named(text)) : make("a", { href: to }, dom.named(text)));
  const loading = (what) => make("p", { class: "loading", role: "status" }, "Loading " + what + "…");
  const home = () => shelf && shelf.runs.length > 1 && step("Runs", "#");
  const cases = (run) => (run.planned === null || run.planned === run.encounters ? run.encounters.toLocaleString("en") : run.encounters.toLocaleString("en") + " of " + run.planned.toLocaleString("en"));

  // Runs

  const runsView = () => {
    const search = make("input", { type: "search", id: "search", placeholder: "name, doctor, model", input: (event) => amend({ q: event.target.value }) });
    const button = make("button", { type: "button", click: () => go({ compare: picked() }, plain()) }, "Compare");
    const picked = () => address().getAll("pick");
    const pick = (name, wanted) => amend({ pick: wanted ? [...picked(), name] : picked().filter((one) => one !== name) });
    const columns = [
      { name: "pick", label: "select", hidden: true, cell: (run) => make("input", { type: "checkbox", "aria-label": "Select " + run.name + " to compare", checked: picked().includes(run.name), "data-pick": run.name, change: (event) => pick(run.name, event.target.checked) }) },
      { name: "name", label: "run", value: (run) => run.name, cell: (run) => [make("a", { href: href({ run: run.name }, plain()), "data-row": run.name }, dom.named(run.name)), run.problem && make("small", {}, run.problem)] },
      { name: "cases", label: "cases", number: true, value: (run) => run.encounters, cell: cases },
      { name: "right", label: "right (95%)", value: (run) => run.right, cell: (run) => (run.reading ? "loading…" : dom.bound(run.right_text)) },
      { name: "doctor", label: "doctor", value: (run) => run.doctor, cell: (run) => dom.named(known(run.doctor)) },
      { name: "model", label: "model", value: (run) => run.model, cell: (run) => known(run.model) },
      { name: "dataset", label: "data set", value: (run) => run.dataset, cell: (run) => known(run.dataset) },
      { name: "cost", label: "cost", number: true, value: (run) => run.cost, cell: (run) => run.cost_text },
      { name: "state", label: "state", value: (run) => run.state, cell: (run) => make("span", { class: "state-" + run.state }, run.state) },
    ];
    const list = table("Runs", columns);
    const count = make("p", { class: "tally", role: "status" }, "Loading the runs…");
    const none = make("p", { class: "note", hidden: true }, "There are no runs in this folder yet. To make one: agentclinic run");
    let shown = "";
    const update = () => {
      if (!shelf) return;
      const at = address();
      const wanted = (at.get("q") || "").trim().toLowerCase();
      if (search.value.trim().toLowerCase() !== wanted) search.value = at.get("q") || "";
      const fits = (run) => !wanted || [run.name, run.doctor, run.model, run.dataset, run.state].some((part) => String(part || "").toLowerCase().includes(wanted));
      const found = sorted(shelf.runs.filter(fits), columns, at.get("sort"));
      const now = JSON.stringify([found, at.get("sort"), picked()]);
      button.disabled = picked().length < 2;
      button.textContent = picked().length < 2 ? "Compare (select two or more)" : "Compare " + picked().length + " runs";
      count.textContent = plural(found.length, "run") + (shelf.more ? "; loading…" : "");
      none.hidden = shelf.runs.length > 0;
      if (now === shown) return;
      shown = now;
      const held = document.activeElement && document.activeElement.dataset.pick;
      list.show(found, at.get("sort"));
      if (held) { const box = [...list.body.querySelectorAll("[data-pick]")].find((one) => one.dataset.pick === held); if (box) box.focus(); }
    };
    title("Runs");
    path(step("Runs"));
    main.replaceChildren(form(field("Search", search)), make("div", { class: "actions" }, button, make("span", { class: "grow" }, "The first run you select is the baseline.")), count, none, list.element);
    const leave = following(async () => {
      const before = shelf && shelf.runs.length;
      const got = await runs(true);
      if (got.runs.length === 1) { location.replace(href({ run: got.runs[0].name }, plain())); return false; }
      if (before !== null && before !== undefined && got.runs.length > before) announce(plural(got.runs.length, "run"));
      update();
      return got.more;
    });
    return { update, leave, keys: { j: () => stepRow(list.body, 1), k: () => stepRow(list.body, -1) }, search };
  };

  // One run

  const outcomeTag = (row) => make("span", { class: "tag o-" + row.outcome }, (shelf.outcomes[row.outcome] || row.outcome.replaceAll("_", " ")));
  const failed = (row) => row.outcome !== "diagnosed_right";
  const CASE = [
    { name: "case", label: "case", value: (row) => row.name, cell: (row) => make("a", { href: href({ case: row.name, turn: null, page: null }), "data-row": row.name, "aria-label": "Case " + row.name }, dom.named(row.name)) },
    { name: "outcome", label: "outcome", value: (row) => row.outcome, cell: (row) => [outcomeTag(row), row.why && make("small", {}, row.why)] },
    { name: "specialty", label: "specialty", value: (row) => row.specialty, cell: (row) => known(row.specialty) },
    { name: "truth", label: "truth", value: (row) => row.truth, cell: (row) => [known(row.truth), heard(row)] },
    { name: "answer", label: "diagnosis", value: (row) => row.answer, cell: (row) => known(row.answer) },
    { name: "sure", label: "confidence", number: true, value: (row) => row.sure, cell: (row) => (row.sure === null ? DASH : Math.round(100 * row.sure) + "%") },
    { name: "turns", label: "turns", number: true, value: (row) => row.turns, cell: (row) => known(row.turns) },
    { name: "tests", label: "tests", number: true, value: (row) => row.tests, cell: (row) => known(row.tests) },
    { name: "price", label: "price of tests", number: true, value: (row) => row.price, cell: (row) => dollars(row.price) },
    { name: "cost", label: "cost of models", number: true, value: (row) => row.cost, cell: (row) => dollars(row.cost) },
    { name: "regret", label: "regret", number: true, value: (row) => row.regret, cell: (row) => (row.regret === null ? DASH : row.regret.toFixed(1)) },
  ];

  // What was said: searched part by part, and continued when the run grows.
  const hearing = { key: null, found: new Map(), next: undefined, upTo: 0, busy: false };
  const hear = async (of, changed) => {
    const said = (address().get("said") || "").trim();
    const key = said && of.name + "\n" + of.version + "\n" + said;
    if (hearing.key !== key) Object.assign(hearing, { key, found: new Map(), next: undefined, upTo: 0, busy: false });
    if (!key || hearing.busy || (hearing.next === null && (!source.live || hearing.upTo >= of.rows.length))) return;
    hearing.busy = true;
    const from = hearing.next === null ? hearing.upTo : hearing.next;
    const upTo = of.rows.length;
    try {
      const got = await source.search(of.name, said, from);
      if (hearing.key !== key) return;
      got.found.forEach(([name, turn, words]) => hearing.found.set(name, [turn, words]));
      Object.assign(hearing, { next: got.next, upTo, busy: false });
    } catch (error) {
      hearing.busy = false;
      hearing.next = null;
      hearing.upTo = Infinity;
      failure(error.message);
      return;
    }
    changed();
    hear(of, changed);
  };
  const heard = (row) => {
    const hit = address().get("said") && hearing.found.get(row.name);
    if (!hit) return null;
    const [turn, words] = hit;
    const wanted = address().get("said").trim().split(/\s+/).join(" ").toLowerCase();
    const at = words.toLowerCase().indexOf(wanted);
    const parts = at < 0 ? [words] : [words.slice(0, at), make("mark", {}, words.slice(at, at + wanted.length)), words.slice(at + wanted.length)];
    return make("small", {}, turn ? make("a", { href: href({ case: row.name, turn, page: null }) }, "turn " + turn) : "said", ": ", parts);
  };

  const chosen = (of) => {
    const at = address();
    const [outcome, specialty, wanted] = [at.get("outcome"), at.get("specialty"), (at.get("q") || "").trim().toLowerCase()];
    const said = (at.get("said") || "").trim();
    const fits = (row) => (!outcome || (outcome === "failed" ? failed(row) : row.outcome === outcome))
      && (!specialty || row.specialty === specialty) && (!wanted || row.words.includes(wanted)) && (!said || hearing.found.has(row.name));
    return sorted(of.rows.filter(fits), CASE, at.get("sort") || "case");
  };

  const runView = (name) => {
    const of = feed(name);
    const change = (key) => (event) => amend({ [key]: event.target.value, page: null });
    const search = make("input", { type: "search", id: "search", placeholder: "truth or diagnosis", input: change("q") });
    const said = make("input", { type: "search", placeholder: "words, e.g. chest pain", change: change("said") });
    const outcome = make("select", { change: change("outcome") });
    const specialty = make("select", { change: change("specialty") });
    const facts = make("div");
    const count = make("p", { class: "tally", role: "status" }, "Loading " + name + "…");
    const list = table("Cases", CASE);
    const where = make("span");
    const back = make("button", { type: "button", click: () => turn(-1) }, "Previous page");
    const next = make("button", { type: "button", click: () => turn(1) }, "Next page");
    const pager = make("div", { class: "pager", hidden: true }, back, where, next);
    const turn = (by) => { amend({ page: Math.max(1, page() + by) }); list.element.scrollIntoView(); };
    const page = () => Math.max(1, parseInt(address().get("page"), 10) || 1);
    const options = (select, entries, wanted) => {
      const now = JSON.stringify(entries);
      if (select.dataset.entries !== now) {
        select.dataset.entries = now;
        select.replaceChildren(...entries.map(([value, text]) => make("option", { value }, text)));
      }
      if (!entries.some(([value]) => value === wanted)) select.append(make("option", { value: wanted }, wanted)); // may come yet
      select.value = wanted;
    };
    let shown = null;
    const update = () => {
      if (!of.run) return;
      const at = address();
      hear(of, update);
      title(of.run.name, of.run.played, of.run.dataset);
      path(home(), step(of.run.name));
      const counts = new Map();
      const kinds = new Set();
      of.rows.forEach((row) => { counts.set(row.outcome, (counts.get(row.outcome) || 0) + 1); if (row.specialty) kinds.add(row.specialty); });
      const bad = of.rows.length - (counts.get("diagnosed_right") || 0);
      options(outcome, [["", "all"], ["failed", "not right (" + bad + ")"], ...Object.entries(shelf.outcomes).filter(([key]) => counts.has(key)).map(([key, text]) => [key, text + " (" + counts.get(key) + ")"])], at.get("outcome") || "");
      options(specialty, [["", "all"], ...[...kinds].sort().map((kind) => [kind, kind])], at.get("specialty") || "");
      if (document.activeElement !== search) search.value = at.get("q") || "";
      if (document.activeElement !== said) said.value = at.get("said") || "";
      const [right, between] = of.run.right_text.split(" (");
      facts.replaceChildren(pairs([
        ["right (95%)", right, between && dom.bound("(" + between)],
        ["encounters", cases(of.run)],
        ["cost of models", of.run.cost_text],
        ["state", make("span", { class: "state-" + of.run.state }, of.more ? "loading…" : of.run.state)],
      ]), of.run.problem ? notice(of.run.problem) : "", of.run.advice ? make("p", { class: "note" }, of.run.advice) : "");
      const found = chosen(of);
      const pages = Math.max(1, Math.ceil(found.length / PAGE));
      const here = Math.min(page(), pages);
      const searching = hearing.key && (hearing.busy || hearing.next !== null);
      count.textContent = (found.length === of.rows.length ? plural(of.rows.length, "encounter") : found.length.toLocaleString("en") + " of " + plural(of.rows.length, "encounter"))
        + (of.more ? "; loading more…" : "") + (searching ? "; searching the dialogue…" : "");
      const rows = found.slice((here - 1) * PAGE, here * PAGE);
      const by = at.get("sort") || "case";
      const now = JSON.stringify([rows.map((row) => [row.name, row.outcome]), by, at.get("said"), of.version, location.hash]);
      where.textContent = "page " + here + " of " + pages;
      back.disabled = here === 1;
      next.disabled = here === pages;
      pager.hidden = pages === 1;
      // Columns that say nothing about any case of this run are left out.
      ["specialty", "sure", "tests", "price", "cost"].forEach((column) => list.element.classList.toggle("no-" + column, !of.rows.some((row) => row[column])));
      list.element.classList.toggle("no-regret", of.rows.every((row) => row.regret === null)); // 0 says something
      if (now !== shown) list.show(rows, by);
      shown = now;
    };
    main.replaceChildren(facts, form(field("Outcome", outcome), field("Specialty", specialty), field("Search", search), field("Search the dialogue", said)), count, list.element, pager);
    title(name);
    let first = true;
    const leave = following(async () => {
      await runs();
      const fresh = await pull(of);
      if (!first && fresh) announce(plural(fresh, "new encounter") + ", " + cases(of.run) + " in all");
      if (fresh || first || of.run.state !== shownState) update();
      shownState = of.run.state;
      first = first && of.more;
      return of.more;
    });
    let shownState = null;
    const toFailure = (by) => {
      const found = chosen(of);
      const focused = document.activeElement && document.activeElement.dataset.row;
      let at = found.findIndex((row) => row.name === focused);
      if (at < 0 && by < 0) at = found.length;
      for (at += by; at >= 0 && at < found.length; at += by) {
        if (!failed(found[at])) continue;
        amend({ page: Math.floor(at / PAGE) + 1 });
        focusRow(list.body, found[at].name);
        return;
      }
      announce("No more cases that are not right.");
    };
    // Back from an encounter: to its row.
    const returned = lastCase;
    if (returned) requestAnimationFrame(() => {
      const at = chosen(of).findIndex((row) => row.name === returned);
      if (at < 0 || !view || view.update !== update) return;
      amend({ page: Math.floor(at / PAGE) + 1 });
      focusRow(list.body, returned);
    });
    return { update, leave, search, keys: { j: () => stepRow(list.body, 1), k: () => stepRow(list.body, -1), n: () => toFailure(1), p: () => toFailure(-1), u: () => go({}, plain()) } };
  };

  // Several runs compared

  const compareView = (names) => {
    title("Comparison", plural(names.length, "run"));
    path(home(), step("Comparison"));
    const box = make("div", {}, loading("the comparison"));
    main.replaceChildren(box);
    const draw = (told) => {
      const columns = told.columns.map((label, place) => ({ name: String(place), label: label || "letter", hidden: !label, number: place >= told.words, cell: (row) => (place === 0 ? make("b", { class: "letter c" + row.place % 6 }, row.cells[0]) : place === 1 ? [make("a", { href: href({ run: row.name }, plain()), "data-row": row.name }, row.cells[1]), make("small", {}, row.name)] : row.cells[place]) }));
      const list = table("Comparison", columns);
      list.show(told.rows.map((cells, place) => ({ cells, place, name: told.runs[place] })), null);
      const letter = (name) => told.rows[told.runs.indexOf(name)][0];
      const flips = told.flips.flatMap(({ run, gained, lost }) => [["right in " + letter(run) + ", not in A", gained], ["right in A, not in " + letter(run), lost]].filter(([, found]) => found.length).map(([text, found]) => [
        make("h3", {}, plural(found.length, "case") + " " + text),
        make("ul", { class: "flips" }, found.map((number) => make("li", {}, make("a", { href: href({ run, case: number, with: told.runs[0] }, plain()), "aria-label": "Case " + number + " side by side" }, String(number))))),
      ]));
      const others = told.runs.slice(1).map((name) => make("a", { class: "button", href: href({ compare: [name, ...told.runs.filter((one) => one !== name)] }, plain()) }, "Make " + letter(name) + " the baseline"));
      const sentences = told.sentences.map((text) => make("p", { class: "conclusion" }, text));
      const remarks = told.remarks.map((text) => make("p", { class: "note" }, text));
      const warnings = told.warnings.map((text) => make("p", { class: "warn" }, text));
      box.replaceChildren(list.element, ...sentences, ...remarks, ...warnings, ...(source.live ? [make("div", { class: "actions" }, others)] : []), ...flips.flat());
    };
    runs().then(() => { path(home(), step("Comparison")); return source.compare(names); }).then((told) => { draw(told); announce(told.sentences.join(" ")); }, (error) => box.replaceChildren(notice(error.message)));
    return { update: () => {}, leave: following(listening), keys: { u: () => go({}, plain()) } };
  };

  // One encounter, or two side by side

  const encounterView = (name, wanted, other) => {
    const of = feed(name);
    const root = make("div", { id: "encounter" });
    const actions = make("div", { class: "actions" });
    const problem = make("div");
    let gone = false;
    let order = [];
    const waiting = loading("case " + wanted);
    main.replaceChildren(actions, problem, waiting, root);
    title("Case " + wanted);
    const around = (by, fits) => {
      let at = order.findIndex((row) => row.name === wanted);
      if (at < 0) return null;
      for (at += by; at >= 0 && at < order.length; at += by) if (!fits || fits(order[at])) return order[at];
      return null;
    };
    const to = (row) => row && go({ case: row.name, turn: null });
    const link = (text, row) => make("a", { class: "button", href: row ? href({ case: row.name, turn: null }) : null, role: row ? null : "link", "aria-disabled": row ? null : "true" }, text);
    const beside = () => {
      const names = shelf.runs.map((run) => run.name).filter((one) => one !== name);
      if (!names.length) return null;
      const select = make("select", { change: (event) => go({ with: event.target.value, turn: null }) }, make("option", { value: "" }, "no other run"), names.map((one) => make("option", { value: one }, one)));
      select.value = other || "";
      return field("Side by side with", select);
    };
    const bar = () => {
      order = chosen(of);
      const at = order.findIndex((row) => row.name === wanted);
      actions.replaceChildren(...[link("Previous", around(-1)), link("Next", around(1)), link("Previous failure", around(-1, failed)), link("Next failure", around(1, failed)), make("span", { class: "grow" }, at < 0 ? "" : at + 1 + " of " + order.length + (order.length < of.rows.length ? " chosen" : "")), beside()].filter(Boolean));
    };
    const draw = async () => {
      await runs();
      path(home(), step(name, href({ case: null, turn: null, with: null })), step("Case " + wanted));
      const row = await sought(of, (one) => one.name === wanted);
      if (!row) throw new Error("There is no case " + wanted + " in " + name + ".");
      hear(of, bar);
      bar();
      const options = { turn: Number(address().get("turn")) || 0, link: (turn) => href({ turn }), moved: (turn) => history.replaceState(null, "", href({ turn })) };
      const data = await source.encounter(name, row);
      if (gone) return;
      if (!other) waiting.remove();
      title("Case " + wanted + ": " + (shelf.outcomes[row.outcome] || row.outcome), name, row.specialty);
      if (!other) { renderEncounter(root, data, options); return; }
      const there = feed(other);
      const repeat = (text) => (text.match(/\.(\d+)$/) || [])[1];
      const same = await sought(there, (one) => one.key === row.key && repeat(one.name) === repeat(row.name)) || await sought(there, (one) => one.key === row.key);
      if (gone) return;
      if (!same) { renderEncounter(root, data, options); problem.replaceChildren(notice(other + " does not have this case.")); return; }
      const second = await source.encounter(other, same);
      if (gone) return;
      renderSideBySide(root, data, second, { ...options, names: [name, other] });
    };
    lastCase = wanted;
    draw().then(() => {
      announce(byId("title").textContent);
      if (!address().get("turn")) byId("title").focus({ preventScroll: true });
      return of.more && sought(of, () => false); // the rest of the rows, for what comes next and before
    }).then(() => { if (!gone) bar(); }, (error) => { if (!gone) problem.replaceChildren(notice(error.message)); })
      .finally(() => waiting.remove());
    const ended = following(listening);
    return {
      update: () => {},
      leave: () => { gone = true; ended(); },
      keys: { n: () => to(around(1, failed)), p: () => to(around(-1, failed)), ArrowRight: () => to(around(1)), ArrowLeft: () => to(around(-1)), u: () => go({ case: null, turn: null, with: null }) },
    };
  };

  // Which view the address asks for

  let view = null;
  let lastCase = null;
  const show = () => {
    const at = address();
    const [run, one, other, several] = [at.get("run"), at.get("case"), at.get("with"), at.getAll("compare")];
    const key = JSON.stringify(several.length ? ["compare", several] : [run, one, other, one && at.get("turn")]);
    if (view && view.key === key) { view.update(); return; }
    if (view) view.leave();
    view = null;
    failure("");
    const made = several.length ? compareView(several) : run && one ? encounterView(run, one, other) : run ? runView(run) : runsView();
    view = { ...made, key };
    if (!run) lastCase = null;
    view.update();
    scrollTo(0, 0);
  };

  // Keys

  const HELP = [
    [["j", "k"], "next, previous row; in an encounter: turn"],
    [["Enter"], "open the row"],
    [["n", "p"], "next, previous case that is not right"],
    [["→", "←"], "next, previous encounter"],
    [["u"], "up: to the run, then to the list of runs"],
    [["/"], "search"],
    [["?"], "this help"],
  ];
  const help = byId("help");
  help.append(make("h2", { id: "help-title" }, "Keys"), make("dl", {}, HELP.map(([keys, text]) => [make("dt", {}, keys.map((key) => [make("kbd", {}, key), " "])), make("dd", {}, text)])), make("button", { type: "button", click: () => help.close() }, "Close"));
  byId("keys").addEventListener("click", () => help.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || help.open) return;
    const typing = event.target.closest("input:not([type=checkbox]), select, textarea");
    if (event.key === "Escape" && typing) { typing.blur(); return; }
    if (typing || !view) return;
    const arrows = { ArrowDown: "j", ArrowUp: "k" };
    const key = arrows[event.key] && event.target.matches("a[data-row]") ? arrows[event.key] : event.key;
    if (key === "?") help.showModal();
    else if (key === "/" && view.search) view.search.focus();
    else if (view.keys[key]) view.keys[key]();
    else return;
    event.preventDefault();
  });

  byId("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
  dom.theme(byId("theme"));
  addEventListener("hashchange", show);
  show();
})();
