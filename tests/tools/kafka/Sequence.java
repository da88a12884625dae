import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads a stretch of a partition without a group: BOOTSTRAP TOPIC PARTITION OFFSET EPOCH END ISOLATION. EPOCH is the leader
 * epoch that was committed with OFFSET, or - for none. Prints each record as a line of JSON until the position is END or more,
 * however long that takes up to a minute; then {"position": N}. A position that is out of range or was truncated is an
 * exception and exit code 1: nothing is ever reset.
 */
public final class Sequence {
    private static final Duration POLL = Duration.ofMillis(200);

    public static void main(String[] arguments) {
        TopicPartition partition = new TopicPartition(arguments[1], Integer.parseInt(arguments[2]));
        long end = Long.parseLong(arguments[5]);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(arguments[0], arguments[6])) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, committed(Long.parseLong(arguments[3]), arguments[4]));
            long deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
            while (consumer.position(partition) < end && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                    System.out.println(json(record));
                }
            }
            long position = consumer.position(partition);
            System.out.println("{\"position\":" + position + "}");
            System.exit(position < end ? 1 : 0);
        }
    }

    static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String isolation) {
        Map<String, Object> properties = new HashMap<>();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("auto.offset.reset", "none");
        properties.put("enable.auto.commit", "false");
        properties.put("isolation.level", isolation);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        return new KafkaConsumer<>(properties, bytes, bytes);
    }

    static OffsetAndMetadata committed(long offset, String epoch) {
        Optional<Integer> leaderEpoch = epoch.equals("-") ? Optional.empty() : Optional.of(Integer.valueOf(epoch));
        return new OffsetAndMetadata(offset, leaderEpoch, "");
    }

    static String json(ConsumerRecord<byte[], byte[]> record) {
        List<String> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add("[" + hex(header.key().getBytes(java.nio.charset.StandardCharsets.UTF_8)) + "," + hex(header.value()) + "]");
        }
        return "{\"offset\":" + record.offset()
                + ",\"leaderEpoch\":" + record.leaderEpoch().map(Object::toString).orElse("null")
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
