# What the commands of a page run in. The runner appends the page's blocks, each behind a call of `at`; every command that fails is
# written to descriptor 3 with its place, and the page goes on, so that one run tells all that is wrong with it.
set -E -o pipefail
place=start
daemon=
trap 'echo "$place: $BASH_COMMAND" >&3' ERR
# daemons that commands started are no children of this shell
trap 'for home in "$SCRATCH"/home*; do HOME=$home XDG_RUNTIME_DIR=$home/run svc stop || :; done' EXIT

at() {
  place=$1
  echo "== $1" | tee -a /dev/stderr
}

# A machine of its own: home, socket, store; its first command starts the daemon. Daemons of the machines before go on running, as they would.
machine() {
  export HOME=$SCRATCH/$1
  export XDG_RUNTIME_DIR=$HOME/run PATH=$STAND_INS:$CHECKOUT/bin:/usr/local/bin:/usr/bin:/bin
  cd "$HOME/work"
  daemon=
}

# Ctrl-C in the daemon's terminal.
end_daemon() {
  kill "$daemon" && wait "$daemon"
  daemon=
}

# `svcd` as somebody types it into a terminal of its own. Restarted when the page starts it with other flags.
foreground() {
  if [ -n "$daemon" ]; then end_daemon; fi
  "$@" &
  daemon=$!
  until [ -S "$XDG_RUNTIME_DIR/svc-$(id -u)/svc.sock" ]; do
    kill -0 "$daemon" || return
    read -rt 0.05 <> <(:) || :
  done
}
