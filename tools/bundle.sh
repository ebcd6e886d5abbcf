#!/usr/bin/env bash
# Packs what a machine without Rust needs: `ssn`, `ssn-engine` (with MPI), the GPU tests and benchmarks, the
# experiments and the tools. Libraries are not in it: libtorch is that of the other machine's PyTorch, MPI its own.
#
#     tools/bundle.sh FOLDER        here
#     . FOLDER/unpack.sh /tmp/bin   there: unpacks to /tmp/bin and lets programs find PyTorch's libraries
#     gpu_tests gpu:: --ignored --test-threads 1
#     matrix_tests presets --ignored --nocapture
#     python3 FOLDER/gpu_ranks_differential.py --programs /tmp/bin
#     xtask bench gpu --programs /tmp/bin    (in a checkout)
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,10s/^# \?//p' "$0" >&2; exit 2; }
missing=()
command -v mpicc > /dev/null || missing+=(libopenmpi-dev openmpi-bin)
[ -n "$(ls /usr/lib/llvm-*/lib/libclang[-.][s1-9]* 2> /dev/null)" ] || missing+=(libclang-dev)
command -v xz > /dev/null || missing+=(xz-utils)
[ ${#missing[@]} -eq 0 ] || { echo "for training over MPI: apt-get install --yes ${missing[*]}" >&2; exit 69; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
target=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")

# It brings CUDA's headers, without which the programs would have no CUDA part.
cargo xtask check-cuda
export CUDA_HOME=${CUDA_HOME:-$target/cuda-check/nvidia/cu13}
# In one call: each choice of packages has features of its own, and would be built by itself.
cargo build --release --locked -p ssn-cli -p ssn-engine -p ssn-train -p xtask --features ssn-engine/mpi \
    --bin ssn --bin ssn-engine --bin xtask --example bench_gpu
# Prints the path of a crate's program of tests.
tests_of() {
    cargo test --locked -p "$1" --test it --no-run --message-format json-render-diagnostics |
        python3 -c 'import json, sys
for line in sys.stdin:
    found = json.loads(line)
    if found.get("executable") and found["target"]["name"] == "it": print(found["executable"])'
}
gpu_tests=$(tests_of ssn-train)
matrix_tests=$(tests_of ssn)

pack() { strip -o "$out/$2" "$1" && xz --force --threads 0 "$out/$2"; }
for program in ssn ssn-engine xtask; do pack "$target/release/$program" $program; done
pack "$target/release/examples/bench_gpu" bench_gpu
pack "$gpu_tests" gpu_tests
pack "$matrix_tests" matrix_tests
cp experiments/*.toml tools/gpu_ranks_differential.py "$out"
cat > "$out/unpack.sh" <<'THERE'
# Unpacks the programs beside this file into the folder that is named, and lets them find PyTorch's libraries.
[ -n "${1:-}" ] || { echo "name the folder to unpack to" >&2; return 2; }
mkdir -p "$1"
for packed in "$(dirname "${BASH_SOURCE[0]}")"/*.xz; do
    program=$1/$(basename "$packed" .xz)
    xz --decompress --stdout "$packed" > "$program.new" && chmod +x "$program.new" && mv "$program.new" "$program" || return 1
done
torch=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))') || return 1
export LD_LIBRARY_PATH=$torch/lib:$(ls -d "$torch"/../nvidia/*/lib | tr '\n' ':')${LD_LIBRARY_PATH:-}
export PATH=$1:$PATH
THERE
du -sh "$out"
