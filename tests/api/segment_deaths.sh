#!/bin/sh
# usage: segment_deaths.sh openmpi|mpich MPIRUN PROGRAM PLACE
# Runs the modes of segment_deaths.c.
set -eu
mpi=$1 mpirun=$2 program=$3 place=$4

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

said=$("$mpirun" -n 3 "$program" discard "$place" 2>&1) || true
echo "$said"
# UCX 1.18 ends a process in MPI_Finalize that has sent to one that died.
echo "$said" | grep -q "Assertion \`region->refcount == 0' failed" || echo "$said" | grep -q "^all right"
# So MPICH's UCX complains of receives that MPI_Finalize finds left.
if echo "$said" | grep -q "recv length"; then exit 1; fi

# The launcher has its own view of a rank that ends without a word, and of the job's exit status.
case $mpi in
  openmpi) recovers=--enable-recovery ;;
  *) recovers=-disable-auto-cleanup ;;
esac
"$mpirun" $recovers -n 3 "$program" death "$place" >"$folder/stdout" || true
cat "$folder/stdout"
grep -q "^rank 0 goes on" "$folder/stdout"
grep -q "^rank 1 goes on" "$folder/stdout"

[ "$PAPAYA_NODE_SIZE $PAPAYA_TRANSPORT" = "1 mpi" ] || exit 0
PAPAYA_STALL_SECONDS=1 "$mpirun" -n 3 "$program" stall "$place" 2>"$folder/stderr" || { cat "$folder/stderr"; exit 1; }
grep "rank 0 has waited 1 s in a segment on a communicator of 3 ranks for notifications 1 to 2\\." "$folder/stderr"
