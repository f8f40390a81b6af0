#!/bin/sh
# usage: each_algorithm.sh PAPAYA COLLECTIVE MPIRUN RANKS PROGRAM [ARGUMENT...]
# Runs PROGRAM on RANKS ranks with every algorithm of the registry for COLLECTIVE forced, in both orders. Exit status 77,
# which is a skipped test, where the registry has none or the program skips.
set -eu
papaya=$1 collective=$2 mpirun=$3 ranks=$4
shift 4
variable=PAPAYA_$(echo "$collective" | tr '[:lower:]' '[:upper:]')
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
forced=0
algorithms=$("$papaya" info --algorithms "$collective")
for algorithm in $algorithms; do
  [ "$algorithm" = native ] && continue
  runs="$algorithm/rank $algorithm/arrival"
  # Where small messages have a path of their own, once more without it; only there does the order of arrival differ.
  if "$papaya" info --algorithms | grep -A9 "^  $algorithm:" | grep -q " self_serve_bytes="; then
    runs="$algorithm/rank $algorithm:self_serve_bytes=0/rank $algorithm:self_serve_bytes=0/arrival"
  fi
  for run in $runs; do
    setting=${run%/*} order=${run##*/}
    echo "$setting, order $order:"
    env "$variable=$setting" PAPAYA_ORDER="$order" PAPAYA_OUTPUT="$folder/out" \
      "$mpirun" -n "$ranks" "$papaya" run "$@" || exit $?
    # The test means nothing if the algorithm did not run.
    [ "$ranks" = 1 ] || "$papaya" report "$folder/out" | grep -q "MPI_.* $algorithm  *[0-9]" || {
      echo "$algorithm did not run"
      "$papaya" report "$folder/out"
      exit 1
    }
    forced=$((forced + 1))
  done
done
[ "$forced" -gt 0 ] || {
  echo "no algorithm of papaya's for $collective"
  exit 77
}
