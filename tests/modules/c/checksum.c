// The module `checksum`: on normal topics it places batches whose checksum is right, at the end of the log, and looks at
// nothing that a host would not look at itself. It shows that the contract is nobody's language.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "module.h"

typedef exports_verbatim_produce_produce_path_batch_t batch_t;
typedef exports_verbatim_produce_produce_path_list_batch_t batches_t;
typedef exports_verbatim_produce_produce_path_list_epoch_entry_t entries_t;
typedef exports_verbatim_produce_produce_path_policy_t policy_t;
typedef exports_verbatim_produce_produce_path_position_t position_t;
typedef exports_verbatim_produce_produce_path_refusal_t refusal_t;
typedef exports_verbatim_produce_produce_path_request_t request_t;

// Record batch v2, the only format that is stored.
static const int8_t MAGIC = 2;
// Bytes of a batch that batchLength does not count.
static const int64_t OVERHEAD_BYTES = 12;

static const int16_t LOG_APPEND_TIME = 0x08;
static const int16_t CONTROL = 0x20;

// Kafka's code for what a topic's policy forbids.
static const uint16_t POLICY_VIOLATION = 44;

static char *put(char *at, const char *text) {
  while (*text != 0) *at++ = *text++;
  return at;
}

static char *put_number(char *at, int64_t number) {
  char digits[20];
  int count = 0;
  uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  do digits[count++] = (char)('0' + left % 10);
  while ((left /= 10) != 0);
  if (number < 0) *at++ = '-';
  while (count > 0) *at++ = digits[--count];
  return at;
}

// Refuses the request as a whole. The texts in this file are short: with a number they fit the buffer below.
static bool refuse(refusal_t *refusal, uint8_t reason, const char *text) {
  *refusal = (refusal_t){.reason.tag = reason};
  if (reason == VERBATIM_PRODUCE_TYPES_REASON_OTHER) refusal->reason.val.other = POLICY_VIOLATION;
  module_string_dup(&refusal->text, text);
  return false;
}

// Refuses it for what is wrong with one batch: what must hold, and which field has which value instead.
static bool refuse_batch(refusal_t *refusal, uint32_t index, uint8_t reason, const char *text, const char *field,
                         int64_t value) {
  char buffer[256];
  char *end = put(put_number(put(buffer, "batch "), index), ": ");
  end = put(put(put(put(end, text), ", "), field), "=`");
  end = put(put_number(end, value), "`");
  *end = 0;
  refuse(refusal, reason, buffer);
  refusal->batch.is_some = true;
  refusal->batch.val = index;
  return false;
}

// What the host verifies itself. A batch that it would not take is refused here, as a broken invariant is a module's bug.
static bool is_sound(const batch_t *batch, uint32_t index, int64_t base, refusal_t *refusal) {
  int64_t span = (int64_t)batch->last_offset_delta + 1;
  if (batch->short_header || batch->batch_length + OVERHEAD_BYTES != batch->length)
    return refuse_batch(refusal, index, VERBATIM_PRODUCE_TYPES_REASON_FRAME_LENGTH,
                        "the length must be that of a whole batch", "batchLength", batch->batch_length);
  if (batch->magic != MAGIC)
    return refuse_batch(refusal, index, VERBATIM_PRODUCE_TYPES_REASON_UNKNOWN_MAGIC, "the magic must be 2", "magic",
                        batch->magic);
  if (!batch->crc_ok)
    return refuse_batch(refusal, index, VERBATIM_PRODUCE_TYPES_REASON_CHECKSUM,
                        "the checksum must be that of the bytes", "crc", batch->crc);
  if (span < 1 || base > INT64_MAX - span)
    return refuse_batch(refusal, index, VERBATIM_PRODUCE_TYPES_REASON_OFFSET_DELTA,
                        "the last offset must be one that there is", "lastOffsetDelta", batch->last_offset_delta);
  if (batch->record_count != span)
    return refuse_batch(refusal, index, VERBATIM_PRODUCE_TYPES_REASON_RECORD_COUNT,
                        "there must be a record for each offset", "recordCount", batch->record_count);
  if ((batch->attributes & CONTROL) != 0)
    return refuse_batch(refusal, index, VERBATIM_PRODUCE_TYPES_REASON_CONTROL_BATCH,
                        "a client must not write control records", "attributes", batch->attributes);
  return true;
}

static bool judge(const policy_t *policy, const position_t *position, const request_t *request,
                  const batches_t *batches, refusal_t *refusal) {
  if (policy->exact)
    return refuse(refusal, VERBATIM_PRODUCE_TYPES_REASON_OTHER,
                  "this module judges normal topics, produce.at.offset=`true`");
  if (request->has_tag)
    return refuse(refusal, VERBATIM_PRODUCE_TYPES_REASON_TAG_UNEXPECTED,
                  "a topic that is not exact takes no tag, tag=`there`");
  if (position->shown_epoch < 0 || (position->last_entry.is_some && position->last_entry.val.epoch > position->shown_epoch))
    return refuse(refusal, VERBATIM_PRODUCE_TYPES_REASON_EPOCH_RANGE,
                  "the partition must have a leader epoch, shown epoch=`none`");
  if (batches->len == 0)
    return refuse(refusal, VERBATIM_PRODUCE_TYPES_REASON_NO_BATCH, "there must be a batch, batches=`0`");
  int64_t end = position->end;
  for (uint32_t index = 0; index < batches->len; index++) {
    const batch_t *batch = &batches->ptr[index];
    if (!is_sound(batch, index, end, refusal)) return false;
    verbatim_produce_log_placement_t placement = {
        .base_offset = end,
        .leader_epoch = position->shown_epoch,
        .log_append_time = (batch->attributes & LOG_APPEND_TIME) != 0,
        .max_timestamp = batch->max_timestamp,
    };
    verbatim_produce_log_append(index, &placement);
    end += (int64_t)batch->last_offset_delta + 1;
  }
  return true;
}

bool exports_verbatim_produce_produce_path_produce(policy_t *policy, position_t *position, request_t *request,
                                                   entries_t *entries, batches_t *batches, refusal_t *refusal) {
  bool accepted = judge(policy, position, request, batches, refusal);
  exports_verbatim_produce_produce_path_list_epoch_entry_free(entries);
  exports_verbatim_produce_produce_path_list_batch_free(batches);
  return accepted;
}

void exports_verbatim_produce_produce_path_describe(exports_verbatim_produce_produce_path_description_t *description) {
  *description = (exports_verbatim_produce_produce_path_description_t){.supports_normal = true};
  module_string_dup(&description->name, "checksum");
  module_string_dup(&description->version, "0.1.0");
}
