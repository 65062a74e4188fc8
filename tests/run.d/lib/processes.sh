# Sourced by tests/run: a step in a session of its own, and the proof that nothing of it is left.

# Every process of this run carries it in its environment, also one that left the session (a daemon).
run_mark="ASKWELL_TEST_RUN=$$.$(date +%s%N)"
step_session=

# run_in_session SECONDS SCRIPT
run_in_session() {
  # In a script's background the child leads no group, so setsid does not fork and $! is the session.
  env "$run_mark" setsid timeout -k 10 "$1" bash "$2" &
  step_session=$!
  wait "$step_session"
}

# Prints the ids of the live processes of the step, one a line.
step_processes() {
  local stat fields
  for stat in /proc/[0-9]*/stat; do
    # A process may end while it is looked at.
    { read -r fields <"$stat"; } 2>/dev/null || continue
    # After the name in brackets: state, parent, group, session.
    read -r -a fields <<<"${fields##*) }"
    if [[ ${fields[0]} != Z && ${fields[3]} == "$step_session" ]]; then
      stat=${stat#/proc/}
      echo "${stat%/stat}"
    fi
  done
  # A dead process has no environment left, so none of these is a zombie.
  grep -lzxF "$run_mark" /proc/[0-9]*/environ 2>/dev/null | sed 's|/proc/||; s|/environ||'
}

# end_leftovers WHO: fails, names them and ends them when processes of the step are left.
end_leftovers() {
  local pid pids patience=$((SECONDS + 5))
  [[ -n $step_session ]] || return 0
  # What was told to end may need a moment to be gone: five seconds at most.
  while true; do
    # Its status says nothing: grep's is that of a process which ended meanwhile.
    pids=$(step_processes | sort -nu)
    [[ -n $pids ]] || return 0
    ((SECONDS < patience)) || break
    sleep 0.1
  done
  for pid in $pids; do
    echo "left over by $1: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | cut -c1-200)"
    kill -KILL "$pid" 2>/dev/null
  done
  return 1
}
