# Sourced by every step: counting, and what the tests need on the machine.
#
# A step is a file of this folder that tests/run starts in a session of its own, from the top of the
# tree; it tells its counts by `count` and ends with a status other than 0 when it could not go on.
set -uo pipefail

# count PASSED FAILED
count() { echo "$1 $2" >>"$ASKWELL_COUNTS"; }

# check COMMAND...: one command that passes or fails as a whole.
check() {
  echo "+ $*"
  if "$@"; then count 1 0; else count 0 1; fi
}

# Also where only root has the folder in PATH.
have() { command -v "$1" >/dev/null || [[ -x /usr/sbin/$1 ]]; }

as_root() {
  if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi
}

# install_missing COMMAND=PACKAGE...: installs the packages whose command is not there.
install_missing() {
  local pair packages=()
  for pair in "$@"; do
    have "${pair%%=*}" || packages+=("${pair#*=}")
  done
  ((${#packages[@]})) || return 0
  if ! have apt-get; then
    echo "install ${packages[*]} first: the tests need them, and only Debian's packages are installed by this script"
    return 1
  fi
  # In a subshell of its own, so that the policy is put back however it ends.
  (
    exec 9>"/tmp/askwell-install.$EUID.lock"
    flock 9
    trap restore_policy EXIT
    deny_starts &&
      { [[ -n ${ASKWELL_APT_UPDATED:-} ]] || as_root apt-get update -q; } &&
      as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
        -o DPkg::Lock::Timeout=300 "${packages[@]}" && never_at_boot
  ) || return 1
  export ASKWELL_APT_UPDATED=1
}

# Debian's packages start their servers on the standard ports when they are installed, where a
# developer's own may be; policy-rc.d is the system's way to forbid it.
readonly policy=/usr/sbin/policy-rc.d
readonly policy_kept=/usr/sbin/policy-rc.d.before-askwell
readonly policy_none=/usr/sbin/policy-rc.d.none-before-askwell

deny_starts() {
  # Both names are there only after a run that was killed in between: what they keep is the original.
  if [[ ! -e $policy_kept && ! -e $policy_none ]]; then
    if [[ -e $policy ]]; then as_root mv "$policy" "$policy_kept"; else as_root touch "$policy_none"; fi || return 1
  fi
  printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null && as_root chmod 755 "$policy"
}

restore_policy() {
  if [[ -e $policy_kept ]]; then
    as_root mv "$policy_kept" "$policy"
  elif [[ -e $policy_none ]]; then
    as_root rm -f "$policy" "$policy_none"
  fi
}

# With systemd a newly installed server would start at the next boot. Only called for our own installs.
never_at_boot() {
  [[ -d /run/systemd/system ]] || return 0
  local unit
  for unit in rabbitmq-server.service redis-server.service epmd.service epmd.socket; do
    if [[ " ${packages[*]} " == *" ${unit%.*} "* || $unit == epmd.* && " ${packages[*]} " == *" rabbitmq-server "* ]]; then
      as_root systemctl disable --quiet "$unit" || return 1
    fi
  done
}
