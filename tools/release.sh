#!/usr/bin/env bash
# Makes dist/ssn-VERSION-linux-x86_64.tar.gz for machines without Rust and Python: the programs `ssn` (with the viewer's page inside) and
# `ssn-engine`, libtorch for CPUs, a trained model with example images, and the licenses.
#
#     tar xf ssn-VERSION-linux-x86_64.tar.gz && export PATH="$PWD/ssn-VERSION-linux-x86_64/bin:$PATH"
#
#     --no-libtorch   leaves libtorch out; the engine then uses a PyTorch 2.11 whose `torch/lib` is linked as `lib`
#     --built         packs the release programs that are in the target folder already
#     --test          then follows the README in an empty root folder: predict, evaluate, report
set -euo pipefail
cd "$(dirname "$0")/.."
libtorch=1 built_before='' test=''
for option in "$@"; do
    case $option in
        --no-libtorch) libtorch='' ;;
        --built) built_before=1 ;;
        --test) test=1 ;;
        *) sed -n '2,9s/^# \?//p' "$0" >&2; exit 2 ;;
    esac
done
target=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
if [ -z "$built_before" ]; then
    cargo xtask setup
    cargo build --release --locked --package ssn-cli --package ssn-engine
fi

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
name=ssn-$version-linux-x86_64
folder=$target/release-archive/$name
rm -rf "$folder"
mkdir -p "$folder/bin" dist
for program in ssn ssn-engine; do strip -o "$folder/bin/$program" "$target/release/$program"; done
# libtorch, and what it needs beside the system's libraries.
if [ -n "$libtorch" ]; then
    libraries=$(ldd "$target/release/ssn-engine" | grep -o "$PWD/libtorch/[^ ]*") \
        || { echo "libtorch is not in this checkout: \`cargo xtask setup\` puts it there" >&2; exit 1; }
    mkdir "$folder/lib"
    cp -L $libraries "$folder/lib/"
fi
cp -r docs/demo LICENSE-APACHE LICENSE-MIT CITATION.cff "$folder/"
cat > "$folder/README.txt" << END
ssn $version: stochastic segmentation networks, for Linux on x86-64$([ -z "$libtorch" ] || echo " (CPUs)").

    export PATH="\$PWD/bin:\$PATH"
    ssn predict demo/model.safetensors demo/images --out predictions
    ssn evaluate predictions --data demo
    ssn report predictions --data demo
    ssn view predictions --data demo

ssn --help lists all commands. For research; not a medical device.
END
if [ -n "$libtorch" ]; then
    find libtorch -path '*dist-info*' -name 'LICENSE*' -o -path '*dist-info*' -name 'License*' | while read -r license; do
        package=$(echo "$license" | sed 's|libtorch/\([^-]*\)-.*|\1|')
        cp "$license" "$folder/LICENSE-$package"
    done
fi
archive=$PWD/dist/$name.tar.gz
tar -C "$(dirname "$folder")" --owner 0 --group 0 --sort name -czf "$archive" "$name"
(cd dist && sha256sum "$name.tar.gz" | tee "$name.tar.gz.sha256")
du -h "$archive"
[ -n "$test" ] || exit 0

# An empty root folder with the C and C++ libraries that every Linux has, and nothing else: no Rust, no Python, no checkout.
root=$(mktemp -d)
trap 'umount "$root/proc" 2> /dev/null; rm -rf --one-file-system "$root"' EXIT
mkdir -p "$root"/{tmp,opt,proc}
mount -t proc proc "$root/proc"
for file in /lib64/ld-linux-x86-64.so.2 $(ldd "$folder/bin/ssn" "$folder/bin/ssn-engine" | grep -o '/[^ ]*/lib\(c\|m\|gcc_s\|stdc++\|dl\|rt\|pthread\|util\)\.so[^ ]*' | sort -u); do
    mkdir -p "$root$(dirname "$file")"
    cp -L "$file" "$root$file"
done
tar -C "$root/opt" -xf "$archive"
inside() { env -i PATH="/opt/$name/bin" HOME=/tmp "$(command -v chroot)" "$root" "$@"; }
inside ssn --version
inside ssn predict "/opt/$name/demo/model.safetensors" "/opt/$name/demo/images" --out /opt/predictions --quiet
inside ssn evaluate /opt/predictions --data "/opt/$name/demo" --quiet
inside ssn report /opt/predictions --data "/opt/$name/demo" --quiet
ls -l "$root/opt/predictions/report/report.html"
