"""What a fitted model tells: what to label next, label errors, health, dimension."""
