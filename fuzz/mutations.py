"""Faults put into the source, one at a time, to see whether tests notice them.

A mutation turns one comparison, sum, product, condition or truth value round, somewhere in a module
that has a test file of its own. Only that test file and the module's own examples are run, in a
copy of the project; a module whose tests take more than half a minute is left out. At least 95 %
must be caught. Run as ``python fuzz/mutations.py --count 50 --seed 0``; survivors are named.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = ("src", "tests", "examples", "tools", "benchmarks", "conftest.py", "pyproject.toml")
LONGEST = 30.0  # seconds that the tests of a module may compute
ENOUGH = 0.95
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.And: ast.Or,
    ast.Or: ast.And, ast.FloorDiv: ast.Mult,
}  # fmt: skip


def places(tree: ast.AST) -> list[ast.AST]:
    """Return the nodes that can be turned round: no annotations, and no words of errors."""
    hidden: set[int] = set()
    for node in ast.walk(tree):
        notes = [getattr(node, name, None) for name in ("annotation", "returns")]
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            notes.append(node)
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
            notes.append(node)  # words
        for note in filter(None, notes):
            hidden |= {id(inner) for inner in ast.walk(note)}
    found = []
    for node in ast.walk(tree):
        if id(node) in hidden or not hasattr(node, "lineno"):
            continue
        op = getattr(node, "op", None) or (getattr(node, "ops", None) or [None])[0]
        signs = isinstance(node, ast.Compare | ast.BinOp | ast.BoolOp) and type(op) in SWAPPED
        truth = isinstance(node, ast.Constant) and isinstance(node.value, bool)
        if signs or truth or isinstance(node, ast.If | ast.IfExp | ast.While):
            found.append(node)
    return found


def turned(source: str, rng: random.Random) -> tuple[str, str] | None:
    """Return source with one fault, and where it is; None if there is no place for one."""
    tree = ast.parse(source)
    nodes = places(tree)
    if not nodes:
        return None
    node = rng.choice(nodes)
    before = ast.unparse(node).splitlines()[0]
    if isinstance(node, ast.Compare):
        node.ops[0] = SWAPPED[type(node.ops[0])]()  # type: ignore[assignment]
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPPED[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), copy.deepcopy(node.test))
    elif isinstance(node, ast.Constant):
        node.value = not node.value
    ast.fix_missing_locations(tree)
    after = ast.unparse(node).splitlines()[0]
    return ast.unparse(tree) + "\n", f"line {node.lineno}: {before}  →  {after}"


def passes(folder: Path, module: Path, test: Path) -> bool:
    """Tell whether the tests of a module pass in the copy."""
    command = [
        sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow",
        str(test), str(module),
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "HYPOTHESIS_SEED": "0"}
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=nowhere, stderr=nowhere
    ) as done:
        for _ in range(int(4 * LONGEST)):  # ticks: somebody may stop all of us for a while
            with suppress(subprocess.TimeoutExpired):
                return done.wait(1.0) == 0
        done.kill()
    return False


def computed() -> float:
    """Return the seconds that all tests have computed so far."""
    return sum(os.times()[2:4])


def modules() -> list[tuple[Path, Path]]:
    """Return the modules that have a test file of their own, and these."""
    found = []
    for module in sorted((ROOT / "src" / "manifoldknn").rglob("*.py")):
        place = module.relative_to(ROOT / "src" / "manifoldknn")
        test = ROOT / "tests" / place.parent / f"test_{place.name}"
        if test.exists() and "device" not in place.parts:
            found.append((module.relative_to(ROOT), test.relative_to(ROOT)))
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="modules with this in their path")
    options = parser.parse_args(arguments)
    rng = random.Random(options.seed)
    listed = [pair for pair in modules() if options.only in str(pair[0])]
    fit: dict[Path, bool] = {}
    survived: list[str] = []
    n = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in PARTS:
            copied = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copied(ROOT / part, folder / part)
        while n < options.count and any(fit.get(module, True) for module, _ in listed):
            module, test = rng.choice(listed)
            if module not in fit:
                start = computed()
                fit[module] = passes(folder, module, test)
                fit[module] &= computed() - start < LONGEST
            source = (ROOT / module).read_text("utf-8")
            fault = turned(source, rng) if fit[module] else None
            if fault is None:
                continue
            (folder / module).write_text(fault[0], "utf-8")
            n += 1
            if passes(folder, module, test):
                survived.append(f"{module}: {fault[1]}")
                print(f"survived {survived[-1]}", file=sys.stderr, flush=True)
            (folder / module).write_text(source, "utf-8")
    print(f"mutations: {n} in {len(fit)} modules, {n - len(survived)} caught")
    return n < options.count or n - len(survived) < ENOUGH * n


if __name__ == "__main__":
    raise SystemExit(main())
