"""Reads stretches of partitions by confluent-kafka: BOOTSTRAP ISOLATION, then for each TOPIC PARTITION OFFSET EPOCH END.

EPOCH is the leader epoch that was committed with OFFSET, or - for none. Prints each record as a line of JSON until the end of the
partition is END or more, however long that takes up to two minutes; then {"position": N}. Any error, a reset or a truncation
included, ends it with exit code 1.

With TELL_POLLED in the environment it prints {"polled": true} once at each stretch, when a poll brings nothing although the
broker has answered at that position and the answer was taken in.
"""

import json
import os
import sys
import time

from confluent_kafka import Consumer, KafkaError, TopicPartition

PATIENCE_S = 120
# So many requests later an answer at the present position was taken in: a partition is asked for again only then, and the
# first may be of the position before.
TAKEN_IN = 3
fetches = 0


def count_fetches(statistics):
    global fetches
    brokers = json.loads(statistics)["brokers"].values()
    fetches = sum(broker["req"].get("Fetch", 0) for broker in brokers)


def main():
    bootstrap, isolation, *stretches = sys.argv[1:]
    consumer = Consumer(
        {
            "stats_cb": count_fetches,
            "statistics.interval.ms": 100,
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
    deadline = time.monotonic() + PATIENCE_S
    position = place.offset
    to_tell, before = "TELL_POLLED" in os.environ, fetches
    while position < end and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is None:
            if to_tell and fetches > before + TAKEN_IN:
                print(json.dumps({"polled": True}), flush=True)
                to_tell = False
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
