#!/usr/bin/env bash
# Makes the Debian packages of the build tree $1, installs them below the folder $2 with a database
# of their own, which begins with what is installed here, uses them and removes them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$1 work=$2 image=$2/image database=$2/dpkg
as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v fakeroot >/dev/null || { echo "debian: neither root nor fakeroot" && exit 0; }
  as_root=(fakeroot)
fi

(cd "$tree" && cpack -G DEB -B "$work/packages" >"$work/log" 2>&1) || { cat "$work/log" && exit 1; }
mkdir -p "$image" "$database/info" "$database/updates"
cp /var/lib/dpkg/status "$database/status"
run_dpkg() {
  PATH=$PATH:/usr/sbin:/sbin "${as_root[@]}" dpkg --admindir="$database" --instdir="$image" \
    --log="$work/dpkg.log" --force-script-chrootless "$@" >"$work/log" 2>&1 ||
    { cat "$work/log" && exit 1; }
}
run_dpkg -i "$work"/packages/*.deb
mapfile -t packages < <(for file in "$work"/packages/*.deb; do dpkg-deb -f "$file" Package; done)
dpkg-query --admindir="$database" -W -f '${Package} ${Version}: ${Status}\n' "${packages[@]}" |
  tee "$work/installed"
[ "$(grep -c 'install ok installed' "$work/installed")" = 4 ]

prefix=$image/usr
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
read -r -a flags <<<"$(pkg-config --cflags --libs tenon)"
c++ "$here/main.cpp" "${flags[@]}" -o "$work/by_debian"
"$work/by_debian" "$work/debian.tnx" >/dev/null
"$prefix/bin/tenon" --version
"$prefix/bin/tenon" inspect "$work/debian.tnx" >/dev/null
cmake -S "$here" -B "$work/from_debian" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log"
grep -q "tenon_DIR:PATH=$prefix" "$work/from_debian/CMakeCache.txt"

run_dpkg -P "${packages[@]}"
left=$(find "$image" -not -type d)
[ -z "$left" ] || { echo "debian: left behind: $left" && exit 1; }
echo "debian: the packages install, work and leave nothing behind"
