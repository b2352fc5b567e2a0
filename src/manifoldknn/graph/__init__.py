"""The constrained graph W (Table 1 of the paper).

`edges` says which pairs carry the third rule: near neighbours, a `spanning` forest, and `joining`
edges between parts. `tree` strengthens edges around labels (section 3), `links` are pairs by hand,
and `constrained` puts it together. All of it is written over `kernels`. Machines may share
rows: `together`.
"""
