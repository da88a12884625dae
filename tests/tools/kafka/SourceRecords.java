import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Records of every kind, in an order that a seed fixes: null keys, null and empty values, headers, times out of order. */
final class SourceRecords {
    private static final String[] WORDS = {"tea", "bread", "rice", "salt", "ink", "rope", "glass", "wool"};

    private final Random random;
    private final int keys;
    private int made;

    /** With keys: so many different ones, in turn, and every seventh record is a tombstone. */
    SourceRecords(Random random, int keys) {
        this.random = random;
        this.keys = keys;
    }

    ProducerRecord<byte[], byte[]> next(String topic, int partition, long time) {
        int number = made++;
        if (topic.equals("orders")) {
            return order(partition, time, number);
        }
        // A time before that of the batch's first record is legal.
        long at = random.nextInt(8) == 0 ? time - random.nextInt(500) : time;
        byte[] key = keys > 0 ? text("key-" + number % keys) : key();
        byte[] value = keys > 0 && number % 7 == 6 ? null : value(keys > 0);
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, partition, at, key, value);
        for (int i = random.nextInt(6) - 3; i > 0; i--) {
            record.headers().add("header-" + i, i == 2 ? null : text("h" + random.nextInt(1000)));
        }
        return record;
    }

    private ProducerRecord<byte[], byte[]> order(int partition, long time, int number) {
        String item = WORDS[random.nextInt(WORDS.length)];
        String customer = "customer-" + (partition + 2 * random.nextInt(20));
        String value = String.format("{\"item\":\"%s\",\"count\":%d}", item, 1 + random.nextInt(9));
        ProducerRecord<byte[], byte[]> record =
                new ProducerRecord<>("orders", partition, time + number, text(customer), text(value));
        record.headers().add("till", text("till-" + random.nextInt(4)));
        return record;
    }

    private byte[] key() {
        return random.nextInt(8) == 0 ? null : text("key-" + random.nextInt(100));
    }

    private byte[] value(boolean full) {
        return switch (full ? 7 : random.nextInt(8)) {
            case 0 -> null;
            case 1 -> new byte[0];
            default -> text((WORDS[random.nextInt(WORDS.length)] + " ").repeat(1 + random.nextInt(20)));
        };
    }

    private static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
