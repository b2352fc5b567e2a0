"""Little tables with the faults of real life, and what is expected of each.

``python tests/hostile.py FOLDER`` writes them all, to be looked at. Each has 40 rows of two kinds,
"wet" and "dry", of which the first eight are labelled, and two measurements that tell them apart.
"""

from __future__ import annotations

import gzip
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

N = 40
NUMBERS = {"x": "number", "y": "number"}


@dataclass
class Case:
    content: bytes
    uses: dict[str, str] = field(default_factory=lambda: dict(NUMBERS))  # "": left out
    options: tuple[str, ...] = ()
    said: tuple[str, ...] = ()  # in the notes, the table of columns or the error
    warned: str = ""  # in a warning; "": there is none
    file: str = "t.csv"
    encoding: str = "utf-8"
    code: int = 0
    adds: str = ""  # in the last line of the output
    two: bool = True  # whether there are two classes


def truth(row):
    return "wet" if row % 2 else "dry"


def value(row, column):
    """Measurements between 0.1 and 99.9, far apart by kind."""
    return round(10 + 60 * (row % 2) + (7 * row + 5 * column) % 13 + row / 100, 2)


def table(*, delimiter=",", end="\n", names=("x", "y", "class"), label=None, last=True, **columns):
    """Return text; columns are functions of the row that make cells."""
    columns = {"x": lambda r: value(r, 0), "y": lambda r: value(r, 1)} | columns
    label = label or (lambda r: truth(r) if r < 8 else "")
    lines = [delimiter.join([*names[:2], *list(columns)[2:], *names[2:]])]
    for row in range(N):
        cells = [str(make(row)) for make in columns.values()]
        lines.append(delimiter.join([*cells, label(row), *[""] * (len(names) - 3)]))
    return end.join(lines) + end * last


def german(row, column=0):
    return str(value(row, column)).replace(".", ",")


def odd(*texts, every=7, column=0, plain=value):
    """Return a maker of cells of which some are odd."""
    return lambda r: texts[r // every % len(texts)] if r % every == 6 else plain(r, column)


def comma(**columns):
    columns = {"x": german, "y": lambda r: german(r, 1)} | columns
    return table(delimiter=";", **columns)


def thousands(form):
    return lambda r: form(f"{1000 * value(r, 0):,.2f}")


day = lambda r: 1 + (5 * r) % 28  # noqa: E731
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
CASES = {
    "less_than": Case(
        comma(x=odd("<0,5", "> 100", plain=german)).encode(),
        said=("5 cells with <, > or ca., read as the number",), adds=";0,",
    ),
    "not_detected": Case(comma(x=odd("n.d.", "ND", "k.A.", plain=german)).encode(),
                         said=("5 missing",)),
    "excel_errors": Case(comma(x=odd("#NV", "#DIV/0!", "#WERT!", plain=german)).encode(),
                         said=("5 missing",)),
    "dots_and_dashes": Case(table(x=odd(".", "-", "–", "--")).encode(), said=("5 missing",)),
    "percent": Case(table(x=lambda r: f"{value(r, 0)} %").encode(),
                    said=("40 cells with the unit %",)),
    "units": Case(table(x=lambda r: f"{value(r, 0)} mg", y=lambda r: f"{value(r, 1)}kg").encode(),
                  said=("40 cells with the unit mg", "40 cells with the unit kg")),
    "some_units": Case(table(x=lambda r: f"{value(r, 0)}{' mg' * (r % 8 == 6)}").encode(),
                       said=("5 cells with the unit mg",)),
    "two_units": Case(
        table(x=lambda r: f"{value(r, 0)} {'mg' if r % 3 else 'g'}").encode(), NUMBERS | {"x": ""},
        warned="'x' is left out, though 40 of 40 cells are numbers",
    ),
    "english_thousands": Case(table(x=thousands(lambda t: f'"{t}"')).encode(),
                              said=("40 cells with marks between thousands",)),
    "german_thousands": Case(
        comma(x=thousands(lambda t: t.translate({44: ".", 46: ","}))).encode(),
        said=("40 cells with marks between thousands",),
    ),
    "german_whole_thousands": Case(
        comma(x=lambda r: f"{int(100 * value(r, 0)):,}".replace(",", ".")).encode(),
        said=("40 cells with marks between thousands",),
    ),
    "swiss_thousands": Case(table(x=thousands(lambda t: t.replace(",", "’"))).encode(),
                            said=("40 cells with marks between thousands",)),
    "french_thousands": Case(
        comma(x=thousands(lambda t: t.translate({44: "\u202f", 46: ","}))).encode(),
        said=("40 cells with marks between thousands",),
    ),
    "unicode_minus": Case(table(x=lambda r: f"−{value(r, 0)}").encode()),
    "currency": Case(table(x=lambda r: f"€ {value(r, 0)}").encode(),
                     said=("40 cells with the unit €",)),
    "garbled_cells": Case(table(x=odd("1.2.3", "12:30", "(5)", every=13)).encode(),
                          said=("3 cells not read, so missing ('1.2.3'",),
                          warned="'x': 3 of 40 cells could not be read"),
    "quoted_decimal_commas": Case(
        table(x=lambda r: f'"{german(r)}"', y=lambda r: f'"{german(r, 1)}"').encode(), adds=',"0,'
    ),
    "whole_numbers_of_germany": Case(
        comma(x=lambda r: int(100 * value(r, 0)), y=lambda r: int(9 * value(r, 1))).encode(),
        adds=";0,"),
    "windows_1252": Case(
        comma(größe=lambda r: "groß" if r % 2 else "weiß").encode("cp1252"),
        NUMBERS | {"größe": "category"}, encoding="cp1252", said=("as Windows-1252",),
    ),
    "a_broken_byte": Case(table(note=lambda _: "né").encode().replace(b"n\xc3\xa9", b"n\xe9", 1),
                          NUMBERS | {"note": "category"}, encoding="cp1252",
                          said=("as Windows-1252",)),
    "utf16_of_excel": Case(b"\xff\xfe" + table(delimiter="\t", end="\r\n").encode("utf-16-le"),
                           encoding="utf-16", said=("as UTF-16",)),
    "utf16_big_endian": Case(table().encode("utf-16-be"), encoding="utf-16-be",
                             said=("as UTF-16",)),
    "utf8_mark": Case(b"\xef\xbb\xbf" + table().encode(), encoding="utf-8-sig"),
    "mac_roman": Case(table(é=lambda r: "ü" if r % 2 else "ö").encode("mac-roman"),
                      NUMBERS | {"é": "category"}, ("--encoding", "mac-roman"),
                      encoding="mac-roman", said=("as mac-roman",)),
    "gzip": Case(gzip.compress(table().encode()), file="t.csv.gz"),
    "zstd": Case(bytes(pa.Codec("zstd").compress(comma().encode("cp1252"))), file="t.csv.zst",
                 encoding="cp1252"),
    "truncated_gzip": Case(gzip.compress(table().encode())[:-20], file="t.csv.gz", code=2,
                           said=("cannot be unpacked",)),
    "windows_line_ends": Case(table(end="\r\n", last=False).encode()),
    "mac_line_ends": Case(table(end="\r").encode()),
    "cells_of_two_lines": Case(table(note=lambda r: f'"a{r}\n""b"""').encode(),
                               NUMBERS | {"note": ""}),
    "lines_above_header": Case(
        ("Report 7;;\nBy: Ann;;\n;;\n" + comma()).encode(), said=("2 line(s) above the header",)),
    "text_above_header": Case(("# lamp 3, on\n\n# by Ann\n" + comma()).encode(),
                              said=("2 line(s) above the header",)),
    "blanks_around_names": Case(table(names=(" x", "y ", " class")).encode()),
    "empty_rows_of_excel": Case(
        (comma() + ";;\r\n" * 3).encode(), two=False,
        said=("3 row(s) have no value in any column used",)),
    "blank_lines": Case(("\n\n" + table() + "\n \n").encode().replace(b" \n", b"\n")),
    "empty_columns": Case(comma(names=("x", "y", "class", "", "", "")).encode(),
                          NUMBERS | {"column 4": "", "column 6": ""}, said=("empty: it has only",)),
    "constant_column": Case(table(device=lambda _: "A7", v=lambda _: "1.0").encode(),
                            NUMBERS | {"device": "", "v": ""}, said=("the same in all rows",)),
    "many_empty_columns": Case(
        comma(names=("x", "y", "class", *(f"e{i}" for i in range(60)))).encode(),
        NUMBERS | {"e7": ""}, said=("left out 60 columns (e0, e1, e2 and 57 more): empty",),
    ),
    "a_hint_for_excel": Case(("sep=;\r\n" + comma(end="\r\n")).encode("cp1252")),
    "a_header_repeated": Case(
        (table() + "x,y,class\n").encode(), two=False,
        said=("'y': 1 of 41 cells could not be read, so missing ('y')",),
        warned="'class' in 'class' counts as a class (1 row)"),
    "pipes": Case(table(delimiter="|").encode()),
    "commas_in_the_header": Case(
        comma(names=("Länge, mm", "Breite, mm", "class")).encode(),
        {"Länge, mm": "number", "Breite, mm": "number"},
    ),
    "european_dates": Case(table(day=lambda r: f"{day(r):02}.{1 + r % 12:02}.2023").encode(),
                           NUMBERS | {"day": "date"}, said=("day first",)),
    "american_dates": Case(
        table(day=lambda r: f"{1 + r % 12}/{day(r)}/23 {1 + r % 12}:05 PM").encode(),
        NUMBERS | {"day": "date"}, said=("month first",)),
    "undecided_dates": Case(
        table(day=lambda r: f"{1 + r % 12}/{1 + 5 * r % 12}/2023").encode(),
        NUMBERS | {"day": "date"}, said=("is the day or the month first?",)),
    "named_months": Case(
        table(a=lambda r: f"{day(r)}-{MONTHS[r % 12]}-2023", b=lambda r: f"{day(r):02} May 2023",
              c=lambda r: f"{day(r)}. {'März' if r % 2 else 'Dez.'} 23").encode(),
        NUMBERS | {"a": "date", "b": "date", "c": "date"}),
    "odd_dates": Case(
        table(day=odd("00.00.0000", every=40, plain=lambda r, _: f"{day(r):02}.05.2023"),
              then=odd("unbekannt", "2023-02-30", every=20,
                       plain=lambda r, _: f"2023-05-{day(r):02}")).encode(),
        NUMBERS | {"day": "date", "then": "date"},
        said=("'day': 1 of 40 cells could not be read, so missing ('00.00.0000')",
              "1 cell not read, so missing ('2023-02-30'); 1 missing")),
    "free_text": Case(table(note=lambda r: f"{r} apples and pears").encode(),
                      NUMBERS | {"note": ""}, said=("text with more than 30",)),
    "house_numbers": Case(table(no=lambda r: f"{r % 9}{'ab'[r % 2] if r % 3 else ''}").encode(),
                          NUMBERS | {"no": "category"}),
    "a_word_among_numbers": Case(
        comma(x=odd("defekt", every=40, plain=german)).encode(),
        said=("'x': 1 of 40 cells could not be read, so missing ('defekt')",
              "1 cell not read, so missing ('defekt')")),
    "words_among_numbers": Case(
        table(x=odd("broken", "see Anna", every=13)).encode(),
        said=("3 cells not read, so missing ('broken', 'see Anna')",),
        warned="'x': 3 of 40 cells could not be read, so missing ('broken', 'see Anna'): correct",
    ),
    "too_many_words_among_numbers": Case(
        table(x=odd("broken", "see Anna")).encode(), {"x": "", "y": "number"},
        warned="'x' is left out, though 35 of 40 cells are numbers: correct the others ('broken'"),
    "grades": Case(table(grade=lambda r: ["1", "2", "?", "A", "B"][r % 5]).encode(),
                   NUMBERS | {"grade": "category"}, said=("4 different; 8 missing",)),
    "about": Case(table(x=odd("ca. 15", "~75")).encode(), said=("5 cells with <, > or ca.",)),
    "a_row_of_units": Case(
        table().replace("\n", "\nmm,kg,\n", 1).encode(), two=False,
        said=("'x': 1 of 41 cells could not be read, so missing ('mm')", "1 row(s) have no value")),
    "a_glued_unit": Case(comma(x=odd("3,2mg", every=40, plain=german)).encode(),
                         said=("1 cell with the unit mg",)),
    "another_unit_once": Case(
        table(x=lambda r: f"{value(r, 0)} {'g' if r == 6 else 'mg'}").encode(),
        said=("1 cell not read, so missing ('", "39 cells with the unit mg")),
    "some_percent": Case(
        table(x=lambda r: f"{value(r, 0)}{' %' * (r % 2)}").encode(),
        said=("'x': 20 of 40 numbers have a % sign; 5 % is read as 5, so write all alike",)),
    "infinite_cells": Case(
        table(x=odd("inf", every=40), y=odd("-Infinity", "1e999", column=1, every=20)).encode(),
        said=("'x': 1 of 40 cells could not be read, so missing ('inf')",
              "2 cells not read, so missing")),
    "words_that_mean_missing": Case(
        table(x=odd("broken", "see Anna", every=13)).encode(),
        options=("--na", "broken", "See Anna"), said=("3 missing",)),
    "a_number_that_means_missing": Case(table(x=odd("-999")).encode(), options=("--na", "-999"),
                                        said=("5 missing",)),
    "most_columns_are_text": Case(
        table(**{f"t{i}": lambda r, i=i: f"w{i}{r}" for i in range(4)}).encode(),
        NUMBERS | {"t0": ""}, warned="only 2 columns used, and 4 left out (t0, t1, t2, t3)",
    ),
    "case_of_classes": Case(
        table(label=lambda r: (truth(r) if r > 1 else truth(r).title()) if r < 8 else "").encode(),
        warned="in 'class' are different classes; if they are one, write them alike", two=False),
    "unknown_is_a_class": Case(
        table(label=lambda r: truth(r) if r < 8 else "unknown" if r < 10 else "").encode(),
        warned="'unknown' in 'class' counts as a class (2 rows); if it means no label, add "
        "--unlabeled unknown", two=False),
    "a_measurement_as_label": Case(
        b"x,class\n" + b"".join(b"%d.5,%d.25\n" % (i, i * 7 % 150) for i in range(150)), code=2,
        said=("150 different numbers: is it a measurement?",)),
    "ragged": Case(table().replace("\n", ",\n", 5).replace(",\n", "\n", 1).encode(), code=2,
                   said=("line 2 of t.csv has 4 cells and the header has 3: correct that line",)),
    "an_open_quote": Case(table(note=lambda r: '"a' if r == 39 else "b").encode(), code=2,
                          said=("correct its quotes",)),
    "names_twice": Case(table(names=("x", "x", "class")).encode(), code=2,
                        said=("two columns named 'x': rename one",)),
    "a_workbook_named_csv": Case(b"PK\x03\x04" + bytes(99), code=2, said=("say --format xlsx",)),
    "a_picture_named_csv": Case(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", code=2, said=("is no text",)),
    "only_a_header": Case(b"x,y,class\n", code=2, said=("only 0 rows: bring at least 3",)),
    "nothing": Case(b"", code=2, said=("is empty: it needs a header",)),
}  # fmt: skip


def write(folder):
    for name, case in CASES.items():
        (Path(folder) / name).mkdir(parents=True, exist_ok=True)
        (Path(folder) / name / case.file).write_bytes(case.content)


if __name__ == "__main__":
    write(sys.argv[1])
