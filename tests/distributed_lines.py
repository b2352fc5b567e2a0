"""Lines between threads: machines of one process that share rows."""

import contextlib
import queue
import threading
from collections import defaultdict

import numpy as np

from manifoldknn.distributed.walk.shared import LINE


class ThreadLinks:
    """Lines from the thread of a rank to all others."""

    def __init__(self, rank, size, boxes):
        self.rank, self.size, self._boxes = rank, size, boxes

    def exchange(self, messages):
        line = LINE.get()
        for rank, message in enumerate(messages):
            self._boxes[rank, self.rank, line].put(np.array(message))
        return [self._boxes[self.rank, rank, line].get(timeout=60) for rank in range(self.size)]

    def working(self):
        return contextlib.nullcontext()

    idle = working


def in_ranks(size, work):
    """Return what `work(links)` returns on each of so many threads."""
    boxes = defaultdict(queue.Queue)  # by receiver, sender and line
    out, errors = [None] * size, []

    def go(rank):
        try:
            out[rank] = work(ThreadLinks(rank, size, boxes))
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=go, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return out
