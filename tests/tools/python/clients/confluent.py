"""The steps of tests/compat/README.md by confluent-kafka, which is librdkafka: BOOTSTRAP TOPIC."""

import sys
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)
from steps import KINDS, TIME, records, seen, show, take, until


class Client:
    def __init__(self, bootstrap, topic):
        self.bootstrap = bootstrap
        self.topic = topic
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    def create(self):
        topic = NewTopic(self.topic, 6, 1, config={"retention.ms": "-1"})
        self.admin.create_topics([topic])[self.topic].result()
        show("create", "partitions", until(6, self.partitions))
        show("create-again", "error", error(self.admin.create_topics([topic])))

    def produce(self):
        for partition, kind in enumerate(KINDS):
            producer = Producer(
                {
                    "bootstrap.servers": self.bootstrap,
                    "compression.type": "none" if kind == "idempotent" else kind,
                    "enable.idempotence": kind == "idempotent",
                    "linger.ms": 100,
                }
            )
            offsets = []
            for key, value, header, timestamp in records():
                producer.produce(
                    self.topic,
                    value,
                    key,
                    partition,
                    on_delivery=lambda _, message: offsets.append(message.offset()),
                    timestamp=timestamp,
                    headers=[("header", header)],
                )
            producer.flush(30)
            show(f"produce-{kind}", "offsets", offsets)

    def consume(self):
        for partition, kind in enumerate(KINDS):
            show(f"consume-{kind}", "records", self.read(partition, 0, 5))
        show("consume-middle", "offsets", offsets(self.read(0, 2, 3)))
        consumer = self.consumer()
        [found] = consumer.offsets_for_times([TopicPartition(self.topic, 0, TIME + 500)], timeout=30)
        show("consume-time", "offsets", offsets(self.read(0, found.offset, 4)))

    def list_offsets(self):
        show("list-offsets", "ends", self.ends(0))
        found = [self.offset(0, OffsetSpec.for_timestamp(TIME + later))[0] for later in (0, 1, 1000, 3500)]
        show("list-offsets-time", "offsets", found)
        show("list-offsets-after", "offset", self.offset(0, OffsetSpec.for_timestamp(TIME + 5000))[0])
        show("list-offsets-max", "found", self.offset(0, OffsetSpec.max_timestamp()))

    def delete_records(self):
        show("delete-records", "low", self.delete_before(0, 2))
        show("list-offsets-deleted", "ends", self.ends(0))
        show("consume-deleted", "offsets", offsets(self.read(0, 2, 3)))
        code = 0
        try:
            self.read(0, 0, 1)
        except KafkaException as failure:
            # librdkafka gives its own code where its reset policy is to fail, and the broker's in the text.
            code = 1 if "Offset out of range" in str(failure) else failure.args[0].code()
        show("consume-below", "error", code)
        show("delete-records-all", "low", self.delete_before(1, -1))
        show("delete-records-beyond", "error", error(self.admin.delete_records([TopicPartition(self.topic, 0, 9)])))

    def alter_config(self):
        self.alter("2000000").result()
        show("alter-incremental", "property", until(["2000000", False], self.property))
        self.alter(None).result()
        show("alter-remove", "property", until(["1048588", True], self.property))
        show("alter-refused", "error", error({0: self.alter("many")}))
        full = {"max.message.bytes": "3000000"}
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.topic, set_config=full)
        self.admin.alter_configs([resource])[resource].result()
        show("alter-full", "property", until(["3000000", False], self.property))

    def create_partitions(self):
        self.admin.create_partitions([NewPartitions(self.topic, 8)])[self.topic].result()
        show("create-partitions", "partitions", until(8, self.partitions))
        fewer = self.admin.create_partitions([NewPartitions(self.topic, 1)])
        show("create-partitions-fewer", "error", error(fewer))

    def describe(self):
        show("describe-cluster", "nodes", len(self.admin.describe_cluster().result().nodes))

    def delete(self):
        self.admin.delete_topics([self.topic])[self.topic].result()
        show("delete-topic", "listed", until(False, self.listed))
        show("delete-topic-again", "error", error(self.admin.delete_topics([self.topic])))

    def partitions(self):
        found = self.admin.list_topics(timeout=30).topics.get(self.topic)
        return 0 if found is None else len(found.partitions)

    def listed(self):
        return self.topic in self.admin.list_topics(timeout=30).topics

    def consumer(self):
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
            }
        )

    def read(self, partition, offset, count):
        consumer = self.consumer()
        consumer.assign([TopicPartition(self.topic, partition, offset)])
        read = []
        deadline = time.monotonic() + 20
        while len(read) < count and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error() is not None:
                raise KafkaException(message.error())
            when = message.timestamp()[1]
            read.append(seen(message.offset(), when, message.key(), message.value(), message.headers()))
        consumer.close()
        return read

    def offset(self, partition, spec):
        asked = TopicPartition(self.topic, partition)
        found = self.admin.list_offsets({asked: spec})[asked].result()
        return [found.offset, found.timestamp]

    def ends(self, partition):
        return [self.offset(partition, spec)[0] for spec in (OffsetSpec.earliest(), OffsetSpec.latest())]

    def delete_before(self, partition, offset):
        [done] = self.admin.delete_records([TopicPartition(self.topic, partition, offset)]).values()
        return done.result().low_watermark

    def alter(self, value):
        operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        entry = ConfigEntry("max.message.bytes", value, incremental_operation=operation)
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.topic, incremental_configs=[entry])
        [done] = self.admin.incremental_alter_configs([resource]).values()
        return done

    def property(self):
        [found] = self.admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, self.topic)]).values()
        entry = found.result()["max.message.bytes"]
        return [entry.value, entry.is_default]


def offsets(read):
    return [record[0] for record in read]


def error(futures):
    [future] = futures.values()
    try:
        future.result()
        return 0
    except KafkaException as failure:
        return failure.args[0].code()


take(Client(*sys.argv[1:]))
