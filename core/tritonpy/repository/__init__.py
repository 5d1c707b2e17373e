"""Model repositories: which models there are, which versions load, and what state each is in."""
