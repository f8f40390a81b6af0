"""docs/evidence.md: what stands between its markers is made anew, the rest is the authors'."""
import pathlib
import re

BEGIN, END = "<!-- made by tools/reproduce: {}: begin -->", "<!-- made by tools/reproduce: {}: end -->"


class Missing(Exception):
    """The document has lost a pair of markers."""


def put(text, name, part):
    begin, end = BEGIN.format(name), END.format(name)
    if text.count(begin) != 1 or text.count(end) != 1:
        raise Missing(f"the lines between which '{name}' stands are missing: {begin} and {end}")
    return f"{text.split(begin, maxsplit=1)[0]}{begin}\n\n{part.strip()}\n\n{end}{text.split(end, maxsplit=1)[1]}"


def command_of(run, root):
    words = [word.replace("{root}", "..").replace("{build}", ".").replace("{json}", f"{run.name}.json")
             .replace("{folder}", run.name) for word in run.command]
    words[0] = "python3" if "python3" in words[0] else words[0]
    return "    " + " ".join(f"'{word}'" if " " in word else word for word in words).replace(str(root), "..")


def part_of(experiment, results, absent, pictures, root):
    """One experiment's part of the document."""
    lines = [f"{experiment.paper}, {experiment.claim}.\n", f"**Here:** {experiment.headline(results)}.\n"]
    lines += [f"![{experiment.title}](evidence/{picture})\n" for picture in pictures]
    if results:
        lines.append(experiment.table(results))
    lines += [f"Not run: `{name}`, {reason}.\n" for name, reason in absent.items()]
    lines.append("<details><summary>Commands</summary>\n")
    lines += [command_of(run, root) for run in experiment.runs]
    lines.append("\n</details>")
    return "\n".join(lines)


def anchor(title):
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def summary_of(experiments, results_of):
    rows = [f"| [{one.title}](#{anchor(one.title)}) | {one.paper}, {one.claim} | {one.headline(results_of[one.name])} |"
            for one in experiments]
    return "\n".join(["| | paper | here |", "|---|---|---|", *rows])


def check(path, experiments):
    """Raises Missing, or OSError, before anything is measured in vain."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    for name in ("machine", "summary", *(one.name for one in experiments)):
        put(text, name, "")


def write(path, experiments, results_of, parts, machine):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    text = put(text, "machine", machine)
    text = put(text, "summary", summary_of(experiments, results_of))
    for name, part in parts.items():
        text = put(text, name, part)
    path.write_text(text, encoding="utf-8")
