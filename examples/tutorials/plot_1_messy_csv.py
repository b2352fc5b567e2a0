"""
A messy CSV becomes a labelled one
==================================

A table as people keep them: decimal commas, units, missing values, dates, notes.
Fifteen of 300 rows have a label. One command labels the others.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())

# %%
# First the table. Three kinds of soil, measured by people in a hurry.

kinds = rng.integers(0, 3, 300)
ph = np.array([4.8, 6.4, 7.9])[kinds] + rng.normal(0, 0.35, 300)
humus = np.array([9.0, 4.0, 1.5])[kinds] + rng.normal(0, 0.7, 300)
lime = np.maximum(np.array([0.0, 2.0, 12.0])[kinds] + rng.normal(0, 1.2, 300), 0)
lines = ["plot;sampled on;pH;humus;lime;colour;remark;soil"]
names = np.array(["podzol", "cambisol", "rendzina"])
given = set(
    np.concatenate([rng.choice(np.flatnonzero(kinds == c), 5, replace=False) for c in range(3)])
)
for i in range(300):
    cells = [
        f"P{i:03d}",
        f"{rng.integers(1, 29):02d}.{rng.integers(3, 11):02d}.2024",
        f"{ph[i]:.1f}".replace(".", ","),
        f"{humus[i]:.1f} %".replace(".", ","),
        "<0,5" if lime[i] < 0.5 else f"{lime[i]:.1f}".replace(".", ","),
        ("grey", "café", "dark")[kinds[i]] if rng.random() < 0.7 else "café",
        "n.d." if rng.random() < 0.9 else "roots",
        names[kinds[i]] if i in given else "",
    ]
    lines.append(";".join(cells))
table = folder / "soils.csv"
table.write_text("\n".join(lines) + "\n", encoding="cp1252")
print(*lines[:6], sep="\n")


# %%
# Label it
# --------
# Nothing has to be said of separators, commas or encodings. The command first tells what became of every column.


def manifoldknn(*arguments):
    """Run the command as a shell would, and show what it says."""
    command = [sys.executable, "-m", "manifoldknn", *map(str, arguments), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    print("$ manifoldknn", *arguments)
    print(done.stdout.replace(str(folder), "."))


manifoldknn("classify", "soils.csv", "--label", "soil", "--id", "plot", "--out", "labelled.csv",
            "--save", "soils.mknn")  # fmt: skip

# %%
# The answers
# -----------
# The file is as it was, with columns added. Sort it by confidence and look at the lowest first.

answers = pd.read_csv(folder / "labelled.csv", sep=";", decimal=",", encoding="cp1252")
answers.sort_values("confidence")[["plot", "pH", "soil", "predicted", "confidence"]].head()

# %%
# Here we know the truth, and can see how many are right.

right = answers["predicted"] == names[kinds]
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for c, color in enumerate(("#0072B2", "#E69F00", "#009E73")):
    rows = answers["predicted"] == names[c]
    ax.scatter(ph[rows], humus[rows], s=14 + 40 * answers["confidence"][rows], color=color, alpha=0.6,
               label=names[c])  # fmt: skip
ax.set(xlabel="pH", ylabel="humus, %", title=f"{right.mean():.1%} right; size shows confidence")
ax.legend(frameon=False)
plt.show()

# %%
# What next?
# ----------
# `suggest` names rows to label, and `check` labels to look at again.

manifoldknn("suggest", "soils.csv", "--label", "soil", "--id", "plot", "-n", "3")
manifoldknn("check", "soils.csv", "--label", "soil", "--id", "plot")

# %%
# The saved model labels another file later, and reads its cells as it read these.

manifoldknn("predict", "soils.mknn", "soils.csv", "--out", "again.csv")
