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
    byId("about").replaceChildren(...about.filter(Boolean));
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
      } catch (error) {
        tell(problem, error);
        returning.open = returning.open || /code/.test(error.message);
      }
    };
    // Someone who comes back has already said what experience they have.
    returning.addEventListener("toggle", () => { training.required = !returning.open; });
    show("Consulting room", [make("span", {}, room.panel ? "Panel: you are the doctor" : "Be the doctor, or the patient")],
      make("form", { class: "panel play-section", submit: send },
        make("p", { class: "lede" }, room.panel
          ? "You will meet simulated patients, one after another, in a random order. Your questions, orders, diagnoses and the time you take are recorded under the name you enter."
          : "Question a simulated patient, order tests and find the diagnosis; or be the patient of a simulated doctor. Choose any name: your games are saved under it, as a run that can be compared with models."),
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

  const player = (model) => ({ builtin: "a small program (builtin)", exact: "code, which gives exact answers" })[model] || model;
  const AT_FIRST = 24; // tiles of a group; more are shown on request
  const begin = async (seat, number, problem) => {
    try {
      const game = await ask("/api/games", { seat, number });
      location.assign(`/game?seat=${game.seat}&case=${game.number}`);
    } catch (error) { tell(problem, error); }
  };

  const confidenceSection = (measured) => measured && make("section", {}, make("h2", {}, "Is your confidence justified?"),
    make("p", { class: "note" }, `Over ${plural(measured.n, "game")}, you were ${percent(measured.mean_stated)} sure on average and right in ${measured.right} (${percent(measured.right / measured.n)}). Brier score ${measured.brier.toFixed(2)}: 0 is perfect, 0.25 is what always saying 50% gives.`),
    table("How sure you were, and how often you were right", ["stated", "games", "right"],
      measured.bands.map((band) => [`${percent(band.low)} to ${percent(band.high)}`, String(band.n), `${band.right} of ${band.n}`])));

  // Who comes and why, in a line: the task without its verb, after the patient if it does not name them.
  const presented = (doors) => {
    const told = new Set(doors.map((door) => door.why)).size > 1; // a task that is the same everywhere says nothing
    return doors.map(({ who, why }) => {
      const plain = why.replace(/^(?:assess|evaluate)(?: and (?:diagnose|manage|treat))? (?!and )(?:an? |the )?(?:patient (?:presenting )?with )?/i, "").replace(/\.$/, "");
      const parts = !told && who ? [who] : plain.toLowerCase().includes(who.toLowerCase()) ? [plain] : [who, plain];
      const line = parts.filter(Boolean).join(": ");
      return line.charAt(0).toUpperCase() + line.slice(1);
    });
  };

  // The cases as tiles in three groups, with a search.
  const caseTiles = (room, seat, problem) => {
    const { cases } = room.seats[seat];
    const other = seat === "doctor" ? "patient" : "doctor";
    const words = { open: "unfinished", right: seat === "doctor" ? "right" : "doctor was right", wrong: seat === "doctor" ? "wrong" : "doctor was wrong", unread: "not readable", known: `played as the ${other}` };
    const lines = presented(room.doors);
    const texts = room.doors.map((door, place) => [door.id, door.setting, lines[place], words[cases[place]]].join(" ").toLowerCase());
    const search = make("input", { type: "search", autocomplete: "off", placeholder: "complaint, setting, id" });
    const found = make("p", { class: "hint", role: "status" });
    const groups = make("div", {});
    const tile = (place) => make("li", {}, make("button", { type: "button", class: `tile ${cases[place]}`, disabled: cases[place] === "known", click: () => begin(seat, place + 1, problem) },
      make("span", { class: "tile-head" }, make("span", {}, room.doors[place].id), words[cases[place]] && make("span", { class: "state" }, words[cases[place]])),
      make("b", {}, lines[place]), room.doors[place].setting && make("small", {}, room.doors[place].setting)));
    const group = (title, states, fits) => {
      const places = fits.filter((place) => states.includes(cases[place]));
      const list = make("ol", { class: "cases" });
      const more = make("button", { type: "button", click: () => {
        const from = list.children.length;
        add(4 * AT_FIRST);
        list.children[from].firstChild.focus();
      } });
      const add = (count) => {
        list.append(...places.slice(list.children.length, list.children.length + count).map(tile));
        const left = places.length - list.children.length;
        more.textContent = `Show more (${left} left)`;
        more.hidden = left === 0;
      };
      add(AT_FIRST);
      return places.length > 0 && [make("h3", {}, `${title} `, make("small", {}, String(places.length))), list, more];
    };
    const draw = () => {
      const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = [...texts.keys()].filter((place) => wanted.every((word) => texts[place].includes(word)));
      found.textContent = wanted.length ? `${fits.length} of ${plural(texts.length, "case")}` : "";
      groups.replaceChildren(...[group("Unfinished", ["open"], fits), group("New", ["new"], fits), group("Played", ["right", "wrong", "unread", "known"], fits)].flat().filter(Boolean));
    };
    search.addEventListener("input", draw);
    draw();
    const toFirst = (event) => {
      event.preventDefault();
      const first = groups.querySelector("button:enabled");
      if (first) first.focus();
    };
    return [make("form", { class: "row", submit: toFirst },
      make("button", { class: "primary", type: "button", click: () => begin(seat, null, problem) }, "A random case"),
      make("label", {}, make("span", {}, "Find a case"), search)), found, problem, groups];
  };

  const seatSection = (room, seat) => {
    const { cases, next, calibration } = room.seats[seat];
    const problem = problemLine();
    const done = cases.filter((state) => ["right", "wrong", "unread"].includes(state)).length;
    const about = seat === "doctor"
      ? `The patient is played by ${player(room.patient)}. Ask questions, order tests and name the diagnosis: you have ${room.turns} turns, and the last one is for your diagnosis.`
      : `The doctor is ${player(room.doctor)}. You are given the patient's part of the chart and answer from it.`;
    const head = [make("h2", {}, seat === "doctor" ? "Be the doctor" : "Be the patient"), make("p", { class: "lede" }, about)];
    if (!room.panel) return make("section", {}, head, caseTiles(room, seat, problem), confidenceSection(calibration));
    return make("section", {}, head,
      make("p", {}, `${done} of ${plural(cases.length, "case")} done.`), problem,
      next ? make("button", { class: "primary", type: "button", click: () => begin(seat, null, problem) }, cases[next - 1] === "open" ? "Continue your case" : "Next case")
           : make("p", { class: "conclusion" }, "You have played every case. Thank you."),
      done > 0 && confidenceSection(calibration));
  };

  const signOut = async (name) => {
    const leave = async () => { await ask("/api/leave", {}); location.assign("/"); };
    show("Sign out", [], make("section", { class: "panel" },
      make("p", {}, `Your games are kept. To come back as ${name}, you need the code you were shown when you joined.`),
      make("p", { class: "row" }, make("button", { class: "primary", type: "button", click: lobby }, "Stay"), make("button", { type: "button", click: leave }, "Sign out"))));
    main.querySelector("button").focus();
  };

  const lobby = async () => {
    const room = await ask("/api/room");
    if (!room.player) return joinPage(room);
    const seats = Object.keys(room.seats);
    const place = make("div", {});
    const sit = (seat) => place.replaceChildren(seatSection(room, seat));
    const first = seats.includes(address.get("seat")) ? address.get("seat") : seats[0];
    const choice = (seat) => make("label", {}, make("input", { type: "radio", name: "seat", value: seat, checked: seat === first, change: () => { sit(seat); history.replaceState(null, "", `/?seat=${seat}`); } }), ` the ${seat}`);
    show("Consulting room", [make("span", {}, `You are ${room.player}`), make("span", {}, room.dataset), make("button", { type: "button", click: () => signOut(room.player) }, "Sign out")],
      make("div", { class: "lobby" }, seats.length > 1 && make("fieldset", { class: "seats" }, make("legend", {}, "Play as"), seats.map(choice)), place));
    sit(first);
  };

  // --- the game -----------------------------------------------------------------------------------------------------

  const speakers = { question: "patient", test: "laboratory", images: "clinic", none: "clinic" };
  const names = { patient: "Patient", laboratory: "Laboratory", clinic: "Clinic", doctor: "Doctor" };
  const said = { question: (text) => text, test: (text) => `Order: ${text}`, images: () => "Order: images", none: (text) => text };
  const readable = (text) => text.replace(/^RESULTS:\s*/, "").replace(/(?<=\.) (?=[A-Z][^.:;]{1,40}: )/g, "\n");
  const line = (who, text, mine) => make("li", { class: mine ? `mine ${who}` : who }, make("b", {}, mine ? "You" : names[who]), text);
  const spoken = (text) => text.startsWith("REQUEST TEST: ") ? `Order: ${text.slice(14)}` : text.startsWith("DIAGNOSIS READY: ") ? `Diagnosis: ${text.slice(17)}` : text === "REQUEST IMAGES" ? "Order: images" : text;

  // The menu of a solvable world: paragraphs, some with a list below their first line.
  const told = (text) => text.split("\n\n").flatMap((part) => {
    const [head, ...items] = part.split("\n- ");
    return [make("p", {}, head), items.length > 0 && make("ul", {}, items.map((item) => make("li", {}, item)))].filter(Boolean);
  });

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
    const test = make("input", { maxlength: 2000, required: true, id: "test", autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
    const diagnosis = make("input", { maxlength: 200, required: true, id: "diagnosis", autocomplete: "off" });
    const sure = make("input", { type: "number", min: 0, max: 100, step: "any", required: true, id: "sure" });
    const price = make("p", { class: "hint", role: "status" });
    const combo = make("div", { class: "combo" }, test);
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
      sum.textContent = !stated().length ? "What could it be? Name a diagnosis and say how likely it is." : total > 1.0005 ? `These add up to ${percent(total)}; they will be scaled down to 100%.` : `Something else: ${percent(1 - total)}`;
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
    diagnosis.addEventListener("input", () => { sure.required = menuBox.hidden || diagnosis.value.trim().toUpperCase() !== "DEFER"; });
    diagnosis.addEventListener("change", () => {
      const found = stated().find((one) => one.diagnosis.toLowerCase() === diagnosis.value.trim().toLowerCase());
      if (found && sure.value === "") { sure.value = String(Math.round(1000 * found.probability) / 10); keep(); }
    });

    const enable = (mine) => { for (const control of moves.querySelectorAll("input, textarea, button")) control.disabled = !mine; };
    const send = async (kind, input) => {
      const body = { turn: state.view.turn, kind, text: input ? input.value : "", differential: doctor ? stated() : [] };
      if (kind === "diagnosis") body.confidence = sure.value === "" ? null : Number(sure.value) / 100; // none if deferred
      enable(false);
      tell(problem, null);
      turn.textContent = kind === "diagnosis" ? "Waiting for the verdict…" : "Waiting for an answer…";
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
        try { state = await ask(path); draw(); } catch { enable(true); turn.textContent = ""; }
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
        else lines.push(line("doctor", `Order: ${turn.said}`));
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
      if (view && doctor) door.replaceChildren(view.objective.toLowerCase().includes(view.demographics.toLowerCase()) ? "" : make("b", {}, `${view.demographics}. `), view.objective);
      if (view && view.menu && menuBox.hidden) { menu.append(...told(view.menu)); menuBox.hidden = false; }
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
          tell(problem, new Error("The server is not answering. Your game is saved; this page keeps trying."));
          await pause(1000);
          continue;
        }
        draw();
      }
      if (state.phase === "over") { kept.drop(); endingPage(state); }
    };

    const door = make("p", { class: "door" });
    const menu = make("div", { class: "scrolling", role: "region", "aria-label": "What you can do in this world", tabindex: "0" });
    const menuBox = make("details", { class: "menu panel", open: true, hidden: true }, make("summary", {}, "What you can do, and what it is worth"), menu);
    const chart = make("ul", { class: "facts" });
    if (doctor) {
      moves.append(
        form("question", question, make("label", { class: "early" }, make("span", {}, "Ask the patient"), question), make("p", { class: "early" }, make("button", { class: "primary" }, "Ask"), state.ask_images && make("button", { type: "button", click: () => send("images") }, "Ask for images"))),
        form("test", test, make("div", { class: "early" }, make("label", { for: "test" }, make("span", {}, "Order an examination or test")), combo, price), make("p", { class: "early" }, make("button", {}, "Order"))),
        form("diagnosis", diagnosis, make("div", { class: "row" },
          make("label", {}, make("span", {}, "Commit to a diagnosis"), diagnosis),
          make("label", { class: "narrow" }, make("span", {}, "How sure (%)"), sure),
          make("button", {}, "Commit and finish"))),
        make("p", { class: "hint keys" }, "Enter sends. Outside the fields, Q, T, D and P go to the question, the test, the diagnosis and the differential diagnosis."));
    } else {
      moves.append(form("answer", question, make("label", {}, make("span", {}, "Answer the doctor"), question), make("p", {}, make("button", { class: "primary" }, "Answer"))));
    }
    show(`Case ${state.case}`, [make("span", {}, doctor ? "You are the doctor" : "You are the patient"), state.panel && make("span", {}, `Case ${number} of ${state.cases}`), make("button", { type: "button", click: () => location.assign(`/?seat=${seat}`) }, "Save and leave")],
      make("div", { class: "game" },
        make("div", {}, doctor && [door, menuBox], make("div", { role: "log", "aria-label": "What was said" }, talk), turn, problem, again, moves),
        make("aside", { class: "side", "aria-label": doctor ? "Your notes" : "Your chart" }, make("div", { class: "panel" }, doctor
          ? [make("h2", {}, "Differential diagnosis (%)"), beliefs, sum, make("p", { class: "hint" }, "Recorded with every move.")]
          : [make("h2", {}, "What you know about yourself"), make("p", { class: "hint" }, "Answer from this chart, in your own words."), make("div", { class: "scrolling", role: "region", "aria-label": "Your part of the chart", tabindex: "0" }, chart)]))));
    if (doctor) offerTests(test, combo, price).catch(() => {}); // without it, tests can be ordered all the same
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, button")) return;
      const to = { q: question, t: test, d: diagnosis, p: beliefs.lastElementChild && beliefs.lastElementChild.querySelector("input") }[event.key.toLowerCase()];
      if (to && to.isConnected) { event.preventDefault(); to.focus(); }
    });
    await follow();
    if (state.phase === "yours") (state.view.last ? diagnosis : question).focus();
  };

  // A combobox of known tests with their prices, the same for every case. It completes the last of several tests.
  const offerTests = async (input, combo, price) => {
    const { tests, prices, single } = await ask("/api/tests");
    const plain = (text) => text.toLowerCase().trim().replace(/\s+/g, " ");
    const byName = new Map();
    for (const test of tests) for (const name of [...test.names, test.name]) byName.set(plain(name), test);
    const list = make("ul", { id: "tests", role: "listbox", "aria-label": "Examinations and tests", hidden: true });
    combo.append(list);
    for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-controls": "tests", "aria-expanded": "false" })) input.setAttribute(name, value);
    let active = null;

    // What is before the test that is being typed, and what there is of it. Some names have commas themselves.
    const typing = () => {
      const parts = input.value.split(/([,;])/);
      for (let from = 0; from < parts.length; from += 2) {
        const last = parts.slice(from).join("");
        if (from === parts.length - 1 || tests.some((test) => plain(test.name).startsWith(plain(last)))) return [parts.slice(0, from).join("").trim(), plain(last)];
      }
    };
    const fitting = (typed) => {
      const place = (test) => Math.min(...[test.name, ...test.names].map((name, place) => {
        const at = ` ${plain(name)}`.indexOf(` ${typed}`);
        return at < 0 ? (plain(name).includes(typed) ? 5 : 9) : (at > 0 ? 2 : 0) + (place > 0 ? 1 : 0);
      }));
      return tests.map((test) => [place(test), test]).filter(([at]) => at < 9).sort((a, b) => a[0] - b[0]).map(([, test]) => test);
    };
    const mark = (option) => {
      if (active) active.setAttribute("aria-selected", "false");
      active = option;
      if (!active) return input.removeAttribute("aria-activedescendant");
      active.setAttribute("aria-selected", "true");
      active.scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", active.id);
    };
    const close = () => {
      mark(null);
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
    };
    const take = (test) => {
      const [head] = typing();
      input.value = head ? `${head} ${test.name}` : test.name;
      input.dispatchEvent(new Event("input"));
      close();
    };
    const open = () => {
      const [, typed] = typing();
      const fits = fitting(typed);
      mark(null);
      list.replaceChildren(...fits.map((test, place) => make("li", { role: "option", id: `tests-${place}`, "aria-selected": "false", pointerdown: (event) => event.preventDefault(), click: () => take(test) },
        make("span", {}, test.name), make("small", {}, test.usd ? dollars(test.usd) : "no charge"))));
      list.hidden = !fits.length || (fits.length === 1 && plain(fits[0].name) === typed);
      input.setAttribute("aria-expanded", String(!list.hidden));
      list.scrollTop = 0;
      list.scrollIntoView({ block: "nearest" });
      return typed && !list.hidden ? `${plural(fits.length, "known test")}; arrow keys choose.` : "";
    };

    // The tests in an order: the longest names first, because some have commas or "and" in them.
    const ordered = (text) => {
      const parts = text.split(/(,|;| and )/);
      for (let end = parts.length; end > 0; end -= 2) {
        const name = plain(parts.slice(0, end).join(""));
        const rest = parts.slice(end + 1).join("");
        if (byName.has(name) || end === 1) return [...(name ? [byName.get(name)] : []), ...(rest ? ordered(rest) : [])];
      }
    };
    const cost = () => {
      const known = ordered(input.value);
      const unknown = known.filter((test) => !test).length;
      const total = known.reduce((all, test) => all + (test ? test.usd : 0), 0);
      if (!known.length) return single ? "Type to find what can be ordered, one thing at a time." : "Type to find a test. Separate several with commas.";
      return unknown === known.length ? (single ? "Not on the lists: there would be no answer." : "Not in the price list; you can order it anyway.") : `${total ? dollars(total) : "No charge"}${unknown ? `, and ${plural(unknown, "test")} without a price` : ""} (${prices})`;
    };
    input.addEventListener("input", () => {
      const [, typed] = typing();
      if (!typed) close();
      price.textContent = (typed && open()) || cost();
    });
    input.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        event.preventDefault();
        if (list.hidden) open();
        const options = [...list.children];
        const at = active ? options.indexOf(active) + step : step > 0 ? 0 : options.length - 1;
        mark(options[at] || null);
      } else if (event.key === "Escape" && !list.hidden) {
        event.preventDefault();
        close();
      } else if ((event.key === "Enter" || event.key === "Tab") && active && !event.isComposing) {
        if (event.key === "Enter") event.preventDefault(); // it takes the test; the next one sends the order
        active.click();
      }
    });
    input.addEventListener("blur", () => { close(); price.textContent = cost(); });
    price.textContent = cost();
  };

  // --- the end ------------------------------------------------------------------------------------------------------

  const endingPage = (state) => {
    const end = state.ending;
    const doctor = state.seat === "doctor";
    const problem = problemLine();
    const replay = make("div", {});
    const differentials = make("div", {});
    const room = `/?seat=${state.seat}`;
    const list = (title, entries) => entries.length > 0 && make("section", {}, make("h2", {}, title), make("ul", { class: entries.length > 9 ? "many" : null }, entries.map((entry) => make("li", {}, entry))));
    const fact = (name, value) => value !== null && value !== undefined && value !== "" && [make("dt", {}, name), make("dd", {}, value)];
    const minutes = end.seconds === null ? null : end.seconds < 60 ? plural(Math.round(end.seconds), "second") : plural(Math.round(end.seconds / 60), "minute");
    const next = make("button", { class: "primary", type: "button", click: () => begin(state.seat, null, problem) }, state.panel ? "Next case" : "Another random case");
    const [, refuted] = /: (.*?)\.*$/.exec(end.against || "") || [];
    const against = end.reason && refuted && end.reason.includes(refuted) ? null : end.against; // the judge says it already
    const judged = end.verdict === "right" || end.verdict === "wrong";
    const heading = make("p", { class: `verdict ${judged ? end.verdict : ""}`, tabindex: "-1", role: "status" }, doctor || !judged ? end.verdict.charAt(0).toUpperCase() + end.verdict.slice(1) : `The doctor was ${end.verdict}`);
    const findings = [...end.found.map(([way, text]) => [text, way]), ...end.missed.map((text) => [text, "missed"])];
    show(`Case ${state.case}`, [make("span", {}, doctor ? "You were the doctor" : "You were the patient"), make("a", { href: room }, "Back to the cases")],
      make("div", { class: "ending", id: "ending" },
        make("section", { class: "panel" }, heading, make("dl", {},
          fact(doctor ? "Your diagnosis" : "The doctor's diagnosis", end.said || "no diagnosis"), fact("The truth", end.truth), fact("Why", end.why), fact("The judge's reason", [end.relation === "same" && end.reason ? null : end.relation, end.reason].filter(Boolean).join(": ")), fact("Against it", against), fact("What failed", end.fault), fact("Best play", end.points.join(" ")),
          fact("You were", doctor && end.stated !== null ? `${percent(end.stated)} sure` : null), fact("Turns", String(end.turns)), fact("Tests", !end.ordered.length ? "none" : end.tests_usd === null ? null : `${dollars(end.tests_usd)}${end.tests_unpriced ? ` and ${end.tests_unpriced} without a price` : ""}, in ${plural(end.ordered.length, "order")}`), fact("Your time, pauses included", minutes)),
          problem, make("p", { class: "row" }, state.next !== null && next, make("a", { href: room }, "Back to the cases"))),
        findings.length > 0 && make("section", {}, make("h2", {}, `Key findings: ${end.found.length} of ${findings.length} found`), table("What pointed to the diagnosis", ["finding", "how it was found"], findings)),
        end.encounter.turns.filter((said) => said.differential).length > 1 && make("section", { class: "course" }, make("h2", {}, doctor ? "How your differential changed" : "How the doctor's differential changed"), differentials),
        list("In the chart, but not asked about", end.untold),
        list("In the chart, but not ordered", end.unordered),
        doctor && confidenceSection(end.calibration),
        make("section", {}, make("h2", {}, "Other doctors on this case"), end.others.length
          ? table("Runs in the same folder", ["doctor", "right", "turns on average"], end.others.map((other) => [other.doctor, `${other.right} of ${other.n}`, other.turns.toFixed(1)]))
          : make("p", { class: "note" }, "No other run in this folder has this case.")),
        make("section", {}, make("h2", {}, "Turn by turn"), replay)));
    renderDifferentials(differentials, end.encounter);
    renderEncounter(replay, end.encounter, {});
    heading.focus({ preventScroll: true });
    scrollTo({ top: 0, behavior: "instant" });
  };

  const start = () => address.has("case") ? gamePage(address.get("seat") === "patient" ? "patient" : "doctor", Number(address.get("case"))) : lobby();
  const failed = async (error) => {
    main.replaceChildren(make("p", { class: "warn", role: "alert" }, `${error.message} ${error.offline ? "If it was stopped, start it again with the same command. " : ""}This page keeps trying.`));
    await pause(2000);
    start().catch(failed);
  };
  start().catch(failed);
})();
