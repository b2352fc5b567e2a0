"""The steps of the method on a processor or a graphics card.

`steps` is the seam: what each step needs from the machine. `torch_steps` is the other side of it.
Graph and simplex weights are those of their rooms, over `kernels`; search and walk have rooms here.
"""
