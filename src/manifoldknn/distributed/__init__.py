"""Rows that one machine does not hold: the same answers from a Dask cluster.

**Stages.** A fit is a row of stages (`stages`), each of pieces that independent tasks make
(`pieces`) and leave in a folder (`folder`): chunks are read and checked (`inputs`); `cells` of
k-means centres are divided into parts, and rows brought to theirs; each row asks the owners of its
nearest cells for neighbours (`search`); parts tell each other who lists whom, and find their
`edges`, the spanning forest in one round. A piece exists when its note does. So a task that is
lost runs again elsewhere, and a fit that was cut off goes on. The client sees notes.

**Walk.** It is one long task per worker, in the room `walk` here. There is no second
implementation: `manifoldknn.walk` and `manifoldknn.vote` ask `graph.together` for a `sum` or `max`
over machines and for the `halo`, the rows of others that own rows touch. One machine answers
itself; `walk.shared` answers for several, over `walk.lines` between workers. A machine sees own
rows and its halo as one graph (`walk.recipe`). It eliminates rows that nobody else looks at. Groups
of rows for long walks are of own rows; the smallest level is of all. Everybody adds up in the order
of ranks, gets the same bits, and takes the same turns. Walks without some labels go on at once,
each on a line of its own: while one waits for another machine the next computes. A worker that goes
breaks its lines, and the walk begins again on whoever is left.

**Answers.** `answers` are read from the folder when they are asked for; `modelfiles` are Parquet.
`checkpoint` looks after the folder, `cluster` is who does it, `estimator` the class that users see.
"""

from manifoldknn.distributed.estimator import DistributedManifoldKNN

__all__ = ["DistributedManifoldKNN"]
