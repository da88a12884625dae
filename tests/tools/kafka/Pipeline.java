import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Copies a topic record by record, as mirrors of Kafka do that consume and produce: SOURCE TARGET TOPIC PARTITIONS THREADS
 * CODEC. Each thread has a consumer and an idempotent producer with acks = all, both set for throughput; key, value, headers,
 * timestamp and partition are kept. Ends when all is copied that was there at the start, and prints how many records and
 * bytes (of keys and values) that were and the milliseconds from the first poll to the last acknowledgement.
 */
public final class Pipeline {
    private final String source;
    private final String target;
    private final String topic;
    private final String codec;
    private final AtomicReference<Exception> failed = new AtomicReference<>();

    private Pipeline(String[] arguments) {
        source = arguments[0];
        target = arguments[1];
        topic = arguments[2];
        codec = arguments[5];
    }

    public static void main(String[] arguments) throws Exception {
        Pipeline pipeline = new Pipeline(arguments);
        int partitions = Integer.parseInt(arguments[3]);
        int threads = Integer.parseInt(arguments[4]);
        ExecutorService executor = Executors.newFixedThreadPool(threads);
        List<Callable<long[]>> copies = new ArrayList<>();
        for (int thread = 0; thread < threads; thread++) {
            List<TopicPartition> share = new ArrayList<>();
            for (int partition = thread; partition < partitions; partition += threads) {
                share.add(new TopicPartition(pipeline.topic, partition));
            }
            copies.add(() -> pipeline.copy(share));
        }
        long began = System.nanoTime();
        long records = 0;
        long bytes = 0;
        for (Future<long[]> copy : executor.invokeAll(copies)) {
            records += copy.get()[0];
            bytes += copy.get()[1];
        }
        long millis = (System.nanoTime() - began) / 1_000_000;
        executor.shutdown();
        System.out.println("{\"records\":" + records + ",\"bytes\":" + bytes + ",\"ms\":" + millis + "}");
    }

    /** Copies these partitions; how many records and bytes they hold. */
    private long[] copy(List<TopicPartition> partitions) throws Exception {
        long records = 0;
        long bytes = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(); KafkaProducer<byte[], byte[]> producer = producer()) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> left = new HashMap<>(consumer.endOffsets(partitions));
            left.values().removeIf(end -> end == 0);
            while (!left.isEmpty() && failed.get() == null) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    records++;
                    bytes += size(record.key()) + size(record.value());
                    producer.send(new ProducerRecord<>(topic, record.partition(), record.timestamp(), record.key(),
                            record.value(), record.headers()), (sent, error) -> {
                        if (error != null) {
                            failed.set(error);
                        }
                    });
                }
                left.entrySet().removeIf(entry -> consumer.position(entry.getKey()) >= entry.getValue());
            }
            producer.flush();
        }
        if (failed.get() != null) {
            throw failed.get();
        }
        return new long[] {records, bytes};
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        ByteArrayDeserializer raw = new ByteArrayDeserializer();
        return new KafkaConsumer<>(Map.of(
                "bootstrap.servers", source,
                "enable.auto.commit", false,
                "auto.offset.reset", "earliest",
                "fetch.min.bytes", 1 << 16,
                "fetch.max.wait.ms", 50,
                "max.partition.fetch.bytes", 4 << 20,
                "max.poll.records", 10_000,
                "receive.buffer.bytes", 1 << 20), raw, raw);
    }

    private KafkaProducer<byte[], byte[]> producer() {
        ByteArraySerializer raw = new ByteArraySerializer();
        return new KafkaProducer<>(Map.of(
                "bootstrap.servers", target,
                "acks", "all",
                "enable.idempotence", true,
                "compression.type", codec,
                "batch.size", 512 << 10,
                "linger.ms", 5,
                "max.request.size", 8 << 20,
                "buffer.memory", 256L << 20,
                "send.buffer.bytes", 1 << 20), raw, raw);
    }

    private static int size(byte[] bytes) {
        return bytes == null ? 0 : bytes.length;
    }
}
