#!/bin/sh
# Writes what the scripts install, each package with its version and its hashes, for Python 3.11 to 3.14: the newest into
# scripts/requirements.txt (what runs tracker, and what builds it) and scripts/constraints.txt (that, Dask and what tests
# it), the lowest that pyproject.toml allows into scripts/oldest.txt. Run it on purpose: after a change of the
# dependencies, or when scripts/newest.sh passes.
. "$(dirname "$0")/environment.sh"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"$(find_python)" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check uv
# what builds tracker is installed beside it, so that nothing is downloaded without a hash
"$folder/bin/python" -c '
import tomllib
with open("pyproject.toml", "rb") as file:
    # editables: what hatchling links a checkout with
    print("\n".join([*tomllib.load(file)["build-system"]["requires"], "editables>=0.3"]))
' >"$folder/build.in"
compile() {
    "$folder/bin/uv" pip compile --quiet --upgrade --universal --python-version 3.11 --no-annotate --generate-hashes \
        --custom-compile-command "sh scripts/pin.sh" pyproject.toml "$folder/build.in" "$@"
}
compile --extra dask --extra test --output-file scripts/constraints.txt
compile --constraint scripts/constraints.txt --output-file scripts/requirements.txt
compile --extra oldest --resolution lowest-direct --output-file scripts/oldest.txt
