#!/bin/sh
# Installs tracker with what its tests need into .venv (once), then checks style, types and layers and runs the tests.
# TRACKER_TESTS=all adds the slow tests. Arguments go to pytest: sh scripts/test.sh tests/cli -k diff
. "$(dirname "$0")/environment.sh"
install .venv scripts/constraints.txt

step() {
    echo "--- $*" >&2
    "$@"
}

PATH="$PWD/.venv/bin:$PATH"
if [ "$#" -eq 0 ]; then
    step ruff check .
    step ruff format --check .
    step mypy
    step lint-imports
    step sqlfluff lint --disable-progress-bar tracker/store/sql
fi
step pytest -n "${TRACKER_TEST_PROCESSES:-2}" "$@"
