"""Compares the scores of `ssn evaluate` with MONAI, medpy, SimpleITK and formulas written out in NumPy.

    pip install numpy scipy torch monai medpy SimpleITK
    cargo build --release -p ssn-cli
    python tools/scores_differential.py target/release/ssn --cases 200

Random segmentations with several classes, raters and samples, in 2D and 3D with oblong voxels, with empty masks, are
written as NIfTI files, scored by `ssn evaluate --samples … --raters …`, and compared score by score. A peer that is not
installed is left out, and the table says so. Differences of values above 1 are relative, since MONAI measures distances in
single precision. The exit status is 1 if a score differs by more than 1e-6 that is not in the table of named differences.
"""

import argparse
import collections
import json
import math
import struct
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

try:
    import torch
    from monai.metrics import compute_average_surface_distance, compute_dice, compute_hausdorff_distance, compute_surface_dice
except ImportError:
    torch = None
try:
    from medpy.metric import binary as medpy
except ImportError:
    medpy = None
try:
    import SimpleITK as sitk
except ImportError:
    sitk = None
try:
    from scipy.optimize import linear_sum_assignment
except ImportError:
    linear_sum_assignment = None

# MONAI warns of masks that are empty, which is what is compared.
warnings.filterwarnings("ignore", module="monai")

TOLERANCE = 1e-6
SURFACE_TOLERANCE = 2.0
NAMED = {
    "medpy hd95": "the percentile of both directions together; ours and MONAI's is the larger of the two directed ones",
}


def write_nifti(path, labels, spacing):
    """Labels [d, h, w] as NIfTI-1, with spacing along d, h, w."""
    d, h, w = labels.shape
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, w, h, d, 1, 1, 1, 1)
    struct.pack_into("<hh", header, 70, 2, 8)
    struct.pack_into("<4f", header, 76, 1, *spacing[::-1])
    struct.pack_into("<f", header, 108, 352)
    struct.pack_into("<f", header, 112, 1)
    struct.pack_into("<h", header, 254, 1)
    for row, step in enumerate(spacing[::-1]):
        struct.pack_into("<f", header, 280 + 16 * row + 4 * row, step)
    header[344:348] = b"n+1\0"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(header) + labels.astype(np.uint8).tobytes())


def blob(rng, shape, classes):
    """Nested boxes of classes, now and then none."""
    labels = np.zeros(shape, np.uint8)
    if rng.random() < 0.15:
        return labels
    for k in range(1, classes):
        if rng.random() < 0.15:
            continue
        at = tuple(
            slice(a, b) for a, b in (sorted(rng.choice(n + 1, 2, replace=False)) if n > 1 else (0, 1) for n in shape)
        )
        labels[at] = k
    return labels


def distance(a, b, classes):
    ious = []
    for k in range(1, classes):
        union = np.logical_or(a == k, b == k).sum()
        ious.append(1.0 if union == 0 else np.logical_and(a == k, b == k).sum() / union)
    return 1 - float(np.mean(ious))


def ged(samples, raters, classes):
    pair = lambda xs, ys: float(np.mean([[distance(x, y, classes) for y in ys] for x in xs]))
    return 2 * pair(samples, raters) - pair(samples, samples) - pair(raters, raters)


def ece(p, rater, bins):
    """The error of the most probable label, with the bins of torchmetrics but 1 in the last one."""
    top, confidence = p.argmax(0), np.round(p.max(0), 12)
    number = np.minimum(((confidence + 1e-6) * bins).astype(int), bins - 1)
    right = (top == rater).astype(float)
    total = 0.0
    for b in range(bins):
        inside = number == b
        total += abs(right[inside].sum() - confidence[inside].sum())
    return total / p[0].size


def soft_dice(p, share, thresholds):
    scores = []
    for t in thresholds:
        a, b = p > t + 1e-6, share > t + 1e-6
        scores.append(1.0 if a.sum() + b.sum() == 0 else 2 * np.logical_and(a, b).sum() / (a.sum() + b.sum()))
    return float(np.mean(scores))


class Comparison:
    def __init__(self):
        self.rows = collections.defaultdict(lambda: [0, 0.0, 0])

    def add(self, name, ours, theirs):
        """Counts a pair; values that one side lacks must lack on both."""
        theirs = None if theirs is None or not math.isfinite(theirs) else float(theirs)
        row = self.rows[name]
        row[0] += 1
        if (ours is None) != (theirs is None):
            row[2] += 1
        elif ours is not None:
            row[1] = max(row[1], abs(ours - theirs) / max(1.0, abs(theirs)))


def compare(case, folder, classes, spacing, samples, raters, found):
    """All scores of a case, ours from its file and the peers' from the arrays."""
    shape = raters[0].shape
    flat = shape[0] == 1
    p = np.stack([np.mean([s == k for s in samples], axis=0) for k in range(classes)])
    found.add("NumPy GED²", case["ged"][-1]["squared"], ged(samples, raters, classes))
    found.add("NumPy ECE, 50 bins", case["challenge_ece"]["whole"], float(np.mean([ece(p, r, 50) for r in raters])))
    if linear_sum_assignment:
        size = len(samples) * len(raters) // math.gcd(len(samples), len(raters))
        cost = np.array([[distance(samples[i % len(samples)], raters[j % len(raters)], classes) for j in range(size)] for i in range(size)])
        at = linear_sum_assignment(cost)
        found.add("SciPy HM-IoU", case["hm_iou"], 1 - cost[at].mean())
    labels = p.argmax(0)
    for k in range(1, classes):
        group = case["groups"][k - 1]
        volume = float(np.prod(spacing)) / 1000
        share = np.mean([r == k for r in raters], axis=0)
        every, none = share == 1, share == 0
        challenge = group["challenges"]
        mask = labels == k
        without = mask & (every | none)
        dice = 2 * (without & every).sum() / (without.sum() + every.sum()) if every.any() else None
        found.add("NumPy consensus Dice", challenge["consensus_dice"], dice)
        confidence = 0.5 * (p[k][every].mean() + 1 - p[k][none].mean()) if every.any() and none.any() else None
        found.add("NumPy confidence", challenge["confidence"], confidence)
        for name, thresholds in [("qubiq", np.arange(1, 10) / 10), ("pdacvi", np.linspace(0.1, 0.8, 6)), ("mmis", [0.1, 0.3, 0.5, 0.7, 0.9])]:
            found.add(f"NumPy soft Dice, {name}", challenge[f"soft_dice_{name}"], soft_dice(p[k], share, thresholds))
        xs, ys = [[float((m == k).sum()) * volume for m in maps] for maps in (samples, raters)]
        apart = lambda a, b: float(np.mean(np.abs(np.subtract.outer(a, b))))
        found.add("NumPy volume CRPS of samples", challenge["sample_volume_crps"], apart(xs, ys) - 0.5 * apart(xs, xs))
        # Without a voxel that two raters mark the steps of STAPLE lead away from a saddle point, and rounding decides where to.
        is_shared = len(raters) == 1 or share.max() * len(raters) > 1.5
        if sitk and is_shared and (share > 0).any() and not (share == 1).all():
            images = [sitk.GetImageFromArray((r == k).astype(np.uint8)) for r in raters]
            consensus = sitk.GetArrayFromImage(sitk.STAPLE(images, 1)) >= 0.5
            sum_ = consensus.sum() + mask.sum()
            found.add("SimpleITK Dice with STAPLE", challenge["staple_dice"], 2 * (consensus & mask).sum() / sum_ if sum_ else None)
        for rater, truth in enumerate(raters):
            truth = truth == k
            surface = group["surface"][rater]
            if torch:
                one = lambda m: torch.from_numpy((m[0] if flat else m).astype(np.float32))[None, None]
                step = list(spacing[1:] if flat else spacing)
                theirs = compute_dice(one(mask), one(truth), ignore_empty=False).item() if mask.any() or truth.any() else None
                found.add("MONAI Dice", group["dsc"][rater], theirs)
                if mask.any() and truth.any():
                    found.add("MONAI HD95", surface["hd95"], compute_hausdorff_distance(one(mask), one(truth), include_background=True, percentile=95, spacing=step).item())
                    found.add("MONAI ASSD", surface["assd"], compute_average_surface_distance(one(mask), one(truth), include_background=True, symmetric=True, spacing=step).item())
                if mask.any() or truth.any():
                    nsd = compute_surface_dice(one(mask), one(truth), class_thresholds=[SURFACE_TOLERANCE], include_background=True, spacing=step).item()
                    found.add("MONAI surface Dice", surface["nsd"], nsd)
            if medpy and mask.any() and truth.any():
                cut = lambda m: m[0] if flat else m
                step = spacing[1:] if flat else spacing
                found.add("medpy Dice", group["dsc"][rater], medpy.dc(cut(mask), cut(truth)))
                found.add("medpy hd95", surface["hd95"], medpy.hd95(cut(mask), cut(truth), voxelspacing=step))
                found.add("medpy assd", surface["assd"], medpy.assd(cut(mask), cut(truth), voxelspacing=step))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ssn", type=Path)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = Comparison()
    rng = np.random.default_rng(options.seed)
    # Cases of a folder have the same classes, samples and raters.
    groups = max(1, options.cases // 10)
    for number in range(groups):
        classes, m, n = int(rng.integers(2, 5)), int(rng.integers(1, 9)), int(rng.integers(1, 6))
        deep = bool(rng.integers(2))
        with tempfile.TemporaryDirectory() as folder:
            folder, cases = Path(folder), {}
            for case in range(10):
                shape = (int(rng.integers(2, 9)) if deep else 1, int(rng.integers(3, 20)), int(rng.integers(3, 20)))
                spacing = [round(float(x), 3) for x in rng.uniform(0.4, 3, 3)]
                samples, raters = [[blob(rng, shape, classes) for _ in range(count)] for count in (m, n)]
                # All classes occur somewhere, so that the raters' files tell how many there are.
                if case == 0:
                    raters[0].flat[: classes] = np.arange(classes)
                for i, labels in enumerate(samples):
                    write_nifti(folder / "samples" / f"case{case}_{i}.nii", labels, spacing)
                for i, labels in enumerate(raters):
                    write_nifti(folder / "raters" / f"case{case}_{i}.nii", labels, spacing)
                cases[f"case{case}"] = (spacing, samples, raters)
            command = [options.ssn.resolve(), "evaluate", folder / "scores", "--samples", folder / "samples", "--raters", folder / "raters", "--scores", "all", "-q"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"group {number}: {done.stderr}")
            for name, (spacing, samples, raters) in cases.items():
                case = json.loads((folder / "scores/evaluation/cases" / f"{name}.json").read_text())["scores"]
                spacing = [float(np.float32(x)) for x in spacing]
                compare(case, folder, classes, spacing, samples, raters, found)
    failed = False
    print(f"{'score':34}{'pairs':>8}{'largest difference':>22}{'undefined on one side':>24}")
    for name, (pairs, largest, undefined) in sorted(found.rows.items()):
        bad = name not in NAMED and (largest > TOLERANCE or undefined > 0)
        failed |= bad
        print(f"{name:34}{pairs:>8}{largest:>22.2e}{undefined:>24}{'  DIFFERS' if bad else ''}{'  named: ' + NAMED[name] if name in NAMED else ''}")
    for peer, name in [(torch, "MONAI"), (medpy, "medpy"), (sitk, "SimpleITK"), (linear_sum_assignment, "SciPy")]:
        if peer is None:
            print(f"not compared: {name} is not installed")
    sys.exit(failed)


if __name__ == "__main__":
    main()
