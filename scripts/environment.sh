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

# install FOLDER LIST [EXTRA]: tracker, editable, in the virtual environment FOLDER, with the packages in the file LIST of
# scripts/pin.sh, each checked against its hash; or, where LIST is "newest", with the newest versions for tracker[EXTRA].
install() {
    wanted="$(cat pyproject.toml scripts/build_native.py scripts/*.txt tracker/*/native/*.[ch] \
        tracker/*/*/native/*.[ch] | cksum)"
    done_file="$1/installed-$(basename "$2")"
    if [ "$(cat "$done_file" 2>/dev/null)" = "$wanted" ]; then
        return
    fi
    if ! [ -x "$1/bin/python" ]; then
        python="$(find_python)"
        echo "--- $python -m venv $1" >&2
        "$python" -m venv "$1"
    fi
    pip() {
        echo "--- $venv/bin/python -m pip install $*" >&2
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
    }
    venv="$1"
    if [ "$2" = newest ]; then
        pip -e ".${3:-}"
    else
        pip --require-hashes -r "$2"
        # all that it needs, and what builds it, is there now
        pip --no-deps --no-build-isolation -e .
    fi
    echo "$wanted" >"$done_file"
}
