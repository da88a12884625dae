"""The steps of tests/compat/README.md by aiokafka: BOOTSTRAP TOPIC."""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, OffsetOutOfRangeError
from steps import KINDS, TIME, records, seen, show


class Client:
    def __init__(self, bootstrap, topic, admin):
        self.bootstrap = bootstrap
        self.topic = topic
        self.admin = admin

    async def create(self):
        topics = [NewTopic(self.topic, 6, 1, topic_configs={"retention.ms": "-1"})]
        await self.admin.create_topics(topics)
        show("create", "partitions", await until(6, self.partitions))
        show("create-again", "error", code((await self.admin.create_topics(topics)).topic_errors))

    async def produce(self):
        for partition, kind in enumerate(KINDS):
            producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                compression_type=None if kind in ("none", "idempotent") else kind,
                enable_idempotence=kind == "idempotent",
                linger_ms=100,
            )
            async with producer:
                sent = []
                for key, value, header, timestamp in records():
                    headers = [("header", header)]
                    sent.append(await producer.send(self.topic, value, key, partition, timestamp, headers))
                done = await asyncio.gather(*sent)
            show(f"produce-{kind}", "offsets", [record.offset for record in done])

    async def consume(self):
        for partition, kind in enumerate(KINDS):
            show(f"consume-{kind}", "records", await self.read(partition, 0, 5))
        show("consume-middle", "offsets", offsets(await self.read(0, 2, 3)))
        show("consume-time", "offsets", offsets(await self.read(0, await self.at(TIME + 500), 4)))

    async def list_offsets(self):
        show("list-offsets", "ends", await self.ends(0))
        found = [await self.at(TIME + later) for later in (0, 1, 1000, 3500)]
        show("list-offsets-time", "offsets", found)
        show("list-offsets-after", "offset", await self.at(TIME + 5000))

    async def delete_records(self):
        show("delete-records", "low", await self.delete_before(0, 2))
        show("list-offsets-deleted", "ends", await self.ends(0))
        show("consume-deleted", "offsets", offsets(await self.read(0, 2, 3)))
        show("consume-below", "error", await error(self.read(0, 0, 1)))
        show("delete-records-all", "low", await self.delete_before(1, -1))
        show("delete-records-beyond", "error", await error(self.delete_before(0, 9)))

    async def alter_config(self):
        await self.alter({"max.message.bytes": "3000000"})
        show("alter-full", "property", await until(["3000000", False], self.property))
        await self.alter({})
        show("alter-remove", "property", await until(["1048588", True], self.property))
        refused = await self.alter({"max.message.bytes": "many"})
        show("alter-refused", "error", refused[0].resources[0][0])

    async def create_partitions(self):
        await self.admin.create_partitions({self.topic: NewPartitions(8)})
        show("create-partitions", "partitions", await until(8, self.partitions))
        fewer = self.admin.create_partitions({self.topic: NewPartitions(1)})
        show("create-partitions-fewer", "error", await error(fewer))

    async def describe(self):
        show("describe-cluster", "nodes", len((await self.admin.describe_cluster())["brokers"]))

    async def delete(self):
        await self.admin.delete_topics([self.topic])
        show("delete-topic", "listed", await until(False, self.listed))
        again = await self.admin.delete_topics([self.topic])
        show("delete-topic-again", "error", code(again.topic_error_codes))

    async def partitions(self):
        return len((await self.admin.describe_topics([self.topic]))[0]["partitions"])

    async def listed(self):
        return self.topic in await self.admin.list_topics()

    def consumer(self):
        return AIOKafkaConsumer(bootstrap_servers=self.bootstrap, group_id=None, auto_offset_reset="none")

    async def read(self, partition, offset, count):
        read = []
        async with self.consumer() as consumer:
            assigned = TopicPartition(self.topic, partition)
            consumer.assign([assigned])
            consumer.seek(assigned, offset)
            for _ in range(100):
                for found in (await consumer.getmany(timeout_ms=200)).values():
                    read += found
                if len(read) >= count:
                    break
        return [seen(record.offset, record.timestamp, record.key, record.value, record.headers) for record in read]

    async def at(self, timestamp):
        """The first offset at a time or after it; -1 if there is none."""
        asked = TopicPartition(self.topic, 0)
        async with self.consumer() as consumer:
            found = (await consumer.offsets_for_times({asked: timestamp}))[asked]
        return -1 if found is None else found.offset

    async def ends(self, partition):
        asked = TopicPartition(self.topic, partition)
        async with self.consumer() as consumer:
            first = await consumer.beginning_offsets([asked])
            last = await consumer.end_offsets([asked])
        return [first[asked], last[asked]]

    async def delete_before(self, partition, offset):
        asked = TopicPartition(self.topic, partition)
        return (await self.admin.delete_records({asked: RecordsToDelete(offset)}))[asked]

    async def alter(self, properties):
        resource = ConfigResource(ConfigResourceType.TOPIC, self.topic, properties)
        return await self.admin.alter_configs([resource])

    async def property(self):
        resource = ConfigResource(ConfigResourceType.TOPIC, self.topic, {"max.message.bytes": None})
        [answer] = await self.admin.describe_configs([resource])
        [entry] = answer.resources[0][4]
        # Name, value, read only, source (1 is the topic's own).
        return [entry[1], entry[3] != 1]


async def until(wanted, look):
    """What `look` sees once that is what is wanted, or after ten seconds: Apache Kafka answers before a change shows."""
    for _ in range(100):
        found = await look()
        if found == wanted:
            break
        await asyncio.sleep(0.1)
    return found


def offsets(read):
    return [record[0] for record in read]


def code(results):
    return results[0][1]


async def error(call):
    try:
        await call
        return 0
    except OffsetOutOfRangeError:
        return 1
    except KafkaError as failure:
        return failure.errno


async def main():
    bootstrap, topic = sys.argv[1:]
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    client = Client(bootstrap, topic, admin)
    await client.create()
    await client.produce()
    await client.consume()
    await client.list_offsets()
    await client.delete_records()
    await client.alter_config()
    await client.describe()
    await client.create_partitions()
    await client.delete()
    await admin.close()


asyncio.run(main())
