"""The line that tells how far a run is."""

import io

from manifoldknn.reproduction import runner as bar
from manifoldknn.reproduction.runner import Bar, duration


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_time_left_follows_what_is_measured(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(bar.time, "perf_counter", lambda: clock[0])
    made = Bar(3, 0, 200.0, quiet=True)
    assert made.seconds_left() == 200.0  # as estimated
    clock[0] = 300.0
    made.advance(100.0, "a")  # three times dearer than thought
    assert made.seconds_left() == 100.0 * (310.0 / 110.0)
    made.advance(50.0, "b")
    made.advance(50.0, "c")
    assert made.seconds_left() == 0


def test_a_terminal_has_a_bar_that_is_drawn_over(monkeypatch):
    monkeypatch.setattr(bar, "_SOON", 0.0)
    monkeypatch.setattr(bar, "_BETWEEN_BARS", 0.0)
    clock = [0.0]
    monkeypatch.setattr(bar.time, "perf_counter", lambda: clock[0])
    out = Terminal()
    made = Bar(2, 0, 20.0, out=out)
    made.show()
    clock[0] = 10.0
    made.advance(10.0, "fig9 a long name")
    made.say("something failed")
    made.advance(10.0, "x")
    made.clear()
    text = out.getvalue()
    assert "  0%|" in text
    assert "| 0 of 2 cells, about 20 s left" in text
    assert "############            | 1 of 2 cells, about 10 s left  (fig9 a long name)" in text
    assert "100%|" in text
    assert "| 2 of 2 cells  (x)" in text
    assert text.count("\n") == 1  # only what was said on a line of its own
    assert text.endswith(" \r")  # nothing is left


def test_short_work_has_no_bar():
    out = Terminal()
    made = Bar(2, 0, 20.0, out=out)
    made.show()
    made.advance(10.0, "x")
    assert out.getvalue() == ""


def test_elsewhere_lines_come_now_and_then(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(bar.time, "perf_counter", lambda: clock[0])
    out = io.StringIO()
    made = Bar(100, 0, 100.0, out=out)
    for i in range(100):
        clock[0] = float(i + 1)
        made.advance(1.0, str(i))
    lines = out.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[0] == "[manifoldknn]  10%  10 of 100 cells, about 90 s left"
    assert lines[-1] == "[manifoldknn] 100%  100 of 100 cells"


def test_quiet_is_quiet_but_failures_are_told():
    out = Terminal()
    made = Bar(1, 0, 1.0, quiet=True, out=out)
    made.show()
    made.advance(1.0, "x")
    assert out.getvalue() == ""
    made.say("cell failed")
    assert out.getvalue() == "cell failed\n"


def test_duration_has_no_sixty_minutes_and_no_hundred_seconds():
    assert [duration(s) for s in (0, 9.94, 9.96, 99.4, 100, 5969, 5970, 36000)] == [
        "under 0.1 s", "9.9 s", "10 s", "99 s", "2 min", "99 min", "1 h 40 min", "10 h 00 min",
    ]  # fmt: skip
