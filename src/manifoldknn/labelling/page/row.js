// One row: its cells, text or picture, why it was chosen, the guess, and labelled rows near it.

import { make, percent, unpacked, visible } from "./dom.js";

const pixelPicture = (packed) => {
  const values = unpacked(packed), side = Math.sqrt(values.length);
  const canvas = make("canvas", { class: "pixels", width: side, height: side, role: "img", "aria-label": "the row as a picture" });
  const pen = canvas.getContext("2d"), image = pen.createImageData(side, side);
  values.forEach((value, i) => image.data.set([value, value, value, 255], 4 * i));
  pen.putImageData(image, 0, 0);
  return canvas;
};

const filePicture = (row, call) => {
  const box = make("div", { class: "picture" }), name = visible(row.image);
  call("image", { row: row.row }).then(
    (found) => box.append(make("img", { alt: name, src: "data:" + found.type + ";base64," + found.data })),
    (error) => box.append(make("p", { class: "soft", text: "No picture: " + error.message })),
  );
  return box;
};

export const rowContent = (row, call) => {
  const parts = [];
  if (row.pixels) parts.push(pixelPicture(row.pixels));
  if (row.image !== undefined) parts.push(filePicture(row, call));
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
  if (row.why) parts.push(make("p", { class: "why" }, make("b", { text: "Why this row: " }), visible(row.why)));
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
