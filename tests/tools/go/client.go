// The steps of tests/compat/README.md by franz-go, its kgo and kadm: BOOTSTRAP TOPIC.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const start = 1_700_000_000_000

var (
	later = []int64{0, 1000, 4000, 3000, 2000}
	kinds = []string{"none", "gzip", "snappy", "lz4", "zstd", "idempotent"}
	codec = map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "idempotent": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
)

type client struct {
	bootstrap, topic string
	admin            *kadm.Client
	ctx              context.Context
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := client{bootstrap: os.Args[1], topic: os.Args[2], ctx: ctx}
	c.admin = kadm.NewClient(c.connect())
	defer c.admin.Close()
	c.create()
	c.produce()
	c.consume()
	c.listOffsets()
	c.deleteRecords()
	c.alterConfig()
	c.describe()
	c.createPartitions()
	c.quotas()
	c.remove()
}

func (c *client) create() {
	configs := map[string]*string{"retention.ms": kadm.StringPtr("-1")}
	_, err := c.admin.CreateTopic(c.ctx, 6, 1, configs, c.topic)
	must(err)
	show("create", "partitions", until(6, c.partitions))
	_, err = c.admin.CreateTopic(c.ctx, 6, 1, configs, c.topic)
	show("create-again", "error", code(err))
}

func (c *client) produce() {
	for partition, kind := range kinds {
		options := []kgo.Opt{
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ProducerBatchCompression(codec[kind]),
			kgo.ProducerLinger(100 * time.Millisecond),
		}
		if kind != "idempotent" {
			options = append(options, kgo.DisableIdempotentWrite())
		}
		var records []*kgo.Record
		for i, at := range later {
			record := &kgo.Record{
				Topic: c.topic, Partition: int32(partition), Timestamp: time.UnixMilli(start + at),
				Headers: []kgo.RecordHeader{{Key: "header", Value: fmt.Appendf(nil, "%d", i)}},
			}
			if i != 4 {
				record.Key = fmt.Appendf(nil, "key-%d", i)
			}
			if i != 3 {
				record.Value = fmt.Appendf(nil, "value-%d", i)
			}
			records = append(records, record)
		}
		producer := c.connect(options...)
		must(producer.ProduceSync(c.ctx, records...).FirstErr())
		producer.Close()
		show("produce-"+kind, "offsets", offsets(records))
	}
}

func (c *client) consume() {
	for partition, kind := range kinds {
		var seen [][]any
		for _, r := range c.read(int32(partition), 0, 5) {
			header := text(r.Headers[len(r.Headers)-1].Value)
			seen = append(seen, []any{r.Offset, r.Timestamp.UnixMilli(), text(r.Key), text(r.Value), header})
		}
		show("consume-"+kind, "records", seen)
	}
	show("consume-middle", "offsets", offsets(c.read(0, 2, 3)))
	show("consume-time", "offsets", offsets(c.read(0, c.at(start+500).Offset, 4)))
}

func (c *client) listOffsets() {
	show("list-offsets", "ends", c.ends(0))
	var found []int64
	for _, at := range []int64{0, 1, 1000, 3500} {
		found = append(found, c.at(start+at).Offset)
	}
	show("list-offsets-time", "offsets", found)
	listed, err := c.admin.ListMaxTimestampOffsets(c.ctx, c.topic)
	must(err)
	latest, _ := listed.Lookup(c.topic, 0)
	show("list-offsets-max", "found", []int64{latest.Offset, latest.Timestamp})
}

func (c *client) deleteRecords() {
	show("delete-records", "low", c.deleteBefore(0, 2).LowWatermark)
	show("list-offsets-deleted", "ends", c.ends(0))
	show("consume-deleted", "offsets", offsets(c.read(0, 2, 3)))
	reader := c.reader(0, kgo.NoResetOffset().At(0))
	show("consume-below", "error", code(reader.PollFetches(c.ctx).Err()))
	reader.Close()
	show("delete-records-all", "low", c.deleteBefore(1, -1).LowWatermark)
	show("delete-records-beyond", "error", code(c.deleteBefore(0, 9).Err))
}

func (c *client) alterConfig() {
	must(c.alter(c.admin.AlterTopicConfigs, kadm.SetConfig, kadm.StringPtr("2000000")))
	show("alter-incremental", "property", until([2]any{"2000000", false}, c.property))
	must(c.alter(c.admin.AlterTopicConfigs, kadm.DeleteConfig, nil))
	show("alter-remove", "property", until([2]any{"1048588", true}, c.property))
	many := kadm.StringPtr("many")
	show("alter-refused", "error", code(c.alter(c.admin.AlterTopicConfigs, kadm.SetConfig, many)))
	must(c.alter(c.admin.AlterTopicConfigsState, kadm.SetConfig, kadm.StringPtr("3000000")))
	show("alter-full", "property", until([2]any{"3000000", false}, c.property))
}

func (c *client) createPartitions() {
	responses, err := c.admin.UpdatePartitions(c.ctx, 8, c.topic)
	must(err)
	must(responses.Error())
	show("create-partitions", "partitions", until(8, c.partitions))
	responses, err = c.admin.UpdatePartitions(c.ctx, 1, c.topic)
	must(err)
	show("create-partitions-fewer", "error", code(responses[c.topic].Err))
}

func (c *client) describe() {
	metadata, err := c.admin.BrokerMetadata(c.ctx)
	must(err)
	show("describe-cluster", "nodes", len(metadata.Brokers))
	only := kadm.TopicsSet{}
	for partition := range int32(6) {
		only.Add(c.topic, partition)
	}
	folders, err := c.admin.DescribeAllLogDirs(c.ctx, only)
	must(err)
	sizes := map[int32]int64{}
	for _, folder := range folders.Sorted() {
		for partition, found := range folder.Topics[c.topic] {
			sizes[partition] = found.Size
		}
	}
	show("describe-log-dirs", "found", []any{len(sizes), sizes[5] > 0})
	asked := kadm.TopicsSet{}
	asked.Add(c.topic, 5)
	producers, err := c.admin.DescribeProducers(c.ctx, asked)
	must(err)
	var sequences []int32
	producers.EachProducer(func(producer kadm.DescribedProducer) {
		sequences = append(sequences, producer.LastSequence)
	})
	show("describe-producers", "sequences", sequences)
	resources, err := c.admin.ListConfigResources(c.ctx)
	must(err)
	listed := false
	for _, resource := range resources.Resources {
		listed = listed || resource.Name == c.topic
	}
	show("list-config-resources", "listed", listed)
}

func (c *client) quotas() {
	entity := kadm.ClientQuotaEntity{{Type: "client-id", Name: &c.topic}}
	c.quota(entity, "quota-set", false)
	c.quota(entity, "quota-remove", true)
}

func (c *client) remove() {
	_, err := c.admin.DeleteTopic(c.ctx, c.topic)
	must(err)
	show("delete-topic", "listed", until(false, c.listed))
	_, err = c.admin.DeleteTopic(c.ctx, c.topic)
	show("delete-topic-again", "error", code(err))
}

// The rest serves the steps.

func (c *client) connect(options ...kgo.Opt) *kgo.Client {
	connected, err := kgo.NewClient(append(options, kgo.SeedBrokers(c.bootstrap), kgo.RequestRetries(3))...)
	must(err)
	return connected
}

// What look sees once that is what is wanted, or after ten seconds: Apache Kafka answers before a change shows.
func until[T comparable](wanted T, look func() T) T {
	found := look()
	for tries := 0; found != wanted && tries < 100; tries++ {
		time.Sleep(100 * time.Millisecond)
		found = look()
	}
	return found
}

func (c *client) partitions() int {
	topics, err := c.admin.ListTopics(c.ctx, c.topic)
	must(err)
	return len(topics[c.topic].Partitions)
}

func (c *client) listed() bool {
	topics, err := c.admin.ListTopics(c.ctx)
	must(err)
	return topics.Has(c.topic)
}

func (c *client) reader(partition int32, from kgo.Offset) *kgo.Client {
	assigned := map[string]map[int32]kgo.Offset{c.topic: {partition: from}}
	return c.connect(kgo.ConsumePartitions(assigned), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
}

func (c *client) read(partition int32, offset int64, count int) []*kgo.Record {
	reader := c.reader(partition, kgo.NewOffset().At(offset))
	defer reader.Close()
	var records []*kgo.Record
	for len(records) < count {
		fetches := reader.PollFetches(c.ctx)
		must(fetches.Err())
		records = append(records, fetches.Records()...)
	}
	return records
}

func (c *client) at(timestamp int64) kadm.ListedOffset {
	listed, err := c.admin.ListOffsetsAfterMilli(c.ctx, timestamp, c.topic)
	must(err)
	found, _ := listed.Lookup(c.topic, 0)
	return found
}

func (c *client) ends(partition int32) []int64 {
	starts, err := c.admin.ListStartOffsets(c.ctx, c.topic)
	must(err)
	ends, err := c.admin.ListEndOffsets(c.ctx, c.topic)
	must(err)
	first, _ := starts.Lookup(c.topic, partition)
	last, _ := ends.Lookup(c.topic, partition)
	return []int64{first.Offset, last.Offset}
}

func (c *client) deleteBefore(partition int32, offset int64) kadm.DeleteRecordsResponse {
	offsets := kadm.Offsets{}
	offsets.AddOffset(c.topic, partition, offset, -1)
	responses, err := c.admin.DeleteRecords(c.ctx, offsets)
	must(err)
	found, _ := responses.Lookup(c.topic, partition)
	return found
}

type alteration = func(context.Context, []kadm.AlterConfig, ...string) (kadm.AlterConfigsResponses, error)

func (c *client) alter(by alteration, operation kadm.IncrementalOp, value *string) error {
	change := kadm.AlterConfig{Op: operation, Name: "max.message.bytes", Value: value}
	responses, err := by(c.ctx, []kadm.AlterConfig{change}, c.topic)
	must(err)
	return responses[0].Err
}

func (c *client) property() [2]any {
	described, err := c.admin.DescribeTopicConfigs(c.ctx, c.topic)
	must(err)
	for _, config := range described[0].Configs {
		if config.Key == "max.message.bytes" {
			return [2]any{config.MaybeValue(), config.Source.String() != "DYNAMIC_TOPIC_CONFIG"}
		}
	}
	return [2]any{}
}

func (c *client) quota(entity kadm.ClientQuotaEntity, step string, remove bool) {
	operation := kadm.AlterClientQuotaOp{Key: "producer_byte_rate", Value: 1_000_000, Remove: remove}
	entry := kadm.AlterClientQuotaEntry{Entity: entity, Ops: []kadm.AlterClientQuotaOp{operation}}
	altered, err := c.admin.AlterClientQuotas(c.ctx, []kadm.AlterClientQuotaEntry{entry})
	must(err)
	must(altered[0].Err)
	asked := []kadm.DescribeClientQuotaComponent{{Type: "client-id", MatchName: &c.topic}}
	rate := func() any {
		found, err := c.admin.DescribeClientQuotas(c.ctx, true, asked)
		must(err)
		if len(found) == 0 {
			return nil
		}
		return found[0].Values[0].Value
	}
	var wanted any = operation.Value
	if remove {
		wanted = nil
	}
	show(step, "rate", until(wanted, rate))
}

func offsets(records []*kgo.Record) []int64 {
	var offsets []int64
	for _, record := range records {
		offsets = append(offsets, record.Offset)
	}
	return offsets
}

func text(data []byte) any {
	if data == nil {
		return nil
	}
	return string(data)
}

func code(err error) int16 {
	var known *kerr.Error
	if errors.As(err, &known) {
		return known.Code
	}
	must(err)
	return 0
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func show(step, name string, value any) {
	line, err := json.Marshal(map[string]any{"step": step, name: value})
	must(err)
	fmt.Println(string(line))
}
