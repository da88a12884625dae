"""Copies a Kafka segment file into an exact topic, batch for batch, by what docs/TAG.md says alone.

    python3 exact_writer.py HOST:PORT TOPIC PARTITION SEGMENT.log

May be stopped and run again at any time: what is stored already is compared by the host, and acknowledged."""
import socket, struct, sys

def varint(n):  # unsigned, seven bits a byte, lowest first
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)

class Answer:
    def __init__(self, data): self.data = data
    def take(self, size): taken, self.data = self.data[:size], self.data[size:]; return taken
    def number(self, size): return int.from_bytes(self.take(size), "big", signed=True)
    def varint(self): byte = self.take(1)[0]; return byte if byte < 128 else byte & 127 | self.varint() << 7
    def text(self): return self.take(max(self.varint() - 1, 0)).decode()
    def tags(self): return {self.varint(): self.take(self.varint()) for _ in range(self.varint())}

def produce(end, epoch_before, batches):
    """One Produce v9 request; gives error, message, and from the answer's tag: end, last epoch."""
    last = batches[-1] if batches else (0, 0, 0, b"")  # (base, end, epoch, bytes)
    tag = struct.pack(">B16sqiqqiqqH", 1, bytes(16), end, epoch_before, 0, last[1], last[2], -1, -1, 0)
    records = b"".join(batch[3] for batch in batches)
    body = struct.pack(">hhi", 0, 9, 1) + b"\0\6writer\0" + b"\0" + struct.pack(">hi", -1, 30000)
    body += b"\2" + varint(len(topic) + 1) + topic + b"\2" + struct.pack(">i", partition)
    body += (varint(len(records) + 1) + records if records else b"\0")  # null: no records
    body += b"\1" + varint(12486) + varint(len(tag)) + tag + b"\0\0"
    stream.write(struct.pack(">i", len(body)) + body); stream.flush()
    try: answer = Answer(stream.read(int.from_bytes(stream.read(4), "big")))
    except TimeoutError: sys.exit("no answer, so this may not be an exact topic")
    if not answer.data: sys.exit("closed without an answer, so this may not be an exact topic")
    answer.number(4), answer.tags()  # correlation id; the header's tagged fields
    answer.varint(), answer.text(), answer.varint(), answer.number(4)  # one topic, one partition
    error, _ = answer.number(2), answer.take(24)  # base offset, log append time, log start
    for _ in range(answer.varint() - 1): answer.number(4), answer.text(), answer.tags()  # record errors
    message, tag = answer.text(), answer.tags().get(12486)
    if tag is None: sys.exit(f"no tag in the answer, so this is not an exact topic: error {error} {message}")
    return (error, message) + struct.unpack(">xqxxxxixxxxxxxx", tag)

if len(sys.argv) != 5: sys.exit(__doc__)
host, port = sys.argv[1].rsplit(":", 1)
topic, partition, segment = sys.argv[2].encode(), int(sys.argv[3]), open(sys.argv[4], "rb").read()
batches, at = [], 0
while at < len(segment):  # a batch: base offset, length of what follows, leader epoch; at byte 23 last offset - base
    base, length, epoch, delta = struct.unpack_from(">qii7xi", segment, at)
    batches.append((base, base + delta + 1, epoch, segment[at:at + 12 + length]))
    at += 12 + length
stream = socket.create_connection((host, int(port)), timeout=15).makefile("rwb")
# An end that no log has: this only asks where the log ends, and it has no records that another broker might append.
error, message, end, last_epoch = produce(2**63 - 1, -1, [])
todo, asked = batches, None
while todo and error in (0, 1):
    position = (end, next((batch[2] for batch in reversed(batches) if batch[0] < end), last_epoch))
    if error == 1 and position == asked: break  # the end is right and the epoch is not: another history
    some = todo[:max(1, min(100, (1 << 20) // max(len(batch[3]) for batch in todo[:100])))]  # about a megabyte
    asked, (error, message, end, last_epoch) = position, produce(*position, some)
    if error == 0: todo = todo[len(some):]  # written, or the same as what is stored; after error 1 go on from the answer's end
sys.exit(f"error {error}: {message}" if todo else print("the log ends at", end))
