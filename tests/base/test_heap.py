import ctypes

from manifoldknn.base import heap


def test_without_such_a_c_library_nothing_happens(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    heap.return_freed_memory()
    heap.return_large_arrays_at_once()
    with heap.freed_arrays_kept():
        pass


def test_the_c_library_is_asked(monkeypatch):
    asked = []

    class Library:
        def malloc_trim(self, pad):
            asked.append(("trim", pad.value))

        def mallopt(self, option, value):
            asked.append((option, value))

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Library())
    heap.return_freed_memory()
    heap.return_large_arrays_at_once()
    assert asked == [("trim", 0), (-3, 1 << 22), (-8, 1)]
    del asked[:]
    with heap.freed_arrays_kept():
        assert asked == [(-3, 1 << 25), (-1, 1 << 26)]
    assert asked[2:] == [("trim", 0)]
