"""A member of a group by kafka-python: BOOTSTRAP GROUP TOPIC COUNT.

Prints, as JSON, its partitions each time they are assigned and each record that it reads. After COUNT records it commits
and leaves; with COUNT 0 it reads until a line comes on its standard input.
"""

import json
import select
import sys

from kafka import ConsumerRebalanceListener, KafkaConsumer


def show(**what):
    print(json.dumps(what), flush=True)


class Listener(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        pass

    def on_partitions_assigned(self, assigned):
        show(assigned=sorted(partition.partition for partition in assigned))


def main(bootstrap, group, topic, count):
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
    )
    consumer.subscribe([topic], listener=Listener())
    read = 0
    while read < count if count else not select.select([sys.stdin], [], [], 0)[0]:
        for records in consumer.poll(100, max_records=1).values():
            for record in records:
                show(partition=record.partition, offset=record.offset)
                read += 1
    if read:
        consumer.commit()
    consumer.close(autocommit=False)


main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
