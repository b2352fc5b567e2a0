"""One page to look at, and what the command says in words."""
