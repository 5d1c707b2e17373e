"""One loaded version of a model: request checks, scheduling, responses and statistics."""
