// The map: dots are pixels written into one picture, so that very many move at once.

import { held, make, unpacked } from "./dom.js";

const cells = 128; // along a side of the grid that finds dots under the pointer

export class DotMap {
  constructor(look, on) {
    this.look = look; this.on = on; this.n = 0; this.lassoing = this.hideGuess = false;
    this.view = { zoom: 1, x: 0.5, y: 0.5 };
    this.selected = this.hovered = -1; this.chosen = new Set(); this.path = []; this.masks = new Map();
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.box = make("div", { class: "map", tabindex: "0", role: "application", "aria-label": "Map of rows. Arrows go from dot to dot, Enter opens one, plus and minus zoom, 0 shows all." }, this.canvas);
    this.pen = this.canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    new ResizeObserver(() => this.resized()).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.resized());
    this.listen();
  }

  setPlaces(packed) {
    this.at = Float32Array.from(new Uint16Array(unpacked(packed).buffer), (v) => v / 65535);
    this.n = this.at.length / 2;
    this.lit = new Uint8Array(this.n).fill(1);
    this.given = this.said = new Int16Array(this.n).fill(-1);
    this.grid = Array.from({ length: cells * cells }, () => []);
    for (let i = 0; i < this.n; i++) this.grid[this.cell(this.at[2 * i + 1]) * cells + this.cell(this.at[2 * i])].push(i);
    const range = (axis) => {
      let low = 1, high = 0;
      for (let i = axis; i < this.at.length; i += 2) { low = Math.min(low, this.at[i]); high = Math.max(high, this.at[i]); }
      return Math.max(high - low, 0.01);
    };
    this.span = [range(0), range(1)];
    this.resized();
  }

  setAnswers(answers) {
    this.given = new Int16Array(unpacked(answers.given).buffer);
    this.said = new Int16Array(unpacked(answers.said).buffer);
    this.draw();
  }

  light(rows) {
    if (!this.n) return;
    this.lit.fill(rows ? 0 : 1);
    for (const row of rows || []) this.lit[row] = 1;
    this.draw();
  }

  cell(value) { return held(Math.floor(value * cells), 0, cells - 1); }

  place(i) {
    const scale = this.side * this.view.zoom;
    return [this.width / 2 + (this.at[2 * i] - this.view.x) * scale, this.height / 2 + (this.at[2 * i + 1] - this.view.y) * scale];
  }

  resized() {
    this.ratio = window.devicePixelRatio || 1;
    this.width = this.box.clientWidth; this.height = this.box.clientHeight;
    if (!this.width || !this.n) return;
    this.side = Math.min((this.width - 40) / this.span[0], (this.height - 40) / this.span[1]);
    this.canvas.width = Math.round(this.width * this.ratio); this.canvas.height = Math.round(this.height * this.ratio);
    const style = getComputedStyle(this.box);
    const color = (name) => style.getPropertyValue(name).trim();
    this.ink = color("--ink"); this.paper = color("--paper"); this.masks.clear();
    this.image = this.pen.createImageData(this.canvas.width, this.canvas.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    const packed = (text) => { // any colour, as four bytes
      this.pen.fillStyle = text; this.pen.fillRect(0, 0, 1, 1);
      return new Uint32Array(this.pen.getImageData(0, 0, 1, 1).data.buffer)[0];
    };
    const mixed = (text) => packed("color-mix(in srgb, " + text + " 22%, " + this.paper + ")");
    this.packed = { paper: packed(this.paper), ink: packed(this.ink), gray: packed("#8a8f96"), faint: mixed("#8a8f96"),
      colors: this.look.colors.map(packed), faded: this.look.colors.map(mixed) };
    this.draw();
  }

  // The pixels of a shape around its middle, as steps in the picture.
  mask(shape, size, ring) {
    const key = shape + "," + size.toFixed(1) + "," + ring;
    if (!this.masks.has(key)) {
      const half = Math.ceil(size + 2), wide = 2 * half + 1, small = document.createElement("canvas");
      small.width = small.height = wide;
      const pen = small.getContext("2d"), path = new Path2D(this.look.shapes[shape]);
      pen.translate(half + 0.5, half + 0.5); pen.scale(size / 5, size / 5);
      if (ring) { pen.lineWidth = 4; pen.stroke(path); }
      pen.fill(path);
      const alpha = pen.getImageData(0, 0, wide, wide).data, steps = [];
      for (let y = 0; y < wide; y++) for (let x = 0; x < wide; x++) {
        if (alpha[4 * (y * wide + x) + 3] > 110) steps.push((y - half) * this.canvas.width + x - half);
      }
      this.masks.set(key, { steps: Int32Array.from(steps), half });
    }
    return this.masks.get(key);
  }

  stamp(i, mask, color) {
    const scale = this.side * this.view.zoom * this.ratio;
    const x = Math.round(this.canvas.width / 2 + (this.at[2 * i] - this.view.x) * scale);
    const y = Math.round(this.canvas.height / 2 + (this.at[2 * i + 1] - this.view.y) * scale);
    const { steps, half } = mask;
    if (x < half || y < half || x >= this.canvas.width - half || y >= this.canvas.height - half) return;
    const start = y * this.canvas.width + x, pixels = this.pixels;
    for (let s = 0; s < steps.length; s++) pixels[start + steps[s]] = color;
  }

  draw() {
    if (this.waiting || !this.image) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); });
  }

  paint() {
    if (!this.width || !this.n) return;
    const { colors, faded, gray, faint, ink, paper } = this.packed, shapes = this.look.shapes.length;
    const size = held(26 / Math.pow(this.n, 0.3), 1.2, 5) * held(Math.pow(this.view.zoom, 0.35), 1, 2.4) * this.ratio;
    this.pixels.fill(paper);
    const plain = this.look.shapes.map((_, shape) => this.mask(shape, size, false));
    for (const bright of [0, 1]) for (let i = 0; i < this.n; i++) {
      if (this.lit[i] !== bright || this.given[i] >= 0) continue;
      const code = this.hideGuess ? -1 : this.said[i], tone = bright ? colors : faded;
      if (code < 0) this.stamp(i, plain[0], bright ? gray : faint);
      else this.stamp(i, plain[code % shapes], tone[code % tone.length]);
    }
    const large = Math.max(1.3 * size, 3.4 * this.ratio);
    const rings = this.look.shapes.map((_, shape) => this.mask(shape, large, true));
    const inner = this.look.shapes.map((_, shape) => this.mask(shape, large, false));
    for (let i = 0; i < this.n; i++) if (this.given[i] >= 0) {
      const code = this.given[i];
      this.stamp(i, rings[code % shapes], ink);
      this.stamp(i, inner[code % shapes], (this.lit[i] ? colors : faded)[code % colors.length]);
    }
    this.pen.setTransform(1, 0, 0, 1, 0, 0);
    this.pen.putImageData(this.image, 0, 0);
    this.pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const circle = (i, radius, wide) => {
      const [x, y] = this.place(i);
      for (const [color, width] of [[this.paper, wide + 3], [this.ink, wide]]) {
        this.pen.strokeStyle = color; this.pen.lineWidth = width;
        this.pen.beginPath(); this.pen.arc(x, y, radius, 0, 7); this.pen.stroke();
      }
    };
    if (this.chosen.size <= 3000) for (const i of this.chosen) circle(i, 5, 1);
    for (const i of new Set([this.selected, this.hovered])) if (i >= 0) circle(i, 10, 2.5);
    if (this.path.length > 1) {
      this.pen.strokeStyle = this.ink; this.pen.lineWidth = 2; this.pen.setLineDash([6, 4]);
      this.pen.beginPath(); this.path.forEach(([x, y]) => this.pen.lineTo(x, y)); this.pen.closePath(); this.pen.stroke();
      this.pen.setLineDash([]);
    }
  }

  moved() {
    const { view } = this;
    view.zoom = held(view.zoom, 1, 80); view.x = held(view.x, 0, 1); view.y = held(view.y, 0, 1);
    if (view.zoom === 1) view.x = view.y = 0.5;
    this.draw();
  }

  zoomAt(factor, x = this.width / 2, y = this.height / 2) {
    const before = this.view.zoom;
    this.view.zoom = held(before * factor, 1, 80);
    const gain = 1 / (this.side * before) - 1 / (this.side * this.view.zoom);
    this.view.x += (x - this.width / 2) * gain; this.view.y += (y - this.height / 2) * gain;
    this.moved();
  }

  select(i, centre = false) {
    this.selected = i;
    if (i >= 0 && this.n) {
      const [x, y] = this.place(i);
      if (centre || x < 15 || y < 15 || x > this.width - 15 || y > this.height - 15) {
        this.view.zoom = Math.max(this.view.zoom, centre ? 3 : 1.01); this.view.x = this.at[2 * i]; this.view.y = this.at[2 * i + 1];
        return this.moved();
      }
    }
    this.draw();
  }

  nearest(px, py, reach) {
    const scale = this.side * this.view.zoom, x = this.view.x + (px - this.width / 2) / scale, y = this.view.y + (py - this.height / 2) / scale;
    const far = reach / scale;
    let best = -1, least = far;
    for (let a = this.cell(y - far); a <= this.cell(y + far); a++) for (let b = this.cell(x - far); b <= this.cell(x + far); b++) {
      for (const i of this.grid[a * cells + b]) {
        const d = Math.hypot(this.at[2 * i] - x, this.at[2 * i + 1] - y);
        if (this.lit[i] && d < least) { least = d; best = i; }
      }
    }
    return best;
  }

  beside(dx, dy) { // the nearest dot in a direction
    const from = this.selected;
    if (from < 0) return this.nearest(this.width / 2, this.height / 2, Math.hypot(this.width, this.height));
    let best = from, least = Infinity;
    for (let i = 0; i < this.n; i++) {
      const x = this.at[2 * i] - this.at[2 * from], y = this.at[2 * i + 1] - this.at[2 * from + 1];
      const along = x * dx + y * dy, across = Math.abs(x * dy) + Math.abs(y * dx);
      if (this.lit[i] && along > 0 && across <= along && along + 2 * across < least) { least = along + 2 * across; best = i; }
    }
    return best;
  }

  inside() { // dots within the lasso, by how often a ray crosses it
    const found = [], { path } = this;
    for (let i = 0; i < this.n; i++) {
      if (!this.lit[i]) continue;
      const [x, y] = this.place(i);
      let within = false;
      for (let a = 0, b = path.length - 1; a < path.length; b = a++) {
        const [ax, ay] = path[a], [bx, by] = path[b];
        if ((ay > y) !== (by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax) within = !within;
      }
      if (within) found.push(i);
    }
    return found;
  }

  choose(rows) { this.chosen = new Set(rows); this.draw(); this.on.choose([...rows]); }

  listen() {
    const { box } = this, fingers = new Map();
    let travelled = 0;
    const local = (event) => {
      const frame = box.getBoundingClientRect();
      return [event.clientX - frame.left - box.clientLeft, event.clientY - frame.top - box.clientTop];
    };
    const hover = (i, event) => {
      if (i === this.hovered) return;
      this.hovered = i; this.draw(); this.on.hover(i, event);
    };
    box.addEventListener("pointerdown", (event) => {
      if (!this.n) return;
      fingers.set(event.pointerId, local(event)); travelled = 0;
      this.path = this.lassoing || event.shiftKey ? [local(event)] : [];
      try { box.setPointerCapture(event.pointerId); } catch { /* a pointer that tests made up */ }
    });
    box.addEventListener("pointermove", (event) => {
      if (!this.n) return;
      const now = local(event), before = fingers.get(event.pointerId);
      if (!before) { if (event.pointerType !== "touch") hover(this.nearest(...now, 14), event); return; }
      const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
      travelled += Math.hypot(dx, dy);
      if (this.path.length) { this.path.push(now); this.draw(); } else if (fingers.size === 2) {
        const other = [...fingers].find(([key]) => key !== event.pointerId)[1];
        const apart = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
        this.zoomAt(apart(now) / apart(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      } else if (travelled > 4) {
        hover(-1, event);
        this.view.x -= dx / (this.side * this.view.zoom); this.view.y -= dy / (this.side * this.view.zoom);
        if (this.view.zoom === 1) this.view.zoom = 1.0001;
        this.moved();
      }
      fingers.set(event.pointerId, now);
    });
    const up = (event) => {
      if (this.path.length > 2) this.choose(this.inside());
      else if (event.type === "pointerup" && fingers.size === 1 && travelled <= 4) {
        const found = this.nearest(...local(event), event.pointerType === "touch" ? 26 : 14);
        if (found >= 0) { this.select(found); this.on.open(found); this.on.rest(); }
      }
      this.path = []; fingers.delete(event.pointerId); this.draw();
    };
    box.addEventListener("pointerup", up);
    box.addEventListener("pointercancel", up);
    box.addEventListener("pointerleave", (event) => hover(-1, event));
    box.addEventListener("wheel", (event) => {
      if (!this.n || !(event.ctrlKey || event.metaKey || document.activeElement === box)) return;
      event.preventDefault();
      this.zoomAt(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), ...local(event));
    }, { passive: false });
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    box.addEventListener("keydown", (event) => {
      const arrow = arrows[event.key];
      if (!this.n || event.ctrlKey || event.metaKey || event.altKey) return;
      if (arrow && event.shiftKey) {
        if (this.view.zoom === 1) this.view.zoom = 1.0001;
        this.view.x += 0.15 * arrow[0] / this.view.zoom; this.view.y += 0.15 * arrow[1] / this.view.zoom; this.moved();
      } else if (arrow) { this.select(this.beside(...arrow)); this.on.hover(this.selected, null); }
      else if (event.key === "Enter" && this.selected >= 0) this.on.open(this.selected);
      else if (event.key === "+" || event.key === "=") this.zoomAt(1.6);
      else if (event.key === "-") this.zoomAt(0.625);
      else if (event.key === "0") { this.view.zoom = 1; this.moved(); }
      else return;
      event.preventDefault(); event.stopPropagation();
    });
  }
}
