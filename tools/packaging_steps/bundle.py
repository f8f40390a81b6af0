"""Libraries that another machine may lack go into the package: copies in lib/papaya/bundled with names of their own.

A copy of libhwloc under its own name would serve an MPI's plugin that the program opens later, too, and may be too old
for it. Hence libhwloc-papaya.so.15, which nothing else asks for.
"""
import os
import pathlib
import re
import shutil

# glibc and the compiler's unwinder and C++ library (which a tarball's build has linked in), of which a process has one;
# the MPI; UCX, which the user chooses.
NOT_BUNDLED = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|mpi|mpich|mpi_abi|ucp|uct|ucs|ucm))\.so.*")


class Missing(Exception):
    """A library that the package needs is not here."""


def is_elf(file):
    if file.is_symlink() or not file.is_file():
        return False
    with open(file, "rb") as opened:
        return opened.read(4) == b"\x7fELF"


def programs_and_libraries(tree):
    return [file for file in sorted(tree.rglob("*")) if is_elf(file)]


def needed_by(run, file):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", file))


def paths_of(run, file):
    """Where the loader finds what `file` needs, and what that needs."""
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", file), re.MULTILINE))


def own_name(library):
    stem, so, rest = library.partition(".so")
    return f"{stem}-papaya{so}{rest}"


def bundle(run, tree):
    """Returns the files that were copied."""
    folder = next(tree.rglob("libpapaya.so")).parent / "bundled"
    own = {file.name for file in tree.rglob("*.so*")}
    copied = {}  # the library's name: where it came from
    waiting = programs_and_libraries(tree)
    while waiting:
        file = waiting.pop(0)
        wanted = [name for name in needed_by(run, file) if name not in own and not NOT_BUNDLED.fullmatch(name)]
        found = paths_of(run, copied.get(file, file)) if wanted else {}
        for name in wanted:
            if name not in found:
                raise Missing(f"{file.name} needs {name}, which is not installed here")
            copy = folder / own_name(name)
            if copy not in copied:
                copied[copy] = found[name]
                folder.mkdir(exist_ok=True)
                shutil.copy(pathlib.Path(found[name]).resolve(), copy)
                copy.chmod(0o755)
                run("patchelf", "--set-soname", copy.name, copy)
                waiting.append(copy)
            run("patchelf", "--replace-needed", name, copy.name, file)
        # Of the folders that the build has put there, none is one of the user's.
        beside = "$ORIGIN" if file.parent == folder else f"$ORIGIN/{os.path.relpath(folder, file.parent)}"
        run("patchelf", *(["--set-rpath", beside] if wanted else ["--remove-rpath"]), file)
    return sorted(set(copied.values()))
