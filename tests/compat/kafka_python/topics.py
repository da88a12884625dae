"""A pytest plugin. Some tests write to a topic that they expect the broker to create on the way, which is not served here:
such a topic is created before its first record.
"""

from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import TopicAlreadyExistsError

created = set()
send = KafkaProducer.send


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


KafkaProducer.send = send_to_a_topic_that_exists
