import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The writing half of MakeTopics: what is written where follows from seed, topic, partition and round alone. */
final class TopicWriter {
    /** A round's records lie so many milliseconds behind those of the round before. */
    private static final long ROUND_MS = 100_000;
    /** What is older than a day is no longer known to brokers by its producer; this topic's records are. */
    private static final long LONG_AGO = 1_700_000_000_000L;
    private static final String OLD_TOPIC = "codecs";

    private final String bootstrap;
    private final long seed;
    private final long time;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private final List<Thread> streams = new ArrayList<>();
    private volatile boolean halted;

    TopicWriter(String bootstrap, long seed, long time) {
        this.bootstrap = bootstrap;
        this.seed = seed;
        this.time = time;
    }

    /**
     * Writes so many batches of so many records. Properties are the producer's; "keys" is ours: so many keys, none of them
     * null, each written in turn, and every seventh record a tombstone. "step" is the time between two batches.
     */
    void write(String topic, int partition, int round, int batches, int count, Map<String, String> properties)
            throws Exception {
        int keys = Integer.parseInt(properties.getOrDefault("keys", "0"));
        long step = Long.parseLong(properties.getOrDefault("step", "1000"));
        properties.keySet().removeAll(List.of("keys", "step"));
        KafkaProducer<byte[], byte[]> producer = producer(properties);
        SourceRecords records = new SourceRecords(random(topic, partition, round), keys);
        for (int batch = 0; batch < batches; batch++) {
            send(producer, topic, partition, records, timeOf(topic, round) + batch * step, count);
        }
    }

    /** Writes a batch in a transaction, which is then left open, committed or aborted. */
    void transact(String topic, int partition, int round, int count, String end, String id) throws Exception {
        String known = "transaction of " + id;
        KafkaProducer<byte[], byte[]> producer = producers.get(known);
        if (producer == null) {
            producer = make(Map.of("transactional.id", id, "transaction.timeout.ms", "3600000"));
            producer.initTransactions();
            producers.put(known, producer);
        }
        if (!producers.containsKey("open " + id)) {
            producer.beginTransaction();
            producers.put("open " + id, producer);
        }
        boolean compacted = topic.startsWith("compacted");
        SourceRecords records = new SourceRecords(random(topic + id + end, partition, round), compacted ? 12 : 0);
        send(producer, topic, partition, records, timeOf(topic, round), count);
        switch (end) {
            case "begin" -> { }
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            default -> throw new IllegalArgumentException(end);
        }
        if (!end.equals("begin")) {
            producers.remove("open " + id);
        }
    }

    /** Writes one record of so many bytes. */
    void large(String topic, int partition, int round, int bytes, Map<String, String> properties) throws Exception {
        properties.putAll(Map.of("max.request.size", "20000000", "buffer.memory", "40000000"));
        byte[] value = new byte[bytes];
        random(topic, partition, round).nextBytes(value);
        producer(properties).send(new ProducerRecord<>(topic, partition, timeOf(topic, round), null, value)).get();
    }

    /** Starts to write to all partitions of a topic, small batches without end. */
    void stream(String topic, int partitions, Map<String, String> properties) {
        halted = false;
        KafkaProducer<byte[], byte[]> producer = producer(properties);
        Thread stream = new Thread(() -> {
            for (int round = 0; !halted; round++) {
                for (int partition = 0; partition < partitions; partition++) {
                    SourceRecords records = new SourceRecords(random(topic, partition, round), 0);
                    for (int i = 0; i < 5; i++) {
                        producer.send(records.next(topic, partition, time + round * 10L + i));
                    }
                }
                producer.flush();
            }
        });
        stream.start();
        streams.add(stream);
    }

    /** Ends all streams; what they sent is acknowledged, or given up. */
    void halt() throws Exception {
        halted = true;
        for (Thread stream : streams) {
            stream.join();
        }
        streams.clear();
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, String topic, int partition, SourceRecords records,
            long time, int count) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            sent.add(producer.send(records.next(topic, partition, time + i)));
        }
        producer.flush();
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
    }

    private KafkaProducer<byte[], byte[]> producer(Map<String, String> properties) {
        return producers.computeIfAbsent(new TreeMap<>(properties).toString(), name -> make(properties));
    }

    private KafkaProducer<byte[], byte[]> make(Map<String, String> properties) {
        Map<String, Object> all = new HashMap<>(properties);
        // So that what is sent before a flush is one batch.
        all.putIfAbsent("linger.ms", "500");
        all.putIfAbsent("batch.size", "262144");
        all.put("bootstrap.servers", bootstrap);
        return new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private long timeOf(String topic, int round) {
        return (topic.equals(OLD_TOPIC) ? LONG_AGO : time) + round * ROUND_MS;
    }

    private Random random(String topic, int partition, int round) {
        return new Random(seed * 31 + (topic + "-" + partition + " " + round).hashCode());
    }
}
