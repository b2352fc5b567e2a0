"""What every script here does: options, a limit in time for each attempt, one line in the end."""

import argparse
import signal
import time
from collections import Counter
from contextlib import contextmanager

SECONDS = 20


class Hang(BaseException):
    """An attempt took longer than it may."""


@contextmanager
def limited(seconds=SECONDS):
    """Raise `Hang` in the block if it takes too long."""

    begun, again = time.process_time(), True

    def late(*_):
        nonlocal again
        # Somebody may have stopped the process: then it gets the same time once more.
        if again and time.process_time() - begun < seconds / 2:
            again = False
            signal.setitimer(signal.ITIMER_REAL, seconds)
        else:
            raise Hang

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def main(attempt, what, *, count, argv=None):
    """Run ``attempt(seed)``, which yields words, until there are enough; words are counted.

    What begins with "BAD" is a finding: it is told with its seed, and the exit code is 1.
    """
    options = options_of(argv, count)
    seen, begun = Counter(), time.monotonic()
    for seed in range(options.seed, options.seed + options.count):
        for word in attempt(seed):
            bad = word.startswith("BAD")
            if bad:
                print(f"seed {seed}: {word}", flush=True)
            seen["findings" if bad else word] += 1
    seen.setdefault("findings", 0)
    words = ", ".join(f"{number} {word}" for word, number in sorted(seen.items()))
    return told(
        options, what, seen["findings"] > 0, f"in {time.monotonic() - begun:.0f} s: {words}"
    )


def options_of(argv, count):
    """Read how many, and from which seed on."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(argv)


def told(options, what, bad, words):
    """Print the line in the end, and return the exit code."""
    verdict = "FOUND" if bad else "ok"
    print(f"{verdict}: {options.count} {what} from seed {options.seed}: {words}")
    return int(bad)
