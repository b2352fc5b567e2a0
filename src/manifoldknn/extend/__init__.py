"""New rows as convex combinations of their neighbours (equations 7 to 9).

`simplex` finds the weights, `reconstruct` applies them, `offmanifold` tells who is far from all.
"""
