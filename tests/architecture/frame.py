"""What the checks of this folder share: which files are compiled, what those include, and how a check ends."""
import pathlib
import re
import sys

COMPILED = {".cpp", ".hpp", ".h", ".c"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)', re.MULTILINE)


def files_of(folder, suffixes):
    return [file for file in sorted(folder.rglob("*")) if file.suffix in suffixes]


def includes_of(file):
    """(the opening quote or bracket, what is included) of each #include."""
    return INCLUDE.findall(file.read_text(encoding="utf-8"))


def run(check):
    """`check` takes the folders and files of the command line and returns its findings, one line each, a line to end
    with, and whether it found anything to look at."""
    findings, last_line, has_looked = check(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:]))
    for line in findings:
        print(line)
    print(last_line)
    sys.exit(1 if findings or not has_looked else 0)
