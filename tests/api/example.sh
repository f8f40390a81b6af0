#!/bin/sh
# usage: example.sh MPIRUN PROGRAM...
# Runs an example on 3 ranks and checks the line of each: after 100 calls the sum lacks four contributions of each other rank
# at most. Those in Fortran and Python say what is in force, too.
set -eu
mpirun=$1
shift
lines=$("$mpirun" -n 3 "$@")
echo "$lines"
case $*:$lines in
  *.py:* | *fortran*:*) echo "$lines" | grep -q '^ssp_[a-z]*:slack=4.* over shared memory$' ;;
esac
for rank in 0 1 2; do
  sum=$(echo "$lines" | sed -n "s/^rank $rank: the last sum is \([0-9]*\).*/\1/p")
  [ "$sum" -ge 292 ] && [ "$sum" -le 300 ]
done
