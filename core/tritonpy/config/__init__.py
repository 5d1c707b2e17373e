"""Model configurations: read, complete, normalise, validate and print them."""
