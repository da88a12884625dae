#!/bin/sh
# kafka-python's own integration tests, from its source package.
#   kafka-python.sh                          fetches them into target/tools
#   kafka-python.sh list                     prints the name of each test
#   kafka-python.sh run ADDRESS SECONDS TEST...  runs tests and prints `pass`, `fail` or `skip` and the name of each
. "$(dirname "$0")/../tools/common.sh"

suite="$tools/kafka-python"
version=$(sed -n 's/^kafka-python==//p' "$here/python/requirements.txt")
python="$tools/python/bin/python"

fetch() {
    current kafka-python "$0" "$here/python/requirements.txt" "$workspace/tests/compat/kafka_python"/*.py && return 0
    [ -x "$python" ] || fail "target/tools/python is not there; kafka-python's tests are skipped"
    say "fetching the tests of kafka-python $version"
    rm -rf "$suite"
    mkdir -p "$suite/no-kafka"
    limit 300 "$python" -m pip download --quiet --no-deps --no-binary :all: --dest "$suite" "kafka-python==$version" \
        >"$tools/kafka-python.log" 2>&1 || fail "kafka-python could not be fetched, see $tools/kafka-python.log"
    tar -xzf "$suite/kafka_python-$version.tar.gz" -C "$suite" --strip-components 1 "kafka_python-$version/test"
    # The package leaves these two out.
    touch "$suite/test/__init__.py"
    cp "$workspace/tests/compat/kafka_python/service.py" "$suite/test/"
    done_with kafka-python "$0" "$here/python/requirements.txt" "$workspace/tests/compat/kafka_python"/*.py
}

pytest() {
    cd "$suite"
    PYTHONPATH="$workspace/tests/compat/kafka_python" PYTHONDONTWRITEBYTECODE=1 KAFKA_VERSION=4.1.0 \
        KAFKA_ROOT="$suite/no-kafka" "$python" -m pytest -p topics -p no:cacheprovider -o addopts= -o log_level=ERROR \
        --rootdir "$suite" "$@"
}

case ${1:-fetch} in
fetch) fetch ;;
list) KAFKA_URI=kafka://none:1 pytest --collect-only -q test/integration | sed -n 's,^test/integration/\(.*::.*\),\1,p' ;;
run)
    export KAFKA_URI="kafka://$2"
    seconds=$3
    shift 3
    for test in "$@"; do
        set -- "$@" "test/integration/$test"
        shift
    done
    pytest -v --tb=short --show-capture=no --timeout "$seconds" --timeout-method=signal -rA "$@" \
        >"$tools/kafka-python-run.log" 2>&1 || true
    sed -n -e 's,^PASSED test/integration/\([^ ]*\).*,pass \1,p' -e 's,^FAILED test/integration/\([^ ]*\).*,fail \1,p' \
        -e 's,^ERROR test/integration/\([^ ]*\).*,fail \1,p' "$tools/kafka-python-run.log"
    sed -n 's,^test/integration/\([^ ]*\) SKIPPED.*,skip \1,p' "$tools/kafka-python-run.log"
    ;;
esac
