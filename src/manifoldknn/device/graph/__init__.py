"""The constrained graph on a device."""
