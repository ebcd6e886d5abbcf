"""Compares training by two ranks on GPUs with training by one process, and that with itself: losses and times of steps.

    python tools/gpu_ranks_differential.py --programs target/release

needs an `ssn-engine` with the feature `mpi`, `mpirun` and one GPU or more. Each way of summing runs: through the memory
of the hosts, and by NCCL. Where there is a single GPU the two ranks share it; NCCL takes each of them for another
host then (NCCL_HOSTID), so that it tells what is right, and nothing about speed.

GPUs do not sum in a fixed order, so that one process does not repeat itself. The first loss comes before any such sum of
gradients and must be the same; the next ones may lie as far from those of one process as those of a second training by
one process do, times a margin. Convolutions in single precision are computed without TF32, whose rounding hides all that.
The exit status is 1 if a curve is not that of one process.
"""

import argparse
import csv
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# How far the first losses may lie apart.
FIRST = {"f32": 1e-5, "bf16": 2e-3}
# The steps after it that are compared, and how many times as far from each other as two trainings by one process they may lie.
EARLY, MARGIN = 10, 3.0
# Trainings by one process; the scatter is the largest distance between two of them.
ALONE = 3
SETTINGS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "NVIDIA_TF32_OVERRIDE": "0"}
# Starts a rank, in NCCL's eyes on a host of its own.
APART_FOR_NCCL = ["sh", "-c", 'NCCL_HOSTID=host$OMPI_COMM_WORLD_RANK exec "$@"', "rank"]


def run(command, environment, log):
    with open(log, "w") as out:
        code = subprocess.run(command, env=os.environ | SETTINGS | environment, stdout=out, stderr=out).returncode
    if code != 0:
        print(f"{' '.join(map(str, command))} ended with {code}:\n{log.read_text()[-3000:]}")
    return code == 0


def gpus():
    return len(subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=True).stdout.splitlines())


def metrics(folder):
    with open(folder / "metrics.csv") as file:
        return [row for row in csv.DictReader(file) if row.get("loss")]


def apart(a, b):
    """How far two curves lie apart, step by step, relative to the second."""
    return [abs(x - y) / abs(y) for x, y in zip(a, b)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=Path, required=True, help="the folder of ssn and ssn-engine")
    parser.add_argument("--config", type=Path, help="what to train; without it, the images of `ssn demo`")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--set", action="append", default=[], help="settings of all trainings, as for `ssn train`")
    args = parser.parse_args()
    ssn = str(args.programs / "ssn")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        config = args.config
        if config is None:
            few = ["training.steps=2", "loss.pretrain_steps=0", "loss.likelihood_steps=0", "training.validate_every=0"]
            few = [word for setting in few for word in ("--set", setting)]
            demo = [ssn, "demo", "--out", str(folder / "demo"), "--cases", "60", "--device", "cpu", "--quiet", *few]
            if not run(demo, {}, folder / "demo.log"):
                sys.exit(1)
            config = folder / "demo/demo.toml"
        # Sampling from the first step on: its loss also tells whether ranks have the noise of their items.
        settings = [f"training.steps={args.steps}", "loss.pretrain_steps=0", "training.log_every=1", "training.validate_every=0"]
        settings += args.set

        launcher = ["mpirun", "-n", "2", "--oversubscribe", *(APART_FOR_NCCL if gpus() == 1 else [])]

        def train(name, precision, ranks=None, more=()):
            out = folder / f"{name}-{precision}"
            train = [ssn, "train", str(config), "--out", str(out), "--device", "cuda", "--seed", "3"]
            for setting in [f'training.precision="{precision}"', *settings, *more]:
                train += ["--set", setting]
            launched = [*launcher, *train] if ranks else train
            if not run(launched, {"SSN_GPU_SUMS": ranks} if ranks else {}, folder / "log"):
                return None
            said = (folder / "log").read_text().splitlines()
            told = [line.strip() for line in said if "per step" in line or "GPUs sum" in line]
            return metrics(out), "; ".join(told)

        failed = False
        for precision in FIRST:
            alone = [train(f"alone{number}", precision) for number in range(ALONE)]
            if None in alone:
                sys.exit(1)
            curves = [[float(row["loss"]) for row in rows] for rows, _ in alone]
            expected = curves[0]
            scatter = max(max(apart(a[1:EARLY], b[1:EARLY])) for a, b in itertools.combinations(curves, 2))
            print(f"{precision}, one process {ALONE} times: losses of the steps 2 to {EARLY} up to {scatter:.1e} apart; {alone[0][1]}")
            for ranks, more in [("host", ()), ("nccl", ()), ("nccl", ('training.sync_batch_norm="never"',))]:
                name = f"two ranks, {ranks}{', ' + more[0] if more else ''}"
                found = train(f"{ranks}{len(more)}", precision, ranks, more)
                if found is None:
                    failed = True
                    continue
                rows, said = found
                losses = [float(row["loss"]) for row in rows]
                deviations = apart(losses, expected)
                first, early = deviations[0], max(deviations[1:EARLY])
                late = sum(losses[-50:]) / sum(expected[-50:])
                # Norms of each rank's own items are another computation.
                # Written so that what is not a number is wrong.
                is_same = first <= FIRST[precision] and early <= MARGIN * max(scatter, FIRST[precision])
                wrong = len(losses) != len(expected) or not (more or is_same)
                failed |= wrong
                print(f"{precision}, {name}: the first loss {first:.1e} apart, those of the steps 2 to {EARLY} {early:.1e}, "
                      f"mean of the last 50 {late:.4f} of one process's{' WRONG' if wrong else ''}; {said}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
