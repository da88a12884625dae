#!/bin/sh
# Puts Apache Kafka into target/tools/kafka by Maven (version in kafka/pom.xml): its jars, the small programs beside the
# pom, and a command for each tool in target/tools/bin.
. "$(dirname "$0")/common.sh"

source="$here/kafka"
kafka="$tools/kafka"
inputs="$0 $source/pom.xml $(echo "$source"/*.java) $source/log4j2.properties"

# shellcheck disable=SC2086
if current kafka $inputs && have java; then
    exit 0
fi
have javac || apt_install default-jdk-headless || fail "no JDK (17 or later) was found; Kafka's tests are skipped"
have mvn || apt_install maven || fail "no Maven (mvn) was found; Kafka's tests are skipped"

if ! current kafka-jars "$source/pom.xml"; then
    say "fetching Apache Kafka by Maven (about 55 MB)"
    rm -rf "$kafka"
    mkdir -p "$kafka/libs"
    if ! limit 900 mvn --batch-mode --quiet --file "$source/pom.xml" -Dmaven.wagon.http.retryHandler.count=2 \
        -Dmaven.wagon.rto=60000 -Daether.connector.connectTimeout=20000 -Daether.connector.requestTimeout=60000 \
        dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$kafka/libs" >"$tools/kafka.log" 2>&1; then
        tail -n 5 "$tools/kafka.log" >&2
        fail "Apache Kafka could not be fetched; its tests are skipped"
    fi
    done_with kafka-jars "$source/pom.xml"
fi
mkdir -p "$kafka/classes"
javac -d "$kafka/classes" -cp "$kafka/libs/*" "$source"/*.java
cp "$source/log4j2.properties" "$kafka/"

# command_for NAME MAIN-CLASS: a tool starts twice as fast without the optimising compiler.
command_for() {
    cat >"$tools/bin/$1" <<END
#!/bin/sh
here=\$(cd "\$(dirname "\$0")/../kafka" && pwd)
exec java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData \\
    -Dlog4j2.configurationFile="\$here/log4j2.properties" -cp "\$here/classes:\$here/libs/*" $2 "\$@"
END
    chmod +x "$tools/bin/$1"
}
command_for kafka-topics org.apache.kafka.tools.TopicCommand
command_for kafka-configs org.apache.kafka.tools.ConfigCommand
command_for kafka-console-producer org.apache.kafka.tools.ConsoleProducer
command_for kafka-console-consumer org.apache.kafka.tools.consumer.ConsoleConsumer
command_for kafka-get-offsets org.apache.kafka.tools.GetOffsetShell
command_for kafka-consumer-groups org.apache.kafka.tools.consumer.group.ConsumerGroupCommand
command_for kafka-delete-records org.apache.kafka.tools.DeleteRecordsCommand
command_for kafka-log-dirs org.apache.kafka.tools.LogDirsCommand
command_for kafka-transactions org.apache.kafka.tools.TransactionsCommand
command_for kafka-broker-api-versions org.apache.kafka.tools.BrokerApiVersionsCommand
command_for kafka-producer-perf-test org.apache.kafka.tools.ProducerPerformance
command_for kafka-dump-log org.apache.kafka.tools.DumpLogSegments
command_for kafka-storage kafka.tools.StorageTool
command_for kafka-server kafka.Kafka
command_for java-create-topic CreateTopic
command_for java-read-records ReadRecords
command_for java-client Client
command_for java-make-topics MakeTopics
command_for java-group-member GroupMember
command_for java-sequence Sequence
command_for java-move-at-each-stop MoveAtEachStop

"$tools/bin/kafka-topics" --version >"$tools/kafka.log" 2>&1 || fail "Kafka's tools do not start, see $tools/kafka.log"
# shellcheck disable=SC2086
done_with kafka $inputs
say "Apache Kafka $(cut -d ' ' -f 1 "$tools/kafka.log") is in target/tools/kafka"
