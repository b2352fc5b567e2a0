"""What a fitted model tells.

`suggestions` are rows to label next, by `coverage` of a `ground`: rows and their graph, with labels
or without any. `label_errors` are labels that their neighbours contradict. `inspection`
looks the graph over, `dimension` tells whether data lie on a manifold. `layout` draws the map: a
place in the plane for every row, near its neighbours. `listing` shows findings as tables.
"""
