"""The method in plain PyTorch: a head for any backbone, and the losses.

    from ssn.torch import LowRankHead, energy_loss

    head = LowRankHead(in_channels=32, classes=2, rank=10)
    distribution = head(backbone(images))
    loss = energy_loss(distribution, labels).mean()
    d = distribution.to_ssn(0)               # samples, scores and pictures of the first image
"""

from ssn.torch.head import LowRankHead, LowRankNormal, StochasticNetwork
from ssn.torch.losses import SSNLoss, energy_loss, monte_carlo_loss
from ssn.torch.onnx import export_onnx

__all__ = ["LowRankHead", "LowRankNormal", "SSNLoss", "StochasticNetwork", "energy_loss", "export_onnx", "monte_carlo_loss"]
