"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("rows").textContent);
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const at = Float32Array.from(new Uint16Array(bytes(data.places).buffer), (v) => v / 65535);
  const numbers = new Int32Array(bytes(data.rows).buffer);
  const predicted = new Int16Array(bytes(data.predicted).buffer);
  const given = new Int16Array(bytes(data.given).buffer);
  const confidence = bytes(data.confidence), flags = bytes(data.flags), shares = bytes(data.shares);
  const voters = new Int16Array(bytes(data.voters).buffer);
  const n = predicted.length, k = data.n_voters;
  const id = (i) => (data.ids ? data.ids[i] : "row " + numbers[i]);
  const name = (code) => (code < 0 ? "(none)" : data.classes[code]);
  const map = byId("map"), canvas = map.querySelector("canvas"), pen = canvas.getContext("2d");
  const tip = byId("tip"), chosen = byId("chosen"), query = byId("query"), show = byId("show");

  // Rows that tables link to: numbers for suggestions, a mark for doubtful labels.
  const badges = new Map();
  for (const [section, text] of [["#doubt", "!"], ["#next", ""]]) {
    document.querySelectorAll(section + " tbody a[data-dot]").forEach((link, place) => {
      badges.set(Number(link.dataset.dot), { text: text || String(place + 1), alert: !!text });
    });
  }

  // Which dots are shown in full; the others are faint.
  const kinds = {
    all: () => true,
    labelled: (i) => given[i] >= 0,
    unsure: (i) => given[i] < 0 && !!(flags[i] & 2),
    odd: (i) => !!(flags[i] & 1),
    next: (i) => badges.has(i) && !badges.get(i).alert,
    doubt: (i) => badges.has(i) && badges.get(i).alert,
  };
  const classes = new Set();
  const lit = new Uint8Array(n).fill(1);
  let matches = [], step = -1;
  const says = (i, words) => {
    const texts = [id(i), name(predicted[i]), given[i] < 0 ? "" : name(given[i])];
    for (const column of data.cells) texts.push(column[i]);
    return texts.some((text) => text.toLowerCase().includes(words));
  };
  const choose = () => {
    const words = query.value.trim().toLowerCase(), wanted = kinds[show.value];
    matches = [];
    for (let i = 0; i < n; i++) {
      lit[i] = wanted(i) && (!classes.size || classes.has(predicted[i])) && (!words || says(i, words));
      if (lit[i]) matches.push(i);
    }
    step = -1;
    const all = matches.length === n;
    byId("found").textContent = all ? "" : matches.length.toLocaleString("en") + " of " +
      n.toLocaleString("en") + " dots" + (words && matches.length ? "; Enter goes through them" : "");
    draw();
  };

  const span = [0, 1].map((axis) => {
    let low = 1, high = 0;
    for (let i = axis; i < at.length; i += 2) { low = Math.min(low, at[i]); high = Math.max(high, at[i]); }
    return Math.max(high - low, 0.01);
  });
  // The view: zoom 1 shows everything; (x, y) is what stands in the middle.
  const view = { zoom: 1, x: 0.5, y: 0.5 };
  let width = 0, height = 0, side = 0, wanted = false, selected = -1, hovered = -1;
  const place = (i) => [
    width / 2 + (at[2 * i] - view.x) * side * view.zoom,
    height / 2 + (at[2 * i + 1] - view.y) * side * view.zoom,
  ];
  const held = (value, low, high) => Math.min(Math.max(value, low), high);
  const moved = () => {
    view.zoom = held(view.zoom, 1, 60);
    view.x = held(view.x, 0, 1); view.y = held(view.y, 0, 1);
    if (view.zoom === 1) view.x = view.y = 0.5;
    map.style.touchAction = view.zoom > 1 ? "none" : "pan-y";
    draw();
  };
  const zoomAt = (factor, x = width / 2, y = height / 2) => {
    const before = view.zoom;
    view.zoom = held(before * factor, 1, 60);
    const gain = 1 / (side * before) - 1 / (side * view.zoom);
    view.x += (x - width / 2) * gain; view.y += (y - height / 2) * gain;
    moved();
  };

  // Dots are drawn once for every look and then copied.
  let looks = new Map(), ratio = 1, ink, paper, alert;
  const themed = () => {
    const style = getComputedStyle(document.documentElement);
    [ink, paper, alert] = ["--ink", "--paper", "--alert"].map((v) => style.getPropertyValue(v).trim());
    looks = new Map();
  };
  const ramp = (share) => {
    const stops = [[216, 67, 78], [185, 138, 18], [14, 143, 163]];
    const place = held(share, 0, 1) * 2, from = Math.min(1, Math.floor(place)), part = place - from;
    return "rgb(" + stops[from].map((v, c) => Math.round(v + part * (stops[from + 1][c] - v))) + ")";
  };
  const look = (shape, color, size, ring) => {
    const half = Math.ceil((size * 6 + 3) * ratio), found = document.createElement("canvas");
    found.width = found.height = 2 * half;
    const brush = found.getContext("2d"), path = new Path2D(data.shapes[shape]);
    brush.translate(half, half); brush.scale(size * ratio, size * ratio);
    if (ring) { brush.lineWidth = 3.2; brush.strokeStyle = ink; brush.stroke(path); }
    brush.fillStyle = color; brush.fill(path);
    return found;
  };
  // Draw some dots; all that does not depend on the dot is done before.
  const stamp = (dots, size, ring, which) => {
    const byConfidence = document.querySelector("[name=by]:checked").value === "confidence";
    const key = [size.toFixed(2), ring, byConfidence].join();
    if (!looks.has(key)) looks.set(key, []);
    const drawn = looks.get(key), scale = side * view.zoom * ratio;
    const left = (width / 2) * ratio - view.x * scale, top = (height / 2) * ratio - view.y * scale;
    const right = canvas.width + 20, bottom = canvas.height + 20;
    for (const i of dots) {
      if (lit[i] !== which) continue;
      const x = left + at[2 * i] * scale, y = top + at[2 * i + 1] * scale;
      if (x < -20 || y < -20 || x > right || y > bottom) continue;
      const code = predicted[i], sure = byConfidence ? Math.round(confidence[i] / 10) : 0;
      const place = 11 * (code + 1) + sure;
      if (!drawn[place]) {
        const own = code < 0 ? data.gray : data.colors[code % data.colors.length];
        drawn[place] = look(Math.max(code, 0) % data.shapes.length, byConfidence ? ramp(sure / 10) : own,
          byConfidence ? size * (1.5 - 0.06 * sure) : size, ring);
      }
      const picture = drawn[place];
      pen.drawImage(picture, Math.round(x - picture.width / 2), Math.round(y - picture.height / 2));
    }
  };
  const order = Array.from({ length: n }, (_, i) => i); // unsure rows last, on top
  order.sort((a, b) => confidence[b] - confidence[a]);
  const labelled = order.filter((i) => given[i] >= 0), others = order.filter((i) => given[i] < 0);
  const paint = () => {
    wanted = false;
    const room = held(Math.min(width, height) / 640, 0.6, 1);
    const size = held(9 / Math.pow(n, 0.27), 0.28, 1) * room * held(Math.pow(view.zoom, 0.35), 1, 2.4);
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.fillStyle = paper; pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.globalAlpha = 0.13;
    stamp(order, size, false, 0);
    pen.globalAlpha = 1;
    stamp(others, size, false, 1);
    stamp(labelled, Math.max(size * 1.25, (labelled.length > 2000 ? 0.5 : 0.95) * room), true, 1);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.textAlign = "center"; pen.textBaseline = "middle"; pen.font = "700 10px system-ui, sans-serif";
    for (const [i, badge] of badges) if (lit[i]) {
      const [x, y] = place(i);
      pen.strokeStyle = badge.alert ? alert : ink; pen.lineWidth = 1.5;
      pen.beginPath(); pen.arc(x, y, 5.5, 0, 7); pen.stroke();
      pen.fillStyle = badge.alert ? alert : ink;
      pen.beginPath(); pen.arc(x + 8, y - 8, badge.text.length > 1 ? 8.5 : 7, 0, 7); pen.fill();
      pen.fillStyle = paper; pen.fillText(badge.text, x + 8, y - 7.5);
    }
    for (const i of matchMedia("print").matches ? [] : new Set([selected, hovered])) if (i >= 0) {
      const [x, y] = place(i);
      for (let v = 0; v < k; v++) {
        const share = shares[i * k + v], j = voters[i * k + v];
        if (share <= 2 || j < 0 || j === i) continue;
        pen.strokeStyle = ink; pen.lineWidth = 0.8 + share / 80;
        pen.beginPath(); pen.moveTo(x, y); pen.lineTo(...place(j)); pen.stroke();
      }
      for (const [color, wide] of [[paper, 6], [ink, 2.5]]) {
        pen.strokeStyle = color; pen.lineWidth = wide;
        pen.beginPath(); pen.arc(x, y, 11, 0, 7); pen.stroke();
      }
    }
  };
  const draw = () => { if (!wanted) { wanted = true; requestAnimationFrame(paint); } };
  const resized = () => {
    ratio = window.devicePixelRatio || 1;
    width = map.clientWidth; height = map.clientHeight;
    side = Math.min((width - 50) / span[0], (height - 50) / span[1]);
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    themed(); draw();
  };

  // What a row is, as elements: cells are text whatever they hold.
  const make = (tag, text, parent) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };
  const describe = (i, box, most) => {
    box.replaceChildren();
    make("h3", id(i), box);
    const list = make("dl", undefined, box);
    const line = (what, value) => { make("dt", what, list); make("dd", value, list); };
    line("label", given[i] < 0 ? "none" : name(given[i]));
    line("predicted", name(predicted[i]) + ", confidence " + confidence[i] + " %");
    if (flags[i] & 1) line("note", "lies off its neighbours’ surface");
    data.columns.slice(0, most).forEach((column, c) => line(column, data.cells[c][i]));
    for (let v = 0, first = true; v < k; v++) {
      const j = voters[i * k + v], share = shares[i * k + v];
      if (share <= 2 || j < 0) continue;
      line(first ? "voted by" : "", id(j) + " (" + name(given[j]) + ") " + Math.round(share / 2.55) + " %");
      first = false;
    }
  };

  // Dots by cells of a grid, to find the one under the pointer.
  const cells = 96, grid = new Map();
  const cell = (v) => held(Math.floor(v * cells), 0, cells - 1);
  for (let i = 0; i < n; i++) {
    const key = cell(at[2 * i + 1]) * cells + cell(at[2 * i]);
    if (grid.has(key)) grid.get(key).push(i); else grid.set(key, [i]);
  }
  const nearest = (px, py, reach) => {
    const scale = side * view.zoom, x = view.x + (px - width / 2) / scale, y = view.y + (py - height / 2) / scale;
    let best = -1, least = reach / scale;
    const far = least, left = cell(x - far), right = cell(x + far), top = cell(y - far), bottom = cell(y + far);
    for (let a = top; a <= bottom; a++) for (let b = left; b <= right; b++) {
      for (const i of grid.get(a * cells + b) || []) {
        const d = Math.hypot(at[2 * i] - x, at[2 * i + 1] - y) * (given[i] >= 0 || badges.has(i) ? 0.6 : 1);
        if (lit[i] && d < least) { least = d; best = i; }
      }
    }
    return best;
  };
  const select = (i, centre) => {
    selected = i;
    if (i < 0) { chosen.replaceChildren(); return draw(); }
    describe(i, chosen);
    if (centre) { view.zoom = Math.max(view.zoom, 3); view.x = at[2 * i]; view.y = at[2 * i + 1]; }
    moved();
  };
  const hover = (i, event) => {
    if (i !== hovered) { hovered = i; tip.hidden = i < 0; if (i >= 0) describe(i, tip, 8); draw(); }
    if (i < 0) return;
    tip.style.left = held(event.clientX + 16, 4, Math.max(4, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = held(event.clientY + 16, 4, Math.max(4, innerHeight - tip.offsetHeight - 8)) + "px";
  };

  const fingers = new Map();
  const local = (event) => {
    const box = map.getBoundingClientRect();
    return [event.clientX - box.left - map.clientLeft, event.clientY - box.top - map.clientTop];
  };
  let travelled = 0;
  map.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, local(event)); travelled = 0;
    if (event.isTrusted) map.setPointerCapture(event.pointerId);
  });
  map.addEventListener("pointermove", (event) => {
    const now = local(event), before = fingers.get(event.pointerId);
    if (!before) { if (event.pointerType !== "touch") hover(nearest(...now, 16), event); return; }
    const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
    travelled += Math.hypot(dx, dy);
    if (fingers.size === 2) {
      const other = [...fingers].find(([key]) => key !== event.pointerId)[1];
      const apart = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
      zoomAt(apart(now) / apart(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    } else if (travelled > 4 && view.zoom > 1) {
      hover(-1); map.classList.add("dragged");
      view.x -= dx / (side * view.zoom); view.y -= dy / (side * view.zoom); moved();
    }
    fingers.set(event.pointerId, now);
  });
  const up = (event) => {
    if (event.type === "pointerup" && fingers.size === 1 && travelled <= 4) {
      select(nearest(...local(event), event.pointerType === "touch" ? 28 : 16));
    }
    fingers.delete(event.pointerId); map.classList.remove("dragged");
  };
  map.addEventListener("pointerup", up);
  map.addEventListener("pointercancel", up);
  map.addEventListener("pointerleave", () => hover(-1));
  map.addEventListener("wheel", (event) => {
    if (!(event.ctrlKey || event.metaKey || document.activeElement === map)) return;
    event.preventDefault();
    zoomAt(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), ...local(event));
  }, { passive: false });

  const beside = (dx, dy) => { // the nearest dot in a direction
    if (selected < 0) return nearest(width / 2, height / 2, Math.hypot(width, height));
    let best = selected, least = Infinity;
    for (let i = 0; i < n; i++) {
      const x = at[2 * i] - at[2 * selected], y = at[2 * i + 1] - at[2 * selected + 1];
      const along = x * dx + y * dy, across = Math.abs(x * dy) + Math.abs(y * dx);
      if (lit[i] && along > 0 && across <= along && along + 2 * across < least) { least = along + 2 * across; best = i; }
    }
    return best;
  };
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  map.addEventListener("keydown", (event) => {
    const arrow = arrows[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (arrow && event.shiftKey) {
      view.x += 0.15 * arrow[0] / view.zoom; view.y += 0.15 * arrow[1] / view.zoom; moved();
    } else if (arrow) {
      const next = beside(...arrow);
      select(next, false);
      const [x, y] = next < 0 ? [0, 0] : place(next);
      if (x < 20 || y < 20 || x > width - 20 || y > height - 20) select(next, true);
    } else if (event.key === "+" || event.key === "=") zoomAt(1.6);
    else if (event.key === "-") zoomAt(0.625);
    else if (event.key === "0") { view.zoom = 1; moved(); }
    else if (event.key === "Escape") { hover(-1); select(-1); }
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hover(-1); });

  const toMap = () => { map.scrollIntoView({ block: "center" }); map.focus({ preventScroll: true }); };
  const clear = () => {
    query.value = ""; show.value = "all"; classes.clear();
    document.querySelectorAll("[data-class]").forEach((b) => b.setAttribute("aria-pressed", "false"));
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-dot], a[data-show], button[data-zoom], button[data-class]");
    if (!link) return;
    event.preventDefault();
    const { dot, show: which, zoom, class: code } = link.dataset;
    if (dot) { clear(); choose(); select(Number(dot), true); toMap(); }
    if (which) { clear(); show.value = which; choose(); view.zoom = 1; moved(); toMap(); }
    if (zoom) { if (Number(zoom)) zoomAt(Number(zoom)); else { view.zoom = 1; moved(); } }
    if (code) {
      const on = !classes.delete(Number(code));
      if (on) classes.add(Number(code));
      link.setAttribute("aria-pressed", String(on));
      choose();
    }
  });
  query.addEventListener("input", choose);
  show.addEventListener("change", choose);
  byId("find").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!matches.length || matches.length === n) return;
    step = (step + 1) % matches.length;
    select(matches[step], true);
  });
  document.querySelectorAll("[name=by]").forEach((input) => input.addEventListener("change", () => {
    byId("ramp").hidden = input.value !== "confidence"; draw();
  }));
  document.querySelectorAll(".scripted").forEach((part) => { part.hidden = false; });
  new ResizeObserver(resized).observe(map);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", resized);
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((part) => { part.open = true; });
  });
  matchMedia("print").addEventListener("change", () => { resized(); paint(); });
  const first = [...badges].find(([, badge]) => !badge.alert);
  if (first) select(first[0], false);
  resized(); paint();
  document.documentElement.dataset.ready = String(n);
})();
