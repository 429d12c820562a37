/* Events as records, sorted into buckets; what `collector.py` finds in them. Nothing here knows of Python. */
#ifndef TRACKER_RECORDS_H
#define TRACKER_RECORDS_H

#include <math.h>
#include <stddef.h>

#include "event.h"
#include "texts.h"

enum { OPS, ANNOTATIONS, FRAMES, RUNTIME, DRIVER, PROFILER, KERNELS, COPIES, MEMSETS, MEMORY, FLOWS, THREADS, BUCKETS };
enum { NAMES, LANES, SHAPES, TYPE_LISTS, MODULES, CALL_STACKS, POOLS };

#define SLOTS 6
#define NO_NUMBER INT64_MIN
#define MAX_LANE 128

/* Of most events only the first bytes are stored, see RECORD_SIZES. */
typedef struct {
    int64_t time_ns, duration_ns;
    int32_t name, lane; /* name -1: none */
    int32_t start, end; /* of args in the text, of the whole event in THREADS */
    int32_t category;   /* of flows */
    int32_t flag;       /* of flows: an end; of device events: see below */
    int64_t numbers[SLOTS];
    int32_t shapes, types, module, call_stack; /* of ops; -1: none */
    double reals[REALS];                       /* of kernels; NaN: absent, or not read */
} Record;

static const size_t RECORD_SIZES[BUCKETS] = {
    [OPS] = offsetof(Record, reals),
    [ANNOTATIONS] = offsetof(Record, reals),
    [FRAMES] = offsetof(Record, numbers),
    [RUNTIME] = offsetof(Record, numbers) + sizeof(int64_t),
    [DRIVER] = offsetof(Record, numbers) + sizeof(int64_t),
    [PROFILER] = offsetof(Record, numbers) + sizeof(int64_t),
    [KERNELS] = sizeof(Record),
    [COPIES] = sizeof(Record),
    [MEMSETS] = sizeof(Record),
    [MEMORY] = offsetof(Record, shapes),
    [FLOWS] = offsetof(Record, numbers) + sizeof(int64_t),
    [THREADS] = offsetof(Record, numbers),
};

enum { NAMES_COLLECTIVE = 1, HAS_ODD_REALS = 2 };

typedef struct {
    char *records;
    size_t count, room;
} Bucket;

typedef struct {
    Texts categories, pools[POOLS];
    int32_t *bucket_of; /* of each category, for slices; -1: none */
    int32_t *flow_of;   /* of each category, for flows; -1: none */
    char lane[MAX_LANE]; /* the one that was met last, and its number */
    uint32_t lane_length;
    int32_t lane_number;
    Bucket buckets[BUCKETS];
    Keys keys, keys_of_args;
} Reader;

static const int FIELDS[BUCKETS][SLOTS] = {
    [OPS] = {SEQUENCE, FORWARD_THREAD, EXTERNAL, -1},
    [ANNOTATIONS] = {SEQUENCE, FORWARD_THREAD, EXTERNAL, -1},
    [FRAMES] = {-1},
    [RUNTIME] = {CORRELATION, -1},
    [DRIVER] = {CORRELATION, -1},
    [PROFILER] = {CORRELATION, -1},
    [KERNELS] = {CORRELATION, STREAM, DEVICE, BYTES, EXTERNAL, -1},
    [COPIES] = {CORRELATION, STREAM, DEVICE, BYTES, EXTERNAL, -1},
    [MEMSETS] = {CORRELATION, STREAM, DEVICE, BYTES, EXTERNAL, -1},
    [MEMORY] = {ALLOCATED, ADDRESS, DEVICE_TYPE, DEVICE_ID, TOTAL_ALLOCATED, TOTAL_RESERVED},
    [FLOWS] = {-1},
    [THREADS] = {-1},
};

typedef enum { TAKEN, REFUSED, NO_MEMORY } Outcome;

static Record *new_record(Reader *self, int bucket) {
    Bucket *of = &self->buckets[bucket];
    if (of->count == of->room) {
        size_t room = of->room ? 2 * of->room : 256;
        char *records = realloc(of->records, room * RECORD_SIZES[bucket]);
        if (!records)
            return NULL;
        of->records = records;
        of->room = room;
    }
    return (Record *)(of->records + of->count++ * RECORD_SIZES[bucket]);
}

static int category_of(const Reader *self, const Span *span, const int32_t *of) {
    int32_t known;
    if (!span->start)
        return -1;
    known = texts_find(&self->categories, span->start, span->length,
                       hash_of(span->start, span->length, self->categories.seed));
    return known < 0 ? -1 : of[known];
}

static inline int ends_with(const Span *span, const char *word, uint32_t length) {
    return span->length > length && !memcmp(span->start + span->length - length, word, length);
}

/* The bucket of a slice. The calls of a back end of any vendor: musa_runtime, xpu_driver. */
static int bucket_of_slice(const Reader *self, const Span *category) {
    int bucket = category_of(self, category, self->bucket_of);
    if (bucket >= 0 || !category->start)
        return bucket;
    return ends_with(category, "_runtime", 8) ? RUNTIME : ends_with(category, "_driver", 7) ? DRIVER : -1;
}

/* The bucket of an event; -1: none; -2: msgspec has to say. */
static int bucket_of(const Reader *self, const Event *event, int32_t *category) {
    const Span *phase = &event->phase;
    *category = -1;
    if (!phase->start)
        return -1;
    if (!phase->is_plain || (event->category.start && !event->category.is_plain))
        return -2;
    if (phase->length != 1)
        return -1;
    switch (*phase->start) {
    case 'X': return bucket_of_slice(self, &event->category);
    case 's':
    case 'f': *category = category_of(self, &event->category, self->flow_of); return *category < 0 ? -1 : FLOWS;
    case 'i':
    case 'I':
        if (event->name.start && !event->name.is_plain)
            return -2;
        return says(&event->name, "[memory]", 8) ? MEMORY : -1;
    case 'M':
        if (event->name.start && !event->name.is_plain)
            return -2;
        return says(&event->name, "thread_name", 11) ? THREADS : -1;
    default: return -1;
    }
}

static Outcome number_text(Texts *pool, const Span *span, int32_t *number) {
    *number = -1;
    if (span->start && (*number = texts_number(pool, span->start, span->length)) < 0)
        return NO_MEMORY;
    return TAKEN;
}

/* pid and tid as they stand there, a NUL between them. */
static Outcome number_lane(Reader *self, const Event *event, int32_t *number) {
    uint32_t first = event->pid.start ? event->pid.length : 0, second = event->tid.start ? event->tid.length : 0;
    if (first + second + 1 > MAX_LANE)
        return REFUSED;
    if (first + second + 1 != self->lane_length || (first && memcmp(self->lane, event->pid.start, first)) ||
        self->lane[first] || (second && memcmp(self->lane + first + 1, event->tid.start, second))) {
        if (first)
            memcpy(self->lane, event->pid.start, first);
        self->lane[first] = 0;
        if (second)
            memcpy(self->lane + first + 1, event->tid.start, second);
        self->lane_length = first + second + 1;
        self->lane_number = texts_number(&self->pools[LANES], self->lane, self->lane_length);
    }
    *number = self->lane_number;
    return *number < 0 ? NO_MEMORY : TAKEN;
}

static Outcome set_numbers(Record *record, int bucket, const Args *args) {
    const int *fields = FIELDS[bucket];
    size_t slots = (RECORD_SIZES[bucket] - offsetof(Record, numbers)) / sizeof(int64_t);
    for (size_t slot = 0; slot < slots && slot < SLOTS; slot++)
        record->numbers[slot] = NO_NUMBER;
    for (int slot = 0; args && slot < SLOTS && fields[slot] >= 0; slot++) {
        const Number *number = &args->numbers[fields[slot]];
        if (number->kind == ODD)
            return REFUSED;
        if (number->kind == WHOLE)
            record->numbers[slot] = number->value;
    }
    return TAKEN;
}

/* Sets the reals of a kernel; whether one of them stands there that only msgspec reads. */
static int set_reals(Record *record, int bucket, const Args *args) {
    int has_odd = 0;
    if (RECORD_SIZES[bucket] < sizeof(Record))
        return 0;
    for (int i = 0; i < REALS; i++) {
        const Real *real = args && bucket == KERNELS ? &args->reals[i] : NULL;
        record->reals[i] = real && real->kind == WHOLE ? real->value : NAN;
        has_odd |= real && real->kind == ODD;
    }
    return has_odd;
}

static Outcome set_texts(Reader *self, Record *record, int bucket, const Args *args) {
    static const Span nothing = {NULL, 0, 1};
    const Span *spans = args && (bucket == OPS || bucket == ANNOTATIONS) ? args->spans : NULL;
    const Span *shapes = !spans ? &nothing : spans[DIMS].start ? &spans[DIMS] : &spans[OLD_DIMS];
    Texts *pools = self->pools;
    if (RECORD_SIZES[bucket] < offsetof(Record, reals))
        return TAKEN;
    if (number_text(&pools[SHAPES], shapes, &record->shapes) ||
        number_text(&pools[TYPE_LISTS], spans ? &spans[TYPES] : &nothing, &record->types) ||
        number_text(&pools[MODULES], spans ? &spans[MODULE] : &nothing, &record->module) ||
        number_text(&pools[CALL_STACKS], spans ? &spans[CALL_STACK] : &nothing, &record->call_stack))
        return NO_MEMORY;
    return TAKEN;
}

/* Adds the record of an event, if it is of a kind that we take. */
static Outcome take(Reader *self, const Event *event, const Args *args, const char *text) {
    int32_t category;
    int bucket = bucket_of(self, event, &category);
    const char *start = event->args.start, *end = start ? start + event->args.length : NULL;
    Record *record;
    Outcome outcome;
    if (bucket < 0)
        return bucket == -1 ? TAKEN : REFUSED;
    if (bucket == THREADS)
        start = event->start, end = event->end;
    else if (event->time.kind != WHOLE)
        return REFUSED;
    if (bucket < MEMORY && (event->duration.kind != WHOLE || event->duration.value < 0))
        return REFUSED;
    if (bucket == FLOWS && (event->id.kind != WHOLE || event->id.value < 0))
        return REFUSED;
    if (!(record = new_record(self, bucket)))
        return NO_MEMORY;
    record->time_ns = event->time.value;
    record->duration_ns = bucket < MEMORY ? event->duration.value : 0;
    record->start = start ? (int32_t)(start - text) : 0;
    record->end = end ? (int32_t)(end - text) : 0;
    record->category = category;
    record->flag = args && args->is_collective ? NAMES_COLLECTIVE : 0;
    if (set_reals(record, bucket, args))
        record->flag |= HAS_ODD_REALS;
    if (bucket == FLOWS)
        record->flag = *event->phase.start == 'f';
    if ((outcome = set_numbers(record, bucket, args)) || (outcome = set_texts(self, record, bucket, args)) ||
        (outcome = number_lane(self, event, &record->lane)) ||
        (outcome = number_text(&self->pools[NAMES], &event->name, &record->name)))
        self->buckets[bucket].count--;
    else if (bucket == FLOWS)
        record->numbers[0] = event->id.value;
    return outcome;
}

/* Takes the events from `p` on, which is in `text`, as far as each is usual and followed by a comma. `*behind`: the byte
 * behind the last of these commas, 0 for none. `*stop`: what follows the event that no comma follows, else NULL.
 */
static Outcome decode(Reader *self, const char *text, const char *p, const char *end, int64_t *behind,
                      const char **stop) {
    Event event;
    Args args;
    Outcome outcome;
    *behind = 0;
    *stop = NULL;
    p = skip_blanks(p);
    while ((p = read_event(&self->keys, &self->keys_of_args, p, end, &event, &args))) {
        p = skip_blanks(p);
        if (*p != ',') {
            *stop = p;
            break;
        }
        if ((outcome = take(self, &event, event.args.start ? &args : NULL, text)))
            return outcome == REFUSED ? TAKEN : outcome;
        p++;
        *behind = p - text;
        p = skip_blanks(p);
    }
    return TAKEN;
}

/* The first `{` at or behind `p` that follows a `},` and blanks: perhaps an event starts there. NULL: there is none. */
static const char *likely_start(const char *p, const char *end) {
    while (p < end && (p = memchr(p, '}', (size_t)(end - p)))) {
        const char *next = skip_blanks(++p);
        if (*next != ',')
            continue;
        next = skip_blanks(next + 1);
        if (*next == '{')
            return next;
    }
    return NULL;
}

static int holds_records(const Reader *self) {
    for (int bucket = 0; bucket < BUCKETS; bucket++)
        if (self->buckets[bucket].count)
            return 1;
    return 0;
}

/* Takes the events of a text that starts anywhere. `*start`: where the first one of them seems to start, -1 for nowhere;
 * the caller has to prove it. Objects in a list among args look alike: where they end, and nothing was taken, the next
 * likely start is tried.
 */
static Outcome decode_inside(Reader *self, const char *text, const char *end, int64_t *start, int64_t *behind) {
    const char *p = text, *stop;
    Outcome outcome = TAKEN;
    *behind = 0;
    do {
        p = likely_start(p, end);
        *start = p ? p - text : -1;
        if (!p)
            break;
        outcome = decode(self, text, p, end, behind, &stop);
        p = stop;
    } while (outcome == TAKEN && stop && *stop == ']' && !holds_records(self));
    return outcome;
}

#endif
