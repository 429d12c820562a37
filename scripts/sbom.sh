#!/bin/sh
# Prints what tracker is installed with as a CycloneDX bill of materials: each package of scripts/requirements.txt with
# its version, its hashes and its purl. Another list can be named, as that of the tests:
#     sh scripts/sbom.sh >tracker.cdx.json
#     sh scripts/sbom.sh scripts/constraints.txt >tests.cdx.json
# as the caller names it, before the folder changes
[ "$#" -eq 0 ] || list="$(realpath "$1")"
. "$(dirname "$0")/environment.sh"
: "${list:=scripts/requirements.txt}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"$(find_python)" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check "cyclonedx-bom>=7,<8" >&2
# its warnings are about what a list of packages cannot know, such as what needs what
PYTHONWARNINGS=ignore "$folder/bin/cyclonedx-py" requirements "$list" --pyproject pyproject.toml --output-reproducible \
    --of JSON --validate
