#!/usr/bin/env bash
# The pins install, and what needs no cluster passes, on every supported Python that is found here.
set -euo pipefail
cd "$(dirname "$0")/../.."

found=0
for version in 3.11 3.12 3.13; do
  python=""
  for candidate in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python; do
    if "$candidate" -c "import sys; sys.exit(sys.version_info[:2] != tuple(map(int, '$version'.split('.'))))" 2>/dev/null; then
      python=$(command -v "$candidate")
    fi
  done
  if [ -z "$python" ]; then
    echo "Python $version: not found here, skipped"
    continue
  fi
  found=$((found + 1))
  echo "Python $version: $python"
  make -s setup PYTHON="$python" VENV=".tools/python-$version"
  ".tools/python-$version/bin/python" -m pytest -q -p no:cacheprovider \
    tests/deep20ray tests/prompts tests/cohorts tests/artifacts tests/publisher tests/actors tests/docs --ignore tests/actors/test_roles.py --ignore tests/actors/simulator
done
[ "$found" -gt 0 ]
