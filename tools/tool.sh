#!/usr/bin/env bash
# Prints the path of a program that checks or documentation need, of the version that is named: tools/tool.sh cargo-deny 0.20.2
# Builds it with Cargo if there is none. It is kept outside the checkout, for the next one.
#
#     tools/tool.sh CRATE VERSION [ARGUMENT OF CARGO INSTALL ...]
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,5s/^# \?//p' "$0" >&2; exit 2; }
crate=$1 version=$2
shift 2
folder=${XDG_CACHE_HOME:-$HOME/.cache}/ssn/tools/$crate-$version
[ -x "$folder/bin/$crate" ] ||
    cargo install --quiet --debug --locked --no-default-features --root "$folder" "$@" "$crate@$version" >&2
echo "$folder/bin/$crate"
