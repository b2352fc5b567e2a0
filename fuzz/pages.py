"""Pages made of tables that hold scripts, opened in a browser.

Each payload stands in the table as label, id, cell and header, and in the name of its file. Two
pages are opened in Debian's chromium: the report, and that of ``manifoldknn label``. Everything on
them is clicked, pointed at and typed into. No payload may run. The first page has one as it is, to
see that one that runs is noticed. Run as ``python fuzz/pages.py --count 50 --seed 0``.
"""

import argparse
import contextlib
import csv
import io
import random
import re
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from manifoldknn.cli.main import main as command
from manifoldknn.cli.options import build_parser

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
DRIVE = """async () => {
  const root = document.documentElement;
  for (const e of [...document.querySelectorAll("*")]) {
    for (const kind of ["mouseover", "pointermove", "focus", "mouseenter", "toggle"])
      e.dispatchEvent(new MouseEvent(kind, {bubbles: true, clientX: 300, clientY: 300}));
    if (e.tagName === "DETAILS") e.open = true;
    if (e.tagName === "INPUT" && ["search", "text"].includes(e.type)) {
      e.value = "script"; e.dispatchEvent(new Event("input", {bubbles: true}));
    }
    const leads = e.tagName === "A" && !e.hash;
    if (leads && !e.href.startsWith(location.origin + "/labels."))
      root.setAttribute("data-led", e.href);
    const clicked = ["A", "BUTTON", "SUMMARY", "INPUT", "LABEL"].includes(e.tagName);
    if (!leads && clicked && e.checkVisibility()) e.click();
  }
  await new Promise(after => setTimeout(after, 300));
  return [root.hasAttribute("data-run"), root.getAttribute("data-led")];
}"""


def table(payload: str, folder: Path) -> tuple[Path, list[str]]:
    """Write a table with the payload wherever it has text; return it, and how to read it."""
    plain = payload.replace("\x00", "")
    rows: list[list[object]] = [[f"id{plain}", "x", "y", plain, f"class{plain}"]]
    for i in range(24):
        label = f"{'ab'[i % 2]}{plain}" if i < 12 else ""
        rows.append([f"r{i}{plain}", i % 2 * 4 + i / 30, i % 3, f"{i % 4}{plain}", label])
    name = re.sub(r"[/\x00]", "_", payload).encode()[:200].decode("utf-8", "ignore")
    path = folder / f"{name}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    told = [f"--label=class{plain}", f"--id=id{plain}", "--delimiter=,", "--quiet"]
    return path, [str(path), *told]


@contextlib.contextmanager
def report(payload: str, folder: Path) -> Iterator[str]:
    """Yield the address of the report of a table."""
    _, told = table(payload, folder)
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        out, page = str(folder / "out.csv"), folder / "r.html"
        code = command(["classify", *told, "--out", out, "--report", str(page), "--force"])
    if code:
        raise RuntimeError(err.getvalue())
    yield page.as_uri()


@contextlib.contextmanager
def labelling(payload: str, folder: Path) -> Iterator[str]:
    """Serve the page of ``manifoldknn label`` for a table, and yield its address."""
    import uvicorn

    from manifoldknn.labelling.app import make_app
    from manifoldknn.labelling.project import open_desk

    path, told = table(payload, folder)
    journal = folder / "journal.sqlite"
    told += [f"--text={payload.replace(chr(0), '')}", f"--journal={journal}"]
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as sock:
        port = sock.getsockname()[1]
        desk, _ = open_desk(build_parser().parse_args(["label", *told]))
        app = make_app(desk, "token", port)
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="critical", lifespan="off", ws="none")
        )
        desk.open()
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/?token=token"
        finally:
            server.should_exit = True
            thread.join()
            desk.close()
            for old in [path, *folder.glob("journal.sqlite*")]:
                old.unlink()


PAGES: dict[str, Callable[[str, Path], Any]] = {"report": report, "labelling": labelling}


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Open a browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        how = {"executable_path": BROWSER, "args": ["--no-sandbox", "--disable-gpu"]}
        with contextlib.closing(driver.chromium.launch(**how)) as browser:
            yield browser


def seen(browser: Any, address: str) -> list[str]:
    """Return what is wrong with a page after everything on it was touched."""
    page, wrong = browser.new_page(), []
    page.on("dialog", lambda dialog: (wrong.append("opened a dialog"), dialog.dismiss()))
    page.on("pageerror", lambda error: wrong.append(f"broke the page: {error}"))
    page.goto(address)
    if address.startswith("http"):
        page.wait_for_selector("body[data-ready]")
    has_run, led = page.evaluate(DRIVE)
    wrong += ["ran"] * has_run + [f"made a link to {led}"] * (led is not None)
    if re.split("[?#]", page.url)[0] != re.split("[?#]", address)[0]:
        wrong.append(f"led to {page.url}")
    page.close()
    return wrong


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
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        plain = folder / "plain.html"
        plain.write_text(f"<html><body>{FORMS[2].replace('{}', RUN)}</body></html>", "utf-8")
        if seen(browser, plain.as_uri()) != ["ran"]:
            findings.append("a payload that runs is not noticed")
        for number in range(options.count):
            payload = order[number % len(order)].replace("{}", RUN)
            for kind, make in PAGES.items():
                with make(payload, folder) as address:
                    findings += [f"{kind}: {payload!r} {what}" for what in seen(browser, address)]
                n_pages += 1
    for finding in findings[:50]:
        print(finding, file=sys.stderr)
    print(f"pages: {options.count} payloads, {n_pages} pages; {len(findings)} findings")
    return bool(findings)


if __name__ == "__main__":
    raise SystemExit(main())
