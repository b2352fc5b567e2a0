"""Pages from templates: what is filled in stays text."""

import json
import re
import subprocess
import sys

import pytest
from jinja2 import UndefinedError

from manifoldknn.base.render import rendered

EVIL = "</script><script>\"'&{{ 7 * 7 }}"


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "some_pages" / "templates").mkdir(parents=True)
    (tmp_path / "some_pages" / "__init__.py").touch()
    text = '<p title="{{ name }}">{{ name }}</p><script>{{ data|tojson }}</script>'
    (tmp_path / "some_pages" / "templates" / "page.html").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "some_pages", raising=False)  # of another test
    return "some_pages"


def test_values_are_escaped(package):
    page = rendered(package, "page.html", name=EVIL, data={"b": [EVIL], "a": 1})
    escaped = "&lt;/script&gt;&lt;script&gt;&#34;&#39;&amp;{{ 7 * 7 }}"
    assert page.startswith(f'<p title="{escaped}">{escaped}</p>')
    data = re.search("<script>(.*)</script>", page)[1]
    assert "<" not in data
    assert json.loads(data) == {"b": [EVIL], "a": 1}
    assert data.startswith('{"b":["')  # as it was, and no spaces


def test_plain_text_is_left_as_it_is(package, tmp_path):
    (tmp_path / "some_pages" / "templates" / "a.txt").write_text("{{ name }}\n")
    assert rendered(package, "a.txt", name=EVIL) == EVIL


def test_lines_of_blocks_leave_nothing(package, tmp_path):
    text = "a\n{% for x in some %}\n  {% if x %}\n{{ x }}\n  {% endif %}\n{% endfor %}\nb\n"
    (tmp_path / "some_pages" / "templates" / "b.txt").write_text(text)
    assert rendered(package, "b.txt", some=[1, 0, 2]) == "a\n1\n2\nb"


def test_what_is_missing_or_no_number_is_an_error(package):
    with pytest.raises(UndefinedError, match="name"):
        rendered(package, "page.html", data=1)
    with pytest.raises(ValueError, match="JSON"):
        rendered(package, "page.html", name="", data=float("nan"))


def test_nobody_pays_for_templates_before_a_page_is_written():
    names = "{'jinja2', 'tqdm'} & set(sys.modules)"
    code = f"import sys, manifoldknn.cli.main; print({names})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
