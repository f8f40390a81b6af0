#!/bin/sh
# Prints the commit of these sources: git's here, with "-modified" where files differ from it, or the one that an archive
# of the sources has recorded (git archive fills in packaging/commit).
root=$(dirname "$0")/..
if [ -e "$root/.git" ] && git -c safe.directory='*' -C "$root" describe --always --exclude='*' --abbrev=12 --dirty=-modified 2>/dev/null; then
  exit
fi
read -r commit _ <"$root/packaging/commit"
case $commit in
  *Format*) echo unknown ;;
  *) printf '%.12s\n' "$commit" ;;
esac
