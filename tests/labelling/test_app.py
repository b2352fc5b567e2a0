"""Who may come in, and what everybody else gets."""

import asyncio
import base64
import json

import pytest

from labelling_kit import flowers_desk, opened

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette", reason="needs manifoldknn[label]")
from manifoldknn.labelling.app import make_app, page_files  # noqa: E402
from manifoldknn.labelling.journal import JournalError  # noqa: E402

BASE, TOKEN = "http://127.0.0.1:8765", "secret"
_MARKUP = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(")


class Client:
    """Asks the application without a server, and keeps cookies."""

    def __init__(self, app):
        self._transport, self._cookies = httpx.ASGITransport(app=app), httpx.Cookies()

    def _ask(self, method, path, **how):
        async def ask():
            how_to = {"transport": self._transport, "base_url": BASE, "cookies": self._cookies}
            async with httpx.AsyncClient(**how_to) as client:
                answer = await client.request(method, path, **how)
                self._cookies = client.cookies
                return answer

        return asyncio.run(ask())

    def get(self, path, **how):
        return self._ask("GET", path, **how)

    def post(self, path, **how):
        return self._ask("POST", path, **how)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    with flowers_desk(tmp_path_factory.mktemp("flowers")) as made:
        yield made


@pytest.fixture
def client(desk):
    return Client(make_app(desk, TOKEN, 8765))


@pytest.mark.parametrize("path", ["/", "/page.css", "/main.js", "/labels.csv", "/nothing"])
@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("", {}),
        ("?token=", {}),
        ("?token=wrong", {}),
        ("?token=secret", {"host": "evil.example:8765"}),
        ("?token=secret", {"host": "127.0.0.1:1"}),
        ("?token=secret", {"origin": "http://evil.example"}),
        ("?token=secret", {"origin": "null"}),
        ("?token=secret", {"origin": "http://127.0.0.1:9999"}),
        ("?token=secret", {"sec-fetch-site": "cross-site"}),
        ("", {"cookie": "manifoldknn-8765=wrong"}),
    ],
)
def test_others_get_403(client, path, query, headers):
    assert client.get(path + query, headers=headers).status_code == 403
    assert client.post("/api/start" + query, headers=headers, json={}).status_code == 403


def test_the_token_becomes_a_cookie_that_pages_cannot_read(client):
    first = client.get("/?token=secret")
    assert first.status_code == 200
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/main.js").status_code == 200
    assert client.post("/api/start", json={"who": "Ann"}, headers={"origin": BASE}).json()["n_rows"]


def test_every_answer_has_a_strict_policy(client):
    for path in ("/?token=secret", "/?token=wrong", "/labels.csv?token=secret"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    ["/../journal.py", "/%2e%2e/journal.py", "/..%2fapp.py", "//etc/passwd", "/page/", "/x.js"],
)
def test_only_the_files_of_the_page(client, path):
    assert client.get(path + "?token=secret").status_code == 403


def test_scripts_never_write_markup():
    for name, (_, content) in page_files().items():
        assert not [word for word in _MARKUP if word in content], name
        assert "http://" not in content.replace("http://www.w3.org/2000/svg", ""), name
        assert "https://" not in content, name


@pytest.mark.parametrize(
    ("name", "question", "code"),
    [
        ("mark", {"who": "Ann", "rows": [10**6], "label": "x"}, 400),
        ("mark", {"who": "Ann", "rows": ["0"], "label": "x"}, 400),
        ("mark", {"who": "Ann", "rows": [True], "label": "x"}, 400),
        ("mark", {"who": "", "rows": [0], "label": "x"}, 400),
        ("mark", {"who": "Ann", "rows": [0], "label": " "}, 400),
        ("mark", {"who": "Ann", "rows": [0], "label": "\0"}, 400),
        ("mark", {"who": "Ann", "rows": [0], "kind": "wild"}, 400),
        ("row", {"row": -1}, 400),
        ("image", {"row": 0}, 400),
        ("classes", {"who": "Ann", "old": "none", "new": "x"}, 400),
        ("import", {"who": "Ann", "data": "AAAA"}, 400),
        ("next", {"who": "Ann", "n": None}, 400),
        ("next", {"who": "Ann", "n": 0}, 400),
        ("mark", {"who": "Ann", "rows": [0], "label": "gone", "known": True}, 400),
        ("nothing", {}, 404),
        ("call", {}, 404),
    ],
)
def test_bad_questions_are_answered_in_one_line(client, desk, name, question, code):
    before = desk.labels()
    answer = client.post(f"/api/{name}?token=secret", json=question)
    assert answer.status_code == code
    assert "\n" not in answer.json()["error"]
    assert desk.labels() == before


def test_what_is_no_json_is_refused(client):
    assert client.post("/api/start?token=secret", content=b"{").status_code == 400
    assert client.post("/api/start?token=secret", content=b"[]").status_code == 400


def test_a_full_disk_is_told_and_nothing_is_believed(client, desk, monkeypatch):
    before = desk.labels()

    def full(*_):
        raise JournalError("cannot be written: free some space")

    monkeypatch.setattr("manifoldknn.labelling.journal.Journal._write", full)
    question = {"who": "Ann", "rows": [5], "label": "x"}
    answer = client.post("/api/mark?token=secret", json=question)
    assert answer.status_code == 507
    assert "free some space" in answer.json()["error"]
    assert desk.labels() == before


def test_there_and_back_through_the_page(client, desk):
    client.post("/api/mark?token=secret", json={"who": "Ann", "rows": [5, 6], "label": "<b>x</b>"})
    exported = client.get("/labels.jsonl?token=secret").content
    told = [json.loads(line) for line in exported.splitlines()]
    assert [one["label"] for one in told if one["source"] == "person"] == ["<b>x</b>"] * 2
    client.post("/api/undo?token=secret", json={"who": "Ann"})
    assert desk.labels()[1] == {}
    data = base64.b64encode(exported).decode()
    answer = client.post("/api/import?token=secret", json={"who": "Bob", "data": data}).json()
    assert (answer["imported"], answer["lost"], answer["some"]) == (2, 0, [])
    assert desk.labels()[1] == {5: "<b>x</b>", 6: "<b>x</b>"}
    client.post("/api/undo?token=secret", json={"who": "Bob"})
    assert desk.labels()[1] == {}
    assert client.get("/labels.xlsx?token=secret").status_code == 404


def test_a_picture_outside_the_folder_is_forbidden(tmp_path):
    home = tmp_path / "data"
    home.mkdir()
    (tmp_path / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    lines = ["picture,x", "../secret.png,1", "none.png,2", "none.png,5"]
    (home / "a.csv").write_text("\n".join(lines) + "\n")
    with opened(home / "a.csv", "--image", "picture") as desk:
        client = Client(make_app(desk, TOKEN, 8765))
        for row, code in ((0, 403), (1, 400)):
            answer = client.post("/api/image?token=secret", json={"row": row})
            assert (answer.status_code, list(answer.json())) == (code, ["error"])
