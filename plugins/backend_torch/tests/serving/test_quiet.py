from __future__ import annotations

import warnings

import pytest

from tritonpy_backend_torch.serving.quiet import quietly


def test_deprecations_pass_without_a_word_and_other_warnings_do_not():
    with quietly():
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    with pytest.raises(UserWarning), quietly():
        warnings.warn("odd", UserWarning, stacklevel=1)
    with pytest.raises(DeprecationWarning):
        warnings.warn("old", DeprecationWarning, stacklevel=1)
