# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

import os

from spack_repo.builtin.build_systems.meson import MesonPackage

from spack.package import conflicts, depends_on, license, requires, variant, version, which


class Papaya(MesonPackage):
    """papaya is preloaded into MPI programs as they are. It shows which process arrives late at
    which collective operation and what that costs, and replaces collectives by algorithms that
    use the waiting time."""

    homepage = "file:///usr/share/doc/papaya"
    # Made by `tools/package source`; put it into the folder where spack is called.
    manual_download = True
    url = f"file://{os.getcwd()}/papaya-0.2.0.tar.xz"

    license("BSD-3-Clause")

    version("0.2.0")

    variant("libdw", default=True, description="Name functions and source lines in reports")
    variant("otf2", default=False, description="Export timelines as OTF2")
    variant("ucx", default=False, description="Write between nodes through UCX")
    variant("python", default=False, description="Python module of the weakly consistent collectives")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("meson@1.0:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type="build")
    depends_on("cli11", type="build")
    depends_on("fmt@9:", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("hwloc@2:", type="link")
    depends_on("mpi")
    depends_on("elfutils", type="link", when="+libdw")
    depends_on("otf2", type="link", when="+otf2")
    depends_on("ucx@1.10:", type="link", when="+ucx")
    depends_on("python@3:", type=("build", "run"), when="+python")
    depends_on("py-numpy", type="run", when="+python")

    # A flavour is built for each of these; which one a program needs is found out when it runs.
    requires("^[virtuals=mpi] openmpi@4:5", "^[virtuals=mpi] mpich@4:", policy="any_of")
    conflicts("%gcc@:11", msg="papaya is C++20 and needs GCC 12 or newer")

    def meson_args(self):
        def enabled(name):
            return f"-D{name}={'enabled' if self.spec.satisfies(f'+{name}') else 'disabled'}"

        return ["-Dtests=false", "-Dchart_js=disabled", enabled("libdw"), enabled("otf2"), enabled("ucx")]

    def setup_run_environment(self, env):
        if self.spec.satisfies("+python"):
            env.prepend_path("LD_LIBRARY_PATH", self.prefix.lib)

    def test_version(self):
        """the command runs and is of this version"""
        papaya = which(self.prefix.bin.papaya)
        assert str(self.spec.version) in papaya("--version", output=str.split, error=str.split)

    def test_report(self):
        """a program of one rank leaves a report"""
        papaya = which(self.prefix.bin.papaya)
        assert "MPI" in papaya("info", output=str.split, error=str.split)
