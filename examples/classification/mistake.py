"""What the user can put right: one sentence, on one rank, and exit code 1."""

import os
import sys


class Mistake(Exception):
    """Its text is the sentence."""


def rank_of_launcher():
    """Before MPI is there, from the environment; 0 without a launcher."""
    for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def missing(error):
    """Ends a program whose import has failed."""
    packages = {"torch": "python3-torch", "numpy": "python3-numpy", "mpi4py": "python3-mpi4py",
                "sklearn": "python3-sklearn", "matplotlib": "python3-matplotlib"}
    name = (error.name or "").split(".")[0]
    if name == "papaya":
        help_ = "set PYTHONPATH to the folder that has papaya.py (api in papaya's sources)"
    else:
        help_ = f"install {packages.get(name, name)}, and start this with /usr/bin/python3"
    if rank_of_launcher() == 0:
        sys.stderr.write(f"{os.path.basename(sys.argv[0])}: {error} in {sys.executable}: {help_}.\n")
    sys.exit(1)
