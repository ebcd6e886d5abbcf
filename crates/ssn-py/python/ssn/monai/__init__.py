"""Stochastic segmentation networks in MONAI: an inferer, a loss, a metric and a writer of distribution files.

    from ssn.monai import SaveSSNd, SSNInferer, SSNLoss, SSNMetric
    from ssn.torch import LowRankHead, StochasticNetwork

    net = StochasticNetwork(backbone, LowRankHead(32, classes=2, dims=3))
    loss = SSNLoss(classes=2, kind="energy")(net(batch["image"]), batch["label"])
    rows = SSNInferer(roi_size=(96, 96, 96), overlap=0.5)(image, net)
    metric = SSNMetric("ged2", classes=2)
    metric(rows, raters); metric.aggregate()
    SaveSSNd(keys="pred", folder="predictions", classes=["background", "lesion"])({"pred": rows[0]})

Rows are mean, variances and factor in one tensor, ``[b, (2 + r)·c, ...]``.
"""

from ssn.monai.files import SaveSSNd, distribution_of
from ssn.monai.inferer import SSNInferer
from ssn.monai.metric import SSNMetric
from ssn.torch import SSNLoss

__all__ = ["SSNInferer", "SSNLoss", "SSNMetric", "SaveSSNd", "distribution_of"]
