"""What every room needs; imports nothing of ours but warnings.

`labels` and `samples` are what users bring, checked; `parameters` what is allowed. `distances`,
`csr` and `tensors` are arithmetic; `threads`, `progress`, `heap` and `atomic` deal with
the machine: cores, messages, memory, files; `render` fills in pages.
"""
