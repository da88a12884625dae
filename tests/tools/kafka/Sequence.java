import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads stretches of partitions without a group: BOOTSTRAP ISOLATION, then for each TOPIC PARTITION OFFSET EPOCH END. EPOCH is
 * the leader epoch that was committed with OFFSET, or - for none. Prints each record as a line of JSON until the position is END
 * or more, however long that takes up to two minutes; then {"position": N}. A position that is out of range or was truncated
 * is an exception and exit code 1: nothing is ever reset.
 *
 * With TELL_POLLED in the environment it prints {"polled": true} once at each stretch, when a poll brings nothing although
 * the broker has answered at that position and the answer was taken in.
 */
public final class Sequence {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final Duration PATIENCE = Duration.ofMinutes(2);
    /** So many answers later one at the present position was taken in: the first may be of the position before. */
    static final int TAKEN_IN = 3;

    public static void main(String[] arguments) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(arguments[0], arguments[1])) {
            for (int at = 2; at < arguments.length; at += 5) {
                TopicPartition partition = new TopicPartition(arguments[at], Integer.parseInt(arguments[at + 1]));
                OffsetAndMetadata from = committed(Long.parseLong(arguments[at + 2]), arguments[at + 3]);
                long end = Long.parseLong(arguments[at + 4]);
                long position = read(consumer, partition, from, end);
                System.out.println("{\"position\":" + position + "}");
                if (position < end) {
                    System.exit(1);
                }
            }
        }
    }

    private static long read(
            KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, OffsetAndMetadata from, long end) {
        consumer.assign(List.of(partition));
        consumer.seek(partition, from);
        boolean toTell = System.getenv("TELL_POLLED") != null;
        double before = fetches(consumer);
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (consumer.position(partition) < end && System.nanoTime() < deadline) {
            ConsumerRecords<byte[], byte[]> polled = consumer.poll(POLL);
            for (ConsumerRecord<byte[], byte[]> record : polled) {
                System.out.println(json(record));
            }
            if (toTell && polled.isEmpty() && fetches(consumer) >= before + TAKEN_IN) {
                System.out.println("{\"polled\":true}");
                System.out.flush();
                toTell = false;
            }
        }
        return consumer.position(partition);
    }

    /** How many answers to Fetch have come. A partition is asked for again only once its last answer was taken in. */
    static double fetches(KafkaConsumer<?, ?> consumer) {
        return consumer.metrics().values().stream()
                .filter(metric -> metric.metricName().name().equals("fetch-total"))
                .mapToDouble(metric -> (Double) metric.metricValue())
                .sum();
    }

    static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String isolation) {
        Map<String, Object> properties = new HashMap<>();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("auto.offset.reset", "none");
        properties.put("enable.auto.commit", "false");
        properties.put("isolation.level", isolation);
        // Who seeks waits for the answer that is under way.
        properties.put("fetch.max.wait.ms", "5");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        return new KafkaConsumer<>(properties, bytes, bytes);
    }

    static OffsetAndMetadata committed(long offset, String epoch) {
        Optional<Integer> leaderEpoch = epoch.equals("-") ? Optional.empty() : Optional.of(Integer.valueOf(epoch));
        return new OffsetAndMetadata(offset, leaderEpoch, "");
    }

    /** A record's leader epoch, or this text for none. */
    static String epoch(ConsumerRecord<?, ?> record, String none) {
        return record.leaderEpoch().map(Object::toString).orElse(none);
    }

    static String json(ConsumerRecord<byte[], byte[]> record) {
        List<String> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            String key = hex(header.key().getBytes(StandardCharsets.UTF_8));
            headers.add("[" + key + "," + hex(header.value()) + "]");
        }
        return "{\"offset\":" + record.offset()
                + ",\"leaderEpoch\":" + epoch(record, "null")
                + ",\"timestamp\":" + record.timestamp()
                + ",\"timestampType\":" + record.timestampType().id
                + ",\"key\":" + hex(record.key())
                + ",\"value\":" + hex(record.value())
                + ",\"headers\":[" + String.join(",", headers) + "]}";
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "null" : '"' + HexFormat.of().formatHex(bytes) + '"';
    }
}
