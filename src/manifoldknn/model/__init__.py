"""What a fit leaves, and how it changes: rows and labels that come later (`stream`)."""
