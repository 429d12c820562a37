#!/bin/sh
# Installs tracker into .venv (once) and compares two versions of a small GPT training on bundled profiles. It ends with
# the command that shows them as pages.
. "$(dirname "$0")/environment.sh"
install .venv scripts/requirements.txt
echo "--- .venv/bin/tracker demo" >&2
exec .venv/bin/tracker demo "$@"
