"""Reads stretches of partitions by confluent-kafka: BOOTSTRAP ISOLATION, then for each TOPIC PARTITION OFFSET EPOCH END.

EPOCH is the leader epoch that was committed with OFFSET, or - for none. Prints each record as a line of JSON until the end of the
partition is END or more, however long that takes up to a minute; then {"position": N}. Any error, a reset or a truncation
included, ends it with exit code 1.
"""

import json
import sys
import time

from confluent_kafka import Consumer, KafkaError, TopicPartition


def main():
    bootstrap, isolation, *stretches = sys.argv[1:]
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "fetch.wait.max.ms": 100,
        }
    )
    for at in range(0, len(stretches), 5):
        topic, partition, offset, epoch, end = stretches[at : at + 5]
        place = TopicPartition(topic, int(partition), int(offset))
        if epoch != "-":
            place = TopicPartition(topic, int(partition), int(offset), leader_epoch=int(epoch))
        position = read(consumer, place, int(end))
        print(json.dumps({"position": position}))
        if position < int(end):
            sys.exit(1)


def read(consumer, place, end):
    consumer.assign([place])
    deadline = time.monotonic() + 60
    position = place.offset
    while position < end and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is None:
            continue
        if message.error() is None:
            print(json.dumps(describe(message)))
        elif message.error().code() == KafkaError._PARTITION_EOF:
            position = max(position, message.offset())
        elif not message.error().retriable():
            sys.exit(str(message.error()))
    return position


def describe(message):
    kind, timestamp = message.timestamp()
    return {
        "offset": message.offset(),
        "leaderEpoch": message.leader_epoch(),
        "timestamp": timestamp,
        "timestampType": kind - 1,
        "key": text(message.key()),
        "value": text(message.value()),
        "headers": [[text(key.encode()), text(value)] for key, value in message.headers() or []],
    }


def text(data):
    return None if data is None else data.hex()


main()
