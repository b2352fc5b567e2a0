// What keys do, in one list: for the hand and for the help.

import { make } from "./dom.js";

export const keyHelp = [
  ["1 – 9", "label the row with that class"], ["Enter", "accept the guess"], ["N", "name a new class"],
  ["S", "skip the row"], ["U", "unsure"], ["Ctrl+Z", "undo, as often as you like"], ["Ctrl+Y", "redo"],
  ["← →", "rows seen before, and back"], ["/", "search"], ["G", "hide or show the guess"], ["M", "go to the map"],
  ["Escape", "let go of chosen rows, end the search"], ["?", "this list"],
];

// Return the action of a key press: a name, or [name, number].
export const keyAction = (event) => {
  const field = event.target.closest("input, select, textarea"), control = event.target.closest("button, a, summary");
  if (event.altKey) return null;
  if (event.ctrlKey || event.metaKey) {
    const key = event.key.toLowerCase();
    if (field && field.value) return null;
    return key === "z" ? (event.shiftKey ? "redo" : "undo") : key === "y" ? "redo" : null;
  }
  if (event.key === "Escape") return "escape";
  if (field) return null;
  if (event.repeat && /^([1-9su]|Enter)$/i.test(event.key)) return "nothing"; // nobody saw the rows in between
  if (/^[1-9]$/.test(event.key)) return ["label", Number(event.key) - 1];
  if (event.key === "Enter") return control ? null : "accept";
  const names = { s: "skip", u: "unsure", n: "name", g: "guess", m: "map", "/": "search", "?": "help", ArrowLeft: "back", ArrowRight: "forward" };
  return names[event.key.length === 1 ? event.key.toLowerCase() : event.key] || null;
};

export const helpDialog = () => {
  const close = make("button", { type: "button", text: "Close" });
  const list = make("dl", {}, ...keyHelp.flatMap(([key, what]) => [make("dt", {}, make("kbd", { text: key })), make("dd", { text: what })]));
  const dialog = make("dialog", { "aria-label": "Keys" }, make("h2", { text: "Keys" }), list, close);
  close.addEventListener("click", () => dialog.close());
  return dialog;
};
