#!/usr/bin/env python3
"""MPICH takes the trees that `papaya export mpich` and `mpich-ch4` write:
exported_trees.py PAPAYA MPIRUN MESSAGES COUNTER ROUNDING

MESSAGES, with COUNTER preloaded, prints how many messages each collective call sends, and ROUNDING sums whose bits tell
which algorithm has made them. Both are compared with those of algorithms that MPICH is told to take for all calls."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SMALL, LARGE = "128", "65536"  # bytes of the programs' messages
RANKS = 4
SKIPPED = 77
ONE = {"allreduce": "recursive_doubling", "reduce": "binomial", "bcast": "binomial", "alltoall": "brucks",
       "allgather": "recursive_doubling"}
OTHER = {"allreduce": "reduce_scatter_allgather", "reduce": "reduce_scatter_gather", "bcast": "scatter_ring_allgather",
         "alltoall": "pairwise", "allgather": "ring"}


class Trees:
    def __init__(self, papaya, mpirun, messages, counter, rounding, folder):
        self.papaya, self.mpirun = papaya, mpirun
        self.messages, self.counter, self.rounding = messages, counter, rounding
        self.folder = pathlib.Path(folder)

    def launch(self, program, **variables):
        return subprocess.run([self.mpirun, "-n", str(RANKS), program], env={**os.environ, **variables}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)

    def counts(self, **variables):
        """{(collective, bytes): messages}, with each rank on a node of its own, so that all go by UCX."""
        job = self.launch(self.messages, LD_PRELOAD=self.counter, MPIR_CVAR_NOLOCAL="1", **variables)
        assert job.returncode == 0, job.stderr
        return {tuple(line.split()[:2]): line.split()[2] for line in job.stdout.splitlines()}

    def bits(self, **variables):
        """{bytes: bits}, with the ranks on two nodes."""
        job = self.launch(self.rounding, MPIR_CVAR_NUM_CLIQUES="2", MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM="tsp_ring",
                          **variables)
        assert job.returncode == 0, job.stderr
        return dict(line.split() for line in job.stdout.splitlines())

    def export(self, rules, kind="mpich"):
        tuning, tree = self.folder / "tuning.json", self.folder / f"{kind}.json"
        tuning.write_text(json.dumps({"version": 1, "rules": rules}), encoding="utf-8")
        subprocess.run([self.papaya, "export", kind, tuning, "-o", tree], check=True)
        return tree


def forced(algorithms):
    return {f"MPIR_CVAR_{collective.upper()}_INTRA_ALGORITHM": name for collective, name in algorithms.items()}


def rules(small, large, ranks):
    return [{"collective": collective, "ranks": ranks, "bytes": sizes, "algorithm": "native",
             "parameters": {"mpich": names[collective]}}
            for collective in ONE for sizes, names in (([0, "4K"], small), (["4K", None], large))]


def check_algorithms(trees):
    usual, one, other = trees.counts(), trees.counts(**forced(ONE)), trees.counts(**forced(OTHER))
    if not any(int(count) for count in usual.values()):
        print("this MPICH does not send by UCX")
        sys.exit(SKIPPED)
    for call, count in one.items():
        assert count != other[call], f"the messages do not tell the algorithms of {call} apart"
    for small, large in ((ONE, OTHER), (OTHER, ONE)):
        tree = trees.export(rules(small, large, [3, RANKS]))
        found = trees.counts(MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=str(tree))
        wanted = {call: (one if names is ONE else other)[call]
                  for call in one for names in [small if call[1] == SMALL else large]}
        assert found == wanted, f"{found}, not {wanted}"
    tree = trees.export(rules(OTHER, ONE, [RANKS + 1, None]))
    found = trees.counts(MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=str(tree))
    assert found == usual, f"{found}, not {usual}: what no rule is for is MPICH's own choice"
    wrong = trees.folder / "wrong.json"
    wrong.write_text(tree.read_text(encoding="utf-8").replace("_intra_ring", "_intra_rink"), encoding="utf-8")
    refused = trees.launch(trees.messages, LD_PRELOAD=trees.counter,
                           MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=str(wrong))
    assert refused.returncode != 0 or not refused.stdout, "MPICH reads no tree"  # 4.2's mpirun may give 0


def check_device(trees):
    chosen = [{"collective": "allreduce", "ranks": RANKS, "bytes": [0, "4K"], "algorithm": "native",
               "parameters": {"mpich": "nb"}}]
    usual = trees.bits()
    ring = trees.bits(MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM="nb", MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE="0")
    for bytes_ in (SMALL, LARGE):
        assert usual[bytes_] != ring[bytes_], "the bits do not tell the algorithms apart"
    both = {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": str(trees.export(chosen))}
    alone = trees.bits(**both)
    both["MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE"] = str(trees.export(chosen, "mpich-ch4"))
    found, wanted = trees.bits(**both), {SMALL: ring[SMALL], LARGE: usual[LARGE]}
    assert found == wanted, f"{found}, not {wanted}"
    # MPICH 4's device chooses before this tree, 5's leaves it to the tree.
    says = subprocess.run([trees.mpirun, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    expected = wanted if int(re.search(r"Version: +(\d+)", says)[1]) >= 5 else usual
    assert alone == expected, f"{alone}, not {expected}"


def main(*words):
    with tempfile.TemporaryDirectory(prefix="papaya-test-") as folder:
        trees = Trees(*words, folder)
        check_algorithms(trees)
        check_device(trees)


if __name__ == "__main__":
    main(*sys.argv[1:6])
