#!/bin/sh
# Writes the versions that the scripts install, for Python 3.11 to 3.14: the newest into scripts/constraints.txt, the
# lowest that pyproject.toml allows into scripts/oldest.txt. Run it on purpose: after a change of the dependencies, or
# when scripts/newest.sh passes.
. "$(dirname "$0")/environment.sh"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"$(find_python)" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check uv
compile() {
    "$folder/bin/uv" pip compile --quiet --upgrade --universal --python-version 3.11 --no-annotate \
        --custom-compile-command "sh scripts/pin.sh" pyproject.toml "$@"
}
compile --extra dask --extra test --output-file scripts/constraints.txt
compile --extra oldest --resolution lowest-direct --output-file scripts/oldest.txt
