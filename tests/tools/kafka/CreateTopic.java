import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;

/** Creates a topic by the Admin client: BOOTSTRAP TOPIC PARTITIONS [KEY=VALUE ...]. Prints the topic's id. */
public final class CreateTopic {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> configs = new TreeMap<>();
        for (int i = 3; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            configs.put(pair[0], pair[1]);
        }
        NewTopic topic = new NewTopic(arguments[1], Integer.parseInt(arguments[2]), (short) 1).configs(configs);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            System.out.println(admin.createTopics(List.of(topic)).topicId(arguments[1]).get());
        }
    }
}
