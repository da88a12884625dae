import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * A consumer without a group that moves from one cluster to another: SOURCE TARGET TOPIC PARTITION START END. For each number of
 * records from none to all, it reads so many at the source from START on, and the rest up to END at the target, from its position
 * and leader epoch. Prints, for each, a line of JSON: how many came from the source, the position, and all offsets read.
 */
public final class MoveAtEachStop {
    public static void main(String[] arguments) {
        TopicPartition partition = new TopicPartition(arguments[2], Integer.parseInt(arguments[3]));
        long start = Long.parseLong(arguments[4]);
        long end = Long.parseLong(arguments[5]);
        try (KafkaConsumer<byte[], byte[]> source = Sequence.consumer(arguments[0], "read_uncommitted");
                KafkaConsumer<byte[], byte[]> target = Sequence.consumer(arguments[1], "read_uncommitted")) {
            source.assign(List.of(partition));
            target.assign(List.of(partition));
            int all = read(source, partition, new OffsetAndMetadata(start), end).size();
            for (int stop = 0; stop <= all; stop++) {
                List<ConsumerRecord<byte[], byte[]>> before =
                        new ArrayList<>(read(source, partition, new OffsetAndMetadata(start), end).subList(0, stop));
                OffsetAndMetadata position = stop == 0
                        ? new OffsetAndMetadata(start)
                        : new OffsetAndMetadata(before.get(stop - 1).offset() + 1, before.get(stop - 1).leaderEpoch(), "");
                List<String> offsets = new ArrayList<>();
                before.forEach(record -> offsets.add(Long.toString(record.offset())));
                read(target, partition, position, end).forEach(record -> offsets.add(Long.toString(record.offset())));
                System.out.println("{\"stop\":" + stop + ",\"position\":" + position.offset()
                        + ",\"offsets\":[" + String.join(",", offsets) + "]}");
            }
        }
    }

    private static List<ConsumerRecord<byte[], byte[]>> read(
            KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, OffsetAndMetadata from, long end) {
        consumer.seek(partition, from);
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        long deadline = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        while (consumer.position(partition) < end && System.nanoTime() < deadline) {
            consumer.poll(Duration.ofMillis(50)).forEach(records::add);
        }
        return records;
    }
}
