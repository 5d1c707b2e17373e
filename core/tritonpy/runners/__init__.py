"""Runners: the components that execute the instances of a model.

`LocalRunner` runs instances on threads of this process, `workers` in processes of their own. Start
at `dispatcher`, which connects both to the scheduler. The package imports neither models nor
repositories.
"""
