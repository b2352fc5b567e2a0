"""Lines between threads: machines of one process that share rows."""

import queue
import threading

import numpy as np


class ThreadLinks:
    """Lines from the thread of a rank to all others."""

    def __init__(self, rank, boxes):
        self.rank, self.size, self._boxes = rank, len(boxes), boxes

    def exchange(self, messages):
        for rank, message in enumerate(messages):
            self._boxes[rank][self.rank].put(np.array(message))
        return [self._boxes[self.rank][rank].get(timeout=60) for rank in range(self.size)]


def in_ranks(size, work):
    """Return what `work(links)` returns on each of so many threads."""
    boxes = [[queue.Queue() for _ in range(size)] for _ in range(size)]
    out, errors = [None] * size, []

    def go(rank):
        try:
            out[rank] = work(ThreadLinks(rank, boxes))
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
