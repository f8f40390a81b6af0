#!/usr/bin/env python3
"""Plants the faults of faults.py one by one and tells which the tests find.

  tests/mutations/run.py [--list] [NAME...]

Works on a copy of the committed tree in build-mutations, with builds of its own there; NAME selects faults whose name
or file contains it. A fault is caught if it compiles and one of its tests fails. Exit code 1 if a fault was not caught
or is no longer there to plant. About a minute a fault on 2 cores.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

from faults import FAULTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "build-mutations"
SECONDS = {"": 120, "tsan": 400}  # of one test; a fault may well hang it
OPTIONS = {"": ["-Dbuildtype=release"],
           "tsan": ["-Dbuildtype=debugoptimized", "-Db_sanitize=thread", "-Db_lundef=false", "-Dcpp_args=-g1"]}


def run(*command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, **options)


def make_copy():
    if not (COPY / ".git").exists():
        done = run("git", "-C", str(ROOT), "worktree", "add", "--force", "--detach", str(COPY))
    else:
        commit = run("git", "-C", str(ROOT), "rev-parse", "HEAD").stdout.strip()
        done = run("git", "-C", str(COPY), "checkout", "--force", "--detach", commit)
    if done.returncode != 0:
        sys.exit(done.stdout)


def build_folder(kind):
    folder = COPY / ("build-" + kind if kind else "build")
    if not (folder / "build.ninja").exists():
        done = run("meson", "setup", str(folder), str(COPY), *OPTIONS[kind])
        if done.returncode != 0:
            sys.exit(done.stdout)
    return folder


def tests_of(folder, name):
    """(What has to be built, the arguments of `meson test`) for the test or the suite of this name."""
    run("ninja", "-C", str(folder), "build.ninja")
    info = folder / "meson-info"
    outputs = {target["id"]: target["filename"] for target in json.loads((info / "intro-targets.json").read_text())}
    tests = json.loads((info / "intro-tests.json").read_text())
    chosen = [test for test in tests if test["name"] == name]
    arguments = [name]
    if not chosen:
        chosen = [test for test in tests if name in [suite.split(":")[-1] for suite in test["suite"]]]
        arguments = ["--suite", name]
    if not chosen:
        sys.exit(f"there is no test {name}")
    files = {str(pathlib.Path(file).relative_to(folder)) for test in chosen for target in test["depends"]
             for file in outputs[target]}
    return sorted(files), arguments


def finds(kind, name):
    """Whether this test fails; None if the fault does not compile."""
    folder = build_folder(kind)
    files, tests = tests_of(folder, name)
    done = run("ninja", "-C", str(folder), *files)
    if done.returncode != 0:
        return None
    # As in tools/test: ThreadSanitizer cannot place its shadow where addresses are randomised with more bits.
    still = ["setarch", "-R"] if kind == "tsan" else []
    # One race is enough.
    environment = {**os.environ, "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "") + ":halt_on_error=1"}
    command = [*still, "meson", "test", "-C", str(folder), "--no-rebuild", "--maxfail", "1", *tests]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, env=environment) as runner:
        try:
            return runner.wait(timeout=SECONDS[kind]) != 0
        except subprocess.TimeoutExpired:
            runner.terminate()  # it ends the tests, which have sessions of their own
            return True


def try_fault(fault, tests):
    """The test that found it, or the reason why none did."""
    _, file, old, new, _ = fault
    path = COPY / file
    text = path.read_text()
    if text.count(old) != 1:
        return None, f"stands there {text.count(old)} times"
    path.write_text(text.replace(old, new))
    try:
        for test in tests:
            kind, _, name = test.rpartition(":")
            found = finds(kind, name)
            if found is None:
                return None, "does not compile"
            if found:
                return test, ""
        return None, "not caught"
    finally:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--list", action="store_true", help="only names the faults")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    chosen = [fault for fault in FAULTS
              if not options.names or any(name in fault[0] or name in fault[1] for name in options.names)]
    if options.list:
        for name, file, _, _, tests in chosen:
            print(f"{file}: {name} ({', '.join(tests)})")
        return 0
    make_copy()
    # Each test passes without a fault, or nothing is shown.
    for test in sorted({test for fault in chosen for test in fault[4]}):
        kind, _, name = test.rpartition(":")
        if finds(kind, name) is not False:
            sys.exit(f"{test} fails without a fault")
    missed = 0
    for number, fault in enumerate(chosen, 1):
        begin = time.monotonic()
        test, why = try_fault(fault, fault[4])
        missed += test is None
        print(f"[{number}/{len(chosen)}] {fault[1]}: {fault[0]}: {'caught by ' + test if test else why.upper()}"
              f" ({time.monotonic() - begin:.0f} s)", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} caught")
    return 1 if missed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
