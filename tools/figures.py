#!/usr/bin/env python3
"""Compares every number of README.md, docs/results.md and docs/performance.md with the record it comes from.

    python3 tools/figures.py            # prints what is wrong, and ends with 1 if anything is
    python3 tools/figures.py --list     # every number with the place where it was found

A number must be in a record that its paragraph or list item links to, or where that links to none and in tables, one of its section (from
heading to heading): a file under benches/runs or experiments, or another of these documents. It must be what the record has, rounded to the digits that are shown;
per cent, milliseconds and thousands are converted by the unit beside the number or in the head of its column. In a table, where the first cell
names a row of a record and the column head a score, the number must be that score of that row: its mean, after ± its standard error, and in
the column of seeds its lowest and highest.

Numbers that nobody measured are named in a comment of their section:

    <!-- settings: 12 14,000 -->             sizes, counts and bars that somebody chose
    <!-- derived: 0.057 = 0.255 - 0.198 -->  a calculation with numbers of the records; several are separated by semicolons
    <!-- rows: PHiSeg, other widths = PHiSeg @ 2026-11-17 -->  another name for a row, of the records whose path has what is behind @

Not looked at: code, link targets, headings, numbers inside words (H200, f32) and powers (128²).
Every record names commit, machine and command, itself or in a machine.txt of its folder or a folder above; the commits must exist.
"""

import ast
import json
import operator
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ["README.md", "docs/results.md", "docs/performance.md"]

# Column heads of tables, and how the names of these scores begin in results.json.
SCORES = {
    "DSC %": "dsc ", "DSC_nod %": "dsc_nod ", "GED²": "ged2_", "seeds": "ged2_", "diversity": "sample_diversity", "HM-IoU": "hm_iou",
    "at 16 samples": "hm_iou_of_16_samples", "max-Dice": "max_dice", "log-likelihood of the test set": "log_likelihood", "ECE": "ece",
    "distance to raters": "cross_distance", "DSC whole tumour %": "dsc whole", "DSC core %": "dsc tumour core", "DSC enhancing %": "dsc enhancing",
    "parameters": "parameters", "ms per training step": "step_milliseconds", "ms per image with 100 samples": "image_seconds",
    "samples per second": "samples_per_second",
}
# The same in sentences.
SCORES_IN_SENTENCES = {"DSC": "dsc ", "DSC_nod": "dsc_nod ", "GED²": "ged2_", "HM-IoU": "hm_iou", "ECE": "ece"}
# What a record's number is multiplied with, by the unit that is shown.
UNITS = [(r"%|per cent|DSC", 100.0), (r"\bms\b", 1000.0), (r"\b(s|GB)\b", 0.001), (r"\bGB\b", 1e-6)]
PLAIN = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
NUMBER = re.compile(rf"(?<![\w.,/⁻_-])(?:{PLAIN})(?![\w²³⁴⁵⁻]|\.\d)")
NUMBER_OF_RECORD = re.compile(rf"(?<![\w.])(?:{PLAIN})(?![.]\d)")
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
COMMENT = re.compile(r"<!--.*?-->", re.S)


def value(text):
    return float(text.replace(",", ""))


def tolerance(text):
    """Half of the last digit that is shown; zeros at the end of a whole number count as shown unless three other digits are."""
    digits = text.replace(",", "")
    if "." in digits:
        return 0.5 * 10.0 ** -len(digits.split(".")[1])
    zeros = len(digits) - len(digits.rstrip("0"))
    return 0.5 * 10.0**zeros if len(digits) - zeros >= 3 else 0.5


def letters(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())


@lru_cache(None)
def numbers(record):
    """The numbers of a record: `(value, where, row, score)`, row and score as far as it has them."""
    if record.suffix != ".json":
        return [
            (value(found), f":{line}  {content.strip()[:80]}", None, None)
            for line, content in enumerate(record.read_text().splitlines(), 1)
            for found in NUMBER_OF_RECORD.findall(COMMENT.sub("", content))
        ]
    found = []

    def walk(node, where, row, score):
        if isinstance(node, dict):
            row = node["name"] if isinstance(node.get("name"), str) else row
            for key, inner in node.items():
                names_row = row is None and isinstance(inner, (dict, list)) and key not in ("rows", *SCORES.values())
                names_score = where.endswith((".figures", ".cost")) or key in SCORES.values()
                walk(inner, f"{where}.{key}", key if names_row else row, key if names_score else score)
        elif isinstance(node, list):
            means = [inner["mean"] for inner in node if isinstance(inner, dict) and "mean" in inner]
            if means:
                found.append((sum(means) / len(means), f"{where}, mean over seeds", row, score))
            for index, inner in enumerate(node):
                walk(inner, f"{where}[{index}]", row, score)
        elif isinstance(node, (int, float)) and not isinstance(node, bool):
            found.append((abs(node), where, row, score))

    walk(json.loads(record.read_text()), "", None, None)
    return found


def look_up(text, unit, records, row=None, score=None, parts=()):
    """Where one of the records has this number."""
    factors = [1.0, *(factor for pattern, factor in UNITS if re.search(pattern, unit))]
    with_row = [record for record in records if row and any(letters(row) == letters(of_row or "") for _, _, of_row, _ in numbers(record))]
    for record in with_row or records:
        for number, where, of_row, of_score in numbers(record):
            if with_row and letters(row) != letters(of_row or ""):
                continue
            if score and (with_row or of_score and not row) and not ((of_score or "").startswith(score) and where.endswith(parts)):
                continue
            if any(abs(number * factor - value(text)) <= tolerance(text) * (1 + 1e-9) for factor in factors):
                return f"{record.relative_to(ROOT)}{where}"
    return None


def records_of(text, document):
    """The records that a text links to."""
    found = []
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        path = (document.parent / target).resolve()
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else ""
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        if name in DOCUMENTS or name.startswith(("benches/runs/", "experiments/runs/", "experiments/paper")):
            found += [file for file in files if file.suffix in (".json", ".txt", ".md") and file != document and file.name != "machine.txt"]
    return list(dict.fromkeys(found))


def sections(text):
    """`(first line, lines)` from heading to heading, with code blocks emptied."""
    found, start, lines, in_code = [], 1, [], False
    for number, line in enumerate(text.splitlines(), 1):
        is_fence = line.startswith("```")
        in_code ^= is_fence
        if not in_code and line.startswith("#"):
            found.append((start, lines))
            start, lines = number, [""]
        else:
            lines.append("" if in_code or is_fence else line)
    return [*found, (start, lines)]


def comments(text, kind):
    """The entries of a section's comments of a kind, which semicolons separate."""
    bodies = re.findall(rf"<!-- {kind}:(.*?)-->", text, re.S)
    return [entry for body in bodies for entry in body.split(";") if entry.strip()]


def calculations(text, settings, records, wrong):
    """The results of a section's `derived` comments."""
    results = {}
    for line in comments(text, "derived"):
        result, expression = (part.strip() for part in line.split("="))

        def evaluate(node):
            if isinstance(node, ast.BinOp):
                return OPERATORS[type(node.op)](evaluate(node.left), evaluate(node.right))
            operand = ast.get_source_segment(expression, node)
            if value(operand) not in settings and not look_up(operand, "%", records):
                wrong(f"{operand} of the calculation `{line.strip()}` is in no record of its section")
            return float(operand)

        computed = evaluate(ast.parse(expression, mode="eval").body)
        if abs(abs(computed) - value(result)) > tolerance(result) * (1 + 1e-9):
            wrong(f"`{line.strip()}` is {computed:.6g}")
        results[value(result)] = f"= {expression}"
    return results


def pieces_of(lines, offset, heads):
    """A line as `(text, column head, row, is a figure of the paper)`; `heads` are those of the table it is in."""
    line = lines[offset]
    if not line.startswith("|"):
        return [(line, "", None, False)]
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    if offset == 0 or not lines[offset - 1].startswith("|"):
        heads[:] = cells
        return []
    if set(line) <= set("|-: "):
        return []
    paper = next((index for index, head in enumerate(heads) if head.startswith("paper")), len(heads))
    row = re.sub(r"[*`]", "", cells[0])
    return [(cell, head, row, index >= paper) for index, (cell, head) in enumerate(zip(cells, heads))]


ITEM = r"[-*|] |\d+\. "


def paragraph_of(lines, offset):
    """The paragraph or list item that a line is in."""
    first = offset
    while first > 0 and lines[first - 1].strip() and not re.match(ITEM, lines[first]):
        first -= 1
    last = offset + 1
    while last < len(lines) and lines[last].strip() and not re.match(ITEM, lines[last]):
        last += 1
    return "\n".join(lines[first:last])


def score_before(text):
    """The score that a sentence names last before a number."""
    named = [(text.rfind(word), len(word), score) for word, score in SCORES_IN_SENTENCES.items() if word in text[-60:]]
    return max(named)[2] if named else None


def parts_of(cell, place, head, score):
    """How the places of a record end that a number of a cell may come from: mean, error, lowest and highest."""
    if score in ("parameters", "step_milliseconds", "image_seconds", "samples_per_second"):
        return (score,)
    if "±" in cell[:place]:
        return (".seed_standard_error",) if head == "seeds" else (".standard_error", "[1]")
    if head == "seeds":
        return (".lowest",) if "–" not in cell[:place] else (".highest",)
    return (".mean", "[0]", "mean over seeds")


def check(name, used, problems):
    document = ROOT / name
    for start, lines in sections(document.read_text()):
        text = "\n".join(lines)
        of_section = records_of(text, document)
        used.update(of_section)
        settings = {value(found) for body in comments(text, "settings") for found in NUMBER.findall(body)}
        derived = calculations(text, settings, of_section, lambda what: problems.append(f"{name}:{start}: {what}"))
        names = {}
        for entry in comments(text, "rows"):
            shown, _, known = entry.partition("=")
            names[letters(shown)] = [part.strip() for part in f"{known}@".split("@")[:2]]
        lines = COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text).split("\n")
        heads = []
        for offset, line in enumerate(lines):
            own = records_of(paragraph_of(lines, offset), document)
            for piece, head, row, is_of_paper in pieces_of(lines, offset, heads):
                plain = re.sub(r"`[^`]*`|\]\([^)]*\)|!\[[^\]]*\]", lambda hidden: " " * len(hidden[0]), piece)
                place, records = ("paragraph", own) if own and not line.startswith("|") else ("section", of_section)
                row, folder = names.get(letters(row or ""), (row, ""))
                records = [record for record in records if folder in str(record)]
                if is_of_paper:
                    records = [record for record in of_section if record.name == "paper.json"]
                for match in NUMBER.finditer(plain):
                    unit = f"{head} {plain[max(0, match.start() - 60) : match.end() + 16]}"
                    score = None if is_of_paper else SCORES.get(head) or score_before(plain[: match.start()])
                    parts = parts_of(plain, match.start(), head, score) if row else ("",)
                    where = derived.get(value(match[0])) or look_up(match[0], unit, records, row, score, parts)
                    if not where and value(match[0]) in settings:
                        where = "a setting"
                    if where:
                        yield f"{name}:{start + offset}\t{match[0]}\t{where}"
                    else:
                        around = plain[max(0, match.start() - 30) : match.end() + 12].strip()
                        problems.append(f"{name}:{start + offset}: {match[0]} is in no record of its {place} ({around!r})")


def provenance(records):
    """What the records do not say about where they come from."""
    patterns = {"commit": r"[Cc]ommit\W+[0-9a-f]{7}", "machine": r"H200|Xeon|cores", "command": r"command|xtask|ssn |python3 |bench_gpu"}
    # A clone without its history cannot say which commits there are.
    shallow = subprocess.run(["git", "rev-parse", "--is-shallow-repository"], cwd=ROOT, capture_output=True, text=True).stdout.strip() != "false"
    for record in sorted(records):
        name = record.relative_to(ROOT)
        if str(name) in DOCUMENTS or name.name == "paper.json":
            continue
        machines = [folder / "machine.txt" for folder in record.parents if ROOT in folder.parents]
        text = "".join(path.read_text() for path in [record, *machines] if path.exists())
        for what, pattern in patterns.items():
            if not re.search(pattern, text):
                yield f"{name}: the record does not name its {what}"
        if shallow:
            continue
        for commit in set(re.findall(r"[Cc]ommit\W+([0-9a-f]{7,40})\b", text)):
            if subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True).returncode:
                yield f"{name}: there is no commit {commit}"


def main():
    used, problems = set(), []
    found = [line for name in DOCUMENTS for line in check(name, used, problems)]
    problems += provenance(used)
    if "--list" in sys.argv[1:]:
        print(*found, sep="\n")
    print(*problems, sep="\n", file=sys.stderr)
    print(f"{len(found)} numbers have their records, {len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
