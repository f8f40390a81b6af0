#!/usr/bin/env python3
"""Compares papaya's header of the standard ABI with those of the MPIs that have one: values, types, prototypes.

usage: header.py ROOT
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
OWN = ROOT / "interpose" / "standard_abi"
SKIP = 77

PROTOTYPES = """
#define ABI(name, ...) int MPI_##name(__VA_ARGS__); int PMPI_##name(__VA_ARGS__);
#include "functions.def"
"""


def folders():
    """Where the MPIs that are here have a mpi.h of the standard ABI."""
    found = {}
    for wrapper in ("mpicc_abi", "mpicc.mpich"):
        if shutil.which(wrapper):
            line = subprocess.run([wrapper, "-show"], capture_output=True, text=True, check=False).stdout
            for folder in re.findall(r"-I\s*(\S+)", line):
                found[pathlib.Path(folder) / "mpi.h"] = wrapper
                # Debian's.
                found[pathlib.Path(folder).parent.parent / "mpi_abi_mpich" / "include" / "mpi.h"] = wrapper
    for wrapper in ("mpicc.openmpi", "mpicc"):
        if shutil.which(wrapper):
            line = subprocess.run([wrapper, "--showme:incdirs"], capture_output=True, text=True, check=False).stdout
            for folder in line.split():
                found[pathlib.Path(folder) / "standard_abi" / "mpi.h"] = wrapper
    return sorted(header.parent for header in found if header.is_file() and "MPI_ABI_VERSION" in header.read_text())


def figures(program, folder, work):
    """What the program prints when it is compiled against the header in that folder."""
    source = work / "figures.c"
    source.write_text(program)
    command = ["cc", "-std=c11", "-Werror", f"-I{folder}", f"-I{ROOT}", f"-I{OWN}", str(source),
               "-o", str(work / "figures")]
    functions = (OWN / "functions.def").read_text()
    # MPICH 5.0.2 has an int there. papaya hands the register on, and looks at no such count.
    if re.search(r"MPI_Psend_init\(const void \*buf, int partitions, int count", (folder / "mpi.h").read_text()):
        functions = re.sub(r"(?m)^(ABI\(P(send|recv)_init, .*)MPI_Count", r"\1int", functions)
    (work / "functions.def").write_text(functions)
    subprocess.run(command, check=True)
    lines = subprocess.run([str(work / "figures")], capture_output=True, text=True, check=True).stdout.splitlines()
    return dict(line.rsplit(" ", 1) for line in lines)


def main():
    text = (OWN / "mpi.h").read_text()
    names = [name for name in re.findall(r"^#define (MPI_\w+) ", text, re.MULTILINE)]
    types = re.findall(r"^typedef [^({\n]*?(MPI_\w+);$", text, re.MULTILINE) + ["MPI_Status"]
    functions = re.findall(r"^typedef \w+ (MPI_\w+_function)\(", text, re.MULTILINE)
    assert len(names) > 140 and len(types) > 13 and len(functions) > 6, (len(names), types, functions)
    values = "".join(f'  printf("{name} %lld\\n", (long long)(intptr_t)({name}));\n' for name in names)
    sizes = "".join(f'  printf("sizeof {name} %zu\\n", sizeof({name}));\n' for name in types)
    fields = "".join(f'  printf("offset of {name} %zu\\n", offsetof(MPI_Status, {name}));\n'
                     for name in ("MPI_SOURCE", "MPI_TAG", "MPI_ERROR"))
    program = f"#include <mpi.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n{PROTOTYPES}\n" \
              f"int main(void) {{\n{values}{sizes}{fields}  return 0;\n}}\n"
    # The types of callbacks: declared again, as the others' header has them.
    callbacks = "".join(re.findall(r"^typedef \w+ MPI_\w+_function\(.*\);\n", text, re.MULTILINE))
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        own = figures(program, OWN, work)
        others = folders()
        for folder in others:
            other = figures(program.replace(PROTOTYPES, callbacks + PROTOTYPES), folder, work)
            # What the standard says of the version of its ABI may grow.
            different = [f"{key}: {own[key]} here, {other[key]} there" for key in own
                         if own[key] != other[key] and key not in ("MPI_SUBVERSION", "MPI_ABI_SUBVERSION")]
            bad += len(different)
            print(f"{folder}: {len(own)} values and sizes, {len(different)} differ", *different, sep="\n  ")
    if not others:
        print("no MPI here has a header of the standard ABI")
        sys.exit(SKIP)
    sys.exit(1 if bad else 0)


main()
