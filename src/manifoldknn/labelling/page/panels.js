// What stands beside the row: how far the labels go, what to look at again, who labels.

import { counted, drawn, make, percent, sign, visible } from "./dom.js";

const most = 100; // rows of a list

const curve = (steps) => {
  const newest = new Map(steps.filter((step) => step.accuracy !== null).map((step) => [step.labels, step]));
  const known = [...newest.values()].sort((a, b) => a.labels - b.labels); // there may have been undo
  if (known.length < 2) return [];
  const first = known[0].labels, last = known.at(-1).labels;
  const x = (step) => (34 + 300 * (step.labels - first) / Math.max(1, last - first)).toFixed(1);
  const y = (share) => (10 + 100 * (1 - share)).toFixed(1);
  const band = known.map((step) => x(step) + "," + y(step.high)).concat(known.toReversed().map((step) => x(step) + "," + y(step.low)));
  return [drawn("svg", { class: "curve", viewBox: "0 0 344 132", role: "img", "aria-label": "Expected accuracy over the number of labels, now " + percent(steps.findLast((step) => step.accuracy !== null).accuracy) },
    ...[0, 0.5, 1].map((share) => drawn("line", { x1: 34, x2: 334, y1: y(share), y2: y(share), class: "rule" })),
    ...[0, 0.5, 1].map((share) => drawn("text", { x: 30, y: y(share), "text-anchor": "end", "dominant-baseline": "middle" }, 100 * share + " %")),
    drawn("polygon", { points: band.join(" "), class: "band" }),
    drawn("polyline", { points: known.map((step) => x(step) + "," + y(step.accuracy)).join(" "), class: "line" }),
    drawn("text", { x: 34, y: 128 }, counted(first, "label")), drawn("text", { x: 334, y: 128, "text-anchor": "end" }, String(last)))];
};

export const summary = (progress, rows, updated) => {
  const step = progress.steps.at(-1), parts = [counted(progress.labelled, "label") + " of " + counted(rows, "row")];
  const judged = progress.steps.findLast((one) => one.accuracy !== null);
  if (judged) parts.push("expected accuracy " + percent(judged.accuracy) + " (" + percent(judged.low) + " to " + percent(judged.high) + ")");
  if (step && progress.steps.length > 1) parts.push(counted(step.changed, "answer") + " changed");
  if (progress.error) parts.push("the model has stopped learning");
  else if (progress.working) parts.push(progress.working + " …");
  else if (updated) parts.push("model updated " + updated.toLocaleTimeString());
  return parts.join(" · ");
};

export const progressPanel = (progress, look, actions) => {
  const step = progress.steps.at(-1), most = Math.max(1, ...Object.values(progress.classes));
  const judged = progress.steps.findLast((one) => one.accuracy !== null), parts = [];
  if (judged) {
    parts.push(make("p", { class: "big", text: percent(judged.accuracy) }),
      make("p", { class: "soft", text: "of answers are expected to be right; by chance it may be " + percent(judged.low) + " to " + percent(judged.high) + ". Labels were hidden and had to be found again." }));
  } else parts.push(make("p", { class: "soft", text: "How good the answers are is known once two classes have two labels each." }));
  if (step) {
    parts.push(make("p", { text: counted(step.changed, "answer") + " changed with the last labels; about " + counted(step.open, "answer") + " may still be wrong." }),
      make("p", { class: "soft", text: "The model took " + step.seconds.toFixed(1) + " s to learn them." }));
    if (progress.enough) parts.push(make("p", { class: "enough", text: "✓ More labels would change little now." }));
  }
  parts.push(...curve(progress.steps));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...["class", "labels", "change"].map((text) => make("th", { scope: "col", text })))));
  const body = make("tbody");
  Object.entries(progress.classes).forEach(([name, count], code) => {
    const bar = make("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = (100 * count / most) + "%";
    body.append(make("tr", {}, make("th", { scope: "row" }, sign(look, code), " " + visible(name)),
      make("td", {}, make("span", { class: "track" }, bar), " " + count),
      make("td", {}, make("button", { type: "button", text: "Rename or merge", "aria-label": "Rename or merge " + visible(name), onclick: () => actions.rename(name) }))));
  });
  table.append(body);
  if (body.childElementCount) parts.push(make("h3", { text: "Labels per class" }), table);
  return parts;
};

export const reviewPanel = (review, actions) => {
  const parts = [make("h3", { text: "Doubtful labels" })];
  const list = (items) => make("ul", { class: "listed" }, ...items);
  parts.push(review.doubts.length ? list(review.doubts.map((doubt) => make("li", {},
    make("button", { type: "button", class: "link", text: visible(doubt.id), onclick: () => actions.open(doubt.row) }),
    " is labelled " + visible(doubt.given) + "; its neighbours say " + visible(doubt.suggested) + " (" + percent(doubt.suggested_share) + ")")))
    : make("p", { class: "soft", text: "No label is contradicted by its neighbours." }));
  parts.push(make("h3", { text: "Conflicts between people" }));
  parts.push(review.conflicts.length ? list(review.conflicts.map((conflict) => make("li", { class: "conflict" },
    make("button", { type: "button", class: "link", text: visible(conflict.id), onclick: () => actions.open(conflict.row) }),
    " " + Object.entries(conflict.said).map(([who, label]) => visible(who) + " says " + visible(label)).join(", ") + " ",
    ...[...new Set(Object.values(conflict.said))].map((label) => make("button", { type: "button", text: "Settle: " + visible(label), onclick: () => actions.settle(conflict.row, label) })))))
    : make("p", { class: "soft", text: "None." }));
  parts.push(make("h3", { text: "Skipped and unsure" }));
  if (review.passed.length) {
    parts.push(make("p", {}, make("button", { type: "button", text: "Go through " + counted(review.passed.length, "row"), onclick: () => actions.again(review.passed.map((one) => one.row)) })),
      list(review.passed.slice(0, most).map((one) => make("li", {},
        make("button", { type: "button", class: "link", text: visible(one.id), onclick: () => actions.open(one.row) }), one.kind === "skip" ? " was skipped" : " is unsure"))));
    if (review.passed.length > most) parts.push(make("p", { class: "soft", text: "and " + counted(review.passed.length - most, "more row") }));
  } else parts.push(make("p", { class: "soft", text: "You have skipped no row." }));
  if (review.agreement.length) {
    parts.push(make("h3", { text: "Agreement" }), list(review.agreement.map((one) => make("li", {
      text: one.people.map(visible).join(" and ") + ": " + one.alike + " of " + counted(one.rows, "row") + " alike" +
        (one.kappa === null ? "" : ", kappa " + one.kappa.toFixed(2)) }))));
  }
  return parts;
};

export const peoplePanel = (progress) => {
  const people = Object.entries(progress.people);
  if (!people.length) return [make("p", { class: "soft", text: "Nobody has labelled yet." })];
  return [make("ul", { class: "listed" }, ...people.map(([who, n]) => make("li", { text: visible(who) + ": " + counted(n, "label") })))];
};
