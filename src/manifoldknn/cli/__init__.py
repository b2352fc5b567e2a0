"""The command ``manifoldknn``: a table in, a table out."""
