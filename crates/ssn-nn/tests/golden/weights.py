"""Weights that `ssn import` meets: `python weights.py` writes three files beside `small_2d.pt` (with torch 2.11)."""
import pathlib
import torch

here = pathlib.Path(__file__).parent
small = torch.load(here / "small_2d.pt")
heads = ("mean_l.", "log_cov_diag_l.", "cov_factor_l.")
torch.save({k: v for k, v in small.items() if not k.startswith(heads)}, here / "deterministic_2d.pt")
torch.save({"encoder.0.weight": torch.zeros(2, 1, 3, 3)}, here / "foreign_names.pt")
wrong = dict(small)
wrong["path(3, 3)0.path.2.conv.weight"] = torch.zeros(8, 7, 3, 3)
torch.save(wrong, here / "wrong_widths.pt")
