#!/bin/sh
# usage: each_algorithm.sh PAPAYA VARIANTS COLLECTIVE few|all|NUMBER|across|across-few MPIRUN RANKS PROGRAM [ARGUMENTS...]
# Runs PROGRAM on RANKS ranks with the algorithms of the registry for COLLECTIVE forced in turn, and with auto, as VARIANTS
# lists them.
# Exit status 77, which is a skipped test, where the program skips.
set -eu
papaya=$1 variants=$2 collective=$3 which=$4 mpirun=$5 ranks=$6
shift 6
variable=PAPAYA_$(echo "${collective%v}" | tr '[:lower:]' '[:upper:]')  # those with a v go by the others'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$variants" "$collective" "$which" > "$folder/variants"
[ -s "$folder/variants" ]
while read -r setting order <&3; do
  echo "$setting, order $order:"
  env "$variable=$setting" PAPAYA_ORDER="$order" PAPAYA_OUTPUT="$folder/out" \
    "$mpirun" -n "$ranks" "$papaya" run "$@" || exit $?
  # The test means nothing if the algorithm did not run; auto may choose native for alltoallv.
  name=${setting%%:*}
  [ "$name" != auto ] || name='[a-z]*_[a-z]*'
  [ "$ranks" = 1 ] || [ "$collective $setting" = 'alltoallv auto' ] || "$papaya" report "$folder/out" |
    awk -v collective="mpi_$collective" -v name="$name" '
      tolower($1) ~ /^mpi_/ { is_its = tolower($1) == collective; $1 = "" }
      is_its && $0 ~ "^ *" name "  *[0-9]" { found = 1 }
      END { exit !found }' || {
    echo "$setting did not run"
    "$papaya" report "$folder/out"
    exit 1
  }
done 3< "$folder/variants"
