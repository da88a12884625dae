#!/bin/sh
# franz-go's own tests: the package kgo of its module, in those files that use a broker.
#   franz-go.sh                          fetches and compiles them into target/tools
#   franz-go.sh list                     prints the name of each test
#   franz-go.sh run ADDRESS SECONDS TEST...  runs tests and prints `pass`, `fail` or `skip` and the name of each
. "$(dirname "$0")/../tools/common.sh"

version=v1.22.3
sum=h1:RHe35s34pKefMLyL+ZYJ6mQVtfFZz4zHDHVkTyACur0=
suite="$tools/franz-go"

fetch() {
    [ "$(cat "$suite/version" 2>/dev/null)" != "$version $sum" ] || return 0
    have go || fail "no Go was found; franz-go's tests are skipped"
    rm -rf "$suite"
    mkdir -p "$suite"
    say "fetching and compiling the tests of franz-go $version (about a minute)"
    go_module "github.com/twmb/franz-go@$version" "$sum" "$suite/module" || fail "franz-go could not be fetched"
    (cd "$suite/module" && limit 600 go test -c -o "$suite/kgo.test" ./pkg/kgo) >"$tools/franz-go.log" 2>&1 ||
        fail "franz-go's tests do not compile, see $tools/franz-go.log"
    echo "$version $sum" >"$suite/version"
}

case ${1:-fetch} in
fetch) fetch ;;
list)
    cd "$suite/module/pkg/kgo"
    # The helpers hold no test. What uses neither a client of theirs nor a topic needs no broker.
    sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' $(grep -lE 'newTestClient\(|tmpTopic' ./*_test.go)
    ;;
run)
    export KGO_SEEDS="$2" KGO_TEST_RF=1 KGO_TEST_RECORDS=5000 KGO_LOG_LEVEL=none
    go_test "$suite/module/pkg/kgo" "$suite/kgo.test" "$@"
    ;;
esac
