#!/usr/bin/env python3
"""Prints the fenced code block of a page that contains a text: code_block.py PAGE LANGUAGE TEXT

Fails unless exactly one block of that language does."""
import pathlib
import re
import sys


def code_blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def code_block(path, language, text):
    found = [block for block in code_blocks(pathlib.Path(path).read_text(encoding="utf-8"), language) if text in block]
    if len(found) != 1:
        raise SystemExit(f"{path} has {len(found)} {language} blocks with {text!r}")
    return found[0]


if __name__ == "__main__":
    sys.stdout.write(code_block(*sys.argv[1:4]))
