import java.time.Duration;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads records without a group: BOOTSTRAP TOPIC PARTITION OFFSET COUNT [KEY=VALUE ...], the pairs being more consumer
 * properties. Prints each record as a line of JSON: offset, leaderEpoch (null if unknown), timestamp in milliseconds, and
 * key and value in hexadecimal (or null). Ends with COUNT records, or with fewer and exit code 1 after 20 seconds.
 */
public final class ReadRecords {
    public static void main(String[] arguments) {
        Map<String, Object> properties = new HashMap<>();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("auto.offset.reset", "none");
        properties.put("enable.auto.commit", "false");
        for (int i = 5; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        TopicPartition partition = new TopicPartition(arguments[1], Integer.parseInt(arguments[2]));
        int wanted = Integer.parseInt(arguments[4]);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties, bytes, bytes)) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, Long.parseLong(arguments[3]));
            long deadline = System.nanoTime() + Duration.ofSeconds(20).toNanos();
            while (wanted > 0 && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    if (wanted-- > 0) {
                        System.out.println(json(record));
                    }
                }
            }
        }
        System.exit(wanted > 0 ? 1 : 0);
    }

    private static String json(ConsumerRecord<byte[], byte[]> record) {
        return "{\"offset\":" + record.offset()
                + ",\"leaderEpoch\":" + record.leaderEpoch().map(Object::toString).orElse("null")
                + ",\"timestamp\":" + record.timestamp()
                + ",\"key\":" + hex(record.key())
                + ",\"value\":" + hex(record.value()) + "}";
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "null" : '"' + HexFormat.of().formatHex(bytes) + '"';
    }
}
