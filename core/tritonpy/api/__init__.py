"""The abstract classes that plugins implement, and the engine interface that they call.

Start at `backend` (models), `scheduler` and `engine`. The package may import `batching`, `config`,
`types` and what describes metrics, logs and authorization.
"""
