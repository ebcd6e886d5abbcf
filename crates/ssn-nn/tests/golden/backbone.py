"""A network of another making: `python backbone.py backbone.pt` writes it as TorchScript (with torch 2.11), and
`python backbone.py dropout.pt 0.3` one with dropout."""
import io
import sys
import zipfile
import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self, channels: int = 1, features: int = 6, dropout: float = 0.0):
        super().__init__()
        self.enter = nn.Sequential(nn.Conv2d(channels, features, 3, padding=1), nn.BatchNorm2d(features), nn.ReLU())
        self.deeper = nn.Sequential(nn.Conv2d(features, features, 3, padding=1), nn.BatchNorm2d(features), nn.ReLU())

        self.shrink = nn.AvgPool2d(2) if dropout == 0 else nn.Sequential(nn.AvgPool2d(2), nn.Dropout(dropout))

    def forward(self, image: torch.Tensor) -> torch.Tensor:  # [b, c, h, w] -> [b, f, h, w]
        fine = self.enter(image)
        coarse = self.deeper(self.shrink(fine))
        return fine + coarse.repeat_interleave(2, 2).repeat_interleave(2, 3)


torch.manual_seed(0)
exported = io.BytesIO()
torch.jit.save(torch.jit.script(Backbone(dropout=float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)), exported)
# Without the paths of the machine that wrote it.
with zipfile.ZipFile(exported) as source, zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_STORED) as target:
    for member in source.infolist():
        if not member.filename.endswith(".debug_pkl"):
            target.writestr(zipfile.ZipInfo(member.filename), source.read(member))
