#!/usr/bin/env bash
# Builds docs/ as a site with mdBook, into target/site: open target/site/docs/index.html. Builds mdBook if
# there is none. The records and files that pages link to come along; links that lead nowhere fail.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
mdbook=$(command -v mdbook || tools/tool.sh mdbook 0.5.4 --features search)
rm -rf "$target/site"
"$mdbook" build --dest-dir "$target/site/docs"
git ls-files benches experiments crates xtask tools Dockerfile ./*.md | while read -r file; do
    mkdir -p "$target/site/$(dirname "$file")"
    cp "$file" "$target/site/$file"
    # mdBook takes every page for one of its own.
    [ "${file%.md}" = "$file" ] || { printf '<pre>\n' && cat "$file" && printf '</pre>\n'; } > "$target/site/${file%.md}.html"
done
python3 tools/links.py "$target/site"
echo "$target/site/docs/index.html"
