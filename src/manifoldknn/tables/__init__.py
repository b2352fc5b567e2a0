"""Files → typed columns → features; answers → files."""
