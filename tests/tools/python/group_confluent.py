"""A member of a group by confluent-kafka, which is librdkafka: BOOTSTRAP GROUP TOPIC COUNT.

Prints, as JSON, its partitions each time they are assigned and each record that it reads. After COUNT records it commits
and leaves; with COUNT 0 it reads until a line comes on its standard input.
"""

import json
import select
import sys

from confluent_kafka import Consumer


def show(**what):
    print(json.dumps(what), flush=True)


def assigned(_, partitions):
    show(assigned=sorted(partition.partition for partition in partitions))


def main(bootstrap, group, topic, count):
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic], on_assign=assigned)
    read = 0
    while read < count if count else not select.select([sys.stdin], [], [], 0)[0]:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            show(partition=message.partition(), offset=message.offset())
            read += 1
    if read:
        consumer.commit(asynchronous=False)
    consumer.close()


main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
