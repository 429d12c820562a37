# Sourced by the other scripts: `install` makes a virtual environment with tracker in it, once; later calls change
# nothing. It needs a Python 3.11 or newer with the module venv; PYTHON=/path/to/python names one.
set -eu
cd "$(dirname "$0")/.."
unset PYTHONDONTWRITEBYTECODE  # the tests start hundreds of processes, which would all compile every module

usable() {
    "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14 python}; do
        if usable "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    echo "tracker needs Python 3.11 or newer with the module venv (on Debian and Ubuntu: apt install python3-venv);" >&2
    echo "if it is installed under another name, say PYTHON=/path/to/python sh $0" >&2
    return 1
}

# install FOLDER EXTRA CONSTRAINTS: `pip install -e .EXTRA` in the virtual environment FOLDER, with the versions in the
# file CONSTRAINTS, those that build tracker too. EXTRA: empty, or as in [test]. CONSTRAINTS: /dev/null for the newest.
install() {
    wanted="$(cat pyproject.toml scripts/build_native.py tracker/readers/torch_profiler/native/*.[ch] "$3" | cksum)"
    if [ "$(cat "$1/installed$2" 2>/dev/null)" = "$wanted" ]; then
        return
    fi
    if ! [ -x "$1/bin/python" ]; then
        python="$(find_python)"
        echo "--- $python -m venv $1" >&2
        "$python" -m venv "$1"
    fi
    echo "--- $1/bin/python -m pip install --constraint $3 -e '.$2'" >&2
    # in the environment, for pip hands it on to the build; since version 26 it has another name there
    PIP_CONSTRAINT="$3" PIP_BUILD_CONSTRAINT="$3" \
        "$1/bin/python" -m pip install --quiet --disable-pip-version-check -e ".$2"
    echo "$wanted" | tee "$1/installed" >"$1/installed$2"
}
