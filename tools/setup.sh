# shellcheck shell=bash
# Sourced by quickstart and test: installs what is missing, configures and compiles, with one line of progress for
# each step. Everything a step prints goes to a log, which is shown if the step fails.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
: "${TMPDIR:=/tmp}"
log_folder=$(mktemp -d "$TMPDIR/papaya-log-XXXXXX") || exit 1
progress_pid=
trap 'stop_progress; rm -rf "$log_folder"' EXIT
trap 'printf "\n"; exit 130' INT
trap 'exit 143' TERM

# What the build needs, then what only the tests need. Both MPIs, so that the library is built for both.
# shellcheck disable=SC2034  # what sources this file installs them
build_packages="g++ gcc libc6-dev pkg-config meson ninja-build python3 openmpi-bin libopenmpi-dev mpich libmpich-dev
  libhwloc-dev libucx-dev libdw-dev libopen-trace-format2-dev libunwind8 libzstd1 libfmt-dev libcli11-dev nlohmann-json3-dev catch2 zlib1g-dev
  libjs-chart.js"
test_packages="gfortran hpcc iproute2 iptables lammps libmnl-dev munge slurm-client slurmctld slurmd libopenblas-dev libopenblas0-pthread libscalapack-mpich-dev
  libscalapack-openmpi-dev libsimgrid-dev otf2-tools python3-matplotlib
  environment-modules patchelf python3-mpi4py python3-sklearn python3-torch"
# The style gates (tests/lint).
test_packages="$test_packages clang-format clang-tidy codespell mandoc python3-flake8 shellcheck"
# Ubuntu has this browser as a snap only: there the test of the report's page is skipped.
grep -qs '^ID=ubuntu' /etc/os-release || test_packages="$test_packages chromium chromium-driver"
installed=0

fail() {
  printf '%s: %s\n' "$(basename "$0")" "$1" >&2
  exit 1
}

stop_progress() {
  [ -z "$progress_pid" ] && return
  kill "$progress_pid" 2>/dev/null
  wait "$progress_pid" 2>/dev/null
  progress_pid=
}

# The last "[12/80]" of a compiler run's log.
steps_done() { tail -c 4000 "$1" 2>/dev/null | tr '\r' '\n' | grep -o '^\[[0-9]*/[0-9]*\]' | tail -n 1; }

show_progress() {  # TITLE LOG
  local second=0
  while :; do
    # On a terminal every second in place, in a log file now and then.
    if [ -t 1 ]; then
      printf '\r%s %s %d s ' "$1" "$(steps_done "$2")" "$second"
    elif [ $((second % 60)) -eq 0 ] && [ "$second" -gt 0 ]; then
      printf '%s %s %d s\n' "$1" "$(steps_done "$2")" "$second"
    fi
    sleep 1
    second=$((second + 1))
  done
}

# step TITLE COMMAND...: runs COMMAND quietly; on failure shows its output and ends with one clear line.
step() {
  local title=$1 log code begin=$SECONDS
  shift
  log=$log_folder/step.log
  : >"$log"
  if [ -t 1 ]; then printf '%s' "$title"; fi
  show_progress "$title" "$log" &
  progress_pid=$!
  "$@" >"$log" 2>&1 </dev/null
  code=$?
  stop_progress
  if [ -t 1 ]; then printf '\r\033[K'; fi
  if [ $code -ne 0 ]; then
    tail -n 200 "$log"
    fail "$title: failed (exit code $code); its output is above"
  fi
  printf '%s: %d s\n' "$title" $((SECONDS - begin))
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    sudo "${sudo_options[@]}" "$@"
  fi
}

# install_missing PACKAGE...: sets `installed` to 1 if there was something to do.
install_missing() {
  local missing="" package known
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    # No Debian: take what is there, and if the configuration fails say what it needs.
    command -v meson >/dev/null && command -v pkg-config >/dev/null && command -v ninja >/dev/null && return
    fail "this machine has no apt-get; please install: a C++20 compiler, meson 1.0 or newer, ninja, pkg-config, Open MPI or MPICH, and the headers of hwloc, fmt, CLI11, nlohmann-json, UCX, libdw, OTF2 and Catch2"
  fi
  known=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null)
  for package in "$@"; do
    case $package in
      # Its name belongs to another package on newer systems; what counts is the command.
      pkg-config) command -v pkg-config >/dev/null && continue ;;
    esac
    printf '%s\n' "$known" | grep -qx "$package installed" || missing="$missing $package"
  done
  [ -z "$missing" ] && return
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "these packages are missing, and there is no sudo to install them:$missing"
    sudo_options=(-n)
    if [ -t 0 ]; then
      sudo_options=()
      sudo -v || fail "these packages are missing, and sudo did not let us install them:$missing"
    fi
  fi
  printf 'installing with apt-get:%s\n' "$missing"
  step "reading package lists" as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 -q update
  # shellcheck disable=SC2086  # a list of names
  step "installing packages" as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 -q -y --no-install-recommends install $missing
  installed=1
}

# The distribution's meson, or where that is older than 1.0 (Ubuntu 22.04) a newer one inside this folder.
find_meson() {
  meson=meson
  local major
  major=$(meson --version 2>/dev/null | cut -d. -f1)
  [ "${major:-0}" -ge 1 ] && return
  meson=$root/build-meson/bin/meson
  [ -x "$meson" ] && return
  if command -v apt-get >/dev/null; then install_missing python3-venv; fi
  printf 'meson here is %s, papaya needs 1.0: installing one from PyPI into build-meson\n' \
    "$(meson --version 2>/dev/null || echo missing)"
  step "installing meson" sh -c 'python3 -m venv build-meson && build-meson/bin/pip install "meson>=1.0"'
}

# configure FOLDER OPTION...: meson setup, again only when the options or the installed packages changed.
configure() {
  local folder=$1 wanted
  shift
  wanted="$*"
  if [ ! -f "$folder/build.ninja" ]; then
    step "configuring $folder" "$meson" setup "$folder" "$@"
  elif [ "$installed" = 1 ] || { [ $# -gt 0 ] && [ "$wanted" != "$(cat "$folder/tools-options" 2>/dev/null)" ]; }; then
    step "configuring $folder again" "$meson" setup --reconfigure "$folder" "$@"
  fi
  if [ $# -gt 0 ]; then printf '%s\n' "$wanted" >"$folder/tools-options"; fi
}

# Open MPI refuses to start as root unless told twice.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
