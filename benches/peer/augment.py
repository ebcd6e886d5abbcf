"""The peer of `cargo xtask bench augment`: the same changes with NumPy and SciPy's map_coordinates.

Every change happens to every patch. As on our side, only the patch is resampled, once, at coordinates composed of all
changes; images linearly with the border repeated, labels by the nearest voxel (lidc-as-coded:
by linear interpolation of the two classes). Two processes share the work.
augment.py DIR SECONDS: reads DIR/{brats,lidc}.{image,labels}, works on each task for about SECONDS, prints JSON.
"""
import json, multiprocessing, os, sys, time
import numpy as np
import scipy
from scipy.ndimage import map_coordinates

folder, budget = sys.argv[1], float(sys.argv[2])
WORKERS = 2


def displacements(points, cell, rng):
    """Three gradient noises with cells of `cell` voxels at `points` [3, ...]; weights are worked out once for all."""
    place = points / np.float32(cell) + rng.random((3, 1, 1, 1), dtype=np.float32)
    low = np.floor(place).astype(np.int32)
    inner = place - low
    low -= low.reshape(3, -1).min(1)[:, None, None, None]
    corners = tuple(low.reshape(3, -1).max(1) + 2)
    gradients = rng.normal(size=(3, 3) + corners).astype(np.float32)  # [axis, component, corners]
    gradients /= np.linalg.norm(gradients, axis=0, keepdims=True)
    fade = inner ** 3 * (inner * (inner * 6 - 15) + 10)
    total = np.zeros_like(points)
    for corner in np.ndindex(2, 2, 2):
        weight = np.ones(points.shape[1:], np.float32)
        for k in range(3):
            weight *= fade[k] if corner[k] else 1 - fade[k]
        index = tuple(low[k] + corner[k] for k in range(3))
        for k in range(3):
            towards = weight * (inner[k] - np.float32(corner[k]))
            for component in range(3):
                total[component] += gradients[k, component][index] * towards
    return total


def grid(size):
    axes = [np.arange(n, dtype=np.float32) - (n - 1) / 2 for n in size]
    return np.stack(np.meshgrid(*axes, indexing="ij")).astype(np.float32)


def brats(image, labels, rng):
    size = np.array([110] * 3)
    center = np.array([rng.integers(n) for n in labels.shape])
    start = center - size // 2 + (size - 1) / 2
    points = grid(size)
    for axis in range(3):
        points[axis] = -points[axis]  # a flip along every axis
    for _ in range(rng.integers(1, 4)):  # right-angle turns
        points = np.stack([points[0], -points[2], points[1]])
    moved = points + np.float32(20) * displacements(points, 80, rng)
    moved += start[:, None, None, None].astype(np.float32)
    patch = np.stack([map_coordinates(channel, moved, order=1, mode="nearest") for channel in image])
    inner = moved[:, 40:70, 40:70, 40:70]  # labels are needed for the middle 30³ only
    label = map_coordinates(labels, inner, order=0, mode="constant", cval=0)
    factor = rng.normal(1, 0.01, size=(4, 1, 1, 1)).astype(np.float32)
    summand = rng.uniform(0, 0.05, size=(4, 1, 1, 1)).astype(np.float32)
    return patch * factor + summand, label


def slice_at(image, labels, matrix, offset, linear=False):
    points = np.tensordot(matrix, grid(labels.shape), axes=1)
    points += offset[:, None, None] + 63.5
    points = points.astype(np.float32)
    patch = map_coordinates(image, points, order=1, mode="nearest")
    if linear:
        return patch, map_coordinates(labels.astype(np.float32), points, order=1, mode="constant", cval=0) > 0.5
    return patch, map_coordinates(labels, points, order=0, mode="constant", cval=0)


def rotation(rng):
    angle = np.radians(rng.uniform(-10, 10))
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def lidc(image, labels, rng):
    scale = np.exp(rng.uniform(np.log(98 / 128), np.log(128 / 98)))
    return slice_at(image, labels, -rotation(rng) / scale, np.zeros(2))


def lidc_as_coded(image, labels, rng):
    side = rng.integers(98, 129)
    matrix = rotation(rng)
    offset = rng.integers(0, 128 - side + 1, size=2) - (128 - side) / 2
    return slice_at(image, labels, matrix * (side / 128), matrix @ offset, linear=True)


def work(arguments):
    name, seed = arguments
    rng = np.random.default_rng(seed)
    flat = name != "brats"
    shape = (128, 128) if flat else (155, 240, 240)
    image = np.fromfile(os.path.join(folder, f"{name}.image"), np.float32)
    image = image.reshape(shape if flat else (4,) + shape)
    labels = np.fromfile(os.path.join(folder, f"{name}.labels"), np.uint8).reshape(shape)
    task = {"brats": brats, "lidc": lidc, "lidc-as-coded": lidc_as_coded}[name]
    task(image, labels, rng)
    start, count = time.perf_counter(), 0
    while count == 0 or time.perf_counter() - start < budget:
        task(image, labels, rng)
        count += 1
    return count, time.perf_counter() - start


if __name__ == "__main__":
    tasks = []
    with multiprocessing.Pool(WORKERS) as pool:
        for name in ["brats", "lidc", "lidc-as-coded"]:
            done = pool.map(work, [(name, seed) for seed in range(WORKERS)], chunksize=1)
            rate = sum(count / seconds for count, seconds in done)
            tasks.append({"name": name, "patches": sum(count for count, _ in done), "per_second": rate})
    print(json.dumps({"tasks": tasks, "workers": WORKERS, "scipy": scipy.__version__}))
