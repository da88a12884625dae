"""What the programs of the Python clients share: the records they write, and how they print what they see."""

import json
import time

TIME = 1_700_000_000_000
LATER = [0, 1000, 4000, 3000, 2000]
KINDS = ["none", "gzip", "snappy", "lz4", "zstd", "idempotent"]


def take(client):
    """All steps of a client that does not need to be awaited."""
    client.create()
    client.produce()
    client.consume()
    client.list_offsets()
    client.delete_records()
    client.alter_config()
    client.describe()
    client.create_partitions()
    client.delete()


def records():
    """Key, value, header's value and timestamp of each record; one has no value, one no key."""
    for i, later in enumerate(LATER):
        key = None if i == 4 else f"key-{i}".encode()
        value = None if i == 3 else f"value-{i}".encode()
        yield key, value, str(i).encode(), TIME + later


def seen(offset, timestamp, key, value, headers):
    """A record that was read, as it is printed."""
    return [offset, timestamp, text(key), text(value), text(headers[-1][1])]


def text(data):
    return None if data is None else data.decode()


def until(wanted, look):
    """What `look` sees once that is what is wanted, or after ten seconds: Apache Kafka answers before a change shows."""
    for _ in range(100):
        seen = look()
        if seen == wanted:
            break
        time.sleep(0.1)
    return seen


def show(step, name, value):
    print(json.dumps({"step": step, name: value}), flush=True)
