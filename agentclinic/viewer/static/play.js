"use strict";
// The consulting room: who plays, which case, and the game. The server decides what may be shown; text stays text.
(() => {
  const { make, byId, theme } = dom;
  const main = byId("main");
  const address = new URLSearchParams(location.search);
  theme(byId("theme"));

  // Requests. A refusal is an Error with the server's message; `offline` if the server does not answer at all.
  const ask = async (path, body) => {
    let answer;
    try {
      answer = await fetch(path, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
    } catch {
      throw Object.assign(new Error("The server does not answer."), { offline: true });
    }
    const data = await answer.json().catch(() => ({ error: "The server's answer cannot be read." }));
    if (!answer.ok) throw new Error(data.error || "The server refused.");
    return data;
  };
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const show = (title, about, ...content) => {
    document.title = `${title} · AgentClinic`;
    byId("title").textContent = title;
    byId("about").replaceChildren(...about);
    main.replaceChildren(...content);
  };
  const percent = (share) => `${Math.round(100 * share)}%`;
  const dollars = (amount) => amount === null || amount === undefined ? "unknown" : `$${amount.toFixed(amount % 1 ? 2 : 0)}`;
  const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
  const problemLine = () => make("p", { class: "warn", role: "alert", hidden: true });
  const tell = (line, error) => { line.textContent = error ? error.message : ""; line.hidden = !error; };
  const field = (label, control, hint) => make("label", { class: "field" }, make("span", {}, label), control, hint && make("span", { class: "hint" }, hint));
  const table = (caption, heads, rows) => make("div", { class: "scroll" }, make("table", {},
    make("caption", {}, caption),
    make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell, place) => make(place ? "td" : "th", place ? {} : { scope: "row" }, cell)))))));

  // What a browser keeps of a game: words that were not sent yet. Nothing breaks if it may not.
  const draft = (key) => ({
    get: () => { try { return JSON.parse(localStorage.getItem(key)) || {}; } catch { return {}; } },
    set: (value) => { try { localStorage.setItem(key, JSON.stringify(value)); } catch { /* not kept */ } },
    drop: () => { try { localStorage.removeItem(key); } catch { /* not kept */ } },
  });

  // --- who is there -------------------------------------------------------------------------------------------------

  const joinPage = (room) => {
    const name = make("input", { name: "name", required: true, maxlength: 40, autocomplete: "nickname" });
    const code = make("input", { name: "code", maxlength: 20, autocomplete: "off" });
    const training = make("select", { name: "training", required: true },
      make("option", { value: "" }, "Please choose"),
      ["none", "student", "resident", "specialist", "other clinician"].map((kind) => make("option", { value: kind }, kind === "none" ? "no medical training" : kind)));
    const specialty = make("input", { name: "specialty", maxlength: 60 });
    const years = make("input", { name: "years", type: "number", min: 0, max: 80 });
    const problem = problemLine();
    const returning = make("details", {}, make("summary", {}, "I have played here before, in another browser"), field("Your code", code, "You were given it when you joined."));
    const send = async (event) => {
      event.preventDefault();
      const experience = room.panel && training.value ? { training: training.value, specialty: specialty.value.trim(), years: years.value === "" ? null : Number(years.value) } : null;
      try {
        const joined = await ask("/api/join", { name: name.value, code: code.value, experience });
        if (joined.code) codePage(joined.code); else await lobby();
      } catch (error) { tell(problem, error); }
    };
    // Someone who comes back has already said what experience they have.
    returning.addEventListener("toggle", () => { training.required = !returning.open; });
    show("Consulting room", [make("span", {}, room.panel ? "Panel: you are the doctor" : "Be the doctor, or the patient")],
      make("form", { class: "panel play-section", submit: send },
        make("p", { class: "lede" }, room.panel
          ? "You will meet simulated patients, one after another, in a random order. Your questions, orders, diagnoses and the time you take are recorded under the name you enter."
          : "Your games are recorded under the name you enter, as a run that can be compared with models. Choose any name."),
        field("Your name", name, "Letters, digits and spaces; at most 40 characters."),
        room.panel && [field("Your training", training), field("Specialty, if any", specialty), field("Years in practice", years)],
        returning, problem,
        make("p", {}, make("button", { class: "primary" }, "Enter"))));
    name.focus();
  };

  const codePage = (code) => {
    const next = make("button", { class: "primary", type: "button", click: lobby }, "Continue");
    show("Welcome", [], make("section", { class: "panel" },
      make("p", {}, "This browser remembers you. To come back from another one, you need this code, which is shown only once:"),
      make("p", { class: "code", id: "code" }, code), next));
    next.focus();
  };

  // --- which case ---------------------------------------------------------------------------------------------------

  const words = { new: "new", open: "begun", right: "right", wrong: "wrong", known: "known" };
  const player = (model) => model === "builtin" ? "a small program (builtin)" : model;
  const MANY = 300; // cases: more buttons than that are slower to look through than to type a number
  const begin = async (seat, number, problem) => {
    try {
      const game = await ask("/api/games", { seat, number });
      location.assign(`/game?seat=${game.seat}&case=${game.number}`);
    } catch (error) { tell(problem, error); }
  };

  const calibrationTable = (measured) => measured && [
    make("p", { class: "note" }, `Over ${plural(measured.n, "game")}, you were ${percent(measured.mean_stated)} sure on average and right in ${measured.right} (${percent(measured.right / measured.n)}). Brier score ${measured.brier.toFixed(2)}: 0 is perfect, 0.25 is what always saying 50% gives.`),
    table("How sure you were, and how often you were right", ["stated", "games", "right"],
      measured.bands.map((band) => [`${percent(band.low)} to ${percent(band.high)}`, String(band.n), `${band.right} of ${band.n}`]))];

  const seatSection = (room, seat) => {
    const { cases, next, calibration } = room.seats[seat];
    const problem = problemLine();
    const done = cases.filter((state) => state === "right" || state === "wrong").length;
    const title = seat === "doctor" ? "Be the doctor" : "Be the patient";
    const number = make("input", { type: "number", min: 1, max: cases.length, required: true });
    const about = seat === "doctor"
      ? `The patient is played by ${player(room.patient)}. You have ${room.turns} turns; the last one is for your diagnosis.`
      : `The doctor is ${player(room.doctor)}. You are given the patient's part of the chart and answer from it.`;
    if (room.panel) {
      return make("section", {}, make("h2", {}, title), make("p", { class: "lede" }, about),
        make("p", {}, `${done} of ${plural(cases.length, "case")} done.`), problem,
        next ? make("button", { class: "primary", type: "button", click: () => begin(seat, null, problem) }, cases[next - 1] === "open" ? "Continue your case" : "Next case")
             : make("p", { class: "conclusion" }, "You have played every case. Thank you."),
        done > 0 && calibrationTable(calibration));
    }
    const choose = (event) => { event.preventDefault(); begin(seat, Number(number.value), problem); };
    return make("section", {}, make("h2", {}, title), make("p", { class: "lede" }, about), problem,
      make("form", { class: "row", submit: choose },
        make("button", { class: "primary", type: "button", click: () => begin(seat, null, problem) }, "A random case"),
        make("label", { class: "narrow" }, make("span", {}, `Case, 1 to ${cases.length}`), number),
        make("button", {}, "Play it")),
      make("ol", { class: "cases", "aria-label": "All cases" }, cases.map((state, place) => (cases.length <= MANY || state !== "new") && make("li", {},
        make("button", { type: "button", class: state, disabled: state === "known", click: () => begin(seat, place + 1, problem) }, `${place + 1} `, make("small", {}, words[state]))))),
      calibrationTable(calibration));
  };

  const lobby = async () => {
    const room = await ask("/api/room");
    if (!room.player) return joinPage(room);
    const leave = async () => { await ask("/api/leave", {}); location.assign("/"); };
    show("Consulting room", [make("span", {}, `You are ${room.player}`), make("span", {}, room.dataset), make("button", { type: "button", click: leave }, "Leave")],
      make("div", { class: "lobby" }, Object.keys(room.seats).map((seat) => seatSection(room, seat))));
  };

  // --- the game -----------------------------------------------------------------------------------------------------

  const speakers = { question: "patient", test: "laboratory", images: "clinic", none: "clinic" };
  const names = { patient: "Patient", laboratory: "Laboratory", clinic: "Clinic", doctor: "Doctor" };
  const said = { question: (text) => text, test: (text) => `Orders ${text}`, images: () => "Asks for the images", none: (text) => text };
  const readable = (text) => text.replace(/^RESULTS:\s*/, "").replace(/(?<=\.) (?=[A-Z][^.:;]{1,40}: )/g, "\n");
  const line = (who, text, mine) => make("li", { class: mine ? `mine ${who}` : who }, make("b", {}, mine ? "You" : names[who]), text);
  const spoken = (text) => text.startsWith("REQUEST TEST: ") ? `Orders ${text.slice(14)}` : text.startsWith("DIAGNOSIS READY: ") ? `Diagnosis: ${text.slice(17)}` : text === "REQUEST IMAGES" ? "Asks for the images" : text;

  const gamePage = async (seat, number) => {
    const path = `/api/games/${seat}/${number}`;
    let state;
    try { state = await ask(path); } catch (error) {
      if (error.offline) throw error;
      return location.replace("/");
    }
    const kept = draft(`agentclinic-game:${state.player}:${seat}:${number}`);
    const doctor = seat === "doctor";
    const talk = make("ol", { class: "talk" });
    const turn = make("p", { class: "turn", role: "status" });
    const problem = problemLine();
    const again = make("button", { type: "button", hidden: true, click: async () => {
      try {
        await ask("/api/games", { seat, number });
        state = await ask(path);
        await follow();
      } catch (error) { tell(problem, error); }
    } }, "Try again");
    const question = make("textarea", { rows: 2, maxlength: 2000, required: true, id: "question" });
    const test = make("input", { maxlength: 2000, required: true, list: "tests", id: "test", autocomplete: "off" });
    const diagnosis = make("input", { maxlength: 200, required: true, id: "diagnosis", autocomplete: "off" });
    const sure = make("input", { type: "number", min: 0, max: 100, step: "any", required: true, id: "sure" });
    const price = make("p", { class: "hint", role: "status" }, "Type to find a test; several are separated by commas.");
    const known = make("datalist", { id: "tests" });
    const beliefs = make("ol", { class: "beliefs" });
    const sum = make("p", { class: "hint", role: "status" });
    const moves = make("div", { class: "moves" });
    const before = kept.get();
    [question.value, test.value, diagnosis.value, sure.value] = ["question", "test", "diagnosis", "sure"].map((key) => before[key] || "");

    // The differential: one row more than there are diagnoses.
    const rows = () => [...beliefs.children].map((row) => [...row.querySelectorAll("input")].map((input) => input.value.trim()));
    const stated = () => rows().filter(([name, share]) => name && share !== "").map(([name, share]) => ({ diagnosis: name, probability: Math.min(100, Math.max(0, Number(share))) / 100 }));
    const keep = () => {
      kept.set({ question: question.value, test: test.value, diagnosis: diagnosis.value, sure: sure.value, beliefs: rows().filter(([name]) => name) });
      const total = stated().reduce((all, one) => all + one.probability, 0);
      sum.textContent = total > 1.0005 ? `These add up to ${percent(total)}; they will be scaled down to 100%.` : `Something else: ${percent(1 - total)}`;
      const last = beliefs.lastElementChild;
      if (!last || last.querySelector("input").value.trim()) belief("", "");
    };
    const belief = (name, share) => {
      const row = make("li", {},
        make("input", { "aria-label": "Possible diagnosis", value: name, maxlength: 120, autocomplete: "off", input: keep }),
        make("input", { "aria-label": "Probability in percent", type: "number", min: 0, max: 100, step: "any", value: share, input: keep }),
        make("button", { type: "button", "aria-label": "Remove this diagnosis", click: () => { row.remove(); keep(); } }, "×"));
      beliefs.append(row);
    };
    const earlier = before.beliefs || state.differential.map((one) => [one.diagnosis, String(Math.round(1000 * one.probability) / 10)]);
    for (const [name, share] of earlier) belief(name, share);
    keep();
    for (const input of [question, test, diagnosis, sure]) input.addEventListener("input", keep);
    diagnosis.addEventListener("change", () => {
      const found = stated().find((one) => one.diagnosis.toLowerCase() === diagnosis.value.trim().toLowerCase());
      if (found && sure.value === "") { sure.value = String(Math.round(1000 * found.probability) / 10); keep(); }
    });

    const enable = (mine) => { for (const control of moves.querySelectorAll("input, textarea, button")) control.disabled = !mine; };
    const send = async (kind, input) => {
      const body = { turn: state.view.turn, kind, text: input ? input.value : "", differential: doctor ? stated() : [] };
      if (kind === "diagnosis") body.confidence = Number(sure.value) / 100;
      enable(false);
      tell(problem, null);
      try {
        state = await ask(path, body);
        if (input) {
          input.value = "";
          input.dispatchEvent(new Event("input"));
        }
        keep();
        await follow();
        if (state.phase === "yours") (state.view.last ? diagnosis : input || question).focus();
      } catch (error) {
        if (error.offline) error.message += " Your words are still here: send them again when it is back.";
        try { state = await ask(path); draw(); } catch { enable(true); }
        tell(problem, error);
      }
    };
    const form = (kind, input, ...content) => make("form", { submit: (event) => { event.preventDefault(); send(kind, input); } }, content);
    question.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); question.form.requestSubmit(); }
    });

    const draw = () => {
      const view = state.view;
      const lines = [];
      for (const turn of view ? view.dialogue : []) {
        if (doctor) lines.push(line("doctor", said[turn.kind](turn.said), true), line(speakers[turn.kind], readable(turn.reply)));
        else if (turn.kind === "question") lines.push(line("doctor", turn.said), line("patient", turn.reply, true));
        else lines.push(line("doctor", `(orders ${turn.said})`));
      }
      if (view && !doctor) lines.push(line("doctor", view.question));
      if (state.said) lines.push(line(seat, spoken(state.said), true));
      // What is there stays, so that a screen reader reads only what is new.
      lines.forEach((next, place) => {
        const old = talk.children[place];
        if (!old) talk.append(next); else if (old.textContent !== next.textContent || old.className !== next.className) old.replaceWith(next);
      });
      while (talk.children.length > lines.length) talk.lastElementChild.remove();
      if (doctor && state.images.length && !talk.querySelector("img, a")) talk.append(make("li", { class: "clinic" }, make("b", {}, "Image"), state.images.map(picture)));
      const mine = state.phase === "yours";
      turn.textContent = state.phase === "theirs" ? "Waiting for an answer…" : !mine ? "" : doctor
        ? `Turn ${view.turn} of ${view.limit}. ${view.last ? "This is your last turn: only a diagnosis counts now." : "It is your turn."}` : "The doctor is waiting for your answer.";
      for (const other of moves.querySelectorAll(".early")) other.hidden = Boolean(view && view.last);
      enable(mine);
      tell(problem, state.problem ? new Error(state.problem) : null);
      again.hidden = state.phase !== "problem";
      if (view && doctor) door.replaceChildren(view.demographics ? make("b", {}, `${view.demographics}. `) : "", view.objective);
      if (view && !doctor) chart.replaceChildren(...script(view.facts));
    };
    const picture = (image, place) => {
      if (image.link === undefined) return make("img", { class: "image", src: `${path}/images/${image.place}`, alt: `Image ${place + 1} of the case` });
      const link = make("a", { target: "_blank", rel: "noopener noreferrer" }, `Image ${place + 1}, on another server`);
      if (/^https?:/i.test(image.link)) link.href = image.link;
      return link;
    };
    const script = (facts) => {
      let heading = null;
      return facts.map((fact) => {
        const head = fact.heading !== heading ? make("b", {}, fact.heading) : null;
        heading = fact.heading;
        return make("li", {}, head, fact.text);
      });
    };
    // Wait for news as long as others have the turn; a server that is being restarted is waited for.
    const follow = async () => {
      draw();
      while (state.phase === "theirs") {
        try {
          state = await ask(`${path}?seen=${state.version}`);
        } catch (error) {
          if (!error.offline) throw error;
          tell(problem, new Error("The server does not answer. The game is saved; this page tries again by itself."));
          await pause(1000);
          continue;
        }
        draw();
      }
      if (state.phase === "over") { kept.drop(); endingPage(state); }
    };

    const door = make("p", { class: "door" });
    const chart = make("ul", { class: "facts" });
    if (doctor) {
      moves.append(
        form("question", question, make("label", { class: "early" }, make("span", {}, "Ask the patient"), question), make("p", { class: "early" }, make("button", { class: "primary" }, "Ask"), state.ask_images && make("button", { type: "button", click: () => send("images") }, "Ask for images"))),
        form("test", test, make("label", { class: "early" }, make("span", {}, "Order an examination or test"), test), make("div", { class: "early" }, price), make("p", { class: "early" }, make("button", {}, "Order"))),
        form("diagnosis", diagnosis, make("div", { class: "row" },
          make("label", {}, make("span", {}, "Commit to a diagnosis"), diagnosis),
          make("label", { class: "narrow" }, make("span", {}, "How sure, in %"), sure),
          make("button", {}, "Commit and finish"))),
        make("p", { class: "hint" }, "Enter sends. Outside the fields, Q, T, D and P go to question, test, diagnosis and the list of possible diagnoses."));
    } else {
      moves.append(form("answer", question, make("label", {}, make("span", {}, "Answer the doctor"), question), make("p", {}, make("button", { class: "primary" }, "Answer"))));
    }
    show(`Case ${number}`, [make("span", {}, doctor ? "You are the doctor" : "You are the patient"), make("a", { href: "/" }, "Back to the room; the game is kept")],
      make("div", { class: "game" },
        make("div", {}, doctor && door, make("div", { role: "log", "aria-label": "What was said" }, talk), turn, problem, again, moves),
        make("aside", { class: "side", "aria-label": doctor ? "Your notes" : "Your chart" }, make("div", { class: "panel" }, doctor
          ? [make("h2", {}, "What it may be, in %"), beliefs, sum, make("p", { class: "hint" }, "Recorded with every move.")]
          : [make("h2", {}, "What you know about yourself"), make("p", { class: "hint" }, "Answer from it, in your own words."), make("div", { class: "scrolling", role: "region", "aria-label": "Your part of the chart", tabindex: "0" }, chart)]))),
      known);
    if (doctor) offerTests(test, known, price).catch(() => {}); // without it, tests can be ordered all the same
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, button")) return;
      const to = { q: question, t: test, d: diagnosis, p: beliefs.lastElementChild && beliefs.lastElementChild.querySelector("input") }[event.key.toLowerCase()];
      if (to && to.isConnected) { event.preventDefault(); to.focus(); }
    });
    await follow();
    if (state.phase === "yours") (state.view.last ? diagnosis : question).focus();
  };

  // Known tests and prices, the same for every case.
  const offerTests = async (input, list, price) => {
    const { tests, prices } = await ask("/api/tests");
    const plain = (text) => text.toLowerCase().trim().replace(/\s+/g, " ");
    const byName = new Map();
    for (const test of tests) for (const name of [...test.names, test.name]) byName.set(plain(name), test);
    const offer = () => {
      const parts = input.value.split(/[,;]/);
      const typed = plain(parts.pop());
      const head = parts.length ? `${parts.join(",").trim()}, ` : "";
      const fits = typed ? tests.filter((test) => [test.name, ...test.names].some((name) => plain(name).includes(typed))) : tests;
      list.replaceChildren(...fits.slice(0, 40).map((test) => make("option", { value: head + test.name, label: `${head}${test.name}: ${dollars(test.usd)}${test.names.length ? ` (${test.names.slice(0, 3).join(", ")})` : ""}` })));
      const ordered = input.value.split(/[,;]| and /).map(plain).filter(Boolean);
      const known = ordered.map((name) => byName.get(name));
      const total = known.reduce((all, test) => all + (test ? test.usd : 0), 0);
      const unknown = known.filter((test) => !test).length;
      price.textContent = !ordered.length ? "Type to find a test; several are separated by commas."
        : unknown === ordered.length && typed && fits.length ? `Known: ${fits.slice(0, 4).map((test) => `${test.name} ${dollars(test.usd)}`).join("; ")}${fits.length > 4 ? "; …" : ""}`
        : unknown === ordered.length ? "Not in the price list; you can order it anyway."
        : `${dollars(total)}${unknown ? `, and ${plural(unknown, "test")} without a price` : ""} (${prices})`;
    };
    input.addEventListener("input", offer);
    offer();
  };

  // --- the end ------------------------------------------------------------------------------------------------------

  const endingPage = (state) => {
    const end = state.ending;
    const doctor = state.seat === "doctor";
    const problem = problemLine();
    const replay = make("div", {});
    const list = (title, entries) => entries.length > 0 && make("section", {}, make("h2", {}, title), make("ul", { class: entries.length > 9 ? "many" : null }, entries.map((entry) => make("li", {}, entry))));
    const fact = (name, value) => value !== null && value !== undefined && value !== "" && [make("dt", {}, name), make("dd", {}, value)];
    const minutes = end.seconds === null ? null : end.seconds < 60 ? plural(Math.round(end.seconds), "second") : plural(Math.round(end.seconds / 60), "minute");
    const next = make("button", { class: "primary", type: "button", click: () => begin(state.seat, null, problem) }, state.panel ? "Next case" : "Another random case");
    const heading = make("p", { class: `verdict ${end.verdict === "no verdict" ? "" : end.verdict}`, tabindex: "-1", role: "status" }, end.verdict === "right" ? "Right" : end.verdict === "wrong" ? "Wrong" : "No verdict");
    const findings = [...end.found.map(([way, text]) => [text, way]), ...end.missed.map((text) => [text, "missed"])];
    show(`Case ${state.number}: ${end.verdict}`, [make("span", {}, doctor ? "You were the doctor" : "You were the patient"), make("a", { href: "/" }, "Back to the room")],
      make("div", { class: "ending", id: "ending" },
        make("section", { class: "panel" }, heading, make("dl", {},
          fact(doctor ? "You said" : "The doctor said", end.said || "no diagnosis"), fact("The truth", end.truth), fact("Why", end.why), fact("The judge", [end.relation, end.reason].filter(Boolean).join(": ")), fact("", end.against), fact("", end.fault),
          fact("You were", doctor && end.stated !== null ? `${percent(end.stated)} sure` : null), fact("Turns", String(end.turns)), fact("Tests", end.tests_usd === null ? null : `${dollars(end.tests_usd)}${end.tests_unpriced ? ` and ${end.tests_unpriced} without a price` : ""}, in ${plural(end.ordered.length, "order")}`), fact("Your time", minutes)),
          problem, make("p", { class: "row" }, state.next !== null && next, make("a", { href: "/" }, "Back to the room"))),
        findings.length > 0 && make("section", {}, make("h2", {}, `Key findings: ${end.found.length} of ${findings.length} found`), table("What pointed to the diagnosis", ["finding", "how it was found"], findings)),
        list("In the chart, and not asked for", end.untold),
        list("In the chart, and never ordered", end.unordered),
        doctor && end.calibration && make("section", {}, make("h2", {}, "Your calibration"), calibrationTable(end.calibration)),
        make("section", {}, make("h2", {}, "Other doctors on this case"), end.others.length
          ? table("Runs in the same folder", ["doctor", "right", "turns on average"], end.others.map((other) => [other.doctor, `${other.right} of ${other.n}`, other.turns.toFixed(1)]))
          : make("p", { class: "note" }, "No other run in this folder has this case.")),
        make("section", {}, make("h2", {}, "Turn by turn"), replay)));
    renderEncounter(replay, end.encounter, {});
    heading.focus({ preventScroll: true });
    scrollTo({ top: 0, behavior: "instant" });
  };

  const start = () => address.has("case") ? gamePage(address.get("seat") === "patient" ? "patient" : "doctor", Number(address.get("case"))) : lobby();
  const failed = async (error) => {
    main.replaceChildren(make("p", { class: "warn", role: "alert" }, `${error.message} This page tries again by itself.`));
    await pause(2000);
    start().catch(failed);
  };
  start().catch(failed);
})();
