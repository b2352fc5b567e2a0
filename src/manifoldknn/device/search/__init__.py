"""Neighbours on a device."""
