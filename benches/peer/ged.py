"""The peer of `cargo xtask bench ged`: the energy distance on one-hot label maps in NumPy, every ordered pair.

ged.py DIR VOXELS CLASSES SAMPLES: reads DIR/labels (uint8, the samples, then one rater), prints JSON.
"""
import json, os, sys, time
import numpy as np

folder, (v, c, m) = sys.argv[1], map(int, sys.argv[2:5])
labels = np.fromfile(os.path.join(folder, "labels"), np.uint8).reshape(m + 1, v)

def one_hot(maps):
    return np.stack([maps == k for k in range(c)], axis=-1)  # [maps, v, c]

def distances(first, second):
    """1 - mean foreground IoU of every pair; a class that neither map has counts as IoU 1."""
    result = np.empty((len(first), len(second)))
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            intersection, union = (a & b).sum(axis=0), (a | b).sum(axis=0)
            iou = np.where(union == 0, 1.0, intersection / np.maximum(union, 1))
            result[i, j] = 1 - iou[1:].mean()
    return result

start = time.perf_counter()
samples, raters = one_hot(labels[:m]), one_hot(labels[m:])
ged = (2 * distances(samples, raters).mean() - distances(samples, samples).mean()
       - distances(raters, raters).mean())
print(json.dumps({"seconds": time.perf_counter() - start, "ged": ged, "numpy": np.__version__}))
