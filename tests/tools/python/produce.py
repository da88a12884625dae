"""Writes records by confluent-kafka's idempotent producer: BOOTSTRAP TOPIC PARTITION CODEC COUNT.

Record i has the key `key-<i>` and a value of 400 bytes that begins with `value-<i>-` and compresses well. Prints the offset
of each record as it is acknowledged, a JSON number a line.
"""

import sys

from confluent_kafka import Producer


def main():
    bootstrap, topic, partition, codec, count = sys.argv[1:]
    failures = []

    def delivered(error, message):
        if error is not None:
            failures.append(error)
        else:
            print(message.offset())

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "linger.ms": 100,
            "message.timeout.ms": 30000,
        }
    )
    for i in range(int(count)):
        value = f"value-{i}-".ljust(400, "x")
        producer.produce(topic, value, f"key-{i}", partition=int(partition), on_delivery=delivered)
    left = producer.flush(60)
    if failures or left:
        sys.exit(f"{left} records left, failures: {failures}")


main()
