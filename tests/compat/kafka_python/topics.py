"""A pytest plugin.

Some tests write to a topic that they expect the broker to create on the way, which is not served here: such a topic is
created before its first record.

A consumer that subscribes while the answer to its first Metadata request comes in forgets the topic: it asks for none
until its next refresh, five minutes later. A broker that answers within a fraction of a millisecond meets that in one
of five consumers. So the first answer is waited for.
"""

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import TopicAlreadyExistsError

created = set()
send = KafkaProducer.send
subscribe = KafkaConsumer.subscribe


def send_to_a_topic_that_exists(producer, topic, *arguments, **options):
    if topic not in created:
        admin = KafkaAdminClient(bootstrap_servers=producer.config["bootstrap_servers"])
        try:
            admin.create_topics({topic: {"num_partitions": 4, "replication_factor": 1}}, wait_for_metadata=True)
        except TopicAlreadyExistsError:
            pass
        admin.close()
        created.add(topic)
    return send(producer, topic, *arguments, **options)


def subscribe_after_the_first_answer(consumer, *arguments, **options):
    consumer.topics()
    return subscribe(consumer, *arguments, **options)


KafkaProducer.send = send_to_a_topic_that_exists
KafkaConsumer.subscribe = subscribe_after_the_first_answer
