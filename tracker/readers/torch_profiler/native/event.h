/* One entry of `traceEvents`: the fields that `schema.py` names, and no others. */
#ifndef TRACKER_EVENT_H
#define TRACKER_EVENT_H

#include "keys.h"

enum { /* numbers of args */
    CORRELATION, STREAM, DEVICE, BYTES, SEQUENCE, FORWARD_THREAD,
    EXTERNAL, ALLOCATED, ADDRESS, DEVICE_TYPE, DEVICE_ID, TOTAL_ALLOCATED, TOTAL_RESERVED, NUMBERS
};

/* real numbers of args: what a kernel used of the device */
enum { OCCUPANCY, BLOCKS_PER_SM, WARPS_PER_SM, REALS };

enum { DIMS, OLD_DIMS, TYPES, MODULE, CALL_STACK, SPANS }; /* texts of args, and what is kept as it stands there */

typedef struct {
    Number numbers[NUMBERS];
    Real reals[REALS];
    Span spans[SPANS];
    int is_collective; /* names one */
} Args;

typedef struct {
    Span phase, category, name, pid, tid, args;
    Number time, duration, id;
    const char *start, *end;
} Event;

static inline int says(const Span *span, const char *word, uint32_t length) {
    return span->start && span->length == length && !memcmp(span->start, word, length);
}

#define IS(word) (length == sizeof(word) - 1 && !memcmp(key, word, sizeof(word) - 1))

/* A number among args, or a word instead of one; NULL for numbers that are not whole, or long, and for lists. */
static inline const char *read_field(const char *p, const char *end, Number *number) {
    if (*p == '{' || *p == '[')
        return NULL;
    p = read_number(p, end, number);
    return p && number->kind == ODD && is_digit(p[-1]) ? NULL : p;
}

static inline int number_of(const char *key, uint32_t length) {
    switch (length) {
    case 4: return IS("Addr") ? ADDRESS : -1;
    case 5: return IS("bytes") ? BYTES : IS("Bytes") ? ALLOCATED : -1;
    case 6: return IS("stream") ? STREAM : IS("device") ? DEVICE : -1;
    case 9: return IS("Device Id") ? DEVICE_ID : -1;
    case 11:
        return IS("correlation")   ? CORRELATION
               : IS("Device Type") ? DEVICE_TYPE
               : IS("External id") || IS("external id") ? EXTERNAL
                                                        : -1;
    case 13: return IS("Fwd thread id") ? FORWARD_THREAD : -1;
    case 14: return IS("Total Reserved") ? TOTAL_RESERVED : -1;
    case 15: return IS("Sequence number") ? SEQUENCE : IS("Total Allocated") ? TOTAL_ALLOCATED : -1;
    default: return -1;
    }
}

static inline int real_of(const char *key, uint32_t length) {
    switch (length) {
    case 12: return IS("warps per SM") ? WARPS_PER_SM : -1;
    case 13: return IS("blocks per SM") ? BLOCKS_PER_SM : -1;
    case 25: return IS("est. achieved occupancy %") ? OCCUPANCY : -1;
    default: return -1;
    }
}

/* Fields that are read from the text where they are needed; here only what msgspec takes without complaint. */
static inline int is_known(const char *key, uint32_t length) {
    switch (length) {
    case 4: return IS("name");
    case 5: return IS("dtype");
    case 10: return IS("Group size");
    case 13: return IS("In msg nelems");
    case 14: return IS("Out msg nelems");
    case 18: return IS("Process Group Name");
    case 25: return IS("Process Group Description");
    default: return 0;
    }
}

/* What keys of args mean: a number, else one of these. */
enum { A_REAL = NUMBERS, A_SPAN = A_REAL + REALS, A_COLLECTIVE = A_SPAN + SPANS, A_SIMPLE, A_OTHER };

static int meaning_of_argument(const char *key, uint32_t length) {
    int number = number_of(key, length), real = real_of(key, length);
    if (number >= 0)
        return number;
    if (real >= 0)
        return A_REAL + real;
    if (length == 10 && IS("Input Dims"))
        return A_SPAN + DIMS;
    if (length == 10 && IS("Input dims"))
        return A_SPAN + OLD_DIMS;
    if (length == 10 && IS("Input type"))
        return A_SPAN + TYPES;
    if (length == 10 && IS("Call stack"))
        return A_SPAN + CALL_STACK;
    if (length == 16 && IS("Module Hierarchy"))
        return A_SPAN + MODULE;
    if (length == 15 && IS("Collective name"))
        return A_COLLECTIVE;
    return is_known(key, length) ? A_SIMPLE : A_OTHER;
}

static inline const char *read_argument(int meaning, const char *p, const char *end, Args *args) {
    if (meaning < NUMBERS)
        return read_field(p, end, &args->numbers[meaning]);
    switch (meaning) {
    case A_REAL + OCCUPANCY:
    case A_REAL + BLOCKS_PER_SM:
    case A_REAL + WARPS_PER_SM: return read_real(p, end, &args->reals[meaning - A_REAL]);
    case A_SPAN + DIMS:
    case A_SPAN + OLD_DIMS:
    case A_SPAN + TYPES: return read_raw(p, end, &args->spans[meaning - A_SPAN]);
    case A_SPAN + MODULE:
    case A_SPAN + CALL_STACK: return read_text(p, end, &args->spans[meaning - A_SPAN]);
    case A_COLLECTIVE: args->is_collective = !is_null(p, end); return read_simple(p, end);
    case A_SIMPLE: return read_simple(p, end);
    default: return skip_value(p, end, 2);
    }
}

/* `place`: that of the keys in front of the first one, see `Keys`. */
static const char *read_args(Keys *keys, uint32_t place, const char *p, const char *end, Args *args) {
    int meaning, is_first = 1;
    memset(args, 0, sizeof *args);
    for (p++; (meaning = next_key(keys, &p, end, &place, is_first, meaning_of_argument)) >= 0; is_first = 0)
        if (!(p = read_argument(meaning, p, end, args)))
            return NULL;
    return meaning == CLOSED ? p : NULL;
}

/* Events of one category have the same args. */
static inline uint32_t place_of_args(const Event *event) {
    const Span *category = &event->category;
    return category->start && category->length ? (5 * category->length + (unsigned char)*category->start) % FIRSTS : 0;
}

static const char *read_args_of(Keys *keys, Event *event, const char *p, const char *end, Args *args) {
    if (event->args.start)
        return NULL; /* twice */
    if (is_null(p, end))
        return p + 4;
    if (*p != '{')
        return NULL;
    event->args.start = p;
    p = read_args(keys, place_of_args(event), p, end, args);
    if (p)
        event->args.length = (uint32_t)(p - event->args.start);
    return p;
}

enum { E_PHASE, E_TIME, E_ID, E_CATEGORY, E_PID, E_TID, E_DURATION, E_NAME, E_ARGS, E_OTHER };

static int meaning_of_member(const char *key, uint32_t length) {
    switch (length) {
    case 2: return IS("ph") ? E_PHASE : IS("ts") ? E_TIME : IS("id") ? E_ID : E_OTHER;
    case 3:
        return IS("cat") ? E_CATEGORY : IS("pid") ? E_PID : IS("tid") ? E_TID : IS("dur") ? E_DURATION : E_OTHER;
    case 4: return IS("name") ? E_NAME : IS("args") ? E_ARGS : E_OTHER;
    default: return E_OTHER;
    }
}

static inline const char *read_id_of(Event *event, const char *p, const char *end) {
    int is_text = *p == '"';
    p = read_number(p, end, &event->id);
    return p && event->id.kind == ODD && !is_text ? NULL : p;
}

static inline const char *read_member(Keys *keys_of_args, Event *event, int meaning, const char *p, const char *end,
                                      Args *args) {
    switch (meaning) {
    case E_PHASE: return read_text(p, end, &event->phase);
    case E_TIME: return read_time(p, end, &event->time);
    case E_ID: return read_id_of(event, p, end);
    case E_CATEGORY: return read_text(p, end, &event->category);
    case E_PID: return read_id(p, end, &event->pid);
    case E_TID: return read_id(p, end, &event->tid);
    case E_DURATION: return read_time(p, end, &event->duration);
    case E_NAME: return read_text(p, end, &event->name);
    case E_ARGS: return read_args_of(keys_of_args, event, p, end, args);
    default: return skip_value(p, end, 1);
    }
}

/* Behind the event at `p`. `args` is only set where `event->args` is there. */
static const char *read_event(Keys *keys, Keys *keys_of_args, const char *p, const char *end, Event *event,
                              Args *args) {
    uint32_t place = 0;
    int meaning, is_first = 1;
    memset(event, 0, sizeof *event);
    event->start = p;
    if (*p != '{')
        return NULL;
    for (p++; (meaning = next_key(keys, &p, end, &place, is_first, meaning_of_member)) >= 0; is_first = 0)
        if (!(p = read_member(keys_of_args, event, meaning, p, end, args)))
            return NULL;
    event->end = p;
    return meaning == CLOSED ? p : NULL;
}

#endif
