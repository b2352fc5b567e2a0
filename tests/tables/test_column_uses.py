"""What became of columns, as people are told."""

from manifoldknn.tables.column_uses import (
    alarms,
    every_use,
    grouped,
    left_out_notes,
    manner_notes,
    manner_text,
)
from manifoldknn.tables.profile import Use
from manifoldknn.tables.table import open_table


def used(name):
    return Use(name, True, "number", "")


def lost(name, **more):
    return Use(name, False, "", "text", **more)


def test_every_column_in_the_order_of_the_file(tmp_path):
    (tmp_path / "a.csv").write_text(",x,y,k,z\n1,2,3,4,5\n")
    table = open_table(tmp_path / "a.csv", "csv")
    uses = every_use(table, [used("x")], {"y": "label", "k": "id", None: "id"})
    assert [(use.name, use.used, use.kind or use.how) for use in uses] == [
        ("", False, "the index of a frame"), ("x", True, "number"), ("y", True, "label"),
        ("k", True, "id"), ("z", False, "not wanted"),
    ]  # fmt: skip
    assert grouped(uses)[0] == ["(no name)", "left out", "the index of a frame"]


def test_many_columns_are_put_together():
    uses = [used(f"p{i}") for i in range(784)] + [lost("t"), lost("u")]
    assert grouped(uses) == [
        ["p0, p1, p2 and 781 more", "number", ""], ["t, u", "left out", "text"]
    ]  # fmt: skip
    assert len(grouped(uses[:40])) == 40


def test_alarms():
    assert alarms([used("a"), lost("b")]) == []
    assert alarms([used("a"), lost("b"), lost("c", plain=True), lost("d", plain=True)]) == []
    assert alarms([used("a"), lost("b", warning="look at b")]) == ["look at b"]
    (told,) = alarms([used("a"), lost("b"), lost("c"), Use("y", True, "label", "")])
    assert told == "only 1 column used, and 2 left out (b, c): look whether they should be"
    assert alarms([used("a"), *(Use(n, False, "", "not wanted") for n in "bcd")]) == []


def test_notes():
    assert left_out_notes([("a", "empty"), ("", "text")]) == [
        "left out 'a': empty", "left out the first column, which has no name: text"
    ]  # fmt: skip
    assert left_out_notes([(f"e{i}", "empty") for i in range(5)]) == [
        "left out 5 columns (e0, e1, e2 and 2 more): empty"
    ]


def test_manners(tmp_path):
    (tmp_path / "a.csv").write_bytes("é\t1\n".encode("utf-16"))
    table = open_table(tmp_path / "a.csv", "csv")
    assert manner_text(table.manner) == "UTF-16, tabs between cells"
    assert "as UTF-16; if letters look wrong, say --encoding" in manner_notes(table)[0]
    manner = {"encoding": "UTF-8", "delimiter": ",", "compression": "gzip"}
    assert manner_text(manner) == "UTF-8, ',' between cells, gzip"
