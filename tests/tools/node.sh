#!/bin/sh
# Puts kafkajs (versions and sums in node/package-lock.json) into target/tools/node, and a command that drives it into bin.
. "$(dirname "$0")/common.sh"

inputs="$0 $here/node/package.json $here/node/package-lock.json"
# shellcheck disable=SC2086
if current node $inputs && have node; then
    exit 0
fi
have node && have npm || apt_install nodejs npm || fail "no Node was found; kafkajs's tests are skipped"
say "fetching kafkajs"
mkdir -p "$tools/node"
cp "$here/node/package.json" "$here/node/package-lock.json" "$tools/node/"
(cd "$tools/node" && limit 300 npm ci --ignore-scripts --no-audit --no-fund) >"$tools/node.log" 2>&1 ||
    fail "kafkajs could not be installed, see $tools/node.log"
cat >"$tools/bin/node-client" <<'END'
#!/bin/sh
tools=$(cd "$(dirname "$0")/.." && pwd)
export NODE_PATH="$tools/node/node_modules"
exec node "$tools/../../tests/tools/node/client.js" "$@"
END
chmod +x "$tools/bin/node-client"
# shellcheck disable=SC2086
done_with node $inputs
