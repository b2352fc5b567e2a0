"""The page in a real browser: flowers from nothing, two people, undo, a killed server, manners."""

import contextlib
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from labelling_kit import ROOT, flower_truth, flowers, flowers_desk
from manifoldknn.labelling.widget import answered, page_module

CHROMIUM = shutil.which("chromium")
pytest.importorskip("starlette", reason="needs manifoldknn[label]")
pytest.importorskip("uvicorn", reason="needs manifoldknn[label]")
playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
HOSTILE = [
    "<script>document.body.dataset.hacked = 'yes'</script>", "<img src=x onerror=alert(1)>",
    "=cmd|' /C calc'!A0", "a\u202eright to left", "bell \x07 and \x1b[31m", "long " * 5000,
    "{{ 7 * 7 }}", "</title><h1>big</h1>", "javascript:alert(1)", "ünï \U0001f600",
]  # fmt: skip


_FINGER = """() => {
  const map = document.querySelector('.map'), box = map.getBoundingClientRect();
  const send = (kind, x, y) => map.dispatchEvent(new PointerEvent(kind, { pointerId: 7,
    bubbles: true, pointerType: 'touch', clientX: box.left + x * box.width,
    clientY: box.top + y * box.height }));
  send('pointerdown', 0.02, 0.02);
  for (const [x, y] of [[0.5, 0.02], [0.5, 0.98], [0.02, 0.98]]) send('pointermove', x, y);
  send('pointerup', 0.02, 0.98);
}"""


# What a notebook does around a widget: styles of its own, Enter that reaches no form.
_NOTEBOOK = """async (code) => {
  const style = document.createElement('style');
  style.textContent = 'body dt { float: left; width: 5%; } body dd { width: 5%; }';
  document.head.append(style);
  document.addEventListener('keypress', (event) => event.key === 'Enter' && event.preventDefault());
  const el = document.body.appendChild(document.createElement('div')), heard = [];
  const model = { get: () => 'me', on: (_, done) => heard.push(done),
    send: (question) => window.answered(question).then((told) => heard.forEach((f) => f(told))) };
  const url = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
  (await import(url)).default.render({ model, el });
}"""


@contextlib.contextmanager
def served(path, *options):
    command = [sys.executable, "-m", "manifoldknn", "label", str(path), "--no-browser", "--quiet"]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        [*command, "--port", "0", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
    ) as server:  # fmt: skip
        address = server.stdout.readline().strip()
        try:
            assert address.startswith("http://127.0.0.1:"), server.stderr.read()
            while asked(address, "progress")["learned"] < 0:  # rows are drawn at random till then
                time.sleep(0.05)
            yield address, server
        finally:
            server.send_signal(signal.SIGKILL)


def asked(address, name, **question):
    base, token = address.split("/?token=")
    request = urllib.request.Request(
        f"{base}/api/{name}?token={token}", json.dumps(question).encode()
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def truth():
    return flower_truth()


def opened(chromium, address, who="Ann", **how):
    context = chromium.new_context(**({"viewport": {"width": 1280, "height": 860}} | how))
    context.add_init_script(f"localStorage.setItem('manifoldknn.name', {json.dumps(who)})")
    page = context.new_page()
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda said: said.type == "error" and page.problems.append(said.text))
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    settled(page)
    return page


def settled(page):
    """Wait until the model has learned everything."""
    page.wait_for_function(
        "() => document.body.dataset.learned === document.body.dataset.number", timeout=60_000
    )


def shown_id(page):
    return page.locator("section.row h2").text_content().removeprefix("Row ")


def by_key(page, label):
    """Give the row a label by keys only."""
    before = shown_id(page)
    names = page.locator(".classes button").all_text_contents()
    names = [name.strip().rsplit(" ", 1)[0] for name in names]
    if label in names:
        page.keyboard.press(str(names.index(label) + 1))
    else:
        page.keyboard.press("n")
        page.keyboard.type(label)
        page.keyboard.press("Enter")
    page.wait_for_function(
        "(id) => document.querySelector('section.row h2').textContent !== 'Row ' + id", arg=before
    )
    return before


def answers(address):
    base, token = address.split("/?token=")
    with urllib.request.urlopen(f"{base}/labels.csv?token={token}") as file:
        return list(csv.DictReader(file.read().decode().splitlines()))


def test_flowers_from_nothing_by_keyboard(chromium, truth, tmp_path):
    with served(flowers(tmp_path), "--id", "id") as (address, _):
        page = opened(chromium, address)
        for _ in range(30):
            by_key(page, truth[shown_id(page)])
        settled(page)
        found = answers(address)
        assert sum(one["source"] == "person" for one in found) == 30
        assert len(found) == 600
        assert sum(one["label"] == truth[one["id"]] for one in found) >= 0.95 * 600
        assert {one["labeller"] for one in found} == {"Ann", ""}
        assert page.problems == []
        # Enter accepts the guess; undo and redo go across what the model has learned since.
        page.wait_for_timeout(1000)  # till the page has the guess of the newest model
        name, guess = shown_id(page), page.locator(".guess b").text_content()
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.body.dataset.number === '31'")
        settled(page)
        page.keyboard.press("Control+z")
        page.wait_for_function("() => document.body.dataset.number === '32'")
        assert shown_id(page) == name
        assert asked(address, "progress", who="Ann")["labelled"] == 30
        settled(page)
        page.keyboard.press("Control+y")
        page.wait_for_function("() => document.body.dataset.number === '33'")
        (again,) = [one for one in answers(address) if one["id"] == name]
        assert f"Guess: {again['label']}" == guess
        for _ in range(31):
            number = page.evaluate("() => document.body.dataset.number")
            page.keyboard.press("Control+z")
            page.wait_for_function("(n) => document.body.dataset.number !== n", arg=number)
        assert asked(address, "progress", who="Ann")["labelled"] == 0
        page.keyboard.press("Control+z")
        page.wait_for_function(
            "() => document.querySelector('.status').textContent === 'Nothing to undo'"
        )


def test_killed_after_the_17th_label(chromium, truth, tmp_path):
    path = flowers(tmp_path)
    with served(path, "--id", "id") as (address, server):
        page = opened(chromium, address)
        done = {by_key(page, truth[shown_id(page)]) for _ in range(17)}
        settled(page)
        queue = asked(address, "next", who="Ann", n=40)["rows"]
        server.send_signal(signal.SIGKILL)
        server.wait()
    with served(path, "--id", "id") as (address, _):
        assert [row["row"] for row in asked(address, "next", who="Ann", n=40)["rows"]] == [
            row["row"] for row in queue
        ]
        page = opened(chromium, address)
        assert shown_id(page) == queue[0]["id"]
        people = {one["id"]: one["label"] for one in answers(address) if one["source"] == "person"}
        assert people == {name: truth[name] for name in done}


def test_two_browsers_and_a_conflict(chromium, tmp_path):
    with served(flowers(tmp_path), "--id", "id", "--overlap", "1", "--classes", "a,b") as (
        address,
        _,
    ):
        ann, bob = opened(chromium, address, "Ann"), opened(chromium, address, "Bob")
        name = shown_id(ann)
        assert shown_id(bob) == name
        by_key(ann, "a")
        by_key(bob, "b")
        for page in (ann, bob):
            page.wait_for_function(
                "() => document.getElementById('panel-review-tab').textContent === 'Review (1)'"
            )
        bob.get_by_role("tab", name="Review").click()
        conflict = bob.locator(".conflict")
        assert "Ann says a, Bob says b" in conflict.text_content()
        conflict.get_by_role("button", name="Settle: a").click()
        bob.wait_for_function("() => !document.querySelector('.conflict')")
        assert asked(address, "review")["conflicts"] == []
        bob.get_by_role("tab", name="People").click()
        assert "Ann: 1 label" in bob.locator("#panel-people").text_content()


def test_hostile_cells_are_text(chromium, tmp_path):
    path = tmp_path / "hostile.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "<b>note</b>", "picture"])
        pictures = "../../etc/passwd", "none.png"
        writer.writerows([k, HOSTILE[k % 10], pictures[k % 2]] for k in range(40))
    with served(path, "--show", "x", "<b>note</b>", "--image", "picture", "--text", "<b>note</b>",
                "--features", "x") as (address, _):  # fmt: skip
        page = opened(chromium, address, "<i>Ann</i>")
        for row in range(10):
            page.keyboard.press("/")
            page.keyboard.type(str(row + 1))
            page.keyboard.press("Escape")
        told, pictures, shown = set(), [], {shown_id(page)}
        page.on("request", lambda one: "/image" in one.url and pictures.append(one.post_data_json))
        for _ in range(12):
            by_key(page, "<u>class</u>")
            shown.add(shown_id(page))
            told.add(page.locator(".picture p").text_content())
        assert told == {
            "No picture: '../../etc/passwd' is outside the folder of the data",
            "No picture: 'none.png' was not found",
        }
        assert {one["row"] for one in pictures} - {
            int(name) - 1 for name in shown
        }  # what comes next
        assert page.locator("body[data-hacked], .row script, .row i, .row u, .row h1").count() == 0
        page.problems = [one for one in page.problems if "status of 40" not in one]  # pictures
        assert page.problems == []
        first = asked(address, "row", row=3, who="Ann")["cells"]
        assert dict(first)["<b>note</b>"] == HOSTILE[3]


def test_lasso_labels_many_and_one_undo_takes_it_back(chromium, tmp_path):
    with served(flowers(tmp_path), "--id", "id", "--classes", "a,b") as (address, _):
        page = opened(chromium, address)
        page.wait_for_selector("body[data-map='600']")
        page.get_by_role("button", name="Lasso").click()
        box = page.locator(".map").bounding_box()
        corners = [(0.02, 0.02), (0.5, 0.02), (0.5, 0.98), (0.02, 0.98), (0.02, 0.02)]
        points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
        page.mouse.move(*points[0])
        page.mouse.down()
        for point in points[1:]:
            page.mouse.move(*point, steps=4)
        page.mouse.up()
        said = page.locator("section.row h2").text_content()
        n = int(said.split()[0])
        assert 50 < n < 550
        page.keyboard.press("2")
        page.wait_for_function("() => document.body.dataset.number === '1'")
        assert asked(address, "progress", who="Ann")["classes"] == {"a": 0, "b": n}
        page.keyboard.press("Control+z")
        page.wait_for_function("() => document.body.dataset.number === '2'")
        assert asked(address, "progress", who="Ann")["labelled"] == 0
        # By keys: search, choose what was found, label it.
        page.keyboard.press("/")
        page.keyboard.type("ridge")
        page.get_by_role("button", name="Choose all").focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.evaluate("() => document.activeElement.blur()")
        page.keyboard.press("1")
        page.wait_for_function("() => document.body.dataset.number === '3'")
        assert asked(address, "progress", who="Ann")["classes"]["a"] > 50
        # From dot to dot, and open one.
        page.keyboard.press("m")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("+")
        page.wait_for_selector(".tip:not([hidden]) dl")
        page.keyboard.press("Enter")
        assert page.problems == []


def test_a_full_disk_stops_labelling_with_a_banner(chromium, tmp_path):
    resource = pytest.importorskip("resource", reason="no limit of the size of files here")
    if not hasattr(resource, "prlimit"):
        pytest.skip("the limit of another process cannot be set here")
    path = flowers(tmp_path)
    limit, unlimited = resource.RLIMIT_FSIZE, resource.RLIM_INFINITY
    with served(path, "--id", "id", "--classes", "a,b") as (address, server):
        page = opened(chromium, address)
        written = (tmp_path / "flowers.csv.labels.sqlite-wal").stat().st_size
        resource.prlimit(server.pid, limit, (written + 60_000, unlimited))
        labelled = 0
        while page.locator(".banner").is_hidden():
            name = shown_id(page)
            page.keyboard.press("1")
            page.wait_for_function(
                """(id) => document.querySelector('section.row h2').textContent !== 'Row ' + id
                  || !document.querySelector('.banner').hidden""",
                arg=name,
            )
            labelled += shown_id(page) != name
            assert labelled < 200
        page.wait_for_timeout(1200)  # the page goes on asking how things stand
        said = page.locator(".banner").text_content()
        assert said.startswith("Labelling has stopped.")
        assert "free some space" in said
        assert shown_id(page) == name
        assert asked(address, "progress", who="Ann")["labelled"] == labelled > 0
        resource.prlimit(server.pid, limit, (unlimited, unlimited))
        by_key(page, "a")
        assert page.locator(".banner").is_hidden()
        server.send_signal(signal.SIGKILL)
        server.wait()
    with served(path, "--id", "id") as (address, _):
        assert asked(address, "progress", who="Ann")["labelled"] == labelled + 1


def test_the_server_that_is_gone_is_told(chromium, tmp_path):
    with served(flowers(tmp_path), "--id", "id", "--classes", "a,b") as (address, server):
        page = opened(chromium, address)
        server.send_signal(signal.SIGKILL)
        server.wait()
        name = shown_id(page)
        page.keyboard.press("1")
        page.wait_for_selector(".banner:not([hidden])")
        assert "does not answer" in page.locator(".banner").text_content()
        assert shown_id(page) == name


@pytest.fixture(scope="module")
def busy_page(truth, tmp_path_factory):
    """Return the address of a page where every panel has something to show."""
    path = flowers(tmp_path_factory.mktemp("busy"))
    with served(path, "--id", "id", "--overlap", "1") as (address, _):
        for number in range(24):
            row = asked(address, "next", who="Ann")["rows"][0]
            label = truth[row["id"]]
            asked(address, "mark", who="Ann", rows=[row["row"]], label=label)
            other = "meadow" if number == 3 else label
            asked(address, "mark", who="Bob", rows=[row["row"]], label=other)
            if number % 6 == 5:  # a point of the curve
                while asked(address, "progress")["learned"] < 2 * number + 2:
                    time.sleep(0.05)
        yield address


@pytest.fixture(
    params=[(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")],
    ids=lambda param: f"{param[0]}-{param[1]}",
)
def looked_at(request, chromium, busy_page):
    """Open that page wide and narrow, light and dark."""
    width, scheme = request.param
    how = {"viewport": {"width": width, "height": 844}, "color_scheme": scheme}
    page = opened(chromium, busy_page, "Cem", **how, has_touch=width < 500)
    page.wait_for_selector("body[data-map='600']")
    yield page
    page.context.close()


def test_axe_finds_nothing_serious(looked_at):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-core")

    def violations():
        found = axe.Axe().run(looked_at).response["violations"]
        bad = [one for one in found if one["impact"] in ("serious", "critical")]
        return [(one["id"], node["html"]) for one in bad for node in one["nodes"]]

    for tab in ("Progress", "Review", "People", "File", "Map"):
        looked_at.get_by_role("tab", name=tab).click()
        looked_at.wait_for_timeout(300)  # till it is filled
        assert violations() == [], tab
    looked_at.get_by_role("tab", name="Progress").click()
    looked_at.get_by_role("button", name="Rename or merge").first.click()
    assert violations() == []
    looked_at.keyboard.press("Escape")
    looked_at.evaluate("() => document.activeElement.blur()")
    looked_at.keyboard.press("?")
    assert violations() == []
    looked_at.keyboard.press("Escape")
    looked_at.evaluate(
        "() => document.querySelector('main').append(document.createElement('input'))"
    )
    assert [name for name, _ in violations()] != []  # it does look


def test_nothing_is_wider_than_the_page(looked_at):
    for tab in ("Progress", "Review", "People", "File", "Map"):
        looked_at.get_by_role("tab", name=tab).click()
        looked_at.wait_for_timeout(100)
        width = looked_at.evaluate("() => document.documentElement.scrollWidth")
        assert width <= looked_at.viewport_size["width"], tab


def test_by_touch(chromium, tmp_path):
    how = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with served(flowers(tmp_path), "--id", "id", "--classes", "a,b") as (address, _):
        page = opened(chromium, address, **how)
        page.wait_for_selector("body[data-map='600']")
        small = page.evaluate(
            """() => [...document.querySelectorAll('button, input, a')]
              .filter((one) => one.offsetHeight && Math.min(one.offsetHeight, one.offsetWidth) < 24)
              .map((one) => one.outerHTML)"""
        )
        assert small == []
        name = shown_id(page)
        for action in ("a", "b", "Accept", "Skip", "Unsure", "Undo", "Redo"):
            button = page.locator("section.row").get_by_role("button", name=action).first
            box = button.bounding_box()  # at hand without scrolling
            assert 0 <= box["y"] < box["y"] + box["height"] <= 844, action
        page.locator(".classes button").first.tap()
        page.wait_for_function("() => document.body.dataset.number === '1'")
        assert shown_id(page) != name
        page.get_by_role("button", name="Undo").tap()
        page.wait_for_function("() => document.body.dataset.number === '2'")
        assert shown_id(page) == name
        page.get_by_role("button", name="Lasso").tap()
        page.locator(".map").scroll_into_view_if_needed()
        page.evaluate(_FINGER)
        drawn = int(page.locator("section.row h2").text_content().split()[0])
        assert 50 < drawn < 550
        page.locator(".classes button").nth(1).tap()
        page.wait_for_function("() => document.body.dataset.number === '3'")
        assert asked(address, "progress", who="Ann")["classes"] == {"a": 0, "b": drawn}


def test_in_a_notebook(chromium, tmp_path):
    with flowers_desk(tmp_path, "--classes", "a,b") as desk:
        page = chromium.new_page()
        page.expose_function("answered", lambda question: answered(desk, question))
        page.set_content("<!doctype html><title>notebook</title><body></body>")
        page.evaluate(_NOTEBOOK, page_module())
        page.wait_for_selector(".manifoldknn[data-map='600']")
        assert page.locator(".manifoldknn[data-lm-suppress-shortcuts=true]").count() == 1
        widths = page.locator(".cells dt").evaluate_all("all => all.map((e) => e.offsetWidth)")
        assert min(widths) > 30
        page.locator(".cells").click()
        by_key(page, "a")
        page.keyboard.press("Escape")  # keys go on coming to the page
        by_key(page, "b")
        by_key(page, "new")
        by_key(page, "a")
        page.get_by_role("tab", name="Progress").click()
        page.get_by_role("button", name="Rename or merge new").click()
        page.keyboard.press("Control+a")
        page.keyboard.type("b")
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.querySelectorAll('.classes button').length === 2")
        assert sorted(desk.labels()[1].values()) == ["a", "a", "b", "b"]
        page.get_by_role("tab", name="Map").click()
        page.locator(".map").focus()
        page.keyboard.press("ArrowRight")
        tip, box = page.locator(".tip").bounding_box(), page.locator(".map").bounding_box()
        assert box["x"] <= tip["x"] <= tip["x"] + tip["width"] <= box["x"] + box["width"]
        page.get_by_role("tab", name="People").click()
        assert page.locator(".tip").is_hidden()
        page.close()


def number_is(page, number):
    page.wait_for_function("(n) => document.body.dataset.number === n", arg=str(number))


_SLOW_SEARCH = """() => {
  const fetched = window.fetch;
  window.fetch = async (url, how) => {
    const told = await fetched(url, how);
    if (how.body.includes('"words":"ri"')) await new Promise((done) => setTimeout(done, 900));
    return told;
  };
}"""
# Pixels of the map in the colour of a class.
_COLORED = """(color) => {
  const canvas = document.querySelector('.map canvas'), pen = canvas.getContext('2d');
  const wanted = [1, 3, 5].map((k) => parseInt(color.slice(k, k + 2), 16));
  const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let i = 0; i < data.length; i += 4) found += wanted.every((v, k) => data[i + k] === v);
  return found;
}"""
_PICTURE = "() => document.querySelector('.map canvas').toDataURL()"


def test_keys_and_pointer(chromium, truth, tmp_path):
    names = "alpine", "marsh", "meadow"
    with served(flowers(tmp_path), "--id", "id", "--classes", ",".join(names)) as (address, _):
        page = opened(chromium, address)
        page.wait_for_selector("body[data-map='600']")
        classes = page.locator(".classes button")
        number, places = 0, set()
        for _ in range(6):
            places.add(classes.first.bounding_box()["y"])
            by_key(page, truth[shown_id(page)])
            number += 1
        settled(page)
        assert len(places) == 1  # buttons stay where they are
        for key in ("1", "s", "u", "Enter"):  # one row for a key that is held
            page.keyboard.down(key)
            number += 1
            number_is(page, number)
            page.keyboard.down(key)
            page.wait_for_timeout(150)
            page.keyboard.up(key)
            assert asked(address, "progress")["number"] == number
            settled(page)
        marks = [one["mark"] for one in answers(address) if one["source"] != "model"]
        assert sorted(marks) == ["label"] * 8 + ["skip", "unsure"]

        def accepts():  # Enter gives the guess, whatever the pointer pressed before
            page.wait_for_selector(".guess b")
            name, guess = shown_id(page), page.locator(".guess b").text_content()
            page.keyboard.press("Enter")
            number_is(page, number + 1)
            (told,) = [one for one in answers(address) if one["id"] == name]
            assert (told["source"], f"Guess: {told['label']}") == ("person", guess)

        classes.first.click()
        number += 1
        number_is(page, number)
        assert page.evaluate("() => document.activeElement === document.body")
        settled(page)
        page.wait_for_timeout(700)  # till the page has the guess of the newest model
        accepts()
        number += 1
        settled(page)
        # Rows seen before, and back.
        page.wait_for_selector(".guess b")
        last = shown_id(page)
        page.keyboard.press("ArrowLeft")
        page.wait_for_function(
            "(id) => !document.querySelector('h2').textContent.endsWith(id)", arg=last
        )
        page.keyboard.press("ArrowRight")
        page.wait_for_function(
            "(id) => document.querySelector('h2').textContent.endsWith(id)", arg=last
        )
        # The map: a dot under the pointer, the row of it, then Enter.
        box = page.locator(".map").bounding_box()
        for place in range(40, int(box["width"]) - 40, 6):
            at = box["x"] + place, box["y"] + box["height"] / 2
            page.mouse.move(*at)
            page.wait_for_timeout(40)
            tip = page.locator(".tip")
            if tip.is_visible() and "guess" in tip.text_content():
                break
        dot = page.locator(".tip b").text_content()
        page.mouse.click(*at)
        page.wait_for_function(
            "(id) => document.querySelector('h2').textContent.endsWith(id)", arg=dot
        )
        accepts()
        number += 1
        settled(page)
        for move in ("wheel", "drag"):
            before = page.evaluate(_PICTURE)
            page.mouse.move(*at)
            if move == "wheel":
                page.keyboard.down("Control")
                page.mouse.wheel(0, -300)
                page.keyboard.up("Control")
            else:
                page.mouse.down()
                page.mouse.move(at[0] + 60, at[1] + 30, steps=3)
                page.mouse.up()
            page.wait_for_timeout(150)
            assert page.evaluate(_PICTURE) != before, move
        page.get_by_role("button", name="Show all").click()
        # Without the guess nothing tells of it.
        colors = asked(address, "start")["colors"]
        page.evaluate("() => document.activeElement.blur()")
        shown = [page.evaluate(_COLORED, colors[k]) for k in range(3)]
        page.wait_for_selector(".guess b")
        page.keyboard.press("g")
        page.wait_for_timeout(150)
        hidden = [page.evaluate(_COLORED, colors[k]) for k in range(3)]
        assert 0 < sum(hidden) < sum(shown) / 4, (shown, hidden)  # dots of given labels
        assert page.locator(".guess").count() == 0
        assert page.locator(".why").text_content() == "Why this row: the model asks for it"
        page.keyboard.press("g")
        page.wait_for_selector(".guess b")
        # A button that a key pressed keeps Enter.
        classes.nth(1).focus()
        page.keyboard.press("Enter")
        number += 1
        number_is(page, number)
        assert classes.nth(1).evaluate("(one) => one === document.activeElement")
        # A renamed class is in no guess any more.
        page.get_by_role("tab", name="Progress").click()
        page.get_by_role("button", name="Rename or merge meadow").click()
        page.keyboard.press("Control+a")
        page.keyboard.type("lea")
        page.keyboard.press("Enter")
        number += 1
        page.wait_for_function("() => !/meadow/.test(document.querySelector('.guess').textContent)")
        page.get_by_role("tab", name="File").click()
        for form in ("csv", "parquet", "jsonl"):
            with page.expect_download() as saved:
                page.get_by_role("link", name=form.upper()).click()
            assert saved.value.suggested_filename == f"labels.{form}"
            assert saved.value.path().stat().st_size > 1000
        assert page.problems == []


def test_search_skipped_rows_and_a_dead_learner(chromium, tmp_path):
    with served(flowers(tmp_path), "--id", "id", "--classes", "a,b") as (address, _):
        page = opened(chromium, address)
        skipped = shown_id(page)
        page.keyboard.press("s")
        number_is(page, 1)
        page.get_by_role("tab", name="Review (1)").click()
        page.get_by_role("button", name="Go through 1 row").click()
        page.wait_for_function(
            "(id) => document.querySelector('h2').textContent.endsWith(id)", arg=skipped
        )
        asked(address, "mark", who="Bob", rows=[row for row in range(600) if row != 7], label="a")
        asked(address, "mark", who="Bob", rows=[7], kind="skip")
        page.keyboard.press("u")
        page.wait_for_function("() => document.querySelector('h2').textContent.endsWith('0008')")
        page.keyboard.press("u")
        page.wait_for_function(
            "() => document.querySelector('h2').textContent === 'All rows are done'"
        )
        page.get_by_role("button", name="Go through 1 skipped or unsure row").click()
        page.wait_for_function("() => document.querySelector('h2').textContent === 'Row 0008'")
        # The last words count, however late earlier ones are answered; Escape ends the search.
        page.evaluate(_SLOW_SEARCH)
        page.keyboard.press("/")
        page.keyboard.type("ri")
        page.wait_for_timeout(300)
        page.keyboard.type("dge 0")
        page.wait_for_timeout(1200)
        assert page.locator(".search [role=status]").text_content() == "0 rows"
        page.keyboard.press("Enter")
        assert shown_id(page) == "0008"
        page.keyboard.press("Escape")
        assert page.locator(".search input").input_value() == ""
        page.wait_for_function("() => !document.querySelector('.search [role=status]').textContent")
        # A learner that has ended says so.
        told = asked(address, "progress", who="Ann") | {"error": "MemoryError: too large"}
        page.route("**/api/progress", lambda route: route.fulfill(json=told))
        page.wait_for_selector(".banner:not([hidden])")
        assert (
            "The model has stopped learning: MemoryError" in page.locator(".banner").text_content()
        )
        assert "the model has stopped learning" in page.locator(".summary").text_content()
        # A curve goes to the right, whatever was undone; values of pixels can be seen.
        xs, text = page.evaluate(_MADE)
        assert xs == [34, 184, 334]
        assert text == "a0.0039b1c0d0.0078"
        assert page.problems == []


_MADE = """async () => {
  const told = { changed: 0, open: 0, seconds: 1, accuracy: 0.5, low: 0.4, high: 0.6 };
  const step = (labels) => ({ labels, ...told });
  const progress = { steps: [step(3), step(5), step(4)], classes: {} };
  const { progressPanel } = await import('/panels.js'), { rowContent } = await import('/row.js');
  const panel = progressPanel(progress, {}, {}).find((one) => one.matches('.curve'));
  const line = panel.querySelector('polyline');
  const look = { pixels: { names: ['a', 'b', 'c', 'd'], unit: 1 / 255, white: 255 } };
  const row = { row: 0, cells: [], pixels: btoa('\\x01\\xff\\x00\\x02') };
  const values = rowContent(row, look, () => null)[1];
  document.body.append(values);
  values.open = true;
  await new Promise((done) => setTimeout(done, 100));
  const text = values.querySelector('dl').textContent;
  values.remove();
  return [line.getAttribute('points').split(' ').map((point) => Number(point.split(',')[0])), text];
}"""
