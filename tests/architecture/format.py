#!/usr/bin/env python3
"""docs/trace_format.md against the headers that define the files: every field and where it lies."""
import re

from frame import run

HEADERS = ("base/collective.hpp", "profiler/record/format.hpp", "profiler/record/spill_format.hpp",
           "profiler/record/weak_format.hpp")
SIZES = {"char": 1, "double": 8}
SIZES |= {f"std::{sign}int{bits}_t": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)}

# Heading: the struct of its table. A table of several structs names them in its first column.
TABLES = {"Header": "Header", "Totals": "Totals", "Algorithms": "Algorithm", "Communicators": "Communicator",
          "Calls of the node": "NodeCalls", "Events": "Event",
          "Timed functions": "TimedFunction", "Intervals": "Interval", "rank-NNNNN.papz": ("FileHeader", "BlockHeader"),
          "rank-NNNNN.papw": ("WeakHeader", "WeakRow", "WeakEvent"),
          "Call sites": {"call sites": "CallSite", "frames": "Frame", "modules": "Module"}}


class Layout:
    def __init__(self, texts, rows_of_collectives):
        self.constants = {"collective_count": rows_of_collectives}
        self.types = {name: (size, size) for name, size in SIZES.items()}
        self.fields = {}
        for text in texts:
            text = re.sub(r"//[^\n]*", "", text)
            self.constants |= {name: int(value) for name, value in
                               re.findall(r"^inline constexpr std::\w+ (\w+) = (\d+);", text, re.MULTILINE)}
            for struct in re.finditer(r"^struct (\w+) \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL):
                self.add(struct[1], struct[2])

    def add(self, struct, body):
        at = alignment = 0
        fields = {}
        for kind, name, dimensions in re.findall(r"^\s+([\w:]+) (\w+)((?:\[[^\]]+\])*);", body, re.MULTILINE):
            size, align = self.types[kind]
            counts = [self.count(part) for part in re.findall(r"\[([^\]]+)\]", dimensions)]
            at += -at % align
            fields[name] = (at, counts)
            for count in counts:
                size *= count
            at, alignment = at + size, max(alignment, align)
        self.types[struct] = (at + -at % alignment, alignment)
        self.fields[struct] = fields

    def count(self, text):
        product = 1
        for part in text.split("*"):
            product *= int(part) if part.strip().isdigit() else self.constants[part.strip()]
        return product


def rows(section):
    """The tables of a section, each a list of rows of cells, without their heads."""
    for table in re.findall(r"(?:^\|.*\|\n)+", section, re.MULTILINE):
        lines = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines()]
        if "offset" in " ".join(lines[0]):
            yield lines[2:]


def compare(where, listed, fields):
    """`listed`: (name, offset) of the page."""
    named = {re.match(r"\w+", name)[0] for name, _ in listed}
    found = [f"{where} lacks {name}" for name in fields if name not in named and not name.startswith("reserved")]
    for name, offset in listed:
        plain, dimensions = re.match(r"(\w+)(.*)", name).groups()
        if plain not in fields:
            found.append(f"{where} has {plain}, which there is not")
        elif offset != str(fields[plain][0]):
            found.append(f"{where}: {plain} lies at {fields[plain][0]}, not {offset}")
        elif dimensions and re.findall(r"\d+", dimensions) != [str(count) for count in fields[plain][1]]:
            found.append(f"{where}: {plain} is {fields[plain][1]}, not {dimensions}")
    return found


def check_page(root, page):
    collectives = (root / "base/collectives.def").read_text(encoding="utf-8").count("\nPAPAYA_COLLECTIVE(")
    layout = Layout([(root / header).read_text(encoding="utf-8") for header in HEADERS], collectives)
    sections = dict(re.findall(r"^##+ ([^\n]*)\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    found, seen = [], 0
    for heading, structs in TABLES.items():
        tables = list(rows(sections[heading]))
        if isinstance(structs, dict):
            listed, of_row = {name: [] for name in structs}, ""
            for first, names, offsets, *_ in tables[0]:
                of_row = first or of_row
                listed[of_row] += zip(names.split(", "), offsets.split(", "))
            pairs = [(structs[name], listed[name]) for name in structs]
        else:
            names = [structs] if isinstance(structs, str) else structs
            pairs = [(struct, [pair for row in table for pair in zip(row[0].split(", "), row[1].split(", "))])
                     for struct, table in zip(names, tables)]
            if len(tables) != len(names):
                found.append(f"{heading} has {len(tables)} tables with offsets, not {len(names)}")
        for struct, listed in pairs:
            fields = layout.fields[struct]
            plain = [(re.match(r"\w+", name)[0], offset) for name, offset in listed]
            found += compare(f"{heading} ({struct})", listed, fields)
            found += [f"{heading} ({struct}) has {name} twice" for name, _ in set(plain) if plain.count((name, _)) > 1]
            seen += len(listed)
    # Sizes that the page states in words.
    parts = {row[0]: row[2] for row in
             [[cell.strip() for cell in line.strip("|").split("|")] for line in sections["rank-NNNNN.pap"].splitlines()
              if line.startswith("|")] if len(row) > 2}
    for part, struct in {"header": "Header", "totals": "Totals", "communicators": "Communicator", "modules": "Module",
                         "frames": "Frame", "call sites": "CallSite", "board of arrivals": "NodeBoard",
                         "calls of the node": "NodeCalls", "ring of events": "Event",
                         "algorithms": "Algorithm"}.items():
        size = layout.types[struct][0]
        if not re.search(rf"\b{size}\b", parts.get(part, "")):
            found.append(f"the parts of the file: {part} is of {size} bytes, not {parts.get(part)!r}")
    for stated, constant in ((r"format version (\d+)", "profiler/record/format.hpp"),
                             (r"`rank-NNNNN\.papz`, version (\d+)", "profiler/record/spill_format.hpp"),
                             (r"`rank-NNNNN\.papw`, version (\d+)", "profiler/record/weak_format.hpp")):
        version = re.search(r"format_version = (\d+)", (root / constant).read_text(encoding="utf-8"))[1]
        if (re.search(stated, page) or [None, None])[1] != version:
            found.append(f"the page is not about version {version} of {constant}")
    return found, seen


def check(root):
    found, seen = check_page(root, (root / "docs/trace_format.md").read_text(encoding="utf-8"))
    return [f"docs/trace_format.md: {line}" for line in found], f"{seen} fields, {len(found)} differences", seen >= 50


if __name__ == "__main__":
    run(check)
