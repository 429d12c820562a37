#!/bin/sh
# Installs the lowest versions that pyproject.toml declares into .venv-oldest, and runs the fast tests with them: those
# that meet pandas, NumPy, SQLAlchemy, typer, rich and openpyxl. Arguments go to pytest instead.
. "$(dirname "$0")/environment.sh"

place=.venv-oldest
wanted="$(cat pyproject.toml scripts/lowest_versions.py scripts/build_native.py | cksum)"
if [ "$(cat "$place/installed" 2>/dev/null)" != "$wanted" ]; then
    python="$(find_python)"
    echo "--- $python -m venv $place" >&2
    "$python" -m venv --clear "$place"
    "$place/bin/python" scripts/lowest_versions.py pyproject.toml >"$place/constraints.txt"
    echo "--- pip install --constraint $place/constraints.txt -e '.[oldest]'" >&2
    "$place/bin/python" -m pip install --quiet --disable-pip-version-check \
        --constraint "$place/constraints.txt" -e ".[oldest]"
    echo "$wanted" >"$place/installed"
fi

if [ "$#" -eq 0 ]; then
    set -- tests/test_api.py tests/test_columns.py tests/test_intake.py tests/compare tests/reports \
        tests/store/test_open.py tests/store/test_save.py tests/store/test_failures.py tests/cli/test_help.py \
        tests/cli/test_show_and_diff.py tests/cli/test_history.py tests/cli/test_notify.py tests/cli/test_output.py
fi
echo "--- pytest with the lowest versions" >&2
TRACKER_TESTS=oldest "$place/bin/python" -m pytest -n "${TRACKER_TEST_PROCESSES:-2}" "$@"
