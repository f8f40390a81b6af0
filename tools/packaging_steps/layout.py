"""What is in the relocatable package besides what meson installs."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from packaging_steps import bundle, pages

MPIS = {"openmpi": "Open MPI", "mpich": "MPICH and those with its ABI", "abi": "MPIs with the standard ABI of MPI 5.0"}

# Compiled or joined into what is installed.
LINKED_IN = ("libfmt-dev", "nlohmann-json3-dev", "libcli11-dev", "libstdc++6", "libjs-chart.js")

READ_ME = """papaya {version}: who arrives late at which MPI collective, and what that costs

  mpirun -n 4 bin/papaya run ./app

Put this folder wherever you like, on a file system that all nodes see. It needs Linux on {machine}, glibc {glibc} or
newer and an MPI for which it has a library; it finds out which one a program uses: {mpis}.
libpapaya.so, for LD_PRELOAD, is in {libraries}.
bin/papaya doctor checks the rest; share/doc/papaya/guide.md is the guide, share/man has the manual pages. For all users
of a machine: module use share/modulefiles; module load papaya. Programs that call papaya's own functions are
compiled and linked with the headers and libraries of this folder, wherever it is (share/doc/papaya/weak.md).

Of papaya's own only these are tied to the names that Debian gives the MPI libraries ({names}):
the benchmark (papaya bench, papaya tune) and lib*/libpapaya-weak-*.so.
UCX (PAPAYA_TRANSPORT=ucx) and libunwind (PAPAYA_CALLSITES above 1) are used where the machine has them.
lib*/papaya/bundled has copies of libraries that machines may lack; share/doc/papaya/licences has their licences.
"""


def install(run, build, tree, is_stripped):
    """`meson install` of a build folder as it is, into a new folder."""
    options = json.loads((build / "meson-info" / "intro-buildoptions.json").read_text(encoding="utf-8"))
    prefix = next(option["value"] for option in options if option["name"] == "prefix")
    with tempfile.TemporaryDirectory() as scratch:
        stage = pathlib.Path(scratch, "stage")
        run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", stage,
            *(["--strip"] if is_stripped else []))
        tree.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(stage / prefix.lstrip("/"), tree)
    make_relocatable(tree)


def make_relocatable(tree):
    """What pkg-config says holds wherever the folder is."""
    for file in tree.rglob("*.pc"):
        up = "/".join([".."] * len(file.parent.relative_to(tree).parts))
        text = file.read_text(encoding="utf-8")
        text = re.sub(r"^prefix=.*$", f"prefix=${{pcfiledir}}/{up}", text, flags=re.MULTILINE)
        file.write_text(text, encoding="utf-8")


def glibc_of(run, tree):
    """The oldest version that has all that is used."""
    versions = {(0, 0)}
    for file in bundle.programs_and_libraries(tree):
        versions |= {(int(major), int(minor))
                     for major, minor in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", run("readelf", "-VW", file))}
    return ".".join(str(number) for number in max(versions))


def document(run, root, tree, version, bundled):
    """Returns the version of glibc that the package needs."""
    folder = tree / "share" / "doc" / "papaya"
    folder.mkdir(parents=True)
    for page in ("LICENSE", "CHANGELOG.md"):
        shutil.copy(root / page, folder)
    pages.install(folder)
    licences(folder / "licences", bundled)
    preload = next(tree.rglob("libpapaya.so"))
    flavours = sorted(file.stem.removeprefix("libpapaya-") for file in preload.parent.glob("libpapaya-*.so")
                      if file.stem != "libpapaya-ucx")
    programs = [file for file in bundle.programs_and_libraries(tree) if "-bench-" in file.name]
    names = sorted({name for file in programs for name in bundle.needed_by(run, file) if name.startswith("libmpi")})
    glibc = glibc_of(run, tree)
    (tree / "README").write_text(READ_ME.format(
        version=version, machine=os.uname().machine, glibc=glibc, mpis=", ".join(MPIS[flavour] for flavour in flavours),
        libraries=preload.parent.relative_to(tree), names=", ".join(names)), encoding="utf-8")
    return glibc


def licences(folder, bundled):
    """Where dpkg knows which package a library is of."""
    if not shutil.which("dpkg"):
        return
    packages = set(LINKED_IN)
    for file in bundled:
        found = subprocess.run(["dpkg", "-S", f"*/{pathlib.Path(file).resolve().name}"], text=True, check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        packages.add(found.split(":")[0])
    folder.mkdir()
    for package in sorted(packages):
        text = pathlib.Path("/usr/share/doc", package, "copyright")
        if package and text.exists():
            shutil.copy(text, folder / package)
