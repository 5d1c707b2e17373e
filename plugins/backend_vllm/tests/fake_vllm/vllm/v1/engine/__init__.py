"""A stand-in for the package of the same name: an engine that repeats the words of a prompt."""
