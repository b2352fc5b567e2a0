// The page: rows one by one, keys, and what stands beside them.

import { counted, make, sign, visible } from "./dom.js";
import { helpDialog, keyAction } from "./keys.js";
import { DotMap } from "./map.js";
import { peoplePanel, progressPanel, reviewPanel, summary } from "./panels.js";
import { rowContent, rowOpinion } from "./row.js";

const pause = 500; // milliseconds between questions how things stand

// `ask(name, question)` promises an answer; `page` tells what a page has and a notebook has not.
export const mount = async (root, ask, page = {}) => {
  const state = { row: null, chosen: [], again: [], back: [], forward: [], busy: 0, hideGuess: false, progress: null, seen: "" };
  let who = page.who || "me", map = null, found = null, stopped = false, failed = null;
  const banner = make("div", { class: "banner", role: "alert", hidden: true });
  const status = make("p", { class: "status", role: "status" });
  const line = make("p", { class: "soft summary" });
  const call = async (name, question = {}) => {
    try {
      const answer = await ask(name, { who, ...question });
      if (failed && failed.call === name) warn(null); // what failed works again
      return answer;
    } catch (error) { throw Object.assign(error, { call: name }); }
  };
  const warn = (error) => {
    failed = error;
    const learner = state.progress && state.progress.error;
    const text = [error && error.message, learner && "The model has stopped learning: " + learner + ". Labels are kept all the same."].filter(Boolean).join(" ");
    if (banner.textContent !== text) banner.textContent = text;
    banner.hidden = !text;
  };

  const look = await call("start");
  root.classList.add("manifoldknn");
  const pictures = new Map(); // of the last rows, and of the one that comes next
  const picture = (row) => {
    if (!pictures.has(row)) pictures.set(row, call("image", { row }));
    if (pictures.size > 8) pictures.delete(pictures.keys().next().value);
    return pictures.get(row);
  };
  const card = make("div", { class: "cells", tabindex: "0", role: "region", "aria-label": "Values of the row" });
  const title = make("h2"), opinion = make("div", { class: "opinion" });
  const classes = make("div", { class: "classes", role: "group", "aria-label": "Classes" });
  const newName = make("input", { type: "text", class: "new", placeholder: "new class", "aria-label": "Name of a new class", autocomplete: "off", maxlength: "200" });
  const naming = make("form", { class: "naming" }, newName, make("button", { type: "submit", text: "Label with it" }));

  // Rows.

  const show = (row, remember = true) => {
    if (remember && state.row && row && state.row.row !== row.row) { state.back.push(state.row.row); state.forward = []; }
    state.row = row;
    title.textContent = state.chosen.length ? counted(state.chosen.length, "chosen row") : row ? "Row " + visible(row.id) : "All rows are done";
    card.replaceChildren(...(row && !state.chosen.length ? rowContent(row, look, picture) : []));
    card.scrollTop = 0;
    tell();
    if (map && row) map.select(row.row);
  };
  const tell = () => {
    const { row } = state;
    opinion.replaceChildren(...(state.chosen.length
      ? [make("p", { text: "A class, skip or unsure is given to all of them at once; one undo takes it back. Escape lets go." })]
      : row ? rowOpinion(row, state.hideGuess, open) : [make("p", { text: "Export the labels under “File”, or look at the map." }), ...leftOver()]));
  };
  const leftOver = () => state.progress && state.progress.passed ? [make("button", { type: "button", text: "Go through " + counted(state.progress.passed, "skipped or unsure row"),
    onclick: () => one(async () => again((await call("review")).passed.map((passed) => passed.row))) })] : [];
  const open = async (number) => { letGo(); show(await call("row", { row: number })); };
  const letGo = () => { state.chosen = []; if (map) { map.chosen.clear(); map.draw(); } };
  let turn = Promise.resolve();
  const one = (work, waits) => { // one thing at a time: nobody labels a row they have not seen
    if (state.busy && !waits) return turn;
    state.busy += 1;
    turn = turn.then(work).catch(warn).finally(() => { state.busy -= 1; });
    return turn;
  };
  const goOn = async (answer) => {
    letGo(); follow(answer.progress);
    show(state.again.length ? await call("row", { row: state.again.shift() }) : answer.rows[0] || null);
    if (state.row && state.row.image !== undefined) answer.ahead.forEach((row) => picture(row).catch(() => {}));
  };
  const again = async (rows) => { state.again = rows; await goOn(await call("next")); };
  const fresh = async () => { // the same row with what has been learned since, or renamed
    if (!state.row || state.chosen.length) return;
    const now = state.row.row, row = await call("row", { row: now });
    if (state.row && state.row.row === now && !state.chosen.length) { state.row = { ...row, why: row.why || state.row.why }; tell(); }
  };
  const mark = (kind, label, known = true) => one(async () => {
    const rows = state.chosen.length ? state.chosen : state.row ? [state.row.row] : [];
    if (!rows.length) return;
    const answer = await call("mark", { rows, kind, label, known });
    const what = state.chosen.length ? counted(rows.length, "row") : "Row " + visible(state.row.id);
    status.textContent = what + ": " + (kind === "label" ? visible(label) : kind);
    await goOn(answer);
  });
  const travel = (kind) => one(async () => {
    const answer = await call(kind);
    if (answer.nothing) { status.textContent = "Nothing to " + kind; return; }
    letGo();
    follow(answer.progress);
    status.textContent = kind === "undo" ? "Undone" : "Redone";
    if (answer.n_rows) status.textContent += ": " + counted(answer.n_rows, "row");
    show(kind === "undo" && answer.shown ? answer.shown : answer.rows[0] || null);
  }, true); // who undoes quickly means every one of them
  const step = (from, to) => one(async () => {
    if (!from.length) return;
    const number = from.pop();
    if (state.row) to.push(state.row.row);
    letGo(); show(await call("row", { row: number }), false);
  });

  // Actions by name, for keys and buttons.

  const rest = () => { // no element has the focus, but keys still come here and not to a notebook around
    if (!page.keys) root.focus({ preventScroll: true });
    else if (root.contains(document.activeElement)) document.activeElement.blur();
  };
  const actions = {
    label: (code) => { const name = Object.keys(state.progress.classes)[code]; if (name !== undefined) mark("label", name); },
    accept: () => { if (state.row && !state.chosen.length && state.row.guess.length && !state.hideGuess) mark("label", state.row.guess[0][0]); },
    skip: () => mark("skip"), unsure: () => mark("unsure"),
    undo: () => travel("undo"), redo: () => travel("redo"),
    back: () => step(state.back, state.forward), forward: () => step(state.forward, state.back),
    name: () => newName.focus(), search: () => { tabs.pick("Map"); query.focus(); },
    map: () => { tabs.pick("Map"); if (map) map.box.focus(); },
    guess: () => { state.hideGuess = !state.hideGuess; hide.setAttribute("aria-pressed", String(state.hideGuess)); map.hideGuess = state.hideGuess; map.draw(); tell(); },
    help: () => help.showModal(),
    escape: () => { letGo(); rest(); show(state.row, false); query.value = ""; look_for().catch(warn); },
    nothing: () => {},
  };
  naming.addEventListener("submit", (event) => {
    event.preventDefault();
    const name = newName.value.trim();
    if (!name) return;
    newName.value = ""; rest(); mark("label", name, false);
  });
  const keyed = (event) => {
    if (event.defaultPrevented || help.open || renaming.open) return;
    const action = keyAction(event);
    if (!action) return;
    event.preventDefault();
    if (Array.isArray(action)) actions[action[0]](action[1]); else actions[action]();
  };
  (page.keys || root).addEventListener("keydown", keyed);
  root.addEventListener("click", (event) => { // what a pointer pressed takes no more keys; what a key pressed does
    if (event.detail && event.target.closest("button, a, summary")) rest();
  }, true);
  root.addEventListener("keydown", (event) => { // a notebook does not let Enter through to forms
    const form = event.key === "Enter" && event.target.tagName === "INPUT" && event.target.form;
    if (!form) return;
    event.preventDefault();
    if (form === renameForm) renaming.close("yes"); else form.dispatchEvent(new Event("submit", { cancelable: true }));
  });

  // Classes: rename, or merge by the name of another.

  const renamed = make("input", { type: "text", "aria-label": "New name", maxlength: "200" });
  const renaming = make("dialog", { "aria-label": "Rename or merge a class" }), renameTitle = make("h2");
  const renameForm = make("form", { method: "dialog" }, renameTitle, make("p", { class: "soft", text: "The name of another class merges both. It can be undone." }), renamed,
    make("p", {}, make("button", { value: "yes", text: "Rename" }), " ", make("button", { value: "no", text: "Leave", formnovalidate: true })));
  renaming.append(renameForm);
  renaming.addEventListener("close", () => {
    const [old, name] = [renaming.dataset.old, renamed.value.trim()];
    if (renaming.returnValue === "yes" && name && name !== old) one(async () => { follow(await call("classes", { old, new: name })); await fresh(); });
  });
  const rename = (name) => { renaming.dataset.old = name; renameTitle.textContent = "Rename " + visible(name); renamed.value = name; renaming.returnValue = "no"; renaming.showModal(); };
  const showClasses = () => {
    const names = Object.keys(state.progress.classes), key = JSON.stringify(names);
    if (classes.dataset.key === key) return;
    classes.dataset.key = key;
    classes.replaceChildren(...names.map((name, code) => make("button", { type: "button", onclick: () => mark("label", name) },
      sign(look, code), " " + visible(name), ...(code < 9 ? [" ", make("kbd", { text: String(code + 1) })] : []))));
  };

  // Panels.

  const panels = { Map: make("div"), Progress: make("div"), Review: make("div"), People: make("div"), File: make("div") };
  const tabs = { shown: "Map", buttons: {} };
  const bar = make("div", { class: "tabs", role: "tablist", "aria-label": "Panels" });
  for (const [name, panel] of Object.entries(panels)) {
    const id = "panel-" + name.toLowerCase();
    tabs.buttons[name] = make("button", { type: "button", role: "tab", id: id + "-tab", "aria-controls": id, text: name, onclick: () => tabs.pick(name) });
    bar.append(tabs.buttons[name]);
    panel.id = id; panel.setAttribute("role", "tabpanel"); panel.setAttribute("aria-labelledby", id + "-tab"); panel.tabIndex = -1;
  }
  tabs.pick = (name) => {
    tabs.shown = name;
    for (const [key, button] of Object.entries(tabs.buttons)) {
      button.setAttribute("aria-selected", String(key === name)); button.tabIndex = key === name ? 0 : -1; panels[key].hidden = key !== name;
    }
    refresh();
  };
  bar.addEventListener("keydown", (event) => {
    const names = Object.keys(panels), to = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!to) return;
    event.preventDefault(); event.stopPropagation();
    tabs.pick(names[(names.indexOf(tabs.shown) + to + names.length) % names.length]); tabs.buttons[tabs.shown].focus();
  });

  const tip = make("div", { class: "tip", hidden: true });
  const hint = make("p", { class: "soft" });
  const query = make("input", { type: "search", placeholder: "id or value", "aria-label": "Search rows", autocomplete: "off" });
  const hits = make("span", { class: "soft", role: "status" }), takeAll = make("button", { type: "button", hidden: true });
  const lasso = make("button", { type: "button", "aria-pressed": "false", text: "Lasso" });
  lasso.addEventListener("click", () => { map.lassoing = !map.lassoing; lasso.setAttribute("aria-pressed", String(map.lassoing)); map.box.classList.toggle("lassoing", map.lassoing); });
  const search = make("form", { class: "search" }, query, hits, takeAll);
  let searching = 0;
  const look_for = async () => {
    const mine = ++searching, words = query.value.trim();
    const told = words ? (await call("search", { words })).found : null;
    if (mine !== searching) return;
    found = told;
    hits.textContent = found ? counted(found.length, "row") + (found.length ? "; Enter opens the next" : "") : "";
    takeAll.hidden = !found || !found.length;
    takeAll.textContent = found ? "Choose " + (found.length === 1 ? "it" : "all " + found.length.toLocaleString("en")) : "";
    state.hit = -1;
    if (map) map.light(found);
  };
  query.addEventListener("input", () => { found = null; takeAll.hidden = true; clearTimeout(state.typing); state.typing = setTimeout(() => look_for().catch(warn), 150); });
  search.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!found) await look_for().catch(warn);
    if (!found || !found.length) return;
    state.hit = (state.hit + 1) % found.length;
    await open(found[state.hit]);
    if (map) map.select(found[state.hit], true);
  });
  const choose = (rows) => { state.chosen = rows; if (map) { map.chosen = new Set(rows); map.draw(); } show(state.row, false); };
  takeAll.addEventListener("click", () => choose(found));
  const hovered = async (i, event) => {
    tip.hidden = i < 0;
    if (i < 0) return;
    const row = await call("row", { row: i }).catch(() => null);
    if (!row || (map.hovered !== i && map.selected !== i)) return;
    const words = row.label ? "labelled " + visible(row.label) : row.guess.length && !state.hideGuess ? "guess " + visible(row.guess[0][0]) : "no label";
    tip.replaceChildren(make("b", { text: visible(row.id) }), " " + words, ...rowContent({ ...row, cells: row.cells.slice(0, 8).map(([name, text]) => [name, text.slice(0, 80)]) }, look));
    const [x, y] = map.place(i);
    tip.style.left = Math.max(4, Math.min(x + 16, map.width - tip.offsetWidth - 4)) + "px";
    tip.style.top = Math.max(4, Math.min(y + 16, map.height - tip.offsetHeight - 4)) + "px";
  };
  const legend = make("ul", { class: "legend" });
  map = new DotMap(look, { open: (i) => { tip.hidden = true; open(i).catch(warn); }, hover: hovered, choose, rest });
  const zooms = make("div", { class: "zoom", role: "group", "aria-label": "Zoom" },
    ...[["+", 1.6, "Zoom in"], ["−", 0.625, "Zoom out"]].map(([text, factor, name]) => make("button", { type: "button", text, "aria-label": name, onclick: () => map.zoomAt(factor) })),
    make("button", { type: "button", text: "⤢", "aria-label": "Show all", onclick: () => { map.view.zoom = 1; map.moved(); } }));
  map.box.addEventListener("blur", () => { tip.hidden = true; });
  hint.textContent = "The map is being drawn …";
  panels.Map.append(make("div", { class: "tools" }, search, lasso), make("div", { class: "stage" }, map.box, zooms, tip), legend, hint);

  if (page.exports) {
    panels.File.append(make("h3", { text: "Export" }), make("p", {}, ...page.exports.flatMap((form) => [make("a", { href: "labels." + form, download: "labels." + form, text: form.toUpperCase() }), " "])),
      make("p", { class: "soft", text: "Every row: its label, who gave it and when, or what the model says. The file you opened is never changed." }));
  }
  const file = make("input", { type: "file", id: "import-file" });
  panels.File.append(make("h3", {}, make("label", { for: "import-file", text: "Import" })),
    make("p", { class: "soft", text: "CSV, Parquet or JSON lines as exported, or the JSON of Label Studio. One undo takes it back." }), file);
  file.addEventListener("change", () => one(async () => {
    const data = (await new Promise((done) => { const reader = new FileReader(); reader.onload = () => done(reader.result); reader.readAsDataURL(file.files[0]); })).split(",")[1] || "";
    const answer = await call("import", { data });
    status.textContent = counted(answer.imported, "label") + " imported" + (answer.lost ? "; " + counted(answer.lost, "item") + " not of a row here: " + answer.some.map(visible).join(", ") + (answer.lost > answer.some.length ? " …" : "") : "");
    file.value = ""; follow(answer); await fresh();
  }));

  // Keeping up: what others do, and what the model has learned meanwhile.

  const refresh = async () => {
    if (!state.progress) return;
    const { progress } = state;
    if (tabs.shown === "Progress") panels.Progress.replaceChildren(...progressPanel(progress, look, { rename }));
    if (tabs.shown === "People") panels.People.replaceChildren(...peoplePanel(progress));
    if (tabs.shown === "Review") panels.Review.replaceChildren(...reviewPanel(await call("review"), { open: (i) => open(i).catch(warn), again: (rows) => one(() => again(rows)),
      settle: (row, label) => one(async () => { await call("settle", { rows: [row], label }); follow(await call("progress")); }) }));
    if (tabs.shown === "Map" && progress.has_map) {
      if (!map.n) { map.setPlaces((await call("map")).places); if (state.row) map.select(state.row.row); }
      const answers = await call("answers");
      map.setAnswers(answers);
      legend.replaceChildren(...answers.classes.map((name, code) => make("li", {}, sign(look, code), " " + visible(name))));
      hint.textContent = "Near dots are neighbours on the graph. Dots with an edge are labelled. Drag moves, Ctrl and wheel or a pinch zooms, Shift and drag is a lasso.";
      root.dataset.map = String(map.n);
    }
  };
  const follow = (progress) => {
    state.progress = progress;
    const seen = progress.version.join(), open_ = progress.conflicts + progress.doubts + progress.passed;
    if (state.learned !== undefined && progress.learned !== state.learned) state.updated = new Date();
    state.learned = progress.learned;
    line.textContent = summary(progress, look.n_rows, state.updated);
    warn(failed);
    root.dataset.learned = String(progress.learned); root.dataset.number = String(progress.number);
    tabs.buttons.Review.textContent = "Review" + (open_ ? " (" + open_ + ")" : "");
    showClasses();
    if (seen !== state.seen) { state.seen = seen; refresh().catch(warn); }
  };
  const keepUp = async () => {
    if (stopped) return;
    try {
      const learned = state.progress.learned, progress = await call("progress");
      follow(progress);
      if (progress.learned !== learned && !state.busy) await fresh();
    } catch (error) { warn(error); }
    setTimeout(keepUp, pause);
  };

  // All together.

  const hide = make("button", { type: "button", "aria-pressed": "false", text: "Hide guess", onclick: () => actions.guess() });
  const help = helpDialog();
  const button = (text, key, action) => make("button", { type: "button", onclick: action }, text, " ", make("kbd", { text: key }));
  const person = make("input", { type: "text", value: who, "aria-label": "Your name", maxlength: "60" });
  person.addEventListener("change", () => one(async () => {
    who = person.value.trim() || "me"; if (page.remember) page.remember(who);
    state.back = []; state.forward = []; state.again = [];
    await goOn(await call("next"));
  }));
  root.append(
    make("header", {}, make("h1", { text: visible(look.file) }), line,
      make("div", { class: "tools" }, make("label", {}, "Name ", person), hide, make("button", { type: "button", text: "Keys ?", onclick: () => actions.help() }))),
    banner,
    make("main", {}, make("section", { class: "row", "aria-label": "Row" }, title, card, opinion, naming,
      make("div", { class: "act" }, status, classes,
        make("div", { class: "tools" }, button("Accept", "Enter", actions.accept), button("Skip", "S", actions.skip), button("Unsure", "U", actions.unsure),
          button("Undo", "Ctrl+Z", actions.undo), button("Redo", "Ctrl+Y", actions.redo)))),
    make("section", { class: "side", "aria-label": "Overview" }, bar, ...Object.values(panels))),
    help, renaming);
  tabs.pick("Map");
  await goOn(await call("next"));
  root.dataset.ready = "yes";
  setTimeout(keepUp, pause);
  return () => { stopped = true; };
};
