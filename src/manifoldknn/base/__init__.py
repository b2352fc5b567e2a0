"""What every room needs; imports nothing of ours but warnings.

`labels` and `samples` are what users bring, checked; `parameters` what is allowed. `distances`,
`csr` and `tensors` are arithmetic; `threads`, `progress`, `heap` and `atomic` deal with
the machine: cores, messages, memory, files; `render` fills in pages. Here are the kinds of arrays.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Bools: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.intp]
