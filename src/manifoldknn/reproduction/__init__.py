"""The paper's tables and figures, one module each, and the run that makes them all.

Each module says which small pieces of work (`Cell`) it consists of, measures one of them at a time,
and turns the rows measured into tables and a figure. Everything else - storing, going on after an
interruption, progress, the report - is done once, for all of them.
"""
