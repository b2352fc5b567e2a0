"""From similarities to class shares (equations 5 and 6, and ours).

`walks` holds what the walk says, by class (`densities`) or by label; `votes` turns it into shares,
`sharpness` says how sharply, from `hidden` labels, and `doubt` whom not to trust; `deciders` tells
who decided. A `partner` may have a say; `powers` then are those of both. A `shared_graph` is
reduced once for all these walks.
"""
