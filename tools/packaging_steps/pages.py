#!/usr/bin/env python3
"""The pages for users as a package has them, in one folder: pages.py FOLDER. Links lead to other pages of it; what is
in the repository alone stays as text."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# For those who have the sources.
DEVELOPERS = {"add_an_algorithm.md", "common_changes.md", "evidence.md", "release.md", "architecture/tests.md"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def chosen(docs):
    """By the path below docs/."""
    files = [*docs.glob("*.md"), *docs.glob("*.svg"), *docs.glob("*.json"), *docs.glob("launchers/*.md"),
             *docs.glob("architecture/*.md")]
    return {file.relative_to(docs).as_posix() for file in files} - DEVELOPERS


def relinked(text, page, docs, kept):
    def link(found):
        target = found[3].partition("#")[0]
        if re.match(r"[a-z]+:", found[3]) or target == "":
            return found[0]
        there = ((docs / page).parent / target).resolve()
        return found[0] if there.is_relative_to(docs) and there.relative_to(docs).as_posix() in kept else found[2]

    # The build folder's command is in PATH there.
    text = text.replace("$PWD/build/libpapaya.so", "/opt/papaya/lib/papaya/libpapaya.so")
    text = text.replace("build/papaya", "papaya")
    parts = re.split(r"(^```.*?^```)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if i % 2 else LINK.sub(link, part) for i, part in enumerate(parts))


def install(folder):
    docs = ROOT / "docs"
    kept = chosen(docs)
    for page in sorted(kept):
        copy = folder / page
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = (docs / page).read_text(encoding="utf-8")
        copy.write_text(relinked(text, page, docs, kept) if page.endswith(".md") else text, encoding="utf-8")


if __name__ == "__main__":
    install(pathlib.Path(sys.argv[1]))
