#!/bin/sh
# usage: segments_page.sh MPIRUN PROGRAM
# Runs the program of docs/segments.md on 3 ranks: each has both pieces of the rank before, in order.
set -eu
lines=$("$1" -n 3 "$2" | LC_ALL=C sort)
[ "$lines" = "rank 0 has piece 1 of rank 2
rank 0 has piece 2 of rank 2
rank 1 has piece 1 of rank 0
rank 1 has piece 2 of rank 0
rank 2 has piece 1 of rank 1
rank 2 has piece 2 of rank 1" ]
