#!/bin/sh
# usage: fortran.sh OUTPUT COMPILER ARGUMENTS...
# Compiles with modules in a folder of its own: several compilers may write some of the same name at once.
set -eu
output=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$@" -J "$folder" -o "$output"
