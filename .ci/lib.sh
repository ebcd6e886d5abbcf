# Shared by `.ci/run` and `.ci/nightly`: the environment of both, and jobs in the background.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Tests that lack a tool fail.
export SSN_TESTS_NEED_ALL_TOOLS=1
# No rebuilds in CI: skip incremental data and debug info (gigabytes); panics still name their line.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=false
# A temporary folder of its own, removed at the end.
TMPDIR=$(mktemp -d)
export TMPDIR

# Jobs bound by downloads or by one core run in the background; `finish` waits for one and prints its output if it failed.
declare -A running
background() {
    local name=$1
    shift
    # In a process group of its own, so that everything it started ends with it.
    set -m
    "$@" > "$TMPDIR/$name.log" 2>&1 < /dev/null &
    set +m
    running[$name]=$!
}
finish() {
    wait "${running[$1]}" || { cat "$TMPDIR/$1.log"; echo "$1 failed"; exit 1; }
}
trap 'for job in "${running[@]}"; do kill -- "-$job" 2> /dev/null || true; done; rm -rf "$TMPDIR"' EXIT

step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

install() { apt-get update --quiet=2 && apt-get install --yes --quiet=2 --no-install-recommends "$@" > /dev/null; }

# Always the same features: Cargo builds every other choice of them again.
features=ssn-data/hdf5,ssn-engine/mpi
built=${CARGO_TARGET_DIR:-$PWD/target}/debug
