"""Model files that were damaged, or made by somebody who means harm.

Of five mutations two in seven are *forged*: arrays and data are changed and checksums made good
again, so that every check behind them is met. The others are *raw*: bytes are changed. A raw
mutation must be refused or change no answer. A forged one must be refused on loading, or serve
whatever a model is used for. No file of up to 64 MB may cost more than 300 MB before it is refused
or used. Run as ``python fuzz/files.py --count 35000 --seed 0``.
"""

import argparse
import copy
import hashlib
import io
import random
import resource
import signal
import struct
import sys
import tempfile
import traceback
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from manifoldknn import ManifoldKNNClassifier, find_label_errors, inspect, suggest
from manifoldknn.exceptions import UnreachedError
from manifoldknn.files import persist
from manifoldknn.files.archive import ModelFileError, read_archive, write_archive
from manifoldknn.files.json_values import to_plain

FORM = {"kind": "manifoldknn model", "version": persist._VERSION}
MOST_MB, LIMIT_MB = 300, 3000
LONGEST = 20  # seconds of computing for one file
FORGED_OF_SEVEN = 2
BOMB_EVERY = 50  # forged mutations, one is a large file
ODD = (
    None, True, -1, 0, 1, 10**9, 2**63, 1.5, -1e300, 1e-300, "", "x", "labeled", "auto", "\ud800",
    [], [[]], {}, [1, "a"], "9" * 3999,
)  # fmt: skip


def problem(seed: int, n: int = 40) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 5.0 * (np.arange(n) % 2)[:, None]
    y = np.full(n, -1)
    y[:10] = (np.arange(10) % 2)[:n]
    return X, y


def models() -> list[tuple[Any, Any]]:
    """Return fitted models of every kind that a file can hold, each with rows to ask."""
    X, y = problem(0)
    Q, names = problem(1, 9)[0], np.array(["", "cat", "dög"])[y + 1]
    small = {"graph_neighbors": 4}
    streamed = ManifoldKNNClassifier(**small).fit(X, names).partial_fit(Q, refresh=False)
    near = ManifoldKNNClassifier(**small).fit(X, y).fitted_.lists
    lists = near.indices, near.distances
    rows = sparse.csr_array(np.where(np.abs(X) < 1, 0, X))
    try:
        import pandas as pd

        frame = pd.DataFrame(X, columns=list("abc"), index=[f"r{i}" for i in range(len(X))])
    except ImportError:
        frame = X
    return [
        (ManifoldKNNClassifier(partner="forest", **small).fit(frame, names), Q),
        (ManifoldKNNClassifier(vote="neighbors", **small).fit(X, y, must_link=[[20, 22]]), Q),
        (ManifoldKNNClassifier(class_prior=[0.3, 0.7], **small).fit(rows, y), sparse.csr_array(Q)),
        (ManifoldKNNClassifier(neighbors=lists, **small).fit(X.astype("f4"), y > 0), Q),
        (ManifoldKNNClassifier(metric="cosine", graph="union", **small).fit(X, y), Q),
        (streamed, problem(2, 5)[0]),
    ]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Return bytes of which some are changed, left out, put in, or moved."""
    at, n = rng.randrange(len(content)), rng.choice([1, 1, 1, 2, 4, 40])
    match rng.randrange(6):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
        case 2:
            return content[:at] + rng.randbytes(n) + content[at + n :]
        case 3:
            return content[:at] + rng.randbytes(n) + content[at:]
        case 4:
            return content[:at] + content[at + n :]
    there = rng.randrange(len(content))
    return content[:at] + content[there : there + n] + content[at + n :]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) inside plain data."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = [(value, key) for key, _ in inner]
    for container, key in list(found):
        if isinstance(container[key], dict | list):
            found += places(container[key])
    return found


def forged(arrays: dict[str, Any], data: Any, rng: random.Random) -> tuple[dict[str, Any], Any]:
    """Return arrays and data of which something is as nobody would write it."""
    arrays, data = {name: array.copy() for name, array in arrays.items()}, copy.deepcopy(data)
    name = rng.choice(sorted(arrays))
    array, kind = arrays[name], rng.randrange(9)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[name] = array[: rng.randrange(len(array) + 1)]
    elif kind == 2:
        arrays[name] = np.concatenate([array, array[: rng.randrange(1, 4)]])
    elif kind == 3:
        wanted = rng.choice(["f4", "f8", "i1", "i4", "i8", "u8", "?", "f2"])
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(wanted)
    elif kind == 4:
        shapes = [array.T, array.reshape(-1), array.reshape(1, -1), array.reshape(-1, 1)]
        arrays[name] = np.ascontiguousarray(rng.choice(shapes))
    elif kind <= 6 and array.size:
        flat = arrays[name].reshape(-1)
        values = [-2, -1, 0, 1, 99, 2**31 - 1, -(2**62), np.nan, np.inf, -np.inf, 1e300, -1e-300]
        with np.errstate(all="ignore"):
            value = np.array(rng.choice(values)).astype(flat.dtype)
        flat[[rng.randrange(flat.size) for _ in range(rng.choice([1, 1, 3, flat.size]))]] = value
    else:
        container, key = rng.choice(places(data))
        value = rng.choice(ODD)
        if rng.random() < 0.5 and not isinstance(value, list | dict):
            value = to_plain(value)
        if rng.random() < 0.15:
            del container[key]
        else:
            container[key] = value
    return arrays, data


def sealed(manifest: bytes) -> bytes:
    """Return JSON of a manifest's parts before its seal, with checksum and end put behind it."""
    rest = b',"kind":"manifoldknn model",'
    end = b'"version":%d}' % FORM["version"]
    digest = hashlib.sha256(manifest + rest + end).hexdigest().encode()
    return manifest + rest + b'"sha256":"' + digest + b'",' + end


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def bomb(arrays: dict[str, Any], data: Any, rng: random.Random, path: Path) -> None:
    """Write a file that asks for much more memory than it takes."""
    size = rng.choice([1 << 20, 1 << 23, (1 << 24) - 1000, 60 << 20])
    kind = rng.randrange(7)
    if kind < 3:
        piece = rng.choice(
            [b"[],", b"{},", b'"\xc3\xa9",', b"1.5,", b'{"a":1},', b"[[[]]],", b"0,"]
        )
        if kind == 1:
            piece = "\U0001f600".encode() * 1000
        inner = b'"' + piece * (size // len(piece)) + b'"'
        if kind != 1:
            inner = b"[" + piece * (size // len(piece)) + b"0]"
        text = b'{"arrays":{},"data":{"x":' + inner + b"}"
        content = {"manifest.json": sealed(text) if rng.random() < 0.8 else text}
        path.write_bytes(zipped(content))
    elif kind == 3:  # a directory of very many parts
        entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *[20] * 2, *[0] * 14)
        directory = entry * (size // len(entry))
        end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, len(directory), 0, 0)
        path.write_bytes(directory + end)
    elif kind == 4:  # one long name, and a type as wide for all the others
        many = [to_plain("a" * rng.choice([9, 4000, 10**6]))]
        many += [to_plain(f"b{i:06d}") for i in range(rng.choice([9, 9000]))]
        data = data | {"classes": {"dtype": f"<U{len(many[0]['value'])}", "values": many}}
        if rng.random() < 0.5:
            data["marker"] = to_plain("x" * 10**6)
        write_archive(path, arrays, data, **FORM)
    elif kind == 5:  # very many columns, nearly all of them empty
        X = sparse.csr_array((len(arrays["codes"]), rng.choice([10**6, 2**31 - 1, 2**40])))
        for part in ("data", "indices", "indptr"):
            arrays[f"samples_{part}"] = getattr(X, part)
        arrays["samples_shape"] = np.array(X.shape)
        arrays.pop("samples", None)
        write_archive(path, arrays, data, **FORM)
    else:  # zeros that compress a thousandfold
        packed = zlib.compressobj(9, zlib.DEFLATED, -15)
        text = packed.compress(bytes(size)) + packed.flush()
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("manifest.json", text)
            archive.writestr("samples.npy", bytes(size))


def answers(model: Any, Q: Any) -> list[Any]:
    return [model.classes_, model.transduction_, model.label_distributions_, model.predict_proba(Q)]


def used(model: Any, Q: Any) -> None:
    """Ask a model for everything that it is good for."""
    n_features = model.n_features_in_
    if Q.shape[1] != n_features:
        Q = sparse.csr_array((5, n_features)) if n_features > 1000 else np.zeros((5, n_features))
    X = Q if sparse.issparse(Q) else np.asarray(Q)
    assert np.isfinite(model.predict_proba(X)).all()
    model.predict(X)
    model.kneighbors(X)
    model.score_samples(X)
    if model.n_walked_ == len(model.unreached_):
        suggest(model, 3)
        inspect(model)
        find_label_errors(model)
    with tempfile.TemporaryDirectory() as folder:
        persist.save(model, Path(folder) / "again.mknn")
    model.partial_fit(X, refresh=False)
    model.set_labels([0], [model.classes_[0]])
    model.refresh()
    model.predict(X)


class Memory:
    """The most memory in use, in megabytes over what there was; 0 where nobody tells."""

    def __init__(self) -> None:
        try:
            Path("/proc/self/clear_refs").write_text("5")
            self.before = self._told("VmRSS")
        except OSError:
            self.before = None

    def peak(self) -> float:
        return 0.0 if self.before is None else self._told("VmHWM") - self.before

    def _told(self, name: str) -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


class TooLate(BaseException):
    """A file was used for too long."""


def late(*_: Any) -> None:
    raise TooLate


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=35_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="begin with this mutation")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_MB << 20, -1))
    signal.signal(signal.SIGVTALRM, late)
    findings, most = 0, 0.0
    counts = {"raw": 0, "forged": 0, "bombs": 0, "refused": 0, "used": 0}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.mknn"
        known = []
        for model, Q in models():
            persist.save(model, path)
            loaded = persist.load(path)
            known.append((path.read_bytes(), *read_archive(path, **FORM), Q, answers(loaded, Q)))
        for number in range(options.first, options.first + options.count):
            rng = random.Random(f"{options.seed} {number}")
            content, arrays, data, Q, right = rng.choice(known)
            raw = number % 7 >= FORGED_OF_SEVEN
            if raw:
                path.write_bytes(damaged(content, rng))
            elif rng.randrange(BOMB_EVERY):
                write_archive(path, *forged(arrays, data, rng), **FORM)
            else:
                bomb(dict(arrays), data, rng, path)
                counts["bombs"] += 1
            counts["raw" if raw else "forged"] += 1
            memory, found = Memory(), ""
            signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
            try:
                model = persist.load(path)
                counts["used"] += 1
                if raw:
                    for answer, wanted in zip(answers(model, Q), right):
                        np.testing.assert_array_equal(answer, wanted)
                else:
                    used(model, Q)
            except ModelFileError:
                counts["refused"] += 1
            except UnreachedError:
                pass  # as the parameter wants it
            except (Exception, TooLate) as error:
                where = [entry.name for entry in traceback.extract_tb(error.__traceback__)]
                found = f"{error!r}"[:200] + f" in {where[1]} ... {where[-1]}"
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            most = max(most, memory.peak())
            if memory.peak() > MOST_MB:
                found += f" {memory.peak():.0f} MB"
            if found:
                findings += 1
                print(f"{number}: {found}", file=sys.stderr, flush=True)
    told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    print(f"files: {told}; {findings} findings; at most {most:.0f} MB")
    return bool(findings)


if __name__ == "__main__":
    raise SystemExit(main())
