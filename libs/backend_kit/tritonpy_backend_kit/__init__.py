"""What backends of frameworks share: completing and checking a configuration, shared models.

Start at `config_completion` and `config_check`; `shared_model` has the base class of backends
whose instances share one opened model. The library imports public names of the core only.
"""
