#!/usr/bin/env bash
# Proves that the tree works on Debian 13 (Python 3.13, gcc 14): makes a root with debootstrap,
# clones this checkout into it, and runs `make demo` and `make test` there. Needs root.
#   debian13.sh [COMMAND ...]    runs these commands instead, each by a shell in the clone
# ROOT=DIR keeps the root in DIR for the next run; MIRROR=URL is the Debian mirror.
set -eu
checkout=$(cd "$(dirname "$0")/.." && pwd)
root=${ROOT:-$checkout/build/debian13}
mirror=${MIRROR:-http://deb.debian.org/debian}
[ "$(id -u)" = 0 ] || { echo "debian13: must be run as root" >&2; exit 1; }
[ $# -gt 0 ] || set -- "make demo" "make test"

if [ ! -e "$root/.ready" ]; then
  command -v debootstrap >/dev/null || { echo "debian13: apt-get install debootstrap" >&2; exit 1; }
  echo "debian13: making a root in $root"
  mkdir -p "$root"
  debootstrap --variant=minbase --include=ca-certificates,git,make trixie "$root" "$mirror"
  touch "$root/.ready"
fi
# Names and certificates of the machine, for a network that has its own.
cp /etc/resolv.conf "$root/etc/resolv.conf"
[ ! -d /usr/local/share/ca-certificates ] ||
  cp -r /usr/local/share/ca-certificates "$root/usr/local/share/"

mounted=()
unmount() { for folder in "${mounted[@]}"; do umount -l "$folder"; done; }
trap unmount EXIT
for folder in proc sys dev; do
  mountpoint -q "$root/$folder" && continue
  mount --rbind "/$folder" "$root/$folder"
  mount --make-rslave "$root/$folder"
  mounted+=("$root/$folder")
done

in_root() {
  chroot "$root" env -i HOME=/tenon-home TERM="${TERM:-dumb}" LANG=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    bash -euc "$1"
}
mkdir -p "$root/tenon-home"
in_root "update-ca-certificates >/dev/null"

# What is committed, on top of what an earlier run has built.
revision=$(git -C "$checkout" rev-parse HEAD)
git -C "$checkout" bundle create -q "$root/tenon.bundle" HEAD
in_root "git init -q /tenon && cd /tenon && git fetch -q /tenon.bundle HEAD &&
  git checkout -q -f --detach $revision"
for command in "$@"; do
  echo "debian13: $command"
  in_root "cd /tenon && $command"
done
echo "debian13: passed"
