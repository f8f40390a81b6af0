#!/usr/bin/env python3
"""Open MPI takes the rules that `papaya export openmpi` writes: exported_rules.py PAPAYA MPIRUN PROGRAM

PROGRAM prints sums whose bits tell which algorithm has made them. They are compared with those of algorithms that
Open MPI is told to take for all calls."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SMALL, LARGE = "128", "65536"  # bytes of PROGRAM's messages


def main(papaya, mpirun, program):
    def bits(*parameters):
        command = [mpirun, "--oversubscribe", "--bind-to", "none", "-n", "4"]
        for name, value in (("use_dynamic_rules", "1"), *parameters):
            command += ["--mca", f"coll_tuned_{name}", value]
        lines = subprocess.run([*command, program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
        return dict(line.split() for line in lines)

    says = subprocess.run([mpirun, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    # 6.0.0rc2 moves each range of the older format by one.
    kind = "openmpi-json" if int(re.search(r"(\d+)\.\d+\.\d+", says)[1]) >= 6 else "openmpi"
    linear = bits(("allreduce_algorithm", "basic_linear"))
    ring = bits(("allreduce_algorithm", "ring"))
    for bytes_ in (SMALL, LARGE):
        assert linear[bytes_] != ring[bytes_], "the bits do not tell the algorithms apart"
    with tempfile.TemporaryDirectory(prefix="papaya-test-") as folder:
        tuning, rules = pathlib.Path(folder, "tuning.json"), pathlib.Path(folder, "rules")
        for small, large in (("basic_linear", "ring"), ("ring", "basic_linear")):
            tuning.write_text(json.dumps({"version": 1, "rules": [
                {"collective": "allreduce", "ranks": [3, 8], "bytes": sizes, "algorithm": "native",
                 "parameters": {"openmpi": name}}
                for sizes, name in (([0, "4K"], small), (["4K", None], large))]}), encoding="utf-8")
            subprocess.run([papaya, "export", kind, tuning, "-o", rules], check=True)
            exported = bits(("dynamic_rules_filename", str(rules)))
            wanted = {SMALL: (linear if small == "basic_linear" else ring)[SMALL],
                      LARGE: (linear if large == "basic_linear" else ring)[LARGE]}
            assert exported == wanted, f"{exported}, not {wanted}, by\n{rules.read_text(encoding='utf-8')}"


if __name__ == "__main__":
    main(*sys.argv[1:4])
