#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages (Debian 12, Ubuntu 24.04) that Tutti is built with, where they are missing:
#
#   bash cmake/install-deps.sh [--data] [--tests] [--full] [--peer]
#
# Without an option: what the library and the examples need. --data adds Fashion-MNIST, --tests what tests/run.sh needs, --full what
# tests/run.sh --full needs, with a second oneDNN from PyPI, --peer what PyTorch is installed and compiles with.
# As root, or through sudo. With everything in place it does nothing.
set -euo pipefail

packages=(g++ cmake ninja-build libopenmpi-dev openmpi-bin libdnnl-dev libfmt-dev librandom123-dev
          libhwloc-dev zlib1g-dev libcli11-dev pkg-config)
test_packages=(ccache libgtest-dev nlohmann-json3-dev python3 binutils dataset-fashion-mnist)
full_packages=(clang clang-format libomp-dev qemu-user python3-pip)
peer_packages=(python3 python3-dev python3-venv)
fetch_onednn=no

for argument in "$@"; do
  case "$argument" in
    --data) packages+=(dataset-fashion-mnist) ;;
    --tests) packages+=("${test_packages[@]}") ;;
    --full) packages+=("${test_packages[@]}" "${full_packages[@]}"); fetch_onednn=yes ;;
    --peer) packages+=("${peer_packages[@]}") ;;
    *) echo "install-deps.sh: wanted --data, --tests, --full or --peer, given '$argument'" >&2; exit 2 ;;
  esac
done

missing_packages() {
  # dpkg-query names what it does not know on stderr and fails; what counts is what it calls installed.
  local installed
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null | sed -n 's/^installed //p' || true)
  printf '%s\n' "${packages[@]}" | grep -vxF -f <(printf '%s\n' "$installed") | sort -u || true
}

apt_get() {
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo > /dev/null; then
      echo "install-deps.sh: needs root or sudo to install: ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
    [ -t 0 ] || as_root+=(-n)  # without a terminal sudo can't ask for a password: fail, don't hang
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@"
}

install_packages() {
  if ! command -v dpkg-query > /dev/null; then
    echo "install-deps.sh: this is no Debian or Ubuntu; configure tells which libraries are missing" >&2
    return
  fi
  mapfile -t missing < <(missing_packages)
  [ "${#missing[@]}" -gt 0 ] || return 0
  echo "Installing: ${missing[*]}"
  # The package lists may be absent or too old to still name files that the mirror has.
  if ! apt_get install -y --no-install-recommends "${missing[@]}" > /dev/null 2>&1; then
    apt_get update > /dev/null
    apt_get install -y --no-install-recommends "${missing[@]}" > /dev/null
  fi
}

# oneDNN 3.x, against which the adapter is tested beside Debian's 2.6. Prints nothing when it is there.
install_second_onednn() {
  local version=2023.2.0
  local root="${XDG_CACHE_HOME:-$HOME/.cache}/tutti/onednn-$version"
  [ ! -e "$root/complete" ] || return 0
  echo "Fetching: oneDNN 3.x (PyPI onednn-devel-cpu-gomp $version)"
  rm -rf "$root"
  mkdir -p "$root/wheels"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$root/wheels" \
    "onednn-devel-cpu-gomp==$version" "onednn-cpu-gomp==$version"
  local wheel
  for wheel in "$root"/wheels/*.whl; do
    python3 -m zipfile -e "$wheel" "$root/unpacked"
  done
  # A wheel keeps its prefix in <name>.data/data.
  local data
  for data in "$root"/unpacked/*.data/data; do
    cp -R "$data/." "$root/"
  done
  rm -rf "$root/wheels" "$root/unpacked"
  if [ ! -e "$root/lib/libdnnl.so" ]; then
    ln -s "$(basename "$(ls "$root"/lib/libdnnl.so.* | head -n 1)")" "$root/lib/libdnnl.so"
  fi
  touch "$root/complete"
}

install_packages
if [ "$fetch_onednn" = yes ]; then
  install_second_onednn
fi
