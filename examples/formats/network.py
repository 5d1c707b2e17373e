"""The network in PyTorch, and its training."""

from __future__ import annotations

import torch

from examples.formats.digits import BRIGHTEST, CLASSES, SEED, Weights, split

EPOCHS, BATCH, LEARNING_RATE = 12, 32, 0.003


class Network(torch.nn.Module):
    """`image` float32 [batch, 64] -> probabilities float32 [batch, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.brightest = BRIGHTEST
        self.conv0 = torch.nn.Conv2d(1, 16, 3, padding=1)
        self.conv1 = torch.nn.Conv2d(16, 32, 3, padding=1)
        self.dense = torch.nn.Linear(128, CLASSES)

    def logits(self, image: torch.Tensor) -> torch.Tensor:
        """Return the scores before the softmax."""
        grey = image.reshape(-1, 1, 8, 8) / self.brightest
        small = torch.nn.functional.max_pool2d(torch.relu(self.conv0(grey)), 2)
        smaller = torch.nn.functional.max_pool2d(torch.relu(self.conv1(small)), 2)
        return self.dense(smaller.flatten(1))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return the probabilities of the classes."""
        return self.logits(image).softmax(1)


def train() -> Weights:
    """Train on four fifths of the digits and return the weights; deterministic per machine."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # the network is too small for several threads
    torch.use_deterministic_algorithms(True)
    images, classes, _, _ = split()
    rows, targets = torch.from_numpy(images), torch.from_numpy(classes)
    network = Network()
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(rows)).split(BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(
                network.logits(rows[chosen]), targets[chosen]
            ).backward()
            optimizer.step()
    return {name: value.numpy().copy() for name, value in network.state_dict().items()}


def network_of(weights: Weights) -> Network:
    """Return the network with these weights, in inference mode."""
    network = Network()
    network.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    return network.eval()
