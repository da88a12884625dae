// The steps of tests/compat/README.md by kafkajs: BOOTSTRAP TOPIC.
//
// Its consumer works in a group only, so records are read by the broker object that this consumer is made of.

const { Kafka, CompressionCodecs, CompressionTypes, ConfigResourceTypes, logLevel } = require('kafkajs')
const Cluster = require('kafkajs/src/cluster')
const { createLogger } = require('kafkajs/src/loggers')
const createSocketFactory = require('kafkajs/src/network/socketFactory')
const consoleLogger = require('kafkajs/src/loggers/console')
const snappy = require('kafkajs-snappy')

CompressionCodecs[CompressionTypes.Snappy] = snappy

const TIME = 1_700_000_000_000
const LATER = [0, 1000, 4000, 3000, 2000]
// null: there is no codec for it that installs without a compiler. The partition stays empty.
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: null,
  zstd: null,
  idempotent: CompressionTypes.None,
}

const [bootstrap, topic] = process.argv.slice(2)
const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 5 } })
const admin = kafka.admin()
const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic }]

function show(step, name, value) {
  console.log(JSON.stringify({ step, [name]: value }))
}

async function create() {
  const wanted = { topic, numPartitions: 6, configEntries: [{ name: 'retention.ms', value: '-1' }] }
  await admin.createTopics({ topics: [wanted] })
  show('create', 'partitions', await until(6, partitions))
  // The client takes an existing topic for success, and tells it by its answer.
  show('create-again', 'error', (await admin.createTopics({ topics: [wanted] })) ? 0 : 36)
}

async function produce() {
  for (const [partition, [kind, compression]] of Object.entries(CODECS).entries()) {
    if (compression === null) continue
    const producer = kafka.producer({ idempotent: kind === 'idempotent' })
    await producer.connect()
    const messages = LATER.map((later, i) => ({
      partition,
      key: i === 4 ? null : `key-${i}`,
      value: i === 3 ? null : `value-${i}`,
      headers: { header: String(i) },
      timestamp: String(TIME + later),
    }))
    const [{ baseOffset }] = await producer.send({ topic, messages, compression, acks: -1 })
    show(`produce-${kind}`, 'offsets', messages.map((_, i) => Number(baseOffset) + i))
    await producer.disconnect()
  }
}

async function consume() {
  for (const [partition, [kind, compression]] of Object.entries(CODECS).entries()) {
    if (compression === null) continue
    const text = data => (data === null ? null : data.toString())
    const records = (await read(partition, 0)).map(record => [
      Number(record.offset),
      Number(record.timestamp),
      text(record.key),
      text(record.value),
      text(record.headers.header),
    ])
    show(`consume-${kind}`, 'records', records)
  }
  show('consume-middle', 'offsets', offsets(await read(0, 2)))
  show('consume-time', 'offsets', offsets(await read(0, await at(TIME + 500))))
}

async function listOffsets() {
  show('list-offsets', 'ends', await ends(0))
  const found = []
  for (const later of [0, 1, 1000, 3500]) found.push(await at(TIME + later))
  show('list-offsets-time', 'offsets', found)
}

async function deleteRecords() {
  show('delete-records', 'low', await deleteBefore(0, '2'))
  show('list-offsets-deleted', 'ends', await ends(0))
  show('consume-deleted', 'offsets', offsets(await read(0, 2)))
  show('consume-below', 'error', await error(read(0, 0)))
  show('delete-records-all', 'low', await deleteBefore(1, '-1'))
}

async function alterConfig() {
  await alter([{ name: 'max.message.bytes', value: '3000000' }])
  show('alter-full', 'property', await until(['3000000', false], property))
  await alter([])
  show('alter-remove', 'property', await until(['1048588', true], property))
  show('alter-refused', 'error', await error(alter([{ name: 'max.message.bytes', value: 'many' }])))
}

async function createPartitions() {
  await admin.createPartitions({ topicPartitions: [{ topic, count: 8 }] })
  show('create-partitions', 'partitions', await until(8, partitions))
  const fewer = admin.createPartitions({ topicPartitions: [{ topic, count: 1 }] })
  show('create-partitions-fewer', 'error', await error(fewer))
}

async function describe() {
  show('describe-cluster', 'nodes', (await admin.describeCluster()).brokers.length)
}

async function remove() {
  await admin.deleteTopics({ topics: [topic] })
  const listed = async () => (await admin.listTopics()).includes(topic)
  show('delete-topic', 'listed', await until(false, listed))
  show('delete-topic-again', 'error', await error(admin.deleteTopics({ topics: [topic] })))
}

// What `look` sees once that is what is wanted, or after ten seconds: Apache Kafka answers before a change shows.
async function until(wanted, look) {
  let found
  for (let tries = 0; tries < 100; tries++) {
    found = await look()
    if (JSON.stringify(found) === JSON.stringify(wanted)) break
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  return found
}

async function partitions() {
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
  return topics[0].partitions.length
}

async function read(partition, offset) {
  const logger = createLogger({ level: logLevel.NOTHING, logCreator: consoleLogger })
  const settings = { socketFactory: createSocketFactory(), connectionTimeout: 10000, requestTimeout: 30000 }
  const cluster = new Cluster({ logger, brokers: [bootstrap], ...settings })
  await cluster.connect()
  await cluster.addTargetTopic(topic)
  const leader = cluster.findTopicPartitionMetadata(topic).find(one => one.partitionId === partition).leader
  const broker = await cluster.findBroker({ nodeId: leader })
  const asked = { partition, fetchOffset: String(offset), maxBytes: 1048576 }
  try {
    const { responses } = await broker.fetch({
      replicaId: -1,
      isolationLevel: 1,
      maxWaitTime: 1000,
      topics: [{ topic, partitions: [asked] }],
    })
    const records = responses[0].partitions[0].messages
    return records.filter(record => Number(record.offset) >= offset)
  } finally {
    await cluster.disconnect()
  }
}

function offsets(records) {
  return records.map(record => Number(record.offset))
}

async function at(timestamp) {
  const found = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp)
  return Number(found.find(one => one.partition === 0).offset)
}

async function ends(partition) {
  const found = (await admin.fetchTopicOffsets(topic)).find(one => one.partition === partition)
  return [Number(found.low), Number(found.high)]
}

// The client tells no low watermark, so the start is asked for.
async function deleteBefore(partition, offset) {
  await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset }] })
  return (await ends(partition))[0]
}

async function alter(configEntries) {
  await admin.alterConfigs({ resources: [{ ...resources[0], configEntries }] })
}

async function property() {
  const found = await admin.describeConfigs({ resources, includeSynonyms: false })
  const entry = found.resources[0].configEntries.find(one => one.configName === 'max.message.bytes')
  return [entry.configValue, entry.isDefault]
}

// The code of the error that a call ends with, looked for where the client hides it.
async function error(call) {
  try {
    await call
    return 0
  } catch (failure) {
    const inner = failure.code ?? failure.cause?.code ?? failure.errors?.[0]?.code
    if (inner === undefined) throw failure
    return inner
  }
}

async function main() {
  await admin.connect()
  await create()
  await produce()
  await consume()
  await listOffsets()
  await deleteRecords()
  await alterConfig()
  await describe()
  await createPartitions()
  await remove()
  await admin.disconnect()
}

main().catch(failure => {
  console.error(failure)
  process.exit(1)
})
