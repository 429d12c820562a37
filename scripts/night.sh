#!/bin/sh
# Runs all tests, the slow ones and those of real files too, in parts one after the other: each folder of tests/, the
# files right in tests/ (`files`), and the doctests of the package (`doctests`). Arguments are the parts to run:
#     sh scripts/night.sh real store
# Each part has a limit of time; one that fails or takes too long does not end the night. Prints a line a part, and below
# it which tests failed; the rest of what they print is in a file for each part. Ends with 1 where a part was not green.
. "$(dirname "$0")/environment.sh"

list_parts() {
    for folder in tests/*/; do
        folder="${folder#tests/}"
        case "$folder" in data/ | __pycache__/) ;; *) echo "${folder%/}" ;; esac
    done
    echo files
    echo doctests
}

# find_tests PART
find_tests() {
    case "$1" in
        files) echo tests/test_*.py ;;
        doctests) echo tracker ;;
        *) echo "tests/$1" ;;
    esac
}

# limit_minutes PART: at least twice what the part takes on two quiet cores
limit_minutes() {
    case "$1" in
        real) echo 25 ;;
        load) echo 15 ;;
        *) echo 10 ;;
    esac
}

# count WORD: how many tests the last line of pytest, which stands in $summary, counts as `passed`, `failed`, ...
count() {
    found="$(echo "$summary" | tr ',' '\n' | sed -n "s/^[ =]*\([0-9][0-9]*\) $1.*/\1/p")"
    echo "${found:-0}"
}

parts="$(list_parts)"
for part in "$@"; do
    if ! echo "$parts" | grep -Fqx -- "$part"; then
        echo "no part is called $part; choose from: $(echo $parts)" >&2
        exit 2
    fi
done
install .venv scripts/constraints.txt
PATH="$PWD/.venv/bin:$PATH"
logs="$(mktemp -d)"
echo "--- what the tests print: $logs" >&2
status=0
for part in ${*:-$parts}; do
    log="$logs/$part.txt"
    begin="$(date +%s)"
    code=0
    # with Ctrl-C, so that pytest says how far it came, and stops the servers that it started
    TRACKER_TESTS=all timeout --foreground -s INT -k 60 "$(($(limit_minutes "$part") * 60))" \
        pytest -n "${TRACKER_TEST_PROCESSES:-2}" $(find_tests "$part") >"$log" 2>&1 || code=$?
    seconds="$(($(date +%s) - begin))"
    case "$code" in
        0) word=green ;;
        124 | 137) word="over $(limit_minutes "$part") min" ;;
        *) word=red ;;
    esac
    summary="$(grep -E ' in [0-9.]+s' "$log" | tail -n 1)"
    failed="$(($(count failed) + $(count error)))"
    printf '%-11s %-11s %5d passed, %2d failed, %4d skipped, %2d xfailed, %5d s\n' \
        "$part" "$word" "$(count passed)" "$failed" "$(count skipped)" "$(count xfailed)" "$seconds"
    if [ "$code" -ne 0 ]; then
        status=1
        sed -n -E 's/^(FAILED|ERROR) /    &/p' "$log"
    fi
done
exit "$status"
