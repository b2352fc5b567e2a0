"""New rows as convex combinations of their neighbours (equations 7 to 9).

`simplex` finds the weights (`single_simplex` those of one row), `reconstruct` applies them,
`offmanifold` tells who is far from all, `belonging` how much that takes of the confidence.
"""
