"""``python -m manifoldknn`` is the command ``manifoldknn``."""

from manifoldknn.cli.command import main

if __name__ == "__main__":
    raise SystemExit(main())
