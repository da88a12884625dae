"""Reads records by confluent-kafka: BOOTSTRAP TOPIC PARTITION OFFSET COUNT.

Prints each record as a line of JSON: offset, leaderEpoch (null if unknown), timestamp in milliseconds, and key and value in
hexadecimal (or null). Ends with COUNT records, or with fewer and exit code 1 after 20 seconds.
"""

import json
import sys
import time

from confluent_kafka import Consumer, KafkaError, TopicPartition


def main():
    bootstrap, topic, partition, offset, count = sys.argv[1:]
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition(topic, int(partition), int(offset))])
    left = int(count)
    deadline = time.monotonic() + 20
    while left > 0 and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is None:
            continue
        if message.error() is not None:
            if message.error().code() == KafkaError._PARTITION_EOF or message.error().retriable():
                continue
            sys.exit(str(message.error()))
        print(json.dumps(describe(message)))
        left -= 1
    sys.exit(1 if left > 0 else 0)


def describe(message):
    return {
        "offset": message.offset(),
        "leaderEpoch": message.leader_epoch(),
        "timestamp": message.timestamp()[1],
        "key": text(message.key()),
        "value": text(message.value()),
    }


def text(data):
    return None if data is None else data.hex()


main()
