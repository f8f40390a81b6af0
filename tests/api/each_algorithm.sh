#!/bin/sh
# usage: each_algorithm.sh PAPAYA MPIRUN RANKS PROGRAM ARGUMENT COLLECTIVE...
# Runs PROGRAM on RANKS ranks with ARGUMENT and all algorithms that the registry has for the weakly consistent COLLECTIVEs.
set -eu
papaya=$1 mpirun=$2 ranks=$3 program=$4 argument=$5
shift 5
names=
for collective in "$@"; do
  names="$names $("$papaya" info --algorithms "$collective")"
done
# shellcheck disable=SC2086  # names are words
exec "$mpirun" -n "$ranks" "$program" "$argument" $names
