# Completion of the papaya command for bash. Subcommands, options and collectives are what the command itself prints, so
# that a new one is completed without a change here.

# The options of COMMAND [SUBCOMMAND], one a line.
_papaya_options() {
  "$@" --help 2>/dev/null | sed -n '/^Options:/,/^$/s/^  \(-[^ ]*\).*/\1/p' | tr ',' '\n'
}

_papaya() {
  local command=$1 word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} subcommand=${COMP_WORDS[1]}
  COMPREPLY=()

  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(
      "$command" --help 2>/dev/null | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
      _papaya_options "$command"
    )" -- "$word")
    return
  fi

  if [ "$subcommand" = run ] && { [ "$COMP_CWORD" -gt 2 ] || [ "${word:0:1}" != - ]; }; then
    # The program's own words: as if it stood alone, where bash-completion is loaded.
    if declare -F _command_offset >/dev/null; then
      _command_offset 2
    elif [ "$COMP_CWORD" -eq 2 ]; then
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -c -- "$word"; compgen -f -- "$word")
    else
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
    return
  fi

  if [ "$subcommand" = bench ]; then
    case $previous in
      --json | --csv | --plot | --combine)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
      --algorithms)
        mapfile -t COMPREPLY < <(compgen -W "auto $("$command" info --algorithms "${COMP_WORDS[2]}" 2>/dev/null)" -- "$word")
        return
        ;;
      --pattern)
        mapfile -t COMPREPLY < <(compgen -W "none random ascending descending first-late last-late half-late straggler exponential workers replay:" -- "$word")
        return
        ;;
      --mode)
        mapfile -t COMPREPLY < <(compgen -W "tight deadline balanced imbalanced free" -- "$word")
        return
        ;;
      --of)
        mapfile -t COMPREPLY < <(compgen -W "data ranks" -- "$word")
        return
        ;;
      --mpi)
        mapfile -t COMPREPLY < <(compgen -W "openmpi mpich" -- "$word")
        return
        ;;
    esac
    if [ "$COMP_CWORD" -eq 2 ] && [ "${word:0:1}" != - ]; then
      mapfile -t COMPREPLY < <(compgen -W "allreduce reduce bcast alltoall allgather barrier gather scatter reduce_scatter reduce_scatter_block gatherv scatterv allgatherv alltoallv iallreduce ireduce ibcast ialltoall iallgather ibarrier igather iscatter ireduce_scatter ireduce_scatter_block igatherv iscatterv iallgatherv ialltoallv all kernels $(
        "$command" info --algorithms 2>/dev/null | sed -n '/^Weakly consistent/,$s/^\([a-z_]*\)$/\1/p'
      )" -- "$word")
      return
    fi
  fi

  if [ "$subcommand" = export ] && [ "$COMP_CWORD" -eq 2 ] && [ "${word:0:1}" != - ]; then
    mapfile -t COMPREPLY < <(compgen -W "openmpi openmpi-json mpich mpich-ch4 ucc" -- "$word")
    return
  fi

  if [ "$subcommand" = info ] || [ "$subcommand" = export ]; then
    case $previous in
      --rules)
        mapfile -t COMPREPLY < <(compgen -W "allreduce reduce bcast alltoall barrier allgather gather scatter reduce_scatter reduce_scatter_block" -- "$word")
        return
        ;;
      --arrivals)
        mapfile -t COMPREPLY < <(compgen -W "any balanced persistent rotating drifting random" -- "$word")
        return
        ;;
      --mpi)
        mapfile -t COMPREPLY < <(compgen -W "openmpi mpich" -- "$word")
        return
        ;;
      --tuning | --library)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    esac
  fi

  case $previous in
    --algorithms)
      mapfile -t COMPREPLY < <(compgen -W "$(
        "$command" info --algorithms 2>/dev/null | sed -n 's/^MPI_\([A-Za-z_]*\) .*/\1/p' | tr '[:upper:]' '[:lower:]'
      )" -- "$word")
      return
      ;;
    -o | --output | --prometheus)
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      return
      ;;
  esac

  if [ "${word:0:1}" = - ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_papaya_options "$command" "$subcommand")" -- "$word")
  elif [ "$subcommand" = doctor ]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -c -- "$word"; compgen -f -- "$word")
  elif [ "$subcommand" = report ] || [ "$subcommand" = top ] || [ "$subcommand" = compare ]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -d -- "$word")
  elif [ "$subcommand" = tune ] || [ "$subcommand" = export ]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}

complete -F _papaya papaya
