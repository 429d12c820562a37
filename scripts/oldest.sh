#!/bin/sh
# Runs the tests that meet pandas, NumPy, SQLAlchemy, typer, rich and openpyxl with the lowest versions that
# pyproject.toml allows, in .venv-oldest. Arguments go to pytest instead.
. "$(dirname "$0")/environment.sh"
install .venv-oldest scripts/oldest.txt
if [ "$#" -eq 0 ]; then
    set -- tests/test_api.py tests/test_columns.py tests/test_intake.py tests/compare tests/reports \
        tests/store/test_open.py tests/store/test_save.py tests/store/test_failures.py tests/cli/test_help.py \
        tests/cli/test_show_and_diff.py tests/cli/test_history.py tests/cli/test_notify.py tests/cli/test_output.py
fi
echo "--- pytest with the lowest versions" >&2
TRACKER_TESTS=oldest exec .venv-oldest/bin/python -m pytest -n "${TRACKER_TEST_PROCESSES:-2}" "$@"
