// Elements without markup: whatever a cell holds becomes text.

export const make = (tag, options = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(options)) {
    if (key === "text") made.textContent = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
};

// Control characters and marks that turn the direction of writing, made visible; those that join letters stay.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
export const visible = (text) => text.replace(/\r\n/g, "\n").replace(hidden, (c) =>
  "⟨" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "⟩");

export const unpacked = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
export const percent = (share) => Math.round(100 * share) + " %";
export const counted = (n, what) => n.toLocaleString("en") + " " + what + (n === 1 ? "" : "s");
export const held = (value, low, high) => Math.min(Math.max(value, low), high);

const svg = "http://www.w3.org/2000/svg";
export const drawn = (tag, attributes, ...children) => {
  const made = document.createElementNS(svg, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

// The sign of a class: a colour and a shape.
export const sign = (look, code) => drawn("svg", { class: "sign", viewBox: "-7 -7 14 14", "aria-hidden": "true" },
  drawn("path", { d: look.shapes[code % look.shapes.length], fill: look.colors[code % look.colors.length] }));
