from __future__ import annotations

import pytest

from tritonpy.config.server.invalid_server_config import InvalidServerConfig
from tritonpy.config.server.latency_settings import DEFAULT_QUANTILES, parse_quantiles
from tritonpy.config.server.server_config import decode_server_config


def test_quantiles_are_parsed_in_order():
    assert list(parse_quantiles("0.9:0.01,0.5:0.05").items()) == [(0.9, 0.01), (0.5, 0.05)]
    assert len(parse_quantiles(DEFAULT_QUANTILES)) == 5


@pytest.mark.parametrize(
    "text",
    ["", "0.5", "0.5:", "half:0.1", "0.5:0.1,", "1:0.1", "0:0.1", "0.5:0", "0.5:1", "0.5:0.1 0.9:0.1", "nan:0.1"],
)
def test_an_invalid_list_is_refused(text):
    with pytest.raises(ValueError, match="is not <quantile>:<error>"):
        parse_quantiles(text)


def test_wrong_quantiles_are_reported_with_their_key():
    with pytest.raises(InvalidServerConfig) as caught:
        decode_server_config({"latencies": {"quantiles": "0.5"}})
    (problem,) = caught.value.problems
    assert (problem.path, problem.text) == (
        "latencies.quantiles",
        "'0.5' is not <quantile>:<error>, two numbers between 0 and 1",
    )
