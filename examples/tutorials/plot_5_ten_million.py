"""
Ten million rows
================

What to think of before a large fit, tried here on few rows.
The tables are quoted from the benchmarks: the site is built on two cores.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_swiss_roll

from manifoldknn import ManifoldKNNClassifier, estimate_memory

# %%
# How much memory?
# ----------------
# `estimate_memory` says so before anything is computed. A fit asks it too, and refuses with advice.

sizes = [100_000, 1_000_000, 10_000_000]
for n in sizes:
    gb = estimate_memory(n, 64, 100, n_classes=10) / 1e9
    print(f"{n:>12,} rows of 64 columns: about {gb:.1f} GB beside X itself")

# %%
# How much time?
# --------------
# Try it on a part, and see how it grows. Numbers of the picture are from the machine that built this site.

seconds, rows = [], [2_000, 4_000, 8_000, 16_000]
for n in rows:
    X, along = make_swiss_roll(n, random_state=0)
    truth = np.digitize(along, np.quantile(along, [0.25, 0.5, 0.75]))
    y = np.where(np.arange(n) < 100, truth, -1)
    start = perf_counter()
    ManifoldKNNClassifier().fit(X.astype(np.float32), y)
    seconds.append(perf_counter() - start)
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.loglog(rows, seconds, "o-", color="#0072B2")
ax.set(xlabel="rows", ylabel="seconds of a fit")
plt.show()

# %%
# On two cores
# ------------
# A million made-up rows of 32 columns:
#
# .. measured:: million
#
# On a graphics card
# ------------------
# ``ManifoldKNNClassifier(device="cuda")``, one NVIDIA H200, 100 labels:
#
# .. measured:: gpu_million
#
# .. measured:: gpu_ten_million
#
# What helps
# ----------
#
# - Give X as float32: it is never copied whole to double precision.
# - ``verbose=1`` says which stage is running and how long it will still take.
# - A ``sharpness`` of your own leaves out hiding labels, a large part of a fit. Probabilities are then not calibrated.
# - Labels cost nothing: give all you have.
# - Neighbours you have already can be brought along: ``neighbors=(indices, distances)``. Bring 30 per row and itself.
