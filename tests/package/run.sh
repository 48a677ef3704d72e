#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh static|shared|add_subdirectory SOURCE BUILD WORK COMPILER [CMAKE-OPTION...]
#
# A consumer of the package, from nothing to its run. SOURCE is Tutti's tree, BUILD its static build, WORK a folder to work in.
set -euo pipefail

kind=$1 source_dir=$2 build_dir=$3 work=$4 compiler=$5
shift 5
options=(-G Ninja "-DCMAKE_CXX_COMPILER=$compiler" -DCMAKE_BUILD_TYPE=Release)
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work"
mkdir -p "$work"
# Open MPI refuses to run as root unless both are set.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

if [ "$kind" = add_subdirectory ]; then
  cmake "${options[@]}" -S "$here/add_subdirectory" -B "$work/consumer build" "-DTUTTI_SOURCE_DIR=$source_dir" -DTUTTI_USE_CCACHE=ON "$@"
  cmake --build "$work/consumer build"
  "$work/consumer build/consumer"
  exit
fi

if [ "$kind" = shared ]; then
  build_dir="$work/shared build"
  cmake "${options[@]}" -S "$source_dir" -B "$build_dir" -DBUILD_SHARED_LIBS=ON -DTUTTI_BUILD_TESTS=OFF -DTUTTI_BUILD_EXAMPLES=OFF "$@"
  cmake --build "$build_dir"
fi
cmake --install "$build_dir" --prefix "$work/first prefix" > /dev/null

echo "No installed file knows where it was made"
if grep -rlF -e "$work" -e "$build_dir" -e "$source_dir" --include='*.cmake' --include='*.pc' "$work/first prefix"; then
  exit 1
fi
mv "$work/first prefix" "$work/moved prefix"
prefix="$work/moved prefix"
library_dir=$(dirname "$(find "$prefix" -name 'libtutti.*' | head -n 1)")

if [ "$kind" = shared ]; then
  bash "$here/../tools/exported_symbols.sh" "$library_dir/libtutti.so"
fi

echo "find_package"
cmake "${options[@]}" -S "$here/find_package" -B "$work/consumer build" "-DCMAKE_PREFIX_PATH=$prefix"
cmake --build "$work/consumer build"
"$work/consumer build/consumer"

echo "pkg-config"
export PKG_CONFIG_PATH="$library_dir/pkgconfig"
eval "flags=($(pkg-config --cflags --libs tutti))"
"$compiler" -std=c++20 "$here/consumer.cpp" "${flags[@]}" "-Wl,-rpath,$library_dir" -o "$work/pkg_config_consumer"
"$work/pkg_config_consumer"

if [ -x "$prefix/bin/tutti" ]; then
  echo "The installed program"
  "$prefix/bin/tutti" env
fi
