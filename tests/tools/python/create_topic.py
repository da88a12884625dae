"""Creates a topic by kafka-python's admin client: BOOTSTRAP TOPIC PARTITIONS [KEY=VALUE ...]."""

import sys

from kafka.admin import KafkaAdminClient, NewTopic


def main():
    bootstrap, topic, partitions, *configs = sys.argv[1:]
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    settings = dict(config.split("=", 1) for config in configs)
    admin.create_topics([NewTopic(topic, int(partitions), 1, topic_configs=settings)])
    admin.close()


main()
