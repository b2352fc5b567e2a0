"""How quick the page of `manifoldknn label` is: opening, next rows, learning, the map.

    python benchmarks/labelpage.py 20000 100000     rows, of 50 columns in ten classes

Needs chromium and playwright. What was measured goes to ``results/labelpage.csv``, and
``results/labelpage.md`` is made of it.
"""

from __future__ import annotations

import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
from machine import commit
from playwright.sync_api import sync_playwright
from report import markdown_table

RESULTS = Path(__file__).with_name("results")
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
COLUMNS = {
    "rows": "rows",
    "open": "page opens, s",
    "first": "first queue from the graph, s",
    "next": "next row, ms (median of 50)",
    "learned": "model updated, s (median)",
    "five": "after five labels at once, s",
    "slowest": "slowest, s",
    "frames": "frames a second, panning",
    "commit": "commit",
}
_FRAMES = """() => new Promise((done) => {
  const map = document.querySelector('.map'), frame = map.getBoundingClientRect();
  const send = (kind, x) => map.dispatchEvent(new PointerEvent(kind, { pointerId: 1, bubbles: true,
    clientX: frame.left + x, clientY: frame.top + 200, pointerType: 'mouse', isPrimary: true }));
  let count = 0; const start = performance.now();
  send('pointerdown', 300);
  const step = () => {
    if (performance.now() - start > 4000) { send('pointerup', 300); done(count / 4); return; }
    count += 1; send('pointermove', 300 + 100 * Math.sin(count / 9));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


def write(path, n):
    """Write rows of ten bent sheets that touch, and return their classes."""
    rng = np.random.default_rng(0)
    kinds, at = rng.integers(10, size=n), rng.random((n, 4))
    ways = rng.normal(size=(10, 8, 50))
    waves = np.concatenate([at, np.sin(3 * at)], axis=1)
    X = np.einsum("ni,nij->nj", waves, ways[kinds]) + 0.1 * rng.normal(size=(n, 50))
    header = ",".join(f"c{k}" for k in range(50))
    np.savetxt(path, X, "%.4f", ",", header=header, comments="")
    return kinds


def asked(address, name, **question):
    base, token = address.split("/?token=")
    body = json.dumps({"who": "me"} | question).encode()
    with urllib.request.urlopen(f"{base}/api/{name}?token={token}", body) as answer:
        return json.load(answer)


def wait(done, seconds=900):
    end = time.perf_counter() + seconds
    while not done():
        if time.perf_counter() > end:
            raise TimeoutError
        time.sleep(0.05)


def measured(n, driver):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        kinds = write(path, n)
        start = time.perf_counter()
        command = [sys.executable, "-m", "manifoldknn", "label", str(path), "--no-browser"]
        with subprocess.Popen(
            [*command, "--quiet", "--port", "0"], stdout=subprocess.PIPE, text=True
        ) as server:
            address = server.stdout.readline().strip()
            ready = time.perf_counter()
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            opened = time.perf_counter()
            page.goto(address)
            page.wait_for_selector("body[data-ready]")
            seconds = time.perf_counter() - opened + (ready - start)
            wait(lambda: asked(address, "progress")["learned"] >= 0)
            first = time.perf_counter() - start
            page.wait_for_selector(f"body[data-map='{n}']", timeout=600_000)
            frames = page.evaluate(_FRAMES)
            waits, updates, alone = [], [], []
            for number in range(1, 61):
                row = asked(address, "next")["rows"][0]["row"]
                began = time.perf_counter()
                asked(address, "mark", rows=[row], label=f"class {kinds[row]}")
                waits.append(time.perf_counter() - began)
                if number % 5 == 0 or number > 50:  # else they come while it learns
                    wait(lambda: asked(address, "progress")["learned"] == number)  # noqa: B023
                    (alone if number > 50 else updates).append(time.perf_counter() - began)
                    time.sleep(2)
            browser.close()
            server.kill()
    return {
        "rows": n, "open": f"{seconds:.2f}", "first": f"{first:.1f}",
        "next": f"{1000 * statistics.median(waits[:50]):.0f}",
        "learned": f"{statistics.median(alone):.2f}", "five": f"{statistics.median(updates):.2f}",
        "slowest": f"{max(updates + alone):.2f}",
        "frames": f"{frames:.0f}", "commit": commit(),
    }  # fmt: skip


def keep(row):
    path, found = RESULTS / "labelpage.csv", {}
    if path.exists():
        with path.open(newline="") as file:
            found = {one["rows"]: one for one in csv.DictReader(file)}
    found[str(row["rows"])] = row
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found.values())
    table = [[str(one[name]) for name in COLUMNS] for one in found.values()]
    lines = [
        "# How quick the page of `manifoldknn label` is",
        "",
        "Rows of 50 numbers in ten classes. Opening counts from the command to a row on the page,",
        "a next row from the label to the answer that brings it, the model from the label to new",
        "answers and a new queue: median of ten labels that come one by one, two seconds after",
        "the last answers, and of ten times five in a row.",
        "Written by `python benchmarks/labelpage.py`.",
        "",
        markdown_table(tuple(COLUMNS.values()), table),
    ]
    (RESULTS / "labelpage.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with sync_playwright() as playing:
        for size in sys.argv[1:] or ("20000", "100000"):
            keep(measured(int(size), playing))
            print(size, flush=True)
