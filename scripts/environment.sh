# Sourced by demo.sh and test.sh: makes .venv with tracker in it, once; later calls change nothing.
# Looks for a Python 3.11 or newer that can make virtual environments; PYTHON=/path/to/python names another one.
set -eu
cd "$(dirname "$0")/.."

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

# install EXTRA: EXTRA is what follows the dot in `pip install -e .EXTRA`, empty or [test]; [test] includes the rest.
install() {
    wanted="$(cat pyproject.toml scripts/build_native.py tracker/readers/torch_profiler/native/*.[ch] | cksum)"
    if [ "$(cat ".venv/installed$1" 2>/dev/null)" = "$wanted" ]; then
        return
    fi
    if ! [ -x .venv/bin/python ]; then
        python="$(find_python)"
        echo "--- $python -m venv .venv" >&2
        "$python" -m venv .venv
    fi
    echo "--- .venv/bin/python -m pip install -e '.$1'" >&2
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -e ".$1"
    echo "$wanted" | tee ".venv/installed" >".venv/installed$1"
}
