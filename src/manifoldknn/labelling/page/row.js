// One row: its cells, text or picture, why it was chosen, the guess, and labelled rows near it.

import { make, percent, unpacked, visible } from "./dom.js";

const pixelPicture = (values, white) => {
  const side = Math.sqrt(values.length);
  const canvas = make("canvas", { class: "pixels", width: side, height: side, role: "img", "aria-label": "the row as a picture" });
  const pen = canvas.getContext("2d"), image = pen.createImageData(side, side);
  values.forEach((value, i) => image.data.set([...Array(3).fill(255 * value / white), 255], 4 * i));
  pen.putImageData(image, 0, 0);
  return canvas;
};

// The values of pixels, once somebody asks for them.
const pixelValues = (values, { names, unit }) => {
  const list = make("dl"), box = make("details", {}, make("summary", { text: "Values" }), list);
  box.addEventListener("toggle", () => list.replaceChildren(...names.flatMap((name, i) =>
    [make("dt", { text: visible(name) }), make("dd", { text: String(Number((values[i] * unit).toFixed(4))) })])), { once: true });
  return box;
};

const filePicture = (row, picture) => {
  const box = make("div", { class: "picture" }), name = visible(row.image);
  picture(row.row).then(
    (found) => box.append(make("img", { alt: name, src: "data:" + found.type + ";base64," + found.data })),
    (error) => box.append(make("p", { class: "soft", text: "No picture: " + error.message })),
  );
  return box;
};

// `picture(row)` promises the picture of a row; without it there is none, and no list of all pixels.
export const rowContent = (row, look, picture) => {
  const parts = [];
  if (row.pixels) {
    const values = unpacked(row.pixels);
    parts.push(pixelPicture(values, look.pixels.white));
    if (picture) parts.push(pixelValues(values, look.pixels));
  }
  if (picture && row.image !== undefined) parts.push(filePicture(row, picture));
  const list = make("dl");
  for (const [name, value] of row.cells) {
    if (name === row.text) parts.push(make("p", { class: "text", dir: "auto", text: visible(value) }));
    else list.append(make("dt", { text: visible(name) }), make("dd", { dir: "auto", text: value === "" ? "(empty)" : visible(value) }));
  }
  if (list.childElementCount) parts.push(list);
  return parts;
};

const when = (at) => at && !Number.isNaN(Date.parse(at)) ? new Date(at).toLocaleString() : visible(at);

export const rowOpinion = (row, hideGuess, open) => {
  const parts = [];
  const why = hideGuess && row.guess.length ? "the model asks for it" : row.why; // which tells of the guess
  if (row.why) parts.push(make("p", { class: "why" }, make("b", { text: "Why this row: " }), visible(why)));
  if (row.label) parts.push(make("p", {}, make("b", { text: "Labelled " + visible(row.label) })));
  for (const mark of row.marks) {
    const said = { label: "said " + visible(mark.label), skip: "skipped it", unsure: "was unsure" }[mark.kind], own = row.mine && mark.who === row.mine.who;
    parts.push(make("p", {}, (own ? "You" : visible(mark.who)) + " " + (own ? said.replace("was", "were") : said) + (mark.at ? ", " : ""), make("time", { class: "soft", datetime: mark.at, text: when(mark.at) })));
  }
  if (!hideGuess && row.guess.length) {
    const [first, ...others] = row.guess;
    const rest = others.filter(([, share]) => share >= 0.01).map(([name, share]) => visible(name) + " " + percent(share));
    parts.push(make("p", { class: "guess" }, make("b", { text: "Guess: " + visible(first[0]) }),
      " " + percent(first[1]) + (rest.length ? "; " + rest.join(", ") : "")));
  }
  if (row.near.length) {
    const list = make("ul", { class: "near" });
    for (const one of row.near) {
      list.append(make("li", {},
        make("button", { type: "button", class: "link", text: visible(one.id), onclick: () => open(one.row) }),
        " ", make("b", { text: visible(one.label) }), make("span", { class: "soft", dir: "auto", text: " " + visible(one.brief) })));
    }
    parts.push(make("h3", { text: "Labelled rows near it, along the graph" }), list);
  }
  return parts;
};
