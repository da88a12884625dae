import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The steps of tests/compat/README.md by Apache Kafka's Java client: BOOTSTRAP TOPIC. */
public final class Client {
    private static final long TIME = 1_700_000_000_000L;
    private static final long[] LATER = {0, 1000, 4000, 3000, 2000};
    private static final List<String> KINDS = List.of("none", "gzip", "snappy", "lz4", "zstd", "idempotent");

    private final String bootstrap;
    private final String topic;
    private final Admin admin;
    private final ConfigResource resource;

    private Client(String bootstrap, String topic, Admin admin) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.admin = admin;
        this.resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            Client client = new Client(arguments[0], arguments[1], admin);
            client.create();
            client.produce();
            client.consume();
            client.listOffsets();
            client.deleteRecords();
            client.alterConfig();
            client.describe();
            client.createPartitions();
            client.quotas();
            client.delete();
        }
    }

    private void create() throws Exception {
        List<NewTopic> topics = List.of(new NewTopic(topic, 6, (short) 1).configs(Map.of("retention.ms", "-1")));
        admin.createTopics(topics).all().get();
        print("create", "partitions", partitions(6));
        print("create-again", "error", error(admin.createTopics(topics).all()));
    }

    private void produce() throws Exception {
        for (int partition = 0; partition < KINDS.size(); partition++) {
            String kind = KINDS.get(partition);
            boolean idempotent = kind.equals("idempotent");
            Map<String, Object> properties = Map.of(
                    "bootstrap.servers", bootstrap,
                    "compression.type", idempotent ? "none" : kind,
                    "enable.idempotence", idempotent,
                    "linger.ms", 100);
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            StringSerializer text = new StringSerializer();
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties, text, text)) {
                for (int i = 0; i < LATER.length; i++) {
                    String key = i == 4 ? null : "key-" + i;
                    String value = i == 3 ? null : "value-" + i;
                    ProducerRecord<String, String> record =
                            new ProducerRecord<>(topic, partition, TIME + LATER[i], key, value);
                    record.headers().add("header", String.valueOf(i).getBytes());
                    sent.add(producer.send(record));
                }
            }
            List<Long> offsets = new ArrayList<>();
            for (Future<RecordMetadata> one : sent) {
                offsets.add(one.get().offset());
            }
            print("produce-" + kind, "offsets", offsets);
        }
    }

    private void consume() {
        for (int partition = 0; partition < KINDS.size(); partition++) {
            List<String> records = new ArrayList<>();
            for (ConsumerRecord<String, String> record : read(partition, 0, 5)) {
                String header = new String(record.headers().lastHeader("header").value());
                records.add("[" + record.offset() + "," + record.timestamp() + "," + json(record.key()) + ","
                        + json(record.value()) + "," + json(header) + "]");
            }
            print("consume-" + KINDS.get(partition), "records", records);
        }
        print("consume-middle", "offsets", offsets(read(0, 2, 3)));
        try (KafkaConsumer<String, String> consumer = consumer()) {
            TopicPartition first = new TopicPartition(topic, 0);
            long offset = consumer.offsetsForTimes(Map.of(first, TIME + 500)).get(first).offset();
            print("consume-time", "offsets", offsets(read(0, offset, 4)));
        }
    }

    private void listOffsets() throws Exception {
        print("list-offsets", "ends", ends(0));
        List<Long> found = new ArrayList<>();
        for (long later : new long[] {0, 1, 1000, 3500}) {
            found.add(offset(0, OffsetSpec.forTimestamp(TIME + later)).offset());
        }
        print("list-offsets-time", "offsets", found);
        print("list-offsets-after", "offset", offset(0, OffsetSpec.forTimestamp(TIME + 5000)).offset());
        ListOffsetsResultInfo latest = offset(0, OffsetSpec.maxTimestamp());
        print("list-offsets-max", "found", List.of(latest.offset(), latest.timestamp()));
    }

    private void deleteRecords() throws Exception {
        print("delete-records", "low", deleteBefore(0, 2));
        print("list-offsets-deleted", "ends", ends(0));
        print("consume-deleted", "offsets", offsets(read(0, 2, 3)));
        int code = 0;
        try {
            read(0, 0, 1);
        } catch (OffsetOutOfRangeException error) {
            code = Errors.OFFSET_OUT_OF_RANGE.code();
        }
        print("consume-below", "error", code);
        print("delete-records-all", "low", deleteBefore(1, -1));
        TopicPartition first = new TopicPartition(topic, 0);
        print("delete-records-beyond", "error",
                error(admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(9))).all()));
    }

    private void alterConfig() throws Exception {
        alter("max.message.bytes", "2000000", AlterConfigOp.OpType.SET).get();
        print("alter-incremental", "property", property("2000000"));
        alter("max.message.bytes", "", AlterConfigOp.OpType.DELETE).get();
        print("alter-remove", "property", property("1048588"));
        print("alter-refused", "error", error(alter("max.message.bytes", "many", AlterConfigOp.OpType.SET)));
    }

    private void createPartitions() throws Exception {
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(8))).all().get();
        print("create-partitions", "partitions", partitions(8));
        print("create-partitions-fewer", "error",
                error(admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(1))).all()));
    }

    private void describe() throws Exception {
        Collection<Node> nodes = admin.describeCluster().nodes().get();
        print("describe-cluster", "nodes", nodes.size());
        int node = nodes.iterator().next().id();
        Map<TopicPartition, Long> sizes = new HashMap<>();
        admin.describeLogDirs(List.of(node)).allDescriptions().get().get(node).values().forEach(
                folder -> folder.replicaInfos().forEach((replica, info) -> sizes.put(replica, info.size())));
        sizes.keySet().removeIf(replica -> !replica.topic().equals(topic));
        TopicPartition idempotent = new TopicPartition(topic, 5);
        print("describe-log-dirs", "found", List.of(sizes.size(), sizes.get(idempotent) > 0));
        List<ProducerState> producers =
                admin.describeProducers(List.of(idempotent)).partitionResult(idempotent).get().activeProducers();
        print("describe-producers", "sequences", producers.stream().map(ProducerState::lastSequence).toList());
        print("list-config-resources", "listed",
                admin.listConfigResources().all().get().contains(resource));
    }

    private void quotas() throws Exception {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, topic));
        for (Double rate : new Double[] {1_000_000.0, null}) {
            ClientQuotaAlteration.Op operation = new ClientQuotaAlteration.Op("producer_byte_rate", rate);
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(operation)))).all().get();
            ClientQuotaFilter filter = ClientQuotaFilter.contains(
                    List.of(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.CLIENT_ID, topic)));
            Double found = null;
            // Apache Kafka answers before the change shows.
            for (int tries = 0; tries < 100; tries++) {
                found = admin.describeClientQuotas(filter).entities().get()
                        .getOrDefault(entity, Map.of()).get("producer_byte_rate");
                if ((found == null) == (rate == null)) {
                    break;
                }
                Thread.sleep(100);
            }
            print(rate == null ? "quota-remove" : "quota-set", "rate", found == null ? null : found.longValue());
        }
    }

    private void delete() throws Exception {
        admin.deleteTopics(List.of(topic)).all().get();
        boolean listed = true;
        for (int tries = 0; listed && tries < 100; tries++) {
            listed = admin.listTopics().names().get().contains(topic);
        }
        print("delete-topic", "listed", listed);
        print("delete-topic-again", "error", error(admin.deleteTopics(List.of(topic)).all()));
    }

    /** The number of partitions, once there are as many as wanted: Apache Kafka answers before a change shows. */
    private int partitions(int wanted) throws Exception {
        int found = 0;
        for (int tries = 0; found != wanted && tries < 100; tries++) {
            try {
                found = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
            } catch (ExecutionException notYet) {
                found = 0;
            }
            Thread.sleep(found == wanted ? 0 : 100);
        }
        return found;
    }

    private KafkaConsumer<String, String> consumer() {
        Map<String, Object> properties = Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "none");
        return new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
    }

    private List<ConsumerRecord<String, String>> read(int partition, long offset, int count) {
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer()) {
            TopicPartition assigned = new TopicPartition(topic, partition);
            consumer.assign(List.of(assigned));
            consumer.seek(assigned, offset);
            for (int tries = 0; records.size() < count && tries < 100; tries++) {
                consumer.poll(Duration.ofMillis(200)).forEach(records::add);
            }
        }
        return records;
    }

    private static List<Long> offsets(List<ConsumerRecord<String, String>> records) {
        return records.stream().map(ConsumerRecord::offset).toList();
    }

    private ListOffsetsResultInfo offset(int partition, OffsetSpec spec) throws Exception {
        TopicPartition asked = new TopicPartition(topic, partition);
        return admin.listOffsets(Map.of(asked, spec)).partitionResult(asked).get();
    }

    private List<Long> ends(int partition) throws Exception {
        return List.of(offset(partition, OffsetSpec.earliest()).offset(), offset(partition, OffsetSpec.latest()).offset());
    }

    private long deleteBefore(int partition, long offset) throws Exception {
        TopicPartition named = new TopicPartition(topic, partition);
        return admin.deleteRecords(Map.of(named, RecordsToDelete.beforeOffset(offset)))
                .lowWatermarks().get(named).get().lowWatermark();
    }

    private Future<Void> alter(String key, String value, AlterConfigOp.OpType operation) {
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry(key, value), operation);
        return admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all();
    }

    /** Value of max.message.bytes, once it is what is wanted, and whether it is a default. */
    private List<String> property(String wanted) throws Exception {
        ConfigEntry entry = null;
        for (int tries = 0; tries < 100 && (entry == null || !entry.value().equals(wanted)); tries++) {
            Thread.sleep(tries == 0 ? 0 : 100);
            entry = admin.describeConfigs(List.of(resource)).all().get().get(resource).get("max.message.bytes");
        }
        return List.of(json(entry.value()), String.valueOf(entry.isDefault()));
    }

    private static int error(Future<?> done) throws Exception {
        try {
            done.get();
            return 0;
        } catch (ExecutionException error) {
            return Errors.forException(error.getCause()).code();
        }
    }

    private static String json(String text) {
        return text == null ? "null" : '"' + text + '"';
    }

    /** A line of what was seen. Texts in a list are JSON already. */
    private static void print(String step, String name, Object seen) {
        System.out.println("{\"step\":\"" + step + "\",\"" + name + "\":" + seen + "}");
    }
}
