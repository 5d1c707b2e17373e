from __future__ import annotations

import warnings

import pytest

from tritonpy_backend_torch.pytorch.deprecations import ignore_deprecations


def test_only_deprecation_warnings_are_ignored():
    with ignore_deprecations():
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    with pytest.raises(UserWarning), ignore_deprecations():
        warnings.warn("odd", UserWarning, stacklevel=1)
    with pytest.raises(DeprecationWarning):
        warnings.warn("old", DeprecationWarning, stacklevel=1)
