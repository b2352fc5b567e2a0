"use strict";
(() => {
  const data = JSON.parse(document.getElementById("rows").textContent);
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const xy = new Uint16Array(bytes(data.pixels).buffer);
  const predicted = new Int16Array(bytes(data.predicted).buffer);
  const given = new Int16Array(bytes(data.given).buffer);
  const confidence = bytes(data.confidence);
  const voters = new Int32Array(bytes(data.voters).buffer);
  const shares = bytes(data.shares);
  const n = predicted.length, k = data.n_voters, cell = 16;
  const columns = Math.ceil(data.width / cell);
  const grid = new Map();
  for (let i = 0; i < n; i++) {
    const key = Math.floor(xy[2 * i + 1] / cell) * columns + Math.floor(xy[2 * i] / cell);
    const list = grid.get(key);
    if (list) list.push(i); else grid.set(key, [i]);
  }
  const id = (i) => (data.ids ? data.ids[i] : "row " + (i + 1));
  const name = (code) => (code < 0 ? "(none)" : data.classes[code]);
  const nearest = (x, y) => {
    const cx = Math.floor(x / cell), cy = Math.floor(y / cell);
    let best = -1, least = 18 * 18;
    for (let a = cy - 1; a <= cy + 1; a++) for (let b = cx - 1; b <= cx + 1; b++) {
      for (const i of grid.get(a * columns + b) || []) {
        const d = (xy[2 * i] - x) ** 2 + (xy[2 * i + 1] - y) ** 2 - (given[i] >= 0 ? 60 : 0);
        if (d < least) { least = d; best = i; }
      }
    }
    return best;
  };
  const words = (i) => {
    const lines = [id(i), "label: " + (given[i] < 0 ? "none" : name(given[i])),
      "predicted: " + name(predicted[i]) + ", confidence " + (confidence[i] / 255).toFixed(2)];
    const votes = [];
    for (let v = 0; v < k; v++) {
      if (shares[i * k + v] > 2) {
        const j = voters[i * k + v];
        votes.push("  " + id(j) + " (" + name(given[j]) + ") " + Math.round(shares[i * k + v] / 2.55) + " %");
      }
    }
    if (votes.length) lines.push("voted by labelled rows:", ...votes);
    return lines.join("\n");
  };
  const tip = document.getElementById("tip");
  document.getElementById("hint").hidden = false;
  const canvases = [...document.querySelectorAll(".map canvas")];
  const draw = (i) => {
    for (const canvas of canvases) {
      canvas.width = data.width; canvas.height = data.height;
      const pen = canvas.getContext("2d");
      if (i < 0) continue;
      const x = xy[2 * i], y = xy[2 * i + 1];
      for (let v = 0; v < k; v++) {
        const share = shares[i * k + v];
        if (share <= 2) continue;
        const j = voters[i * k + v];
        pen.strokeStyle = "#111"; pen.lineWidth = 1 + share / 64;
        pen.beginPath(); pen.moveTo(x, y); pen.lineTo(xy[2 * j], xy[2 * j + 1]); pen.stroke();
      }
      pen.lineWidth = 4; pen.strokeStyle = "#fff";
      pen.beginPath(); pen.arc(x, y, 10, 0, 7); pen.stroke();
      pen.lineWidth = 2; pen.strokeStyle = "#111";
      pen.beginPath(); pen.arc(x, y, 10, 0, 7); pen.stroke();
    }
  };
  let shown = -1;
  const show = (event, canvas) => {
    const box = canvas.getBoundingClientRect();
    const i = nearest((event.clientX - box.left) / box.width * data.width,
      (event.clientY - box.top) / box.height * data.height);
    if (i !== shown) { shown = i; draw(i); tip.hidden = i < 0; if (i >= 0) tip.textContent = words(i); }
    const left = Math.min(event.clientX + 16, window.innerWidth - tip.offsetWidth - 8);
    const top = Math.min(event.clientY + 16, window.innerHeight - tip.offsetHeight - 8);
    tip.style.left = Math.max(4, left) + "px"; tip.style.top = Math.max(4, top) + "px";
  };
  for (const canvas of canvases) {
    canvas.addEventListener("pointermove", (event) => show(event, canvas));
    canvas.addEventListener("pointerdown", (event) => show(event, canvas));
    canvas.addEventListener("pointerleave", () => { shown = -1; draw(-1); tip.hidden = true; });
  }
  document.documentElement.dataset.ready = String(n);
})();
