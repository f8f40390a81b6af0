#!/usr/bin/env python3
"""Every relative link of the Markdown pages leads to a file, and to a heading of it where it has an anchor. Files that
pages and comments mention by their path under docs/ exist, too."""
import re

from frame import run

SKIPPED = {".git", "build", "subprojects"}
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
MENTION = re.compile(r"(?<![\w/.-])(docs/[\w./-]+\.(?:md|svg))")


def anchors(page):
    """As GitHub makes them of headings."""
    found = {}
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page, flags=re.M | re.S), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
    return {slug if n == 0 else f"{slug}-{n}" for slug, count in found.items() for n in range(count + 1)}


def sources(root):
    for file in sorted(root.rglob("*")):
        if file.is_file() and not SKIPPED.intersection(part.split("-")[0] for part in file.relative_to(root).parts[:1]):
            yield file


def check(root):
    broken = []
    links = 0
    pages = {}
    for file in sources(root):
        name = file.relative_to(root).as_posix()
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for mention in MENTION.findall(text):
            links += 1
            if not (root / mention).exists():
                broken.append(f"{name} mentions {mention}")
        if file.suffix != ".md":
            continue
        for target in LINK.findall(re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
            if re.match(r"[a-z]+:", target):
                continue
            links += 1
            path, _, anchor = target.partition("#")
            there = (file.parent / path).resolve() if path else file
            if not there.exists():
                broken.append(f"{name} links to {target}")
            elif anchor and there.suffix == ".md":
                if there not in pages:
                    pages[there] = anchors(there.read_text(encoding="utf-8"))
                if anchor not in pages[there]:
                    broken.append(f"{name} links to {target}: no such heading")
    return broken, f"{links} links, {len(broken)} broken", links


if __name__ == "__main__":
    run(check)
