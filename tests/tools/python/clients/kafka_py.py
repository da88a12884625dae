"""The steps of tests/compat/README.md by kafka-python: BOOTSTRAP TOPIC."""

import sys
import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import BrokerResponseError, OffsetOutOfRangeError
from kafka.protocol.consumer import OffsetSpec
from steps import KINDS, TIME, records, seen, show, take, until


class Client:
    def __init__(self, bootstrap, topic):
        self.bootstrap = bootstrap
        self.topic = topic
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def create(self):
        topics = [NewTopic(self.topic, 6, 1, topic_configs={"retention.ms": "-1"})]
        self.admin.create_topics(topics)
        show("create", "partitions", until(6, self.partitions))
        show("create-again", "error", error(self.admin.create_topics, topics))

    def produce(self):
        for partition, kind in enumerate(KINDS):
            producer = KafkaProducer(
                bootstrap_servers=self.bootstrap,
                compression_type=None if kind in ("none", "idempotent") else kind,
                enable_idempotence=kind == "idempotent",
                linger_ms=100,
            )
            sent = []
            for key, value, header, timestamp in records():
                headers = [("header", header)]
                sent.append(producer.send(self.topic, value, key, headers, partition, timestamp))
            producer.flush(30)
            show(f"produce-{kind}", "offsets", [future.get(30).offset for future in sent])
            producer.close()

    def consume(self):
        for partition, kind in enumerate(KINDS):
            show(f"consume-{kind}", "records", self.read(partition, 0, 5))
        show("consume-middle", "offsets", offsets(self.read(0, 2, 3)))
        consumer = self.consumer()
        asked = TopicPartition(self.topic, 0)
        found = consumer.offsets_for_times({asked: TIME + 500})[asked].offset
        consumer.close()
        show("consume-time", "offsets", offsets(self.read(0, found, 4)))

    def list_offsets(self):
        show("list-offsets", "ends", self.ends(0))
        found = [self.offset(0, TIME + later)[0] for later in (0, 1, 1000, 3500)]
        show("list-offsets-time", "offsets", found)
        show("list-offsets-after", "offset", self.offset(0, TIME + 5000)[0])
        show("list-offsets-max", "found", self.offset(0, OffsetSpec.MAX_TIMESTAMP))

    def delete_records(self):
        show("delete-records", "low", self.delete_before(0, 2))
        show("list-offsets-deleted", "ends", self.ends(0))
        show("consume-deleted", "offsets", offsets(self.read(0, 2, 3)))
        show("consume-below", "error", error(self.read, 0, 0, 1))
        show("delete-records-all", "low", self.delete_before(1, -1))
        show("delete-records-beyond", "error", error(self.delete_before, 0, 9))

    def alter_config(self):
        self.alter(AlterConfigOp.SET, "2000000")
        show("alter-incremental", "property", until(["2000000", False], self.property))
        self.alter(AlterConfigOp.DELETE, None)
        show("alter-remove", "property", until(["1048588", True], self.property))
        refused = self.alter(AlterConfigOp.SET, "many")["topic"][self.topic]
        show("alter-refused", "error", 40 if refused.startswith("[Error 40]") else refused)
        self.alter(AlterConfigOp.SET, "3000000", incremental=False)
        show("alter-full", "property", until(["3000000", False], self.property))

    def create_partitions(self):
        self.admin.create_partitions({self.topic: NewPartitions(8)})
        show("create-partitions", "partitions", until(8, self.partitions))
        fewer = {self.topic: NewPartitions(1)}
        show("create-partitions-fewer", "error", error(self.admin.create_partitions, fewer))

    def describe(self):
        show("describe-cluster", "nodes", len(self.admin.describe_cluster()["brokers"]))
        [folders] = self.admin.describe_log_dirs([self.topic])
        sizes = {
            partition["partition_index"]: partition["partition_size"]
            for folder in folders["log_dirs"]
            for topic in folder["topics"]
            for partition in topic["partitions"]
        }
        show("describe-log-dirs", "found", [len(sizes), sizes[5] > 0])
        asked = TopicPartition(self.topic, 5)
        producers = self.admin.describe_producers([asked])[asked].active_producers
        show("describe-producers", "sequences", [producer.last_sequence for producer in producers])
        listed = self.admin.list_config_resources(["TOPIC"])
        show("list-config-resources", "listed", any(self.topic in names for names in listed.values()))
        topics = self.admin.describe_topic_partitions([self.topic])["topics"]
        show("describe-topic-partitions", "partitions", len(topics[0]["partitions"]))

    def delete(self):
        self.admin.delete_topics([self.topic])
        show("delete-topic", "listed", until(False, lambda: self.topic in self.admin.list_topics()))
        show("delete-topic-again", "error", error(self.admin.delete_topics, [self.topic]))

    def partitions(self):
        return len(self.admin.describe_topics([self.topic])[0]["partitions"])

    def consumer(self):
        return KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=None, auto_offset_reset="none")

    def read(self, partition, offset, count):
        consumer = self.consumer()
        try:
            assigned = TopicPartition(self.topic, partition)
            consumer.assign([assigned])
            consumer.seek(assigned, offset)
            read = []
            deadline = time.monotonic() + 20
            while len(read) < count and time.monotonic() < deadline:
                for found in consumer.poll(timeout_ms=200).values():
                    read += found
        finally:
            consumer.close()
        return [seen(record.offset, record.timestamp, record.key, record.value, record.headers) for record in read]

    def offset(self, partition, spec):
        asked = TopicPartition(self.topic, partition)
        found = self.admin.list_partition_offsets({asked: spec})[asked]
        return [found.offset, found.timestamp]

    def ends(self, partition):
        return [self.offset(partition, spec)[0] for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)]

    def delete_before(self, partition, offset):
        asked = TopicPartition(self.topic, partition)
        return self.admin.delete_records({asked: offset})[asked]["low_watermark"]

    def alter(self, operation, value, incremental=True):
        changes = {"max.message.bytes": (operation, value)}
        resource = ConfigResource(ConfigResourceType.TOPIC, self.topic, changes)
        return self.admin.alter_configs([resource], incremental=incremental)

    def property(self):
        resource = ConfigResource(ConfigResourceType.TOPIC, self.topic, {"max.message.bytes": None})
        found = self.admin.describe_configs([resource], config_filter="all")
        entry = found["topic"][self.topic]["max.message.bytes"]
        return [entry["value"], entry["config_source"] != "DYNAMIC_TOPIC_CONFIG"]


def offsets(read):
    return [record[0] for record in read]


def error(call, *arguments):
    try:
        call(*arguments)
        return 0
    except OffsetOutOfRangeError:
        return 1
    except BrokerResponseError as failure:
        return failure.errno


take(Client(*sys.argv[1:]))
