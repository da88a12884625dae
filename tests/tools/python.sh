#!/bin/sh
# Puts Python with the Kafka clients of requirements.txt into target/tools/python.
. "$(dirname "$0")/common.sh"

requirements="$here/python/requirements.txt"
if current python "$requirements" && "$tools/python/bin/python" -c 'import confluent_kafka, kafka, aiokafka, pytest' 2>/dev/null; then
    exit 0
fi
have python3 || apt_install python3 python3-venv || fail "no python3 was found; its tests are skipped"
say "making target/tools/python with the Kafka clients of requirements.txt"
rm -rf "$tools/python"
if ! limit 120 python3 -m venv "$tools/python" >"$tools/python.log" 2>&1; then
    # Debian's Python comes without this module.
    apt_install python3-venv || fail "python3 has no venv module; its tests are skipped"
    rm -rf "$tools/python"
    limit 120 python3 -m venv "$tools/python" >"$tools/python.log" 2>&1 || fail "see $tools/python.log"
fi
if ! limit 600 "$tools/python/bin/pip" install --quiet --retries 2 --only-binary :all: --requirement "$requirements" \
    >"$tools/python.log" 2>&1; then
    tail -n 5 "$tools/python.log" >&2
    fail "the Python packages could not be installed; their tests are skipped"
fi
done_with python "$requirements"
