"""Runners: the components that execute the instances of a model.

`LocalRunner` runs instances on threads of this process, `workers` in processes of their own. The
`Dispatcher` connects both to the scheduler of the model.
"""
