"""Save a fitted classifier to one file and load it again, without pickle."""

from manifoldknn.files.persist import ModelFileError, load, load_with_extra, save

__all__ = ["ModelFileError", "load", "load_with_extra", "save"]
