# What the tool scripts share; sourced by them, not run. POSIX sh.
#
# Each script puts one tool into target/tools, does nothing when it is there already, says what it does, and gives up
# after a bounded time: without a network it ends with a message, and the tests that need the tool are skipped.

set -eu

workspace=$(cd "$(dirname "$0")/../.." && pwd)
here="$workspace/tests/tools"
tools="$workspace/target/tools"
mkdir -p "$tools/bin"

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }

fail() {
    say "$*"
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# limit SECONDS COMMAND...: runs a command, but not for longer. `timeout` is in coreutils.
limit() {
    seconds=$1
    shift
    timeout --kill-after=10 "$seconds" "$@"
}

is_debian() { have apt-get && have dpkg; }

apt_options="-o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 -o Acquire::Retries=1 -o DPkg::Lock::Timeout=120"

# apt_update: fetches the package lists, once for all scripts; only root can.
apt_update() {
    [ "$(id -u)" = 0 ] || return 0
    [ ! -e "$tools/.apt-updated" ] || return 0
    say "fetching Debian's package lists"
    # shellcheck disable=SC2086
    limit 180 apt-get $apt_options -qq update >&2 && touch "$tools/.apt-updated"
}

# apt_install PACKAGE...: installs system packages; only as root on Debian.
apt_install() {
    is_debian && [ "$(id -u)" = 0 ] || return 1
    say "installing Debian packages: $*"
    # shellcheck disable=SC2086
    for attempt in first second; do
        DEBIAN_FRONTEND=noninteractive limit 900 \
            apt-get $apt_options -qq -y --no-install-recommends install "$@" >"$tools/apt.log" 2>&1 && return 0
        [ "$attempt" = second ] || apt_update || break
    done
    say "that failed; the end of $tools/apt.log:"
    tail -n 5 "$tools/apt.log" >&2
    return 1
}

# apt_unpack FOLDER PACKAGE...: unpacks packages into a folder, touching nothing of the system; needs no root.
apt_unpack() {
    is_debian || return 1
    folder=$1
    shift
    rm -rf "$folder"
    mkdir -p "$folder/packages"
    say "unpacking Debian packages: $*"
    # shellcheck disable=SC2086
    for attempt in first second; do
        if (cd "$folder/packages" && limit 600 apt-get $apt_options -qq download "$@") >"$tools/apt.log" 2>&1; then
            for package in "$folder"/packages/*.deb; do
                dpkg -x "$package" "$folder"
            done
            rm -r "$folder/packages"
            return 0
        fi
        [ "$attempt" = second ] || apt_update || break
    done
    say "that failed; the end of $tools/apt.log:"
    tail -n 5 "$tools/apt.log" >&2
    return 1
}

# apt_closure PACKAGE...: the packages and all they need, without the C library, which every system has.
apt_closure() {
    apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
        "$@" | grep '^[a-z0-9]' | grep -v -e '^libc6' -e '^libgcc' -e '^libcrypt' -e '^gcc-' -e '^debconf' | sort -u
}

# current STAMP INPUT...: true if the stamp was left by a run with the same inputs (files).
current() {
    stamp="$tools/.$1"
    shift
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(cat "$@" | cksum)" ]
}

# done_with STAMP INPUT...: leaves the stamp.
done_with() {
    stamp="$tools/.$1"
    shift
    cat "$@" | cksum >"$stamp"
}

# go_module MODULE@VERSION SUM FOLDER: copies a Go module, its tests included, once its sum is what it must be.
go_module() {
    found=$(limit 300 go mod download -json "$1") || return 1
    case $found in *"\"Sum\": \"$2\""*) ;; *) say "$1 does not have the sum $2" && return 1 ;; esac
    cp -r "$(printf '%s\n' "$found" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')" "$3"
    chmod -R u+w "$3"
}

# go_test FOLDER BINARY run ADDRESS SECONDS TEST...: runs tests of a compiled package, and prints a line for each.
go_test() {
    cd "$1"
    binary=$2
    seconds=$5
    shift 5
    names=$(printf '|%s' "$@")
    "$binary" -test.v -test.parallel 8 -test.timeout "${seconds}s" -test.run "^(${names#|})\$" >"$binary.log" 2>&1 || true
    sed -n -e 's/^--- PASS: \([^ ]*\).*/pass \1/p' -e 's/^--- FAIL: \([^ ]*\).*/fail \1/p' \
        -e 's/^--- SKIP: \([^ ]*\).*/skip \1/p' "$binary.log"
}
