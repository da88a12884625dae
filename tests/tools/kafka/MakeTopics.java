import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ElectionNotNeededException;

/**
 * Makes topics as its input says, and stays: BOOTSTRAP SEED TIME, in milliseconds, which the records' timestamps follow. Each
 * line of the input is a command; each is answered by a line, "done" or "failed" and why. Producers live until the end of the
 * input, and are then left as they are: a transaction that is open stays open.
 *
 * <pre>
 * create TOPIC PARTITIONS REPLICAS [KEY=VALUE ...]       alter TOPIC KEY=VALUE ...
 * delete TOPIC                                           trim TOPIC PARTITION OFFSET        (DeleteRecords)
 * lead TOPIC PARTITION BROKER,BROKER...                  (reassigns the replicas, the first becomes the leader)
 * write TOPIC PARTITION ROUND BATCHES RECORDS [KEY=VALUE ...]           (plain or idempotent; the properties name a producer)
 * transact TOPIC PARTITION ROUND RECORDS begin|commit|abort ID          (writes in the open transaction, or in a new one)
 * large TOPIC PARTITION ROUND BYTES [KEY=VALUE ...]      (one record)
 * stream TOPIC PARTITIONS [KEY=VALUE ...]                (writes without end, in the background)
 * halt                                                   (ends all streams)
 * </pre>
 */
public final class MakeTopics {
    private final Admin admin;
    private final TopicWriter writer;

    private MakeTopics(Admin admin, TopicWriter writer) {
        this.admin = admin;
        this.writer = writer;
    }

    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]));
                BufferedReader input = new BufferedReader(new InputStreamReader(System.in))) {
            TopicWriter writer = new TopicWriter(arguments[0], Long.parseLong(arguments[1]), Long.parseLong(arguments[2]));
            MakeTopics maker = new MakeTopics(admin, writer);
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                System.out.println(maker.answer(List.of(line.split(" "))));
            }
        }
        // Closing a producer would abort its transaction.
        Runtime.getRuntime().halt(0);
    }

    private String answer(List<String> words) {
        try {
            run(words);
            return "done";
        } catch (Exception error) {
            return "failed " + String.join(" ", words) + ": " + error;
        }
    }

    private void run(List<String> words) throws Exception {
        String topic = words.size() > 1 ? words.get(1) : "";
        switch (words.get(0)) {
            case "create" -> create(topic, number(words, 2), (short) number(words, 3), pairs(words, 4));
            case "alter" -> alter(topic, pairs(words, 2));
            case "delete" -> delete(topic);
            case "trim" -> trim(new TopicPartition(topic, number(words, 2)), number(words, 3));
            case "lead" -> lead(new TopicPartition(topic, number(words, 2)), words.get(3));
            case "write" -> writer.write(topic, number(words, 2), number(words, 3), number(words, 4), number(words, 5),
                    pairs(words, 6));
            case "transact" -> writer.transact(topic, number(words, 2), number(words, 3), number(words, 4), words.get(5),
                    words.get(6));
            case "large" -> writer.large(topic, number(words, 2), number(words, 3), number(words, 4), pairs(words, 5));
            case "stream" -> writer.stream(topic, number(words, 2), pairs(words, 3));
            case "halt" -> writer.halt();
            default -> throw new IllegalArgumentException("unknown command");
        }
    }

    private void create(String topic, int partitions, short replicas, Map<String, String> configs) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, replicas).configs(configs))).all().get();
        // Answered before a broker serves it.
        boolean there = false;
        while (!there) {
            Thread.sleep(20);
            TopicDescription found = described(topic).orElse(null);
            there = found != null && found.partitions().size() == partitions
                    && found.partitions().stream().allMatch(one -> one.leader() != null);
        }
    }

    private void delete(String topic) throws Exception {
        admin.deleteTopics(List.of(topic)).all().get();
        while (described(topic).isPresent()) {
            Thread.sleep(20);
        }
    }

    private Optional<TopicDescription> described(String topic) throws Exception {
        if (!admin.listTopics().names().get().contains(topic)) {
            return Optional.empty();
        }
        return Optional.of(admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic));
    }

    private void alter(String topic, Map<String, String> configs) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        configs.forEach((key, value) ->
                changes.add(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
    }

    private void trim(TopicPartition partition, long offset) throws Exception {
        admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(offset))).all().get();
    }

    /** Gives a partition these replicas and its first one the lead, and waits until it has it. */
    private void lead(TopicPartition partition, String brokers) throws Exception {
        List<Integer> replicas = Arrays.stream(brokers.split(",")).map(Integer::valueOf).toList();
        Optional<NewPartitionReassignment> wanted = Optional.of(new NewPartitionReassignment(replicas));
        admin.alterPartitionReassignments(Map.of(partition, wanted)).all().get();
        while (!admin.listPartitionReassignments(Set.of(partition)).reassignments().get().isEmpty()) {
            Thread.sleep(20);
        }
        while (!leads(partition, replicas.get(0))) {
            try {
                admin.electLeaders(ElectionType.PREFERRED, Set.of(partition)).all().get();
            } catch (ExecutionException error) {
                if (!(error.getCause() instanceof ElectionNotNeededException)) {
                    // It may not be in sync yet.
                    Thread.sleep(100);
                }
            }
        }
    }

    private boolean leads(TopicPartition partition, int broker) throws Exception {
        TopicPartitionInfo found = admin.describeTopics(List.of(partition.topic())).allTopicNames().get()
                .get(partition.topic()).partitions().get(partition.partition());
        Node leader = found.leader();
        return leader != null && leader.id() == broker;
    }

    private static int number(List<String> words, int index) {
        return Integer.parseInt(words.get(index));
    }

    private static Map<String, String> pairs(List<String> words, int from) {
        Map<String, String> pairs = new TreeMap<>();
        for (String word : words.subList(from, words.size())) {
            String[] pair = word.split("=", 2);
            pairs.put(pair[0], pair[1]);
        }
        return new HashMap<>(pairs);
    }
}
