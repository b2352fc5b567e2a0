"""
Embeddings of pictures and text, three labels per class
=======================================================

An embedding places things that are alike near each other: what the graph needs.
Use vectors from your own network; here small ones are made without the network.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from manifoldknn import ManifoldKNNClassifier

# %%
# Pictures
# --------
# Handwritten digits, as 30 numbers each.

X, truth = load_digits(return_X_y=True)
pictures = PCA(30, random_state=0).fit_transform(X)


def few_labels(truth, n, seed=0):
    """Return labels for n rows of every class, and -1 elsewhere."""
    rng, y = np.random.default_rng(seed), np.full(len(truth), -1)
    for c in np.unique(truth):
        y[rng.choice(np.flatnonzero(truth == c), n, replace=False)] = c
    return y


y = few_labels(truth, 3)
clf = ManifoldKNNClassifier(metric="cosine").fit(pictures, y)
low, high = clf.hidden_labels_.interval()
print(f"expected: {clf.hidden_labels_.accuracy:.0%}, between {low:.0%} and {high:.0%}")
print(f"true:     {np.mean((clf.transduction_ == truth)[y == -1]):.1%}")

# %%
# Which pictures decided an answer? `kneighbors` names the labelled rows and their shares.

row = int(np.flatnonzero(y == -1)[np.argmin(clf.label_distributions_[y == -1].max(axis=1))])
weights, voters = clf.kneighbors(pictures[row : row + 1])
figure, axes = plt.subplots(1, 6, figsize=(10, 2.2), layout="constrained")
axes[0].imshow(X[row].reshape(8, 8), cmap="gray_r")
axes[0].set_title(f"answer {clf.transduction_[row]}")
for ax, voter, weight in zip(axes[1:], voters[0], weights[0]):
    ax.imshow(X[voter].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{y[voter]}: {weight:.0%}")
for ax in axes:
    ax.axis("off")

# %%
# Beside logistic regression
# --------------------------
# On embeddings a linear classifier on the labelled rows is the usual first try. With few labels the unlabelled rows
# help; with many both are level.

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
numbers = (1, 3, 10, 30)
ours, linear = [], []
for n in numbers:
    pairs = []
    for seed in range(3):
        y = few_labels(truth, n, seed)
        answer = ManifoldKNNClassifier(metric="cosine").fit(pictures, y).transduction_
        line = LogisticRegression(max_iter=2000).fit(pictures[y >= 0], y[y >= 0]).predict(pictures)
        pairs.append([100 * np.mean((a != truth)[y == -1]) for a in (answer, line)])
    ours.append(np.mean(pairs, axis=0)[0])
    linear.append(np.mean(pairs, axis=0)[1])
ax.plot(numbers, ours, "o-", color="#0072B2", label="manifoldknn")
ax.plot(numbers, linear, "s--", color="#E69F00", label="logistic regression on the labels")
ax.set(xscale="log", xlabel="labels per class", ylabel="error, %", ylim=(0, None))
ax.set_xticks(numbers, [str(n) for n in numbers])
ax.legend(frameon=False)
plt.show()

# %%
# Text
# ----
# Short messages to a shop, made from a few words each. Real ones would come from a language model.

words = {
    "delivery": [
        "parcel",
        "late",
        "courier",
        "tracking",
        "arrived",
        "address",
        "shipment",
        "driver",
        "waiting",
        "delivered",
    ],
    "payment": [
        "invoice",
        "card",
        "refund",
        "charged",
        "price",
        "bank",
        "bill",
        "paid",
        "money",
        "receipt",
    ],
    "quality": [
        "broken",
        "scratched",
        "screen",
        "battery",
        "noise",
        "warranty",
        "repair",
        "fault",
        "defect",
        "stopped",
    ],
}
filler = [
    "please",
    "help",
    "my",
    "order",
    "the",
    "is",
    "was",
    "with",
    "you",
    "hello",
    "since",
    "today",
    "again",
    "thanks",
    "about",
]
rng = np.random.default_rng(0)
topics = np.repeat(list(words), 150)
messages = [
    " ".join(rng.permutation([*rng.choice(words[t], 3), *rng.choice(filler, 5)])) for t in topics
]
print(messages[0], messages[200], messages[400], sep="\n")

texts = TruncatedSVD(20, random_state=0).fit_transform(TfidfVectorizer().fit_transform(messages))
labels = np.full(len(topics), "", dtype=object)
for t in words:
    labels[rng.choice(np.flatnonzero(topics == t), 3, replace=False)] = t
clf = ManifoldKNNClassifier(metric="cosine").fit(texts, labels)
print(f"\nright: {np.mean((clf.transduction_ == topics)[labels == '']):.1%}")

# %%
# Words that never meet in a message are linked by messages in between: that is what the walk is for.
