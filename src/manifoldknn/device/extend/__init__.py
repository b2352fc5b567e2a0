"""New rows on a device."""
