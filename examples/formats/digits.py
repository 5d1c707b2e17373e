"""scikit-learn's handwritten digits, and the weights of the network.

A digit is a row of 64 gray values (8x8 pixels, 0..16). All formats are made from the same weights,
plain arrays:

    conv0.weight [16, 1, 3, 3]   conv0.bias [16]  3x3 convolution, ReLU, 2x2 maximum
    conv1.weight [32, 16, 3, 3]  conv1.bias [32]  3x3 convolution, ReLU, 2x2 maximum
    dense.weight [10, 128]       dense.bias [10]  of the 32 channels of 2x2, by channel; softmax
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Weights = dict[str, npt.NDArray[np.float32]]
PIXELS, CLASSES = 64, 10
BRIGHTEST = 16.0
SEED = 7


def split() -> tuple[
    npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.int64]
]:
    """Return images [1437, 64] and classes for training, then held-out ones [360, 64]."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, classes = load_digits(return_X_y=True)
    training, held_out, training_classes, true_classes = train_test_split(
        images.astype(np.float32), classes, test_size=0.2, random_state=SEED, stratify=classes
    )
    return training, training_classes, held_out, true_classes
