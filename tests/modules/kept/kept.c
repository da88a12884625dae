// The module `kept`: a witness of contract 1.0.0. It imports and exports all of it, tells each thing that it is given by
// name, and otherwise places batches on normal topics. What it does with a call is said by its settings:
// `kept.tell` makes it tell what it was given, `kept.settle` is `duplicate`, `rewrite` or `refuse` instead of placing.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include "module_with_membership.h"

typedef exports_verbatim_produce_produce_path_batch_t batch_t;
typedef exports_verbatim_produce_produce_path_list_batch_t batches_t;
typedef exports_verbatim_produce_produce_path_list_epoch_entry_t entries_t;
typedef exports_verbatim_produce_produce_path_policy_t policy_t;
typedef exports_verbatim_produce_produce_path_position_t position_t;
typedef exports_verbatim_produce_produce_path_refusal_t refusal_t;
typedef exports_verbatim_produce_produce_path_request_t request_t;
typedef module_with_membership_string_t string_t;

static const int8_t MAGIC = 2;
static const int64_t OVERHEAD_BYTES = 12;
static const int16_t LOG_APPEND_TIME = 0x08;
static const int16_t CONTROL = 0x20;
static const uint32_t PIECE_BYTES = 16;

// Memory for one call: what is asked for lies one behind the other, and a call that has ended leaves it all to the next.
extern unsigned char __heap_base;
static uintptr_t next;
static bool is_over = true;

_Noreturn void abort(void) { __builtin_trap(); }

void *realloc(void *old, size_t size) {
  if (is_over) next = (uintptr_t)&__heap_base;
  is_over = false;
  uintptr_t piece = (next + 15) & ~(uintptr_t)15;
  if (old != NULL || size > SIZE_MAX / 2 - piece) abort();
  size_t have = __builtin_wasm_memory_size(0), need = (piece + size) / 65536 + 1;
  if (need > have && __builtin_wasm_memory_grow(0, need - have) == SIZE_MAX) abort();
  next = piece + size;
  return (void *)piece;
}

void free(void *piece) { (void)piece; }

void *memcpy(void *to, const void *from, size_t length) {
  for (size_t at = 0; at < length; at++) ((unsigned char *)to)[at] = ((const unsigned char *)from)[at];
  return to;
}

size_t strlen(const char *text) {
  size_t length = 0;
  while (text[length] != 0) length += 1;
  return length;
}

// A line that is being written. Nothing here comes near its length.
static char line[1024];
static size_t used;

static void put(const char *text) {
  while (*text != 0 && used < sizeof line) line[used++] = *text++;
}

static void put_number(bool negative, uint64_t left) {
  char digits[20];
  int count = 0;
  do digits[count++] = (char)('0' + left % 10);
  while ((left /= 10) != 0);
  if (negative) put("-");
  while (count > 0 && used < sizeof line) line[used++] = digits[--count];
}

static void begin(const char *what) {
  used = 0;
  put(what);
}

static void field(const char *name, int64_t value) {
  put(" "), put(name), put("=");
  put_number(value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void optional(const char *name, bool is_some, int64_t value) {
  if (is_some) return field(name, value);
  put(" "), put(name), put("=none");
}

// FIELD(batch, length) writes ` length=` and batch->length; OPTION the same for one that may be none.
#define FIELD(record, name) field(#name, (int64_t)(record)->name)
#define OPTION(record, name) optional(#name, (record)->name.is_some, (int64_t)(record)->name.val)

static void end_line(void) {
  string_t text = {.ptr = (uint8_t *)line, .len = used};
  verbatim_produce_trace_line(&text);
}

static void tell_policy(const policy_t *policy) {
  begin("policy");
  FIELD(policy, exact), FIELD(policy, rewind_truncate), FIELD(policy, validate_records), FIELD(policy, may_rewrite);
  FIELD(policy, compacted), FIELD(policy, log_append_time), FIELD(policy, max_message_bytes);
  FIELD(policy, segment_bytes), FIELD(policy, before_max_ms), FIELD(policy, after_max_ms), FIELD(policy, min_insync);
  FIELD(policy, topic_id_high), FIELD(policy, topic_id_low), FIELD(policy, partition);
  FIELD(policy, config_generation);
  end_line();
}

static void put_position(const position_t *position) {
  FIELD(position, start), FIELD(position, end), FIELD(position, high_watermark), FIELD(position, stable_offset);
  optional("last_entry", position->last_entry.is_some, position->last_entry.val.epoch);
  optional("from", position->last_entry.is_some, position->last_entry.val.start);
  FIELD(position, epoch_before_end), FIELD(position, shown_epoch);
}

static void tell_request(const request_t *request, const entries_t *entries) {
  begin("request");
  FIELD(request, now_ms), FIELD(request, acks), FIELD(request, api_version), FIELD(request, transactional);
  FIELD(request, framing), FIELD(request, has_tag), FIELD(request, source_topic_matches);
  FIELD(request, expected_end), FIELD(request, epoch_before), FIELD(request, source_start);
  FIELD(request, source_end), FIELD(request, source_epoch), OPTION(request, end_to), OPTION(request, truncate_to);
  end_line();
  for (size_t at = 0; at < entries->len; at++) {
    begin("entry");
    FIELD(&entries->ptr[at], epoch), FIELD(&entries->ptr[at], start);
    end_line();
  }
}

static void tell_batch(const batch_t *batch) {
  begin("batch");
  FIELD(batch, base_offset), FIELD(batch, batch_length), FIELD(batch, leader_epoch), FIELD(batch, magic);
  FIELD(batch, crc), FIELD(batch, attributes), FIELD(batch, last_offset_delta), FIELD(batch, base_timestamp);
  FIELD(batch, max_timestamp), FIELD(batch, producer_id), FIELD(batch, producer_epoch), FIELD(batch, base_sequence);
  FIELD(batch, record_count), FIELD(batch, length), FIELD(batch, crc_ok), FIELD(batch, short_header);
  end_line();
  begin("last");
  optional("producer_epoch", batch->producer.is_some, batch->producer.val.producer_epoch);
  optional("last_sequence", batch->producer.is_some, batch->producer.val.last_sequence);
  optional("last_offset", batch->producer.is_some, batch->producer.val.last_offset);
  bool is_open = batch->producer.is_some && batch->producer.val.open_transaction.is_some;
  optional("open_transaction", is_open, batch->producer.val.open_transaction.val);
  end_line();
}

static void tell_producer(int64_t id) {
  verbatim_produce_log_producer_state_t state;
  if (!verbatim_produce_log_producer(id, &state)) return;
  begin("producer");
  FIELD(&state, producer_epoch), FIELD(&state, coordinator_epoch), FIELD(&state, last_timestamp);
  OPTION(&state, open_transaction);
  end_line();
  for (size_t at = 0; at < state.batches.len; at++) {
    const verbatim_produce_log_producer_batch_t *batch = &state.batches.ptr[at];
    begin("remembered");
    FIELD(batch, first_sequence), FIELD(batch, last_sequence), FIELD(batch, base_offset), FIELD(batch, last_offset);
    FIELD(batch, timestamp);
    end_line();
  }
}

static void tell_answers(uint32_t index, const batch_t *batch, const position_t *position) {
  verbatim_produce_log_comparison_t comparison;
  verbatim_produce_log_compare(index, position->start, &comparison);
  begin("compare");
  field("tag", comparison.tag);
  bool has_offset = comparison.tag >= VERBATIM_PRODUCE_LOG_COMPARISON_DIFFERS;
  // Both cases carry an offset, in the same place.
  optional("offset", has_offset, comparison.val.differs);
  end_line();

  module_with_membership_list_u8_t piece;
  verbatim_produce_log_unreadable_t unreadable;
  int64_t total = 0, pieces = 0, sum = 0;
  bool read;
  while ((read = verbatim_produce_log_records(index, PIECE_BYTES, &piece, &unreadable)) && piece.len > 0) {
    for (size_t at = 0; at < piece.len; at++) sum += piece.ptr[at];
    total += (int64_t)piece.len, pieces++;
  }
  begin("records");
  field("bytes", total), field("pieces", pieces), field("sum", sum);
  optional("unreadable", !read, unreadable);
  end_line();
  if (batch->producer_id >= 0) tell_producer(batch->producer_id);
}

static void tell_log(const position_t *position) {
  verbatim_produce_log_cut_preview_t preview;
  verbatim_produce_log_cut(position->start, &preview);
  begin("cut");
  FIELD(&preview, at_boundary);
  optional("last_entry", preview.last_entry.is_some, preview.last_entry.val.epoch);
  optional("from", preview.last_entry.is_some, preview.last_entry.val.start);
  OPTION(&preview, highest_epoch_cut);
  end_line();
  verbatim_produce_log_list_replica_t replicas;
  verbatim_produce_log_replicas(&replicas);
  for (size_t at = 0; at < replicas.len; at++) {
    begin("replica");
    FIELD(&replicas.ptr[at], id), FIELD(&replicas.ptr[at], in_sync), FIELD(&replicas.ptr[at], online);
    end_line();
  }
}

// The first letter of one of its settings, 0 if it is not set.
static char setting(const char *key) {
  string_t name, value;
  module_with_membership_string_set(&name, key);
  bool is_set = verbatim_produce_config_get(&name, &value);
  return is_set && value.len > 0 ? (char)value.ptr[0] : 0;
}

static bool refuse(refusal_t *refusal, uint8_t reason, const char *text) {
  *refusal = (refusal_t){.reason.tag = reason};
  module_with_membership_string_dup(&refusal->text, text);
  return false;
}

static bool is_sound(const batch_t *batch, int64_t base, refusal_t *refusal) {
  int64_t span = (int64_t)batch->last_offset_delta + 1;
  if (batch->short_header || batch->batch_length + OVERHEAD_BYTES != batch->length)
    return refuse(refusal, VERBATIM_PRODUCE_TYPES_REASON_FRAME_LENGTH, "the length must be that of a whole batch");
  if (batch->magic != MAGIC) return refuse(refusal, VERBATIM_PRODUCE_TYPES_REASON_UNKNOWN_MAGIC, "magic must be 2");
  if (!batch->crc_ok) return refuse(refusal, VERBATIM_PRODUCE_TYPES_REASON_CHECKSUM, "crc must be that of the bytes");
  if (span < 1 || base > INT64_MAX - span)
    return refuse(refusal, VERBATIM_PRODUCE_TYPES_REASON_OFFSET_DELTA, "lastOffsetDelta must give an offset");
  if (batch->record_count != span)
    return refuse(refusal, VERBATIM_PRODUCE_TYPES_REASON_RECORD_COUNT, "there must be a record for each offset");
  if ((batch->attributes & CONTROL) != 0)
    return refuse(refusal, VERBATIM_PRODUCE_TYPES_REASON_CONTROL_BATCH, "clients write no control records");
  return true;
}

static void settle(uint32_t index, const batch_t *batch, int64_t base, int32_t epoch) {
  verbatim_produce_log_placement_t placement = {
      .base_offset = base,
      .leader_epoch = epoch,
      .log_append_time = (batch->attributes & LOG_APPEND_TIME) != 0,
      .max_timestamp = batch->max_timestamp,
  };
  module_with_membership_list_u8_t nothing = {0};
  switch (setting("kept.settle")) {
    case 'd': return verbatim_produce_log_duplicate(index, 0);
    case 'r': return verbatim_produce_log_rewrite(index, &placement, &nothing);
    default: return verbatim_produce_log_append(index, &placement);
  }
}

static bool judge(const policy_t *policy, const position_t *position, const request_t *request,
                  const batches_t *batches, refusal_t *refusal) {
  if (setting("kept.settle") == 'o') {
    refuse(refusal, VERBATIM_PRODUCE_TYPES_REASON_OTHER, "as it was set, kept.settle=`other`");
    refusal->reason.val.other = 44;
    refusal->batch = (module_with_membership_option_u32_t){.is_some = true, .val = 1};
    refusal->expected = (module_with_membership_option_s64_t){.is_some = true, .val = -7};
    return false;
  }
  if (policy->exact || request->has_tag)
    return refuse(refusal, VERBATIM_PRODUCE_TYPES_REASON_TAG_UNEXPECTED, "this module judges normal topics");
  bool is_older = position->last_entry.is_some && position->last_entry.val.epoch > position->shown_epoch;
  if (position->shown_epoch < 0 || is_older)
    return refuse(refusal, VERBATIM_PRODUCE_TYPES_REASON_EPOCH_RANGE, "the partition must have a leader epoch");
  if (batches->len == 0) return refuse(refusal, VERBATIM_PRODUCE_TYPES_REASON_NO_BATCH, "there must be a batch");
  int64_t end = position->end;
  for (uint32_t index = 0; index < batches->len; index++) {
    if (!is_sound(&batches->ptr[index], end, refusal)) return false;
    settle(index, &batches->ptr[index], end, position->shown_epoch);
    end += (int64_t)batches->ptr[index].last_offset_delta + 1;
  }
  return true;
}

bool exports_verbatim_produce_produce_path_produce(policy_t *policy, position_t *position, request_t *request,
                                                   entries_t *entries, batches_t *batches, refusal_t *refusal) {
  if (setting("kept.tell") != 0) {
    tell_policy(policy);
    begin("position"), put_position(position), end_line();
    tell_request(request, entries);
    for (uint32_t index = 0; index < batches->len; index++) {
      tell_batch(&batches->ptr[index]);
      tell_answers(index, &batches->ptr[index], position);
    }
    tell_log(position);
  }
  bool accepted = judge(policy, position, request, batches, refusal);
  is_over = true;
  return accepted;
}

void exports_verbatim_produce_produce_path_describe(exports_verbatim_produce_produce_path_description_t *description) {
  *description = (exports_verbatim_produce_produce_path_description_t){.supports_normal = true};
  module_with_membership_string_dup(&description->name, "kept");
  module_with_membership_string_dup(&description->version, "1");
  is_over = true;
}

// Nobody may join: the reason is what it was given.
bool exports_verbatim_produce_membership_may_join(exports_verbatim_produce_membership_replica_t *replica,
                                                  int64_t replica_end,
                                                  exports_verbatim_produce_membership_position_t *position,
                                                  string_t *reason) {
  begin("replica");
  FIELD(replica, id), FIELD(replica, in_sync), FIELD(replica, online), field("replica_end", replica_end);
  put_position(position);
  line[used < sizeof line ? used : sizeof line - 1] = 0;
  module_with_membership_string_dup(reason, line);
  is_over = true;
  return false;
}
