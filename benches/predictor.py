"""A warm predictor against the network alone: 100 images of 128² with the small preset's network, f32 on the CPU.

    python3 benches/predictor.py

Prints the seconds of both from one run, and how long the first call takes; needs the installed package with its engine.
"""
import tempfile
import time
from pathlib import Path

import numpy as np

import ssn

COUNT, SIZE = 100, 128

rng = np.random.default_rng(0)
with tempfile.TemporaryDirectory() as folder:
    data = Path(folder) / "data"
    for case in range(8):
        image = rng.random((SIZE, SIZE)).astype(np.float32)
        image[40:80, 40:80] += 1
        for name, array in {"images": image, "labels": (image > 1).astype(np.uint8)}.items():
            (data / name).mkdir(parents=True, exist_ok=True)
            np.save(data / name / f"case{case}.npy", array)
    for preset in ("small", "general"):
        settings = {"training.steps": 4, "training.validate_every": 0}
        run = ssn.train(data=data, preset=preset, out=Path(folder) / preset, set=settings, device="cpu", progress=False)
        images = [rng.random((SIZE, SIZE)).astype(np.float32) for _ in range(COUNT)]
        with run.predictor(device="cpu") as predictor:
            begin = time.perf_counter()
            predictor(images[0])
            first = time.perf_counter() - begin
            begin, network = time.perf_counter(), 0.0
            for image in images:
                predictor(image)
                network += predictor.network_seconds
            single = time.perf_counter() - begin
            begin, mapped_network = time.perf_counter(), 0.0
            for _ in predictor.map(images):
                mapped_network += predictor.network_seconds
            mapped = time.perf_counter() - begin
        print(f"preset {preset}, {COUNT} images of {SIZE}², f32 on the CPU; the first call {first:.2f} s")
        print(f"  one by one  {single:.3f} s, of which the network {network:.3f} s: ratio {single / network:.2f}")
        print(f"  map         {mapped:.3f} s, of which the network {mapped_network:.3f} s: ratio {mapped / mapped_network:.2f}")
