"""The command: its port, its first line, its end."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from labelling_kit import ROOT, flowers
from manifoldknn.cli.options import build_parser
from manifoldknn.labelling.serve import serve

pytest.importorskip("starlette", reason="needs manifoldknn[label]")
pytest.importorskip("uvicorn", reason="needs manifoldknn[label]")


@pytest.mark.skipif(os.name != "posix", reason="SIGINT as a terminal sends it")
def test_another_port_is_chosen_and_told(tmp_path):
    command = [sys.executable, "-m", "manifoldknn", "label", str(flowers(tmp_path)), "--quiet"]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with subprocess.Popen(
            [*command, "--no-browser", "--port", port],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
        ) as server:  # fmt: skip
            address = server.stdout.readline().strip()
            with urllib.request.urlopen(address) as page:
                assert page.status == 200
            server.send_signal(signal.SIGINT)
            out, err = server.communicate(timeout=60)
    other = address.removeprefix("http://127.0.0.1:").split("/")[0]
    assert other != port
    assert f"port {port} is taken or not allowed: {other} is used instead" in err
    assert (server.returncode, out) == (0, "")
    assert "interrupted" not in err


@pytest.mark.parametrize("wanted", [True, False])
def test_a_browser_is_opened_unless_nobody_wants_one(tmp_path, monkeypatch, capsys, caplog, wanted):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)
    caplog.set_level("WARNING", "manifoldknn")  # which is put back afterwards
    told = ["label", str(flowers(tmp_path)), "--port", "0", *([] if wanted else ["--no-browser"])]
    serve(build_parser().parse_args(told))
    address = capsys.readouterr().out.strip()
    assert "/?token=" in address
    assert opened == [address] * wanted
