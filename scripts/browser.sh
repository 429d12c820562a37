#!/bin/sh
# Prints the path of a Chromium for the browser tests, after installing one where there is none: from Debian as root, else
# from npm. TRACKER_BROWSER=/path/to/chromium names one.
set -eu

find_browser() {
    for name in ${TRACKER_BROWSER:-} chromium-headless-shell chromium chromium-browser google-chrome chrome; do
        if [ "$name" != required ] && command -v "$name"; then
            return
        fi
    done
    if [ -x /tmp/chromium ]; then  # where npm unpacks it
        echo /tmp/chromium
        return
    fi
    return 1
}

if find_browser; then
    exit
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "--- apt-get install chromium-headless-shell" >&2
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium-headless-shell >&2
elif command -v npm >/dev/null; then
    echo "--- npm install @sparticuz/chromium" >&2
    folder="$(mktemp -d)"
    trap 'rm -rf "$folder"' EXIT
    (
        cd "$folder"
        npm install --silent --no-audit --no-fund @sparticuz/chromium >&2
        node --input-type=module -e "import('@sparticuz/chromium').then((found) => found.default.executablePath())"
    )
fi
find_browser || {
    echo "no Chromium: install one and name it: TRACKER_BROWSER=/path/to/chromium" >&2
    exit 1
}
