"""One trained network in every format: the same classes for the same real images."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from examples.formats.__main__ import WRITERS
from examples.formats.digits import split
from tests.conftest import Serve
from tests.frameworks.clients import InferenceClient, inference_client
from tests.frameworks.conftest import BATCH, FLAGS
from tests.frameworks.digits_reference import scores

Array = npt.NDArray[Any]
TOLERANCE = 1e-4
# OpenVINO computes in BF16 if the processor can, unless the model's parameter `precision` disables
# it.
TOLERANCES = {"openvino": 0.03}


@pytest.fixture(scope="session")
def expected(images: Array, weights: Mapping[str, Array]) -> Array:
    return scores(images, weights)


def test_the_network_classifies_unseen_digits(weights: Mapping[str, Array]) -> None:
    _, _, held_out, classes = split()
    assert (scores(held_out, weights).argmax(1) == classes).mean() > 0.97


@pytest.mark.parametrize("form", WRITERS)
def test_every_format_gives_the_same_classes_for_all_images(
    client: InferenceClient, form: str, images: Array, expected: Array
) -> None:
    parts = [
        client.infer_single(f"digits_{form}", images[start : start + BATCH])
        for start in range(0, len(images), BATCH)
    ]
    response = np.concatenate(parts)
    assert response.shape == expected.shape
    tolerance = TOLERANCES.get(form, TOLERANCE)
    np.testing.assert_allclose(response, expected, atol=tolerance)
    best = np.sort(expected, 1)[:, -2:]
    clear = best[:, 1] - best[:, 0] > 2 * tolerance
    assert clear.mean() > 0.99
    assert (response.argmax(1) == expected.argmax(1))[clear].all()


def test_openvino_is_exact_with_precision_fp32(
    serve: Serve, made: Path, images: Array, expected: Array
) -> None:
    config = {"backend": "openvino", "parameters": {"precision": {"string_value": "fp32"}}}
    load = json.dumps({"parameters": {"config": json.dumps(config)}})
    with serve(f"--model-repository={made}", *FLAGS) as served:
        response = served.request("/v2/repository/models/digits_openvino/load", load)
        assert response.status == 200, response.body.decode()
        with inference_client(served, "http") as client:
            exact_scores = client.infer_single("digits_openvino", images[:BATCH])
    np.testing.assert_allclose(exact_scores, expected[:BATCH], atol=TOLERANCE)


@pytest.mark.parametrize("form", WRITERS)
def test_a_single_image_is_a_batch_of_one(
    client: InferenceClient, form: str, images: Array, expected: Array
) -> None:
    response = client.infer_single(f"digits_{form}", images[8:9])
    np.testing.assert_allclose(response, expected[8:9], atol=TOLERANCES.get(form, TOLERANCE))
