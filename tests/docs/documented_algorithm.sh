#!/bin/sh
# usage: documented_algorithm.sh PAPAYA LIBPAPAYA FLAVOUR MPIRUN RANKS PROGRAM
# Runs PROGRAM, which compares results with the MPI's own, with the algorithm of docs/add_an_algorithm.md, which FLAVOUR
# contains.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$1" "$2" "$3" "$folder"
PAPAYA_ALLREDUCE=my_algorithm:banks=4 PAPAYA_OUTPUT="$folder/out" "$4" -n "$5" "$folder/papaya" run "$6" allreduce
"$folder/papaya" report "$folder/out" > "$folder/report"
grep -q "MPI_Allreduce  *my_algorithm  *[0-9]" "$folder/report" || {
  echo "my_algorithm did not run"
  cat "$folder/report"
  exit 1
}
