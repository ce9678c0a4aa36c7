#!/bin/sh
# Installs svc for one person, or takes it away again. Nothing is unpacked before its SHA-256 was found right.
set -eu

usage() {
  cat <<'USAGE'
usage: install.sh [--from FOLDER|URL] [--prefix FOLDER] [--sha256 HEX]
       install.sh --uninstall [--prefix FOLDER]

  --from FOLDER|URL   where the archives and SHA256SUMS of a release lie (default: beside this script)
  --prefix FOLDER     programs go to FOLDER/bin, the rest below FOLDER/lib/svc (default: ~/.local)
  --sha256 HEX        the archive's digest, from a place that you trust more than the one that it comes from
  --uninstall         take svc away; the store and the configuration stay
USAGE
}

die() {
  echo "install.sh: $1" >&2
  exit "${2:-1}"
}

from=''
prefix=''
expected=''
uninstall=no
while [ $# -gt 0 ]; do
  case $1 in
    --from | --prefix | --sha256)
      if [ $# -lt 2 ] || [ -z "$2" ]; then die "$1 needs a value" 2; fi
      case $1 in
        --from) from=$2 ;;
        --prefix) prefix=$2 ;;
        --sha256) expected=$2 ;;
      esac
      shift 2
      ;;
    --uninstall)
      uninstall=yes
      shift
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
done
[ -n "$prefix" ] || prefix=${HOME:?HOME is not set}/.local
case $prefix in /*) ;; *) prefix=$(pwd)/$prefix ;; esac
# One spelling, since links are known by where they lead. The x keeps newlines at the end of a name.
if [ "$uninstall" = no ]; then mkdir -p "$prefix"; fi
if [ -d "$prefix" ]; then
  prefix=$(CDPATH='' cd -- "$prefix" && pwd && echo x)
  prefix=${prefix%?x}
fi

home=$prefix/lib/svc
# Each link, and where it leads below the current version.
links='bin/svc
bin/svcd
share/man/man1/svc.1
share/man/man8/svcd.8
share/bash-completion/completions/svc
share/zsh/site-functions/_svc
share/fish/vendor_completions.d/svc.fish'

# Whether a path is a link into an installation of ours.
ours() {
  [ -L "$1" ] || return 1
  case $(readlink "$1") in "$home"/current/*) return 0 ;; *) return 1 ;; esac
}

if [ "$uninstall" = yes ]; then
  [ -L "$home/current" ] || ls -d "$home"/svc-* "$home"/.install-* >/dev/null 2>&1 || {
    echo "svc is not installed below $prefix"
    exit 0
  }
  if [ -L "$home/current" ] && { [ -e "${XDG_CONFIG_HOME:-${HOME:-}/.config}/systemd/user/svcd.service" ] || [ -e "${HOME:-}/Library/LaunchAgents/io.svc.svcd.plist" ]; }; then
    "$home/current/bin/svc" service remove || die 'the service cannot be removed; do so with "svc service remove", then try again'
  fi
  echo "$links" | while read -r path; do
    if ours "$prefix/$path"; then rm -f "$prefix/$path"; fi
  done
  # A package may have files of its own there.
  rm -rf "$home/current" "$home"/svc-* "$home"/.install-*
  rmdir "$home" 2>/dev/null || true
  echo "svc is gone from $prefix; the store and the configuration are where they were"
  exit 0
fi

case $(uname -s) in
  Linux) system=linux ;;
  Darwin) system=darwin ;;
  *) die "there is no archive for $(uname -s)" ;;
esac
case $(uname -m) in
  x86_64 | amd64) processor=x64 ;;
  aarch64 | arm64) processor=arm64 ;;
  *) die "there is no archive for $(uname -m)" ;;
esac
if [ "$system" = linux ] && [ -e /etc/alpine-release ]; then die 'the Node of the archive needs glibc, which Alpine Linux does not have'; fi

[ -n "$from" ] || from=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
umask 022
echo "$links" | while read -r path; do
  link=$prefix/$path
  if [ -e "$link" ] || [ -L "$link" ]; then ours "$link" || die "$link is there, and is not ours: move it away, then try again"; fi
done
mkdir -p "$home"
scratch=$(mktemp -d "$home/.install-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Follows redirects itself: wget would follow one from https to http.
with_wget() {
  url=$1
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    if wget --no-verbose --server-response --max-redirect=0 --timeout=60 --tries=3 --output-document="$2" "$url" 2>"$scratch/answer"; then return 0; fi
    next=$(sed -n 's/^ *[Ll]ocation: *\([^ ]*\).*$/\1/p' "$scratch/answer" | tail -n 1 | tr -d '\r')
    case $next in
      '')
        tail -n 1 "$scratch/answer" | tr -cd '[:print:]\n' >&2
        return 1
        ;;
      //*) next=${url%%:*}:$next ;;
      /*) next=$(echo "$url" | cut -d / -f 1-3)$next ;;
    esac
    case $next in
      https://*) ;;
      http://*) case $url in http:*) ;; *) die "$url leads to plain http" ;; esac ;;
      *) die "$url leads to another protocol" ;;
    esac
    url=$next
  done
  die "$1 leads on and on"
}

fetch() {
  case $from in
    http://* | https://*)
      if command -v curl >/dev/null 2>&1; then
        # Not from https to anything else, and not for ever.
        case $from in https:*) protocols='=https' ;; *) protocols='=http,https' ;; esac
        curl --fail --silent --show-error --location --proto "$protocols" --connect-timeout 30 --speed-limit 1024 --speed-time 60 \
          --output "$2" "$from/$1"
      elif command -v wget >/dev/null 2>&1; then
        with_wget "$from/$1" "$2"
      else
        die 'neither curl nor wget is there'
      fi
      ;;
    *) cp "$from/$1" "$2" ;;
  esac || die "cannot get $1 from $from"
}

# From standard input: beside a name with a backslash or a newline the programs write the digest in another way.
digest_of() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum <"$1" | cut -d ' ' -f 1
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 <"$1" | cut -d ' ' -f 1
  else
    die 'neither sha256sum nor shasum is there'
  fi
}

fetch SHA256SUMS "$scratch/SHA256SUMS"
line=$(grep -E "^[0-9a-f]{64}  svc-[0-9A-Za-z.+-]+-$system-$processor\.tar\.gz\$" "$scratch/SHA256SUMS" || true)
[ -n "$line" ] || die "SHA256SUMS of $from names no archive for $system-$processor"
[ "$(echo "$line" | wc -l)" -eq 1 ] || die "SHA256SUMS of $from names several archives for $system-$processor"
listed=${line%% *}
archive=${line##* }
name=${archive%.tar.gz}
if [ -n "$expected" ] && [ "$expected" != "$listed" ]; then die "SHA256SUMS has $listed for $archive, not $expected"; fi

if [ -f "$home/$name/.sha256" ] && [ "$(cat "$home/$name/.sha256")" = "$listed" ]; then
  echo "$name is there already"
else
  fetch "$archive" "$scratch/$archive"
  found=$(digest_of "$scratch/$archive")
  [ "$found" = "$listed" ] || die "$archive has the SHA-256 $found, but should have $listed: nothing was unpacked"
  mkdir "$scratch/new"
  tar -xzf "$scratch/$archive" -C "$scratch/new"
  if [ ! -d "$scratch/new/$name" ] || [ -L "$scratch/new/$name" ]; then die "$archive does not hold the folder $name"; fi
  "$scratch/new/$name/bin/svc" --help >/dev/null || die 'the programs of the archive do not run here'
  echo "$listed" >"$scratch/new/$name/.sha256"
  # The same version with other bytes makes way.
  if [ -e "$home/$name" ]; then mv "$home/$name" "$scratch/old"; fi
  mv "$scratch/new/$name" "$home/$name"
fi

before=$(readlink "$home/current" || true)
ln -s "$name" "$scratch/current"
# A rename, so that the programs are there at every moment. mv without -T or -h would move into the folder behind the link.
if mv -fT "$scratch/current" "$home/current" 2>/dev/null || mv -fh "$scratch/current" "$home/current" 2>/dev/null; then :; else
  rm -f "$home/current"
  mv "$scratch/current" "$home/current"
fi

echo "$links" | while read -r path; do
  link=$prefix/$path
  mkdir -p "$(dirname "$link")"
  ln -sf "$home/current/$path" "$link"
done

# A daemon that runs still reads from the version before; older ones go.
for old in "$home"/svc-*; do
  case ${old##*/} in "$name" | "$before") ;; *) rm -rf "$old" ;; esac
done

echo "svc is installed: $prefix/bin/svc"
case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *) printf "put it on your PATH: export PATH='%s':\"\$PATH\"\n" "$(printf %s "$prefix/bin" | sed "s/'/'\\\\''/g")" ;;
esac
echo 'have the daemon start by itself: svc service install'
