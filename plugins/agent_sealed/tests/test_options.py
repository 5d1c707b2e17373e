from __future__ import annotations

import pytest

from tritonpy_agent_sealed.options import SealedOptions


def test_a_trusted_key_is_required():
    with pytest.raises(
        ValueError, match="'verify_key_files' or 'verify_key_variables' must name a key"
    ):
        SealedOptions(decryption_key_files=("k",))


def test_keys_of_files_and_variables_are_combined():
    options = SealedOptions(
        verify_key_files=("a",),
        verify_key_variables=("B",),
        decryption_key_files=("c",),
        decryption_key_variables=("D",),
    )
    assert (options.verify_keys, options.decryption_keys) == (("a", "env:B"), ("c", "env:D"))
