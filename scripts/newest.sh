#!/bin/sh
# Runs the tests with the newest versions that there are, in .venv-newest. Arguments go to pytest.
. "$(dirname "$0")/environment.sh"
rm -rf .venv-newest
install .venv-newest newest "[test]"
exec .venv-newest/bin/python -m pytest -n "${TRACKER_TEST_PROCESSES:-2}" "$@"
