"""From similarities to class shares (equations 5 and 6, and ours).

`walks` holds what the walk says, by class (`densities`) or by label; `votes` turns it into shares,
`sharpness` says how sharply, from `hidden` labels, and how loud a `partner` is that has a say;
`doubt` says whom not to trust, and `deciders` who decided. A `shared_graph` is reduced once for all
these walks.
"""
