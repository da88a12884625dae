import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * A consumer without a group that moves from one cluster to another: SOURCE TARGET ISOLATION TOPIC PARTITION START END.
 *
 * First it prints {"offsets": those of all records that the source gives from START to END}. Then it stops at each offset
 * from START to END, whether or not there is a record: without a leader epoch, and with that of the record before it. What the
 * target gives from there on is compared with what the source gives, and a line of JSON tells of each stop: its position,
 * its epoch or null, how many records the target gave, and the first difference, as what both gave there, or null.
 */
public final class MoveAtEachStop {
    private static final Duration POLL = Duration.ofMillis(50);
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private final KafkaConsumer<byte[], byte[]> source;
    private final KafkaConsumer<byte[], byte[]> target;
    private final TopicPartition partition;
    private final long end;

    private MoveAtEachStop(
            KafkaConsumer<byte[], byte[]> source, KafkaConsumer<byte[], byte[]> target, TopicPartition partition, long end) {
        this.source = source;
        this.target = target;
        this.partition = partition;
        this.end = end;
        source.assign(List.of(partition));
        target.assign(List.of(partition));
    }

    public static void main(String[] arguments) {
        TopicPartition partition = new TopicPartition(arguments[3], Integer.parseInt(arguments[4]));
        try (KafkaConsumer<byte[], byte[]> source = Sequence.consumer(arguments[0], arguments[2]);
                KafkaConsumer<byte[], byte[]> target = Sequence.consumer(arguments[1], arguments[2])) {
            new MoveAtEachStop(source, target, partition, Long.parseLong(arguments[6])).from(Long.parseLong(arguments[5]));
        }
    }

    private void from(long start) {
        List<ConsumerRecord<byte[], byte[]>> all = read(source, start, "-");
        System.out.println("{\"offsets\":" + all.stream().map(ConsumerRecord::offset).toList() + "}");
        String epoch = "-";
        int below = 0;
        for (long stop = start; stop <= end; stop++) {
            for (; below < all.size() && all.get(below).offset() < stop; below++) {
                epoch = Sequence.epoch(all.get(below), "-");
            }
            move(stop, "-");
            if (!epoch.equals("-")) {
                move(stop, epoch);
            }
        }
    }

    private void move(long stop, String epoch) {
        List<String> expected = read(source, stop, epoch).stream().map(Sequence::json).toList();
        List<String> found = read(target, stop, epoch).stream().map(Sequence::json).toList();
        String difference = "null";
        for (int at = Math.max(expected.size(), found.size()) - 1; at >= 0; at--) {
            String ours = at < expected.size() ? expected.get(at) : "null";
            String theirs = at < found.size() ? found.get(at) : "null";
            if (!ours.equals(theirs)) {
                difference = "{\"source\":" + ours + ",\"target\":" + theirs + "}";
            }
        }
        System.out.println("{\"position\":" + stop + ",\"epoch\":" + (epoch.equals("-") ? "null" : epoch)
                + ",\"records\":" + found.size() + ",\"difference\":" + difference + "}");
    }

    /** Everything from a position to the end; if that is the end, until the broker has said that there is nothing. */
    private List<ConsumerRecord<byte[], byte[]>> read(KafkaConsumer<byte[], byte[]> consumer, long from, String epoch) {
        consumer.seek(partition, Sequence.committed(from, epoch));
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        double answers = from < end ? 0 : Sequence.fetches(consumer) + Sequence.TAKEN_IN;
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (consumer.position(partition) < end || Sequence.fetches(consumer) < answers) {
            consumer.poll(POLL).forEach(records::add);
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException(partition + " from " + from + " is at " + consumer.position(partition));
            }
        }
        return records;
    }
}
