#!/bin/sh
# usage: adversity.sh openmpi|mpich MPIRUN PROGRAM DEVICE_LIBRARY ROUNDS
# Runs the modes of adversity.c. Where a private /dev/shm is not permitted its mode is left out.
set -eu
mpi=$1 mpirun=$2 program=$3 library=$4 rounds=$5

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# MPICH's launcher kills the others with its own failure, whatever it is told. Of Open MPI's the job's exit status is the
# dead rank's, and what they print may be lost.
if [ "$mpi" = openmpi ]; then
  "$mpirun" --enable-recovery -n 3 "$program" killed "$folder" || true
  [ -e "$folder/rank-0" ]
  [ -e "$folder/rank-1" ]
fi

"$mpirun" -n 2 "$program" device "$library"
"$mpirun" -n 2 "$program" growth "$rounds"
if [ "$PAPAYA_NODE_SIZE" = 0 ]; then
  PAPAYA_STALL_SECONDS=1 "$mpirun" -n 2 "$program" stalls 2>"$folder/stderr" || { cat "$folder/stderr"; exit 1; }
  grep "rank 0 has waited 1 s in call 2 of ssp_allreduce (ssp_hypercube) on MPI_COMM_WORLD for rank 1\\." "$folder/stderr"
fi
# The mount is this shell's alone. Open MPI's own buffers go elsewhere, or it would be the one to fail.
export OMPI_MCA_btl_vader_backing_directory="$folder"
if unshare -m mount -t tmpfs -o size=64m none /dev/shm 2>/dev/null; then
  # shellcheck disable=SC2016  # the inner shell's arguments
  unshare -m sh -c 'mount -t tmpfs -o size=64m none /dev/shm && exec "$@"' sh "$mpirun" -n 2 "$program" full
fi
