"""One loaded version of a model: what it takes, runs and answers."""
