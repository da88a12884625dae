#!/bin/sh
# Compiles go/client.go, which drives franz-go (versions and sums in go/go.mod and go.sum), into target/tools/bin.
. "$(dirname "$0")/common.sh"

inputs="$0 $here/go/client.go $here/go/go.mod $here/go/go.sum"
# shellcheck disable=SC2086
if current go $inputs && [ -x "$tools/bin/go-client" ]; then
    exit 0
fi
have go || fail "no Go (1.26 or later) was found; franz-go's tests are skipped"
say "fetching franz-go and compiling a program that drives it"
(cd "$here/go" && limit 600 go build -o "$tools/bin/go-client" .) >"$tools/go.log" 2>&1 || fail "see $tools/go.log"
# shellcheck disable=SC2086
done_with go $inputs
