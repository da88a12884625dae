#!/bin/sh
# Puts kcat into target/tools/bin: Debian's package and its libraries, unpacked beside the system. A kcat that the
# machine has will do too.
. "$(dirname "$0")/common.sh"

if "$tools/bin/kcat" -V >/dev/null 2>&1; then
    exit 0
fi
if have kcat; then
    say "using $(command -v kcat)"
    exit 0
fi
is_debian || fail "kcat is not installed and this is not Debian; install it, or its tests are skipped"
apt-cache show kcat >/dev/null 2>&1 || apt_update || true
# shellcheck disable=SC2046
apt_unpack "$tools/kcat" $(apt_closure kcat) || fail "kcat could not be fetched; its tests are skipped"
cat >"$tools/bin/kcat" <<'END'
#!/bin/sh
here=$(cd "$(dirname "$0")/../kcat" && pwd)
for folder in "$here"/usr/lib/*-linux-gnu* "$here"/lib/*-linux-gnu*; do
    LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
done
export LD_LIBRARY_PATH
exec "$here/usr/bin/kcat" "$@"
END
chmod +x "$tools/bin/kcat"
"$tools/bin/kcat" -V >/dev/null || fail "kcat was unpacked but does not run"
say "kcat is in target/tools/bin"
