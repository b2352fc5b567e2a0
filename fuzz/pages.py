"""Pages made of tables that hold scripts, opened in a browser.

Each payload stands in the table as label, id, cell and header, and in the name of its file. The
page is opened in Debian's chromium, and everything on it is clicked, pointed at and typed into. No
payload may run. The first page has one as it is, to see that one that runs is noticed. Run as
``python fuzz/pages.py --count 50 --seed 0``.
"""

import argparse
import contextlib
import csv
import io
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from manifoldknn.cli.main import main as command

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
RUN = "document.documentElement.setAttribute('data-run',1)"
FORMS = (
    "<script>{}</script>", "</script><script>{}</script>", "<img src=x onerror={}>",
    '"><img src=x onerror="{}">', "'><img src=x onerror=\"{}\">", "<svg onload={}>",
    "<svg><script>{}</script></svg>", '" onmouseover="{}', "' onfocus='{}",
    '" autofocus onfocus="{}',
    "javascript:{}", "<a href=javascript:{}>x</a>", "<iframe src=javascript:{}>",
    "<iframe srcdoc='<script>parent.{}</script>'>", "--><script>{}</script>", "<!--><script>{}",
    "<details open ontoggle={}>", "<video><source onerror={}></video>", "<body onload={}>",
    "</title><script>{}</script>", "</style><script>{}</script>", "</textarea><script>{}</script>",
    "<style>@import 'javascript:{}'</style>", "<math><mtext><script>{}</script>",
    "{{ {} }}", "{% raw %}<script>{}</script>", "${{}}", "`${{}}`", '";{};//', "';{};//",
    "\\u003cscript\\u003e{}\\u003c/script\\u003e", "&lt;script&gt;{}&lt;/script&gt;",
    "&#60;script&#62;{}&#60;/script&#62;", "\\x3cscript\\x3e{}", "]]><script>{}</script>",
    "<object data=javascript:{}>", "<embed src=javascript:{}>",
    "<form action=javascript:{}><button>",
    "<base href=javascript:{};//>", "<meta http-equiv=refresh content=0;url=javascript:{}>",
    "<input onfocus={} autofocus>", "<select onfocus={} autofocus>", "<marquee onstart={}>",
    "\u2028{}\u2029", "\ufeff<script>{}</script>", "<ſcript>{}</ſcript>", "\x00<script>{}</script>",
    "<img src=`x`onerror={}>", "<x onclick={} onmouseover={}>x",
    "{{constructor.constructor('{}')()}}",
)  # fmt: skip
DRIVE = """
for (const e of [...document.querySelectorAll("*")]) {
  for (const kind of ["mouseover", "pointermove", "focus", "mouseenter", "toggle"])
    e.dispatchEvent(new MouseEvent(kind, {bubbles: true, clientX: 300, clientY: 300}));
  if (e.tagName === "DETAILS") e.open = true;
  if (e.tagName === "INPUT" && e.type === "search") {
    e.value = "script"; e.dispatchEvent(new Event("input", {bubbles: true}));
  }
  if (["A", "BUTTON", "SUMMARY", "INPUT", "LABEL"].includes(e.tagName)) e.click();
  if (e.tagName === "A" && !e.hash) document.documentElement.setAttribute("data-led", e.href);
}
document.documentElement.setAttribute("data-driven", 1);
"""


def report(payload: str, folder: Path) -> Path:
    """Return the report of a table with the payload wherever a table has text."""
    plain = payload.replace("\x00", "")
    rows: list[list[object]] = [[f"id{plain}", "x", "y", plain, f"class{plain}"]]
    for i in range(24):
        label = f"{'ab'[i % 2]}{plain}" if i < 12 else ""
        rows.append([f"r{i}{plain}", i % 2 * 4 + i / 30, i % 3, f"{i % 4}{plain}", label])
    name = re.sub(r"[/\x00]", "_", payload).encode()[:200].decode("utf-8", "ignore")
    table = folder / f"{name}.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        code = command([
            "classify", str(table), f"--label=class{plain}", f"--id=id{plain}", "--delimiter=,",
            "--quiet",
            "--out", str(folder / "out.csv"), "--report", str(folder / "r.html"), "--force",
        ])  # fmt: skip
    if code:
        raise RuntimeError(err.getvalue())
    return folder / "r.html"


PAGES: dict[str, Callable[[str, Path], Path]] = {"report": report}


def opened(path: Path, folder: Path) -> str:
    """Return the document as the browser has it after everything was touched."""
    text = path.read_text("utf-8")
    driven = folder / "driven.html"
    driven.write_text(text.replace("</body>", f"<script>{DRIVE}</script></body>"), "utf-8")
    done = subprocess.run(
        [str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         f"--user-data-dir={folder / 'browser'}", "--virtual-time-budget=2000", "--dump-dom",
         driven.as_uri()],
        capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    return done.stdout.decode("utf-8", "replace")


def has_run(document: str) -> bool:
    return re.search(r"<html[^>]*data-run", document) is not None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=len(FORMS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if BROWSER is None:
        print("pages: there is no chromium: 0 pages")
        return 0
    order = random.Random(options.seed).sample(FORMS, len(FORMS))
    findings, n_pages = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = folder / "plain.html"
        plain.write_text(f"<html><body>{FORMS[2].replace('{}', RUN)}</body></html>", "utf-8")
        if not has_run(opened(plain, folder)):
            findings.append("a payload that runs is not noticed")
        for number in range(options.count):
            payload = order[number % len(order)].replace("{}", RUN)
            for kind, make in PAGES.items():
                document = opened(make(payload, folder), folder)
                n_pages += 1
                if has_run(document):
                    findings.append(f"{kind}: {payload!r} ran")
                if re.search(r"<html[^>]*data-led", document):
                    findings.append(f"{kind}: {payload!r} made a link")
                if not re.search(r"<html[^>]*data-driven", document):
                    findings.append(f"{kind}: {payload!r}: the page did not work")
    for finding in findings[:50]:
        print(finding, file=sys.stderr)
    print(f"pages: {options.count} payloads, {n_pages} pages; {len(findings)} findings")
    return bool(findings)


if __name__ == "__main__":
    raise SystemExit(main())
