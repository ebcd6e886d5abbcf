#!/usr/bin/env bash
# Builds the Python package `ssn` as a wheel in dist/: the library, the command `ssn`, and the engine, which trains and
# predicts with the libraries of an installed PyTorch 2.11. `cargo xtask wheel` runs this.
#
#     --no-engine   without training and prediction; built without libtorch
#     --cuda        the engine with its CUDA part; fetches CUDA's headers
#     --debug       of programs without optimization, for tests
#     --built       with the programs that are in the target folder already
#     --test        then installs the wheel into an empty virtual environment, with PyTorch unless --no-engine, and runs
#                   its tests and the notebook there
#     --environment makes that environment without the wheel, and builds nothing: most of a test's time is its downloads
set -euo pipefail
cd "$(dirname "$0")/.."
engine=1 cuda= test= built_before= only_environment= profile=release
for option in "$@"; do
    case $option in
        --no-engine) engine= ;;
        --cuda) cuda=1 ;;
        --debug) profile=dev ;;
        --built) built_before=1 ;;
        --test) test=1 ;;
        --environment) only_environment=1 ;;
        *) sed -n '2,12s/^# \?//p' "$0" >&2; exit 2 ;;
    esac
done
target=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
python=${PYTHON:-python3}
pip="-I -m pip install --quiet --disable-pip-version-check"

# An environment that waits for a wheel has a file that says so.
environment=$target/wheel/environment
make_environment() {
    [ "$(cat "$environment/waits" 2> /dev/null)" = "engine: $engine" ] && return
    rm -rf "$environment"
    "$python" -I -m venv "$environment"
    pytorch=$(sed -n 's/^train = \["\(.*\)"\]$/\1/p' crates/ssn-py/pyproject.toml)
    "$environment/bin/python" $pip ${engine:+"${pytorch:?}"} numpy pytest nbclient ipykernel safetensors tqdm mypy pandas pillow nibabel SimpleITK ${engine:+onnx onnxscript onnxruntime monai==1.6.1}
    echo "engine: $engine" > "$environment/waits"
}
if [ -n "$only_environment" ]; then
    make_environment
    exit
fi

if [ -n "$cuda" ]; then
    cargo xtask check-cuda
    export CUDA_HOME=${CUDA_HOME:-$target/cuda-check/nvidia/cu13}
fi
if [ -z "$built_before" ]; then
    [ -z "$engine" ] || cargo xtask setup
    cargo build --profile $profile --locked --package ssn-cli ${engine:+--package ssn-engine}
fi

# What an earlier call left there must not come along.
bin=crates/ssn-py/python/ssn/bin
rm -rf "$bin" dist/*.whl
mkdir -p "$bin"
built=$target/${profile/dev/debug}
for program in ssn ${engine:+ssn-engine}; do strip -o "$bin/$program" "$built/$program"; done

[ -x "$target/wheel/maturin/bin/python" ] || "$python" -I -m venv "$target/wheel/maturin"
"$target/wheel/maturin/bin/python" $pip maturin==1.16.0 wheel
"$target/wheel/maturin/bin/maturin" build --profile $profile --compression-level 9 --locked --manifest-path crates/ssn-py/Cargo.toml --out dist
wheel=$(realpath dist/*.whl)
# maturin names the wheel after the glibc that the module needs; the programs may need a newer one.
needed=$(objdump -T "$bin"/* | grep -v ' w ' | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -1 | cut -d. -f2)
named=$(basename "$wheel" | grep -o 'manylinux_2_[0-9]*' | cut -d_ -f3 || true)
if [ -n "$named" ] && [ "$needed" -gt "$named" ]; then
    "$target/wheel/maturin/bin/python" -I -m wheel tags --remove --platform-tag "manylinux_2_${needed}_x86_64" "$wheel"
    wheel=$(realpath dist/*.whl)
fi
du -h "$wheel"
[ -n "$test" ] || exit 0

make_environment
rm "$environment/waits"
"$environment/bin/python" $pip "ssn${engine:+[train]} @ file://$wheel"
# Away from the checkout, so that nothing but what is installed is found.
tests=$PWD/crates/ssn-py/tests
(cd "$environment" && bin/python -I -m pytest -q -rs -p no:cacheprovider "$tests")
