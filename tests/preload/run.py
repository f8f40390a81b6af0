#!/usr/bin/env python3
"""Runs real MPI programs with papaya and without, and compares. The cases are the methods test_NAME in cases/*.py.

  run.py --build DIR --mpi openmpi|mpich --case NAME    one case; exit code 77 if it cannot be run here
  run.py ... --native                                   without papaya: what fails now is not papaya's doing
  run.py --list [FILE...]                               a line for each case: its name, the seconds it may take, the MPIs it
                                                        is for and its suite; with FILEs, these must be all in cases/
"""

import argparse
import importlib
import pathlib
import sys
import unittest

from harness import HERE, Preload

TOPICS = sorted((HERE / "cases").glob("*.py"))


def all_cases():
    """{name: class} of the cases."""
    found = {}
    for path in TOPICS:
        module = importlib.import_module(f"cases.{path.stem}")
        for topic in vars(module).values():
            if not isinstance(topic, type) or not issubclass(topic, Preload) or topic is Preload:
                continue
            for method in unittest.defaultTestLoader.getTestCaseNames(topic):
                name = method.removeprefix("test_")
                if name in found:
                    sys.exit(f"two cases are named {name}: in {found[name].__module__} and {module.__name__}; rename one")
                found[name] = topic
    return dict(sorted(found.items()))


def list_cases(cases, files):
    if files and sorted(path.resolve() for path in files) != TOPICS:
        sys.exit("tests/preload/meson.build must name each file of cases/ once, and no other")
    for name, topic in cases.items():
        case = getattr(topic, f"test_{name}")
        print(name, getattr(case, "seconds", 60), getattr(case, "needs", "mpi"),
              "quick" if hasattr(case, "is_quick") else "preload")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--mpi", choices=("openmpi", "mpich"))
    parser.add_argument("--case", action="append", help="several may be given; all if none is")
    parser.add_argument("--native", action="store_true")
    parser.add_argument("--list", nargs="*", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    cases = all_cases()
    if arguments.list is not None:
        list_cases(cases, arguments.list)
        return 0
    if arguments.build is None or arguments.mpi is None:
        parser.error("--build and --mpi are needed")
    unknown = [case for case in arguments.case or [] if case not in cases]
    if unknown:
        parser.error(f"unknown case: {', '.join(unknown)}")
    Preload.build, Preload.mpi, Preload.native_only = arguments.build.resolve(), arguments.mpi, arguments.native

    suite = unittest.TestSuite(cases[case](f"test_{case}") for case in arguments.case or cases)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    for _, reason in result.skipped:
        print(f"skipped: {reason}")
    if not result.wasSuccessful() or result.testsRun == 0:
        return 1
    if arguments.native:
        return 0
    return 77 if len(result.skipped) == result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
