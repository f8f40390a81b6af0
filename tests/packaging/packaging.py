#!/usr/bin/env python3
"""tools/package and what it packs: packaging.py --build FOLDER [--mpi NAME=LAUNCHER]..."""
import argparse
import glob
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True

from packaging_steps import archive, bundle, pages  # noqa: E402  after the path is set

chosen = argparse.Namespace(build=None, mpi=[])

# Below lib, or the folder of that name that this system has.
LIBRARIES = {"papaya/libpapaya.so", "pkgconfig/papaya.pc"}
OF_EACH_MPI = {"papaya/libpapaya-{}.so", "libpapaya-weak-{}.so", "libpapaya-weak-{}.so.0",
               "pkgconfig/papaya-weak-{}.pc"}
OTHERS = {"README", "bin/papaya", "include/papaya.h", "include/papaya_weak.h", "include/papaya_segment.h",
          "include/papaya.f90", "share/man/man1/papaya.1", "share/man/man3/papaya_weak.3",
          "share/papaya/tuning.schema.json", "share/bash-completion/completions/papaya", "share/doc/papaya/LICENSE",
          "share/doc/papaya/CHANGELOG.md", "share/doc/papaya/launchers/slurm.md"}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def only(pattern, text):
    found = re.findall(pattern, text, re.MULTILINE)
    assert len(found) == 1, (pattern, found)
    return found[0]


def run(*command, **options):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False, timeout=100, **options)


class Versions(unittest.TestCase):
    version = only(r"^  version: '([^']+)'", read("meson.build"))

    def test_they_agree(self):
        self.assertEqual(re.match(r"papaya \(([^)]+)\)", read("debian/changelog"))[1], self.version)
        self.assertEqual(re.search(r'^    version\("([^"]+)"', read("packaging/spack/package.py"), re.MULTILINE)[1],
                         self.version)
        self.assertIn(f"/papaya-{self.version}.tar.xz", read("packaging/spack/package.py"))
        [config] = (ROOT / "packaging" / "easybuild").glob("*.eb")
        text = config.read_text(encoding="utf-8")
        self.assertEqual(only(r"^version = '([^']+)'", text), self.version)
        toolchain = re.search(r"^toolchain = {'name': '(\w+)', 'version': '(\w+)'}", text, re.MULTILINE)
        self.assertEqual(config.name, f"papaya-{self.version}-{toolchain[1]}-{toolchain[2]}.eb")
        self.assertEqual(re.search(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE)[1], self.version)

    def test_the_command_tells_version_and_commit(self):
        said = run(chosen.build / "papaya", "--version").stdout
        self.assertRegex(said, rf"^papaya {re.escape(self.version)} \(commit ([0-9a-f]{{12}}(-modified)?|unknown)\)$")

    def test_an_archive_of_the_sources_knows_its_commit(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch, "packaging")
            folder.mkdir()
            script = shutil.copy(ROOT / "packaging" / "commit.sh", folder)
            shutil.copy(ROOT / "packaging" / "commit", folder)
            self.assertEqual(run(script).stdout, "unknown\n" if "$" in read("packaging/commit") else
                             f"{read('packaging/commit')[:12]}\n")
            (folder / "commit").write_text(f"{'0123456789abcdef' * 2}01234567 1700000000\n", encoding="utf-8")
            self.assertEqual(run(script).stdout, "0123456789ab\n")
        self.assertIn("packaging/commit export-subst", read(".gitattributes").splitlines())

    def test_debian_splits_what_is_installed(self):
        """A new file that no package names ends dpkg-buildpackage, and so does a package's name that fits no soname."""
        packages = set(re.findall(r"^Package: (\S+)", read("debian/control"), re.MULTILINE))
        self.assertEqual({file.stem for file in (ROOT / "debian").glob("*.install")}, packages)
        for name in ("openmpi", "mpich"):
            self.assertIn(f"libpapaya-weak-{name}{self.version.partition('.')[0]}", packages)


class Packing(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def test_the_same_files_make_the_same_archive(self):
        packed = []
        for place, names in (("one", ("a", "b/c")), ("two", ("b/c", "a"))):
            folder = self.scratch / place / "papaya"
            for name in names:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(name, encoding="utf-8")
                (folder / name).chmod(0o600 if place == "one" else 0o664)
            os.utime(folder / "a", (len(place) * 1000, 5))
            packed.append(archive.pack(folder, self.scratch / f"{place}.tar.xz", 1700000000).read_bytes())
        self.assertEqual(*packed)

    def test_what_is_bundled(self):
        self.assertEqual(bundle.own_name("libhwloc.so.15"), "libhwloc-papaya.so.15")
        for name in ("libc.so.6", "libmpi.so.40", "libmpi_abi.so.1", "libmpich.so.12", "libgcc_s.so.1", "libucp.so.0",
                     "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"):
            self.assertTrue(bundle.NOT_BUNDLED.fullmatch(name), name)
        for name in ("libhwloc.so.15", "libdw.so.1", "libcrypt.so.1"):
            self.assertFalse(bundle.NOT_BUNDLED.fullmatch(name), name)

    def test_pages_link_to_what_is_there(self):
        pages.install(self.scratch)
        links = 0
        for page in self.scratch.rglob("*.md"):
            for target in re.findall(r"\]\(([^)\s#]+)", page.read_text(encoding="utf-8")):
                if "://" in target:
                    continue
                self.assertTrue((page.parent / target).is_file(), f"{page.name} links to {target}")
                links += 1
        self.assertGreater(links, 20)
        self.assertFalse((self.scratch / "release.md").exists())
        self.assertIn("papaya-export(1) has", (self.scratch / "settings.md").read_text(encoding="utf-8"))

    def test_usage(self):
        help_text = run(ROOT / "tools" / "package", "--help").stdout
        for command in ("tarball", "source", "deb", "tree"):
            self.assertRegex(help_text, rf"tools/package {command}")
            self.assertEqual(run(ROOT / "tools" / "package", command, "--help").returncode, 0)
        self.assertEqual(run(ROOT / "tools" / "package", "rpm").returncode, 2)

    def check_module(self, moved, preload):
        """Loaded, the module brings papaya into programs; unloaded, everything is as before."""
        command = next((file for file in (shutil.which("modulecmd"), *glob.glob("/usr/lib/*/modulecmd*"), *glob.glob(
            "/usr/share/modules/libexec/modulecmd.tcl")) if file and os.access(file, os.X_OK)), None)
        if command is None:
            print("no Environment Modules here, so the module file is not tried")
            return
        script = (f"module() {{ eval \"$({shlex.quote(command)} bash \"$@\")\"; }}\n"
                  f"module use {shlex.quote(str(moved / 'share/modulefiles'))}\nmodule load papaya\n"
                  "echo \"$LD_PRELOAD|$(command -v papaya)|${MANPATH-unset}\"\n"
                  "echo \"${LD_LIBRARY_PATH-unset}|$(pkg-config --variable=includedir papaya)/papaya.h\"\n"
                  "module unload papaya\n"
                  "echo \"${LD_PRELOAD-unset}|${MANPATH-unset}|${LD_LIBRARY_PATH-unset}|${PYTHONPATH-unset}\"\n")
        changed = ("LD_PRELOAD", "LD_LIBRARY_PATH", "MANPATH", "PKG_CONFIG_PATH", "PYTHONPATH")
        for manpath in (None, "", "/somewhere/man:"):
            environment = {name: value for name, value in os.environ.items() if name not in changed}
            if manpath is not None:
                environment["MANPATH"] = manpath
            done = run("bash", "-c", script, env=environment)
            untouched = "unset" if manpath is None else manpath
            first, second, last = done.stdout.splitlines()
            self.assertEqual(first, f"{preload}|{moved / 'bin' / 'papaya'}|" + (
                f"{moved / 'share/man'}:{manpath}" if manpath else untouched), done.stderr)
            libraries, header = second.split("|")
            self.assertEqual(libraries, "unset")
            self.assertTrue(os.path.samefile(header, moved / "include" / "papaya.h"), header)
            self.assertEqual(last, f"unset|{untouched}|unset|unset")

    @unittest.skipUnless(shutil.which("patchelf") and shutil.which("meson"), "needs patchelf and meson")
    def test_a_folder_runs_where_it_is_moved_to(self):
        made, moved = self.scratch / "made", self.scratch / "somewhere" / "else"
        done = run(ROOT / "tools" / "package", "tree", "--build", chosen.build, made)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        again = run(ROOT / "tools" / "package", "tree", "--build", chosen.build, made)
        self.assertEqual((again.returncode, "there already" in again.stderr), (1, True), again.stderr)
        moved.parent.mkdir()
        made.rename(moved)
        preload = next(moved.rglob("libpapaya.so"))
        libraries = preload.parent.parent
        expected = LIBRARIES | {name.format(mpi) for mpi, _ in chosen.mpi for name in OF_EACH_MPI}
        self.assertEqual([name for name in sorted(expected) if not (libraries / name).exists()], [])
        programs = {f"libexec/papaya/papaya-bench-{mpi}" for mpi, _ in chosen.mpi}
        self.assertEqual([name for name in sorted(OTHERS | programs) if not (moved / name).exists()], [])
        self.check_module(moved, preload)
        for file in bundle.programs_and_libraries(moved):
            outside = [name for name in bundle.needed_by(lambda *command: run(*command).stdout, file)
                       if not bundle.NOT_BUNDLED.fullmatch(name) and not list(moved.rglob(name))]
            self.assertEqual(outside, [], file.name)
        for name, launcher in chosen.mpi:
            output = self.scratch / f"out-{name}"
            done = run(launcher, "-n", "2", moved / "bin" / "papaya", "run",
                       chosen.build / "examples" / f"imbalanced-{name}", "--iterations", "100",
                       env={**os.environ, "PAPAYA_OUTPUT": str(output)})
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads((output / "report.json").read_text(encoding="utf-8"))
            calls = {row["name"]: row["calls"] for row in report["collectives"]}
            self.assertEqual(calls["MPI_Allreduce"], 2 * 2 * 100, calls)
            said = run(moved / "bin" / "papaya", "info").stdout
            self.assertIn(str(preload.parent / f"libpapaya-{name}.so"), said)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--build", type=pathlib.Path, required=True)
    options.add_argument("--mpi", action="append", default=[], type=lambda text: tuple(text.split("=", 1)))
    chosen, rest = options.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
