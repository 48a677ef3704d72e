#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the virtual environment with PyTorch that the benchmarks compare with: tests/perf/.peer, about 6 GB.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
peer="$here/.peer"
version=${TORCH_VERSION:-2.15.0}
if "$peer/bin/python" -c "import torch, sys; sys.exit(torch.__version__.split('+')[0] != '$version')" 2>/dev/null; then
  exit 0
fi
bash "$here/../../cmake/install-deps.sh" --peer >&2
echo "installing PyTorch $version from PyPI into $peer" >&2
python3 -m venv "$peer"
"$peer/bin/pip" install --quiet --disable-pip-version-check "torch==$version" numpy
"$peer/bin/python" -c "import torch; print('PyTorch', torch.__version__)" >&2
