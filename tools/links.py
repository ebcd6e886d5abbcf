#!/usr/bin/env python3
"""Looks for links that lead nowhere: files that are not there, and headings that are not in them.

    python3 tools/links.py              # the Markdown of the repository
    python3 tools/links.py FOLDER       # the HTML of the site (tools/site.sh)

Addresses on other hosts are not looked at.
"""

import re
import subprocess
import sys
import unicodedata
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))


def anchor(heading):
    """The address of a heading, as GitHub and mdBook make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "").strip().lower()
    kept = (c for c in text if c in " -_" or unicodedata.category(c)[0] in "LN" and c not in "²³")
    return "".join(kept).replace(" ", "-")


@lru_cache(None)
def anchors(path):
    text = path.read_text()
    if path.suffix == ".html":
        return set(re.findall(r'\bid="([^"]+)"', text))
    return {anchor(found) for found in re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M)}


def links(path):
    text = path.read_text()
    if path.suffix == ".html":
        return re.findall(r'\b(?:href|src)="([^"]*)"', re.sub(r"<(pre|code|script).*?</\1>", "", text, flags=re.S))
    return re.findall(r"\]\(([^)\s]+)\)", without_code(text)) + re.findall(r'<img[^>]* src="([^"]+)"', text)


def main():
    if len(sys.argv) > 1:
        # Templates of pages are no pages.
        documents = sorted(p for p in Path(sys.argv[1]).resolve().rglob("*.html") if p.parent.name != "templates")
    else:
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
        documents = [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).exists()]
    count, broken = 0, []
    for document in documents:
        for link in links(document):
            if re.match(r"[a-z]+:|//", link) or not link:
                continue
            count += 1
            name, _, part = unquote(link).partition("#")
            target = (document.parent / name).resolve() if name else document
            if not target.exists():
                broken.append(f"{document}: {link} does not exist")
            elif part and target.suffix in (".md", ".html") and part not in anchors(target):
                broken.append(f"{document}: {link}: there is no such heading")
    print(*broken, sep="\n", file=sys.stderr)
    print(f"{count} links in {len(documents)} documents, {len(broken)} lead nowhere")
    sys.exit(1 if broken or not count else 0)


if __name__ == "__main__":
    main()
