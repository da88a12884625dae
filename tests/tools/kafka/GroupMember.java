import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member of a group: BOOTSTRAP GROUP TOPIC COUNT. Prints, as JSON, its partitions each time they are assigned and each
 * record that it reads. After COUNT records it commits and leaves; with COUNT 0 it reads until a line comes on its standard input.
 */
public final class GroupMember {
    private GroupMember() {
    }

    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[3]);
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0],
            "group.id", arguments[1],
            "group.protocol", "classic",
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false",
            "max.poll.records", "1");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of(arguments[2]), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                }

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    TreeSet<Integer> sorted = new TreeSet<>();
                    partitions.forEach(partition -> sorted.add(partition.partition()));
                    System.out.println("{\"assigned\":" + sorted + "}");
                }
            });
            int read = 0;
            while (count > 0 ? read < count : System.in.available() == 0) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    System.out.println("{\"partition\":" + record.partition() + ",\"offset\":" + record.offset() + "}");
                    read++;
                }
            }
            consumer.commitSync();
        }
    }
}
