"""The steps of the method on a processor or a graphics card.

`steps` is the seam: what each step needs from the machine. `torch_steps` is the other side of it,
with a room for each of search, graph, walk and extend.
"""
