"use strict";
// One encounter, or the same case in two runs, drawn from the data of encounter_data.py. Needs dom.js.
//
//   renderEncounter(root, data, options)             options.link(turn): the address of a turn (by default #turn-7)
//   renderSideBySide(root, one, other, options)      options.moved(turn): called when a key or a click moves to a turn
//                                                    options.turn: where to begin; options.names: of the two runs
//
// Both return { go(turn), close() }. The keys j and k move by turn. Drawing into the same root again replaces it.
const { renderEncounter, renderSideBySide, renderDifferentials } = (() => {
  const { make, svg } = dom;
  const LANES = { doctor: "Doctor", patient: "Patient", measurement: "Laboratory", clinic: "Clinic", planner: "Planner", confidence: "Doctor, asked for its confidence" };
  const FROM = { chart: "from\u00a0the\u00a0chart", chart_equivalent: "from another test in the chart", default_negative: "denied: not in the chart", default_normal: "normal by default: not in the chart", unavailable: "not available: not in the chart", pending: "result not back in time", refused: "not done: the money, the size of the order or the setting", not_understood: "not understood: asked back", manner: "small talk: no fact" };
  const OUTCOMES = { diagnosed_right: "right", diagnosed_wrong: "wrong", not_readable: "not readable", max_infs_reached: "no diagnosis", doctor_failed: "doctor failed", model_failed: "model failed (missing)", judge_failed: "judge failed (missing)" };
  const KINDS = { test: "order", images: "asks for images", diagnosis: "diagnosis", none: "not understood" };
  const SOURCES = { posterior: "computed", stated: "stated by the doctor", elicited: "asked for after the diagnosis", planner_posterior: "computed from the planner's table", planner_score: "scored by the planner" };
  const MOST_LINES = 5; // more lines cannot be told apart
  const LONG = 6000; // laying out one word of a megabyte takes a browser minutes
  const own = (table, key, otherwise) => (Object.hasOwn(table, key) ? table[key] : otherwise);
  const plural = (count, one) => count.toLocaleString("en") + " " + one + (count === 1 ? "" : "s");
  const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  const plain = (text) => text.replaceAll("_", " ");

  // A long text in pieces, on demand. Empty parts are not in the data.
  const text = (name, className, words = "") => {
    const box = make(name, { class: className }, words.slice(0, LONG));
    if (words.length <= LONG) return [box];
    let at = LONG;
    const more = make("button", { type: "button", click: () => {
      box.append(words.slice(at, at + LONG));
      at += LONG;
      more.hidden = at >= words.length;
    } }, "Show more (" + words.length.toLocaleString("en") + " characters)");
    return [box, more];
  };
  const folded = (title, ...parts) => make("details", {}, make("summary", {}, title), parts);

  const usd = (value) => "$" + value.toLocaleString("en", value >= 1 || value === 0 ? { maximumFractionDigits: 2 } : { maximumSignificantDigits: 2 });
  const seconds = (value) => (value >= 60 ? Math.floor(value / 60) + " min " + Math.round(value % 60) + " s" : value.toFixed(value < 10 ? 1 : 0) + " s");
  const tokens = (sent, received) => sent.toLocaleString("en") + " tokens in" + (received === null || received === undefined ? "" : ", " + received.toLocaleString("en") + " out");
  const share = (value, scores) => (value === null || value === undefined ? "–" : scores ? value.toFixed(2) : (100 * value).toFixed(value < 0.1 ? 1 : 0) + "%");

  // The summary

  const BY = { code: "by code", model: "by the model", person: "by a person" };
  const verdict = (given) => {
    const says = given.unread ? "not readable" : given.correct === null || given.correct === undefined ? "no verdict" : given.correct ? "right" : given.lenient ? "accepted by the lenient rule only" : "wrong";
    return says + (given.by ? ", " + BY[given.by] : "") + (given.relation ? " (" + plain(given.relation) + ")" : "") + (given.reason ? ": " + given.reason : "");
  };

  const summary = (data) => {
    const list = make("dl", { class: "enc-summary" });
    const row = (name, ...value) => { if (value.flat().some(Boolean)) list.append(make("div", {}, make("dt", {}, name), make("dd", {}, value))); };
    if (data.door) { row("At the door", data.door.demographics); row("Task", data.door.objective); }
    row("Truth", data.truth);
    row("Diagnosis", data.diagnosis || "none");
    row("Outcome", make("span", { class: "tag o-" + (Object.hasOwn(OUTCOMES, data.outcome) ? data.outcome : "other") }, own(OUTCOMES, data.outcome, plain(data.outcome))));
    if (data.verdict) row("Judge" + (data.verdict.judge ? " (" + data.verdict.judge + ")" : ""), verdict(data.verdict));
    (data.verdicts || []).forEach((given) => row("Judge (" + (given.judge || "unnamed") + ")", verdict(given)));
    if (data.fault) row("Fault", data.fault.role + ", " + plain(data.fault.error) + ": " + data.fault.message);
    if (!data.fault) row("Why", dom.bound((data.why || []).join("; ")));
    row("Best play", (data.points || []).map((said) => make("p", {}, said)));
    row("Played by", players(data));
    row("Cost", used(data.totals || {}));
    if (data.session) row("Session", concluded(data.session));
    row("Not recorded", (data.missing || []).map((said) => make("span", { class: "enc-missing" }, said)));
    return list;
  };

  const players = (data) => Object.entries(data.models || {}).map(([role, name]) => own(LANES, role, role).toLowerCase() + ": " + name).join("; ");

  const used = (totals) => [
    totals.input_tokens && tokens(totals.input_tokens, totals.output_tokens),
    totals.usd !== undefined && (totals.usd || totals.input_tokens) && "models " + usd(totals.usd),
    totals.tests_usd !== undefined && "simulated tests " + usd(totals.tests_usd) + (totals.tests_unpriced ? " and " + plural(totals.tests_unpriced, "test") + " without a price" : ""),
    totals.seconds !== undefined && seconds(totals.seconds),
  ].filter(Boolean).join("; ");

  const concluded = (session) => [
    session.reason_ready && make("p", {}, "Ready because: " + session.reason_ready),
    session.synthesis_answer && folded("Synthesis" + (session.synthesis_model ? " by " + session.synthesis_model : ""), text("p", "text", session.synthesis_answer)),
    session.synthesis_error && make("p", {}, "The synthesis failed: " + session.synthesis_error),
    session.steps && folded(plural(session.steps.length, "step") + " outside the turns", session.steps.map(step)),
  ];

  // Turns

  // The transcript by turn number; a plan belongs to the words that follow it.
  const byTurn = (data) => {
    const turns = new Map();
    let plans = [];
    for (const said of data.turns || []) {
      if (!turns.has(said.turn)) turns.set(said.turn, []);
      if (said.role === "planner") { plans.push(said); continue; }
      turns.get(said.turn).push({ said, plans });
      plans = [];
    }
    if (plans.length) turns.get(plans[0].turn).push({ said: null, plans }); // the encounter ended before the doctor spoke
    return turns;
  };

  const newFacts = (data) => new Map(data.uncovered || []);

  const entry = ({ said, plans }, fresh) => {
    const role = said ? said.role : "planner";
    const lane = own(LANES, role);
    const cell = make("div", { class: "enc-said" + (lane ? " by-" + role : "") });
    const kind = said && said.kind && own(KINDS, said.kind);
    cell.append(make("p", { class: "enc-who" }, make("b", {}, lane || role), kind && make("span", { class: "enc-kind" }, kind)));
    if (said && (said.text || role !== "confidence")) cell.append(...text("p", "text", said.text || "(nothing)"));
    const more = [];
    if (said) {
      if (said.told) more.push(make("p", { class: "enc-told" }, said.told.map(chip)));
      if (fresh) more.push(make("p", { class: "enc-fresh" }, "Uncovers " + plural(fresh, "fact")));
      (said.traits || []).forEach((line) => more.push(make("p", { class: "enc-trait" }, line)));
      (said.slips || []).forEach((slip) => more.push(make("p", { class: "enc-slip" }, "Slip: " + slip)));
      (said.notes || []).forEach((note) => more.push(make("p", {}, "Note: " + note)));
    }
    plans.forEach((plan) => more.push(planned(plan)));
    if (said) {
      if (said.step) more.push(folded("Session step " + said.step.number + (said.tool ? " (" + said.tool + ")" : ""), step(said.step)));
      else if (said.tool) more.push(make("p", {}, "Tool: " + said.tool));
      if (said.recalled) more.push(recalled(said.recalled));
      if (said.best) more.push(make("p", { class: "enc-best" }, said.best));
      if (said.belief) more.push(belief(said.belief));
      if (said.differential) more.push(differential(said.differential));
      if (said.raw) more.push(folded("Raw reply", text("p", "text", said.raw)));
    }
    const cost = [said, ...plans].map((one) => one && spent(one, one !== said ? "plan: " : "")).filter(Boolean);
    if (cost.length) more.push(make("p", { class: "enc-cost" }, cost.join("; ")));
    if (more.length) cell.append(make("div", { class: "enc-more" }, more));
    return cell;
  };

  const chip = ({ topic, from }) => make("span", { class: "from" + (Object.hasOwn(FROM, from) ? " " + from : "") }, (topic ? topic + ": " : "") + own(FROM, from, from));
  const planned = (plan) => folded("Planning notes", text("p", "text", plan.text), (plan.notes || []).map((note) => make("p", {}, "Note: " + note)), plan.differential && differential(plan.differential));
  const step = (taken) => make("dl", {}, [
    ["Learned", taken.learned], ["Recorded by", taken.by], ["Doubts", (taken.doubts || []).join("; ")], ["Next", taken.action],
  ].filter(([, value]) => value).map(([name, value]) => [make("dt", {}, name), make("dd", {}, text("span", "text", value))]));
  const recalled = ({ offered = [], failed }) => {
    const followed = offered.filter((one) => one.followed).length;
    const listed = offered.map((one) => make("li", {}, one.observation ? one.observation + " → " + one.suggestion : one.id, make("small", {}, " " + [
      one.followed === true ? "followed" : one.followed === false ? "not followed" : "cannot be told whether it was followed",
      typeof one.score === "number" && "score " + one.score.toFixed(2)].filter(Boolean).join(", "))));
    return folded("Memory: " + (failed ? "failed (" + plain(failed) + ")" : plural(offered.length, "experience") + " offered, " + followed + " followed"), make("ul", {}, listed));
  };

  const spent = (said, before) => {
    const parts = [
      said.tokens && tokens(...said.tokens),
      said.seconds >= 0.05 && seconds(said.seconds),
      said.usd !== undefined && usd(said.usd),
      said.tests && said.tests.length && priced(said.tests),
    ].filter(Boolean);
    return parts.length ? before + parts.join(", ") : "";
  };
  const priced = (tests) => {
    const known = tests.filter(([, price]) => price !== null);
    const unknown = tests.length - known.length;
    return [known.length && "tests " + usd(known.reduce((sum, [, price]) => sum + price, 0)), unknown && plural(unknown, "test") + " without a price"].filter(Boolean).join(" and ");
  };

  const differential = (given) => {
    const first = given.rows[0];
    const rows = given.other === undefined ? given.rows : [...given.rows, ["anything else", given.other]];
    return folded("Differential (" + own(SOURCES, given.source, plain(given.source)) + ")" + (first ? ": " + first[0] + (Number.isFinite(first[1]) ? "\u00a0" + share(first[1], given.scores) : "") : ""), odds(rows, given.scores));
  };
  const odds = (rows, scores) => {
    const most = scores ? Math.max(...rows.map(([, value]) => Math.abs(value || 0)), 1e-9) : 1;
    return make("div", { class: "odds" }, rows.map(([name, value, reason]) => {
      const bar = make("i");
      bar.style.width = Math.max(0, Math.min(100, (100 * (value || 0)) / most)) + "%";
      return [make("span", {}, name, reason && make("small", {}, " " + reason)), make("span", {}, bar), make("span", { class: "n" }, share(value, scores))];
    }));
  };

  // How likely each disease of a solvable world was before a turn: exactly, and as the doctor stated it, if it did.
  const belief = (rows) => {
    const heads = ["exact", "stated"].slice(0, rows[0].length - 1);
    const cell = (value) => {
      const bar = make("i");
      bar.style.width = 100 * (value || 0) + "%";
      return make("td", { class: "num" }, share(value), bar);
    };
    return folded("Belief, " + heads.join(" and ") + ": " + rows[0][0] + " " + rows[0].slice(1).map((value) => share(value)).join(" and "),
      make("table", { class: "enc-belief" }, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "disease"), heads.map((name) => make("th", { scope: "col", class: "num" }, name)))),
        make("tbody", {}, rows.map(([name, ...values]) => make("tr", {}, make("th", { scope: "row" }, name), values.map(cell))))));
  };

  // The differential by turn: one drawing for each source, because numbers of different sources do not compare

  let drawings = 0;
  const WIDE = 340, TALL = 170, LEFT = 40, RIGHT = 10, TOP = 8, LOW = 30;

  const course = (data, name) => {
    const sources = new Map();
    // data.same: the name under which each name is drawn, so that a disease with several names has one line.
    const one = (said) => own(data.same || {}, said, said);
    for (const { turn, differential: stated } of data.turns || []) {
      if (!stated) continue;
      const rows = new Map();
      for (const [said, value] of stated.rows) rows.set(one(said), rows.has(one(said)) ? rows.get(one(said)) + value : value);
      const given = { ...stated, rows: [...rows] };
      if (!sources.has(given.source)) sources.set(given.source, { scores: given.scores, turns: new Map() });
      sources.get(given.source).turns.set(turn, given);
    }
    const last = Math.max(2, ...(data.turns || []).map((said) => said.turn));
    const order = Object.keys(SOURCES); // the doctor's own numbers before a planner's
    return [...sources].sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0])).map(([source, { scores, turns }]) => curve(source, scores, turns, last, new Set((data.truths || []).map(one)), name));
  };

  // A line through the turns that have a value, with gaps between.
  const path = (points, x, y) => points.map(([turn, value], place) => (value === undefined || value === null ? ""
    : (place === 0 || points[place - 1][1] === undefined || points[place - 1][1] === null ? "M" : "L") + x(turn) + " " + y(value))).join("");

  const curve = (source, scores, turns, last, truths, name) => {
    const best = new Map();
    for (const { rows } of turns.values()) for (const [name, value] of rows) best.set(name, Math.max(best.get(name) || 0, value || 0));
    const ranked = [...best].sort((a, b) => truths.has(b[0]) - truths.has(a[0]) || b[1] - a[1]).slice(0, MOST_LINES).map(([name]) => name);
    const highest = Math.max(...ranked.map((name) => best.get(name)), 0.01);
    const top = [0.1, 0.25, 0.5, 1].find((mark) => mark >= highest) || highest;
    const x = (turn) => +(LEFT + ((WIDE - LEFT - RIGHT) * (turn - 1)) / (last - 1)).toFixed(1);
    const y = (value) => +(TALL - LOW - ((TALL - LOW - TOP) * Math.max(0, value)) / top).toFixed(1);
    const valueAt = (name, turn) => (turns.get(turn).rows.find((row) => row[0] === name) || [])[1];
    const rule = svg("line", { class: "enc-rule", y1: TOP, y2: TALL - LOW });
    const parts = [0, 0.5, 1].map((part) => [
      svg("line", { class: "grid", x1: LEFT, x2: WIDE - RIGHT, y1: y(part * top), y2: y(part * top) }),
      svg("text", { class: "tick", x: LEFT - 6, y: y(part * top) + 4, "text-anchor": "end" }, scores ? (part * top).toFixed(2) : +(100 * part * top).toFixed(1) + "%"),
    ]);
    const apart = Math.ceil(last / 10);
    for (let turn = 1; turn <= last; turn += apart) parts.push(svg("text", { class: "tick", x: x(turn), y: TALL - LOW + 16, "text-anchor": "middle" }, String(turn)));
    parts.push(svg("text", { class: "name", x: (LEFT + WIDE - RIGHT) / 2, y: TALL - 1, "text-anchor": "middle" }, "turn"), rule);
    const told = [];
    ranked.forEach((name, place) => {
      const every = [...turns.keys()].map((turn) => [turn, valueAt(name, turn)]);
      const points = every.filter(([, value]) => value !== undefined && value !== null);
      if (!points.length) return;
      const colour = "c" + place + (truths.has(name) ? " truth" : "");
      parts.push(svg("path", { class: "line " + colour, fill: "none", d: path(every, x, y) }));
      if (points.length <= 25) points.forEach(([turn, value]) => parts.push(svg("circle", { class: "dot " + colour, cx: x(turn), cy: y(value), r: 2.4 }, svg("title", {}, "turn " + turn + ": " + name + " " + share(value, scores)))));
      const end = points[points.length - 1];
      told.push(name + (truths.has(name) ? " (the truth)" : "") + " from " + share(points[0][1], scores) + " at turn " + points[0][0] + " to " + share(end[1], scores) + " at turn " + end[0]);
    });
    const id = "enc-curve-" + (drawings += 1);
    const drawn = svg("svg", { viewBox: "0 0 " + WIDE + " " + TALL, role: "img", class: "chart", "aria-labelledby": id + "-t " + id + "-d" },
      svg("title", { id: id + "-t" }, (scores ? "Scores" : "Probabilities") + " by turn"), svg("desc", { id: id + "-d" }, told.join("; ") + "."), parts);
    const list = make("div", { class: "enc-legend" });
    const caption = make("h4");
    const show = (at) => {
      const known = [...turns.keys()].filter((turn) => turn <= at);
      const turn = known.length ? Math.max(...known) : null;
      const from = turn === null ? "none yet" : turn === at ? "turn " + at : "turn " + turn + ", the last one given by turn " + at;
      caption.replaceChildren((name ? name + ": differential, " : "Differential, ") + own(SOURCES, source, plain(source)), make("small", {}, " " + from));
      const given = turn === null ? null : turns.get(turn);
      const rows = given ? [...given.rows] : [];
      ranked.filter((name) => !rows.some((row) => row[0] === name)).forEach((name) => rows.push([name, null]));
      if (given && given.other !== undefined) rows.push(["anything else", given.other]);
      list.replaceChildren(...rows.map(([name, value]) => make("div", {}, make("i", { class: "key k" + (ranked.includes(name) ? ranked.indexOf(name) : "-none") }), make("span", {}, name, truths.has(name) && make("b", { class: "enc-truth" }, " truth")), make("span", { class: "n" }, share(value, scores)))));
      rule.setAttribute("x1", x(at));
      rule.setAttribute("x2", x(at));
    };
    return { box: make("div", { class: "enc-curve" }, caption, turns.size > 1 && drawn, list), show };
  };

  // The chart, with the turn at which each fact was uncovered in each run

  // The headings of a fact that its section does not already say.
  const called = (fact) => {
    const heads = (fact.heads || []).filter((head) => head.toLowerCase() !== fact.section && head !== "Findings");
    return heads.length === 1 && !["examination", "tests", "vital signs"].includes(fact.section) ? [] : heads;
  };

  const chart = (sides, names, link) => {
    const facts = sides[0].chart;
    const firsts = sides.map((data) => {
      const first = new Map();
      for (const [turn, list] of data.uncovered || []) list.forEach((fact) => first.set(fact, turn));
      return first;
    });
    const items = facts.map((fact, place) => {
      const marks = firsts.map((first) => first.has(place) ? first.get(place) : null);
      const badges = marks.map((turn, side) => {
        const who = names ? names[side] + ": " : "";
        if (turn === null) return make("span", { class: "enc-badge never", title: who + "not uncovered" }, "–", make("span", { class: "hidden" }, who + " not uncovered"));
        if (turn === 0) return make("span", { class: "enc-badge", title: who + "known at the door" }, "door");
        return make("a", { class: "enc-badge", href: link(turn), "data-turn": turn, "aria-label": who + "uncovered at turn " + turn }, String(turn));
      });
      return { marks, badges, fact, element: make("li", { "data-fact": fact.id }, badges, make("span", { class: "enc-fact" })) };
    });
    const sections = [];
    items.forEach((item) => {
      const last = sections[sections.length - 1];
      if (last && last.name === item.fact.section) last.items.push(item);
      else sections.push({ name: item.fact.section, items: [item], count: make("small") });
    });
    sections.forEach((section) => {
      const list = make("ul");
      let above = "";
      section.items.forEach((item) => {
        const told = called(item.fact);
        const group = told.length > 1 ? told.slice(0, -1).join(", ") : "";
        if (group && group !== above) list.append(make("li", { class: "enc-group" }, group));
        above = group;
        const name = told[told.length - 1];
        item.element.lastChild.append(...[name && make("b", {}, name + " "), item.fact.text, item.fact.key && [" ", make("em", { title: "A key finding of the case" }, "key: " + item.fact.key)]].flat().filter(Boolean));
        list.append(item.element);
      });
      section.box = make("details", { open: true, class: "enc-section" }, make("summary", {}, sentence(section.name) + " ", section.count), list);
    });
    const count = make("p", { class: "enc-count" });
    const panel = make("div", { class: "enc-facts", tabindex: "0", role: "region", "aria-label": "Facts of the chart" }, sections.map((section) => section.box));
    const by = (item, side, at) => item.marks[side] !== null && item.marks[side] <= at;
    const show = (at) => {
      items.forEach((item) => {
        item.badges.forEach((badge, side) => {
          badge.classList.toggle("known", by(item, side, at));
          badge.classList.toggle("now", item.marks[side] === at);
        });
        item.element.classList.toggle("known", sides.some((_, side) => by(item, side, at)));
        item.element.classList.toggle("now", item.marks.includes(at));
        item.element.classList.toggle("differs", sides.length > 1 && by(item, 0, at) !== by(item, 1, at));
      });
      const known = (list, side) => list.filter((item) => by(item, side, at)).length;
      sections.forEach((section) => { section.count.textContent = sides.map((_, side) => known(section.items, side)).join(" and ") + " of " + section.items.length; });
      count.textContent = "Uncovered by turn " + at + ": " + sides.map((_, side) => (names ? names[side] + " " : "") + known(items, side)).join(", ") + " of " + items.length + (names ? differing(at) : "");
      const now = panel.querySelector("li.now");
      if (!now) return;
      const place = now.getBoundingClientRect(), box = panel.getBoundingClientRect();
      if (place.top < box.top + 30 || place.bottom > box.bottom) panel.scrollTop += place.top - box.top - 30; // 30: below the section's name
    };
    const differing = (at) => {
      const only = (side) => items.filter((item) => by(item, side, at) && !by(item, 1 - side, at)).length;
      return "; only in " + names[0] + " " + only(0) + ", only in " + names[1] + " " + only(1);
    };
    return { count, panel, show };
  };

  // Moving through the turns: by scrolling, by key, by address

  const drawn = new WeakMap();

  const moving = (root, turns, shows, options) => {
    const numbers = [...turns.keys()];
    const stop = new AbortController();
    const { signal } = stop;
    if (drawn.has(root)) drawn.get(root).abort();
    drawn.set(root, stop);
    let at = null;
    let begun = false; // the first key goes to the first turn
    let pinned = false; // a key or a click decides which turn is in view until the next scrolling by hand
    const show = (turn) => {
      if (turn === at) return;
      at = turn;
      turns.forEach((element, number) => element.classList.toggle("current", number === at));
      shows.forEach((one) => one.show(at));
    };
    // What scrolls when the turns move: a box around the root, or the page.
    const scrolled = () => {
      let box = root.parentElement;
      while (box && !(/auto|scroll/.test(getComputedStyle(box).overflowY) && box.scrollHeight > box.clientHeight)) box = box.parentElement;
      if (!box || box === document.body || box === document.documentElement) return { scroller: document.scrollingElement, top: 0, height: innerHeight };
      return { scroller: box, top: box.getBoundingClientRect().top, height: box.clientHeight };
    };
    const go = (turn, tell = true) => {
      if (!turns.has(turn)) return;
      pinned = begun = true;
      show(turn);
      const element = turns.get(turn);
      const { scroller, top } = scrolled();
      element.focus({ preventScroll: true });
      const margin = parseFloat(getComputedStyle(element).scrollMarginTop) || 0;
      scroller.scrollTo({ top: scroller.scrollTop + element.getBoundingClientRect().top - top - margin, behavior: "instant" });
      if (tell) (options.moved || ((there) => history.replaceState(null, "", "#turn-" + there)))(turn);
    };
    document.addEventListener("keydown", (event) => {
      const by = { j: 1, k: -1 }[event.key];
      if (!root.isConnected) { stop.abort(); return; }
      if (!by) { pinned = false; return; }
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea") || !root.getClientRects().length) return;
      go(begun ? numbers[numbers.indexOf(at) + by] : at);
    }, { signal });
    root.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-turn]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go(Number(link.dataset.turn));
    }, { signal });
    // Not by pressing a link to a turn: what is under the pointer would move before it is let go.
    const unpin = (event) => { pinned = pinned && event.type === "pointerdown" && Boolean(event.target.closest("a[data-turn]")); };
    ["wheel", "touchmove", "pointerdown"].forEach((name) => document.addEventListener(name, unpin, { signal, passive: true }));
    let asked = false;
    const look = () => {
      asked = false;
      if (pinned || !root.isConnected) return;
      const { scroller, top, height } = scrolled();
      // The line that decides runs down the screen as the page is scrolled, so that every turn is passed.
      const done = scroller.scrollTop / Math.max(1, scroller.scrollHeight - height);
      const line = top + Math.min(1, done) * height;
      const passed = numbers.findLast((turn) => turns.get(turn).getBoundingClientRect().top <= line) || numbers[0];
      begun = begun || passed !== at;
      show(passed);
    };
    document.addEventListener("scroll", () => { if (!asked) { asked = true; requestAnimationFrame(look); } }, { signal, passive: true, capture: true });
    const addressed = () => Number((location.hash.match(/^#turn-(\d+)$/) || [])[1]);
    if (!options.link) addEventListener("hashchange", () => go(addressed(), false), { signal });
    if (numbers.length) show(numbers[0]);
    const first = options.turn || (options.link ? 0 : addressed());
    if (first) requestAnimationFrame(() => go(first, false));
    return { go, close: () => { stop.abort(); root.replaceChildren(); } };
  };

  // The two views

  const number = (turn, link) => make("a", { class: "enc-number", href: link(turn), "data-turn": turn, "aria-label": "Turn " + turn }, String(turn));
  const item = (turn, link, ...cells) => make("li", { class: "enc-turn", id: "turn-" + turn, tabindex: "-1", "aria-label": "Turn " + turn }, number(turn, link), cells);
  const aside = (root, curves, facts) => {
    const open = root.clientWidth >= 1000; // on a small screen the dialogue comes first
    return make("aside", { class: "enc-side", "aria-label": "Differential and chart" },
      curves.length > 0 && make("details", { open, class: "enc-fold" }, make("summary", {}, "Differential by turn"), curves.map((one) => one.box)),
      facts && make("details", { open, class: "enc-fold enc-chart" }, make("summary", {}, "Chart"), facts.count, facts.panel));
  };
  const help = () => make("p", { class: "enc-help note" }, "Keys: ", make("kbd", {}, "j"), " next turn, ", make("kbd", {}, "k"), " previous turn");

  const renderEncounter = (root, data, options = {}) => {
    const link = options.link || ((turn) => "#turn-" + turn);
    const fresh = newFacts(data);
    const turns = new Map([...byTurn(data)].map(([turn, entries]) => {
      const replies = entries.filter(({ said }) => said && said.told);
      const cells = entries.map((one) => entry(one, one === replies[0] ? (fresh.get(turn) || []).length : 0));
      return [turn, item(turn, link, cells)];
    }));
    const curves = course(data);
    const facts = data.chart ? chart([data], null, link) : null;
    root.classList.add("encounter");
    root.classList.remove("beside");
    const lanes = make("div", { class: "enc-lanes" },
      data.text && text("div", "told", data.text),
      turns.size > 0 && [help(), make("div", { class: "enc-heads", "aria-hidden": "true" }, ["Doctor", "Patient", "Laboratory"].map((name) => make("b", {}, name))), make("ol", {}, [...turns.values()])]);
    root.replaceChildren(summary(data), make("div", { class: "enc-body" }, lanes, (curves.length > 0 || facts) && aside(root, curves, facts)));
    return moving(root, turns, [...curves, facts].filter(Boolean), options);
  };

  const renderSideBySide = (root, one, other, options = {}) => {
    const link = options.link || ((turn) => "#turn-" + turn);
    const sides = [one, other];
    const names = options.names || ["A", "B"];
    const said = sides.map(byTurn);
    const fresh = sides.map(newFacts);
    const alike = one.case === other.case;
    const whole = sides.find((data) => data.chart);
    const facts = alike && whole ? chart(sides.map((data) => ({ ...data, chart: whole.chart })), names, link) : null;
    const uncovers = (side, turn) => {
      const found = (fresh[side].get(turn) || []).map((place) => sides[side].chart && sides[side].chart[place]).filter(Boolean);
      return found.length > 0 && make("p", { class: "enc-fresh" }, "Uncovers: " + found.map((fact) => [called(fact).at(-1), (fact.text || "").replace(/\.$/, "")].filter(Boolean).join(" ")).join("; "));
    };
    const cell = (side, turn) => make("div", { class: "enc-cell", "data-run": names[side] }, said[side].has(turn)
      ? [said[side].get(turn).map((part) => entry(part, 0)), uncovers(side, turn)]
      : make("p", { class: "note" }, "The encounter had ended."));
    const numbers = [...new Set(said.flatMap((turns) => [...turns.keys()]))].sort((a, b) => a - b);
    const turns = new Map(numbers.map((turn) => [turn, item(turn, link, cell(0, turn), cell(1, turn))]));
    const curves = sides.flatMap((data, side) => course(data, names[side]));
    const head = (side) => make("div", {}, make("h3", {}, names[side]), summary(sides[side]));
    root.classList.add("encounter", "beside");
    root.replaceChildren(
      alike ? "" : make("p", { class: "warn" }, "These are two different cases; their charts cannot be compared."),
      make("div", { class: "enc-pair" }, head(0), head(1)),
      make("div", { class: "enc-body" },
        make("div", { class: "enc-lanes" }, help(), make("div", { class: "enc-heads", "aria-hidden": "true" }, names.map((name) => make("b", {}, name))), make("ol", {}, [...turns.values()])),
        (curves.length > 0 || facts) && aside(root, curves, facts && { ...facts, panel: [difference(facts), facts.panel] })));
    return moving(root, turns, [...curves, facts].filter(Boolean), options);
  };

  const difference = (facts) => make("label", { class: "enc-only" }, make("input", { type: "checkbox", change: (event) => facts.panel.classList.toggle("only", event.target.checked) }), " only where they differ");

  // The differentials alone, with the values of the last turn.
  const renderDifferentials = (root, data) => {
    const drawn = course(data);
    drawn.forEach((one) => one.show(Math.max(...data.turns.map((said) => said.turn))));
    root.replaceChildren(...drawn.map((one) => one.box));
  };

  return { renderEncounter, renderSideBySide, renderDifferentials };
})();
