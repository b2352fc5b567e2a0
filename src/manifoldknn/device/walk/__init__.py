"""Columns of the walk on a device."""
