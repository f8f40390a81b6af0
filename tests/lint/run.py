#!/usr/bin/env python3
"""The style gates: run.py GATE SOURCE_FOLDER BUILD_FOLDER.

Each gate first has to reject a planted fault, so that a tool that no longer reads its files or its options cannot pass.
Where a tool is missing the gate is skipped (exit code 77), with CI=true it fails.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

COMPILED = (".cpp", ".hpp", ".c", ".h")
TEXT = (".md", ".1", ".py", ".sh", ".bash", ".build", ".css", ".html", ".js", ".def", ".S", ".F90", ".f90", ".f",
        ".txt")

# Words that codespell takes for others.
WORDS = {
    "hsa": "the runtime library of AMD's devices",
    "improbe": "MPI_Improbe",
    "inout": "the second operand of an MPI_User_function",
    "ois": "a pattern of characters in a regular expression",
}
# Misspelt on purpose: papaya has to say which name was meant.
MISSPELT = ["PAPAYA_WAIT=yeild", "arival", "disemination"]

# A suppression names what it suppresses and says why.
SUPPRESSIONS = {
    "NOLINT": r"NOLINT(NEXTLINE)?\([a-z][a-z0-9.,-]+\): \w",
    "clang-format off": r"clang-format off: \w",
    "noqa": r"noqa: [A-Z][0-9]+  \w",
    "shellcheck disable": r"shellcheck disable=SC[0-9]+(,SC[0-9]+)*  # \w",
}


class Missing(Exception):
    """A tool or a file the gate needs is not here."""


class Unsuitable(Exception):
    """It is here, and another version than the tree is made for."""


def tool(name):
    if not shutil.which(name):
        raise Missing(f"{name} is missing; tools/test installs it on Debian and Ubuntu")
    return name


def llvm_14(name):
    """(its name here, its version): versions differ in what they make of a line and in what they find."""
    found = f"{name}-14" if shutil.which(f"{name}-14") else tool(name)
    version = output_of([found, "--version"])[1].strip()
    if " version 14." not in version:
        raise Unsuitable(f"the tree is as {name} 14 wants it, and this is another: {version}")
    return found, version


def output_of(command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **options)
    return done.returncode, done.stdout


def findings(command, **options):
    """The lines of a tool that prints its findings and nothing else."""
    code, output = output_of(command, **options)
    lines = [line for line in output.splitlines() if line.strip()]
    return lines or ([f"{command[0]} ended with exit code {code}"] if code else [])


def first_line(file):
    with open(file, "rb") as opened:
        return opened.readline(200).decode(errors="replace")


def tree(root):
    """What is under version control; where that is not known, what an archive of the sources holds."""
    if (root / ".git").exists() and shutil.which("git"):
        code, output = output_of(["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z"])
        if code == 0:
            return [root / name for name in sorted(output.split("\0")) if name and (root / name).is_file()]
    return sorted(file for file in root.rglob("*") if file.is_file()
                  and not any(part.startswith(("build", ".")) for part in file.relative_to(root).parts))


def with_suffix(files, *suffixes):
    return [file for file in files if file.suffix in suffixes]


def scripts(files, interpreter, *suffixes):
    """By suffix, or without one by the first line."""
    return [file for file in files if file.suffix in suffixes
            or (not file.suffix and re.match(r"#!.*\b" + interpreter, first_line(file)))]


class Gate:
    planted = ""  # a file's name
    fault = ""    # what it holds

    def __init__(self, root, build):
        self.root, self.build = root, build

    def check(self, files):
        raise NotImplementedError


class Format(Gate):
    planted, fault = "planted.cpp", "int  planted( );\n"

    def check(self, files):
        command = [llvm_14("clang-format")[0], "--dry-run", "-Werror", f"--style=file:{self.root / '.clang-format'}"]
        return findings([*command, *with_suffix(files, *COMPILED)])


class Shell(Gate):
    planted, fault = "planted.sh", "#!/bin/sh\nrm -r $1/*\n"

    def check(self, files):
        command = [tool("shellcheck"), "--external-sources", "--source-path=SCRIPTDIR", "--format=gcc"]
        return findings([*command, *scripts(files, "(ba)?sh$", ".sh", ".bash")])


class Python(Gate):
    planted, fault = "planted.py", "import os\n"

    def check(self, files):
        # The distribution's Python has it; the first in PATH may be another.
        having = [python for python in (sys.executable, "/usr/bin/python3")
                  if output_of([python, "-m", "flake8", "--version"])[0] == 0]
        if not having:
            raise Missing("flake8 is missing; tools/test installs it on Debian and Ubuntu")
        # What pyflakes and pycodestyle check by default, at the width of the compiled sources.
        command = [having[0], "-m", "flake8", "--isolated", "--max-line-length=120",
                   f"--per-file-ignores={self.root}/tests/preload/*:E501"]
        return findings([*command, *scripts(files, "python", ".py")])


class Man(Gate):
    planted, fault = "planted.1", ".TH PLANTED 1 2026-01-01\n.SH NAME\nplanted \\- a fault\n.NONE\n"

    def check(self, files):
        # Sentences begin on lines of their own, however long they are.
        lines = findings([tool("mandoc"), "-T", "lint", *with_suffix(files, ".1")])
        return [line for line in lines if "input text line longer than 80 bytes" not in line
                and "ended with exit code" not in line]


class Spelling(Gate):
    planted, fault = "planted.md", "The fir" + "ts word.\n"

    def check(self, files):
        command = [tool("codespell"), "--ignore-words-list", ",".join(WORDS), "--ignore-regex", "|".join(MISSPELT)]
        return findings([*command, *[file for file in files if file.suffix in COMPILED + TEXT or not file.suffix]])


class Suppressions(Gate):
    planted, fault = "planted.cpp", "int planted = 0;  // NO" + "LINT\n"

    def check(self, files):
        found = []
        for file in files:
            if file.suffix not in COMPILED + TEXT + ("",) or file == pathlib.Path(__file__).resolve():
                continue
            for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
                for word, explained in SUPPRESSIONS.items():
                    if re.search(r"(//|#) *" + word, line) and not re.search(explained, line):
                        found.append(f"{file}:{number}: which check is suppressed, and why? {line.strip()}")
        return found


class Tidy(Gate):
    """clang-tidy with the checks of .clang-tidy, over the control path and the headers that it includes: the whole tree
    would take minutes. A file that passed is not looked at again until it, a file that it includes, the checks or its
    command change."""
    folders = ("algorithms/", "base/", "interpose/", "tuning/")
    planted, fault = "planted.cpp", "struct Planted {\n  Planted(int);\n};\n"

    def commands(self):
        """One for each source: that of the first MPI, where it is compiled for both."""
        database = self.build / "compile_commands.json"
        if not database.exists():
            raise Missing(f"{database} is missing: ninja did not make this build folder")
        chosen = {}
        for entry in json.loads(database.read_text(encoding="utf-8")):
            file = pathlib.Path(entry["directory"], entry["file"]).resolve()
            inside = file.suffix == ".cpp" and self.root in file.parents
            if inside and file.relative_to(self.root).as_posix().startswith(self.folders):
                chosen.setdefault(file, entry)
        return chosen

    def includes(self, file, seen):
        """The file and every file of papaya that it includes."""
        if file in seen or not file.exists():
            return seen
        seen.add(file)
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', file.read_text(errors="replace"), re.MULTILINE):
            self.includes(self.root / name, seen)
        return seen

    def stamp(self, file, command, version):
        told = hashlib.sha256()
        for part in [version, command, (self.root / ".clang-tidy").read_text(encoding="utf-8")]:
            told.update(part.encode())
        for name in sorted(self.includes(file, set())):
            told.update(name.read_bytes())
        return told.hexdigest()

    def check(self, files):
        program, version = llvm_14("clang-tidy")
        # The commands are GCC's, which knows warnings that clang does not.
        command = [program, "--quiet", f"--config-file={self.root / '.clang-tidy'}",
                   "--extra-arg=-Wno-unknown-warning-option"]
        if files[0].name == self.planted:
            return self.lines_of(findings([*command, files[0], "--", "-std=c++20"]))
        database = self.commands()
        stamps = self.build / "lint-tidy" / "passed"
        stamps.mkdir(parents=True, exist_ok=True)
        # clang-tidy takes every command that it finds for a file.
        (stamps.parent / "compile_commands.json").write_text(json.dumps(list(database.values())), encoding="utf-8")
        known = {stamp.name for stamp in stamps.iterdir()}
        jobs = {file: self.stamp(file, database[file]["command"], version) for file in files if file in database}
        found = []
        to_do = sorted((file for file in jobs if jobs[file] not in known), key=lambda file: -file.stat().st_size)
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            results = pool.map(lambda file: self.lines_of(findings([*command, "-p", stamps.parent, file])), to_do)
            for file, lines in zip(to_do, results):
                found += [line for line in lines if line not in found]
                if not lines:
                    (stamps / jobs[file]).touch()
        for name in known - set(jobs.values()):
            (stamps / name).unlink()
        print(f"{len(jobs)} sources, {len(jobs) - len(to_do)} of them unchanged since they passed")
        return found

    @staticmethod
    def lines_of(lines):
        return [line for line in lines if re.search(r": (warning|error): |ended with exit code|^error", line)]


GATES = {"format": Format, "tidy": Tidy, "shell": Shell, "python": Python, "man": Man, "spelling": Spelling,
         "suppressions": Suppressions}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gate", choices=GATES)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    chosen = parser.parse_args()
    root, build = chosen.root.resolve(), chosen.build.resolve()
    gate = GATES[chosen.gate](root, build)
    try:
        with tempfile.TemporaryDirectory() as folder:
            planted = pathlib.Path(folder, gate.planted)
            planted.write_text(gate.fault, encoding="utf-8")
            if not gate.check([planted]):
                print(f"the gate lets this pass:\n{gate.fault}")
                return 1
        files = tree(root)
        found = gate.check(files)
    except Unsuitable as unsuitable:
        print(unsuitable)
        return 77
    except Missing as missing:
        print(missing)
        return 1 if os.environ.get("CI") == "true" else 77
    for line in found:
        print(line.replace(f"{root}/", "").replace(f"{build}/../", ""))
    print(f"{len(files)} files in the tree, {len(found)} findings")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
