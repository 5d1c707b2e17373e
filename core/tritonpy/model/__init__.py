"""One loaded version of a model: request checks, scheduling, responses and statistics.

Start at `loaded_model`: every accepted request gets exactly one final response. The package may
import `runners` and `statistics`, but no repository.
"""
