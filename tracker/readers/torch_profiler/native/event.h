/* One entry of `traceEvents`: the fields that `schema.py` names, and no others. */
#ifndef TRACKER_EVENT_H
#define TRACKER_EVENT_H

#include "scan.h"

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

static inline const char *read_argument(const char *key, uint32_t length, const char *p, const char *end, Args *args) {
    int number = number_of(key, length), real = real_of(key, length);
    if (number >= 0)
        return read_field(p, end, &args->numbers[number]);
    if (real >= 0)
        return read_real(p, end, &args->reals[real]);
    if (length == 10) {
        if (IS("Input Dims"))
            return read_raw(p, end, &args->spans[DIMS]);
        if (IS("Input dims"))
            return read_raw(p, end, &args->spans[OLD_DIMS]);
        if (IS("Input type"))
            return read_raw(p, end, &args->spans[TYPES]);
        if (IS("Call stack"))
            return read_text(p, end, &args->spans[CALL_STACK]);
    }
    if (length == 16 && IS("Module Hierarchy"))
        return read_text(p, end, &args->spans[MODULE]);
    if (length == 15 && IS("Collective name")) {
        args->is_collective = !is_null(p, end);
        return read_simple(p, end);
    }
    return is_known(key, length) ? read_simple(p, end) : skip_value(p, end, 2);
}

/* Behind the key at `p`, its colon and the blanks; NULL for keys with escapes. */
static inline const char *read_key(const char *p, const char *end, const char **key, uint32_t *length) {
    int is_plain;
    const char *close;
    if (*p != '"' || !(close = text_end(p + 1, end, &is_plain)) || !is_plain)
        return NULL;
    *key = p + 1;
    *length = close - p > 256 ? 256 : (uint32_t)(close - p - 1);
    p = skip_blanks(close + 1);
    return *p == ':' ? skip_blanks(p + 1) : NULL;
}

/* Behind what follows a value: the blanks, a comma and more blanks, or the closing bracket itself. */
static inline const char *read_comma(const char *p, char close) {
    p = skip_blanks(p);
    if (*p == close)
        return p;
    if (*p != ',')
        return NULL;
    p = skip_blanks(p + 1);
    return *p == '"' ? p : NULL;
}

static const char *read_args(const char *p, const char *end, Args *args) {
    const char *key;
    uint32_t length;
    memset(args, 0, sizeof *args);
    p = skip_blanks(p + 1);
    while (*p != '}') {
        if (!(p = read_key(p, end, &key, &length)) || !(p = read_argument(key, length, p, end, args)) ||
            !(p = read_comma(p, '}')))
            return NULL;
    }
    return p + 1;
}

static const char *read_args_of(Event *event, const char *p, const char *end, Args *args) {
    if (event->args.start)
        return NULL; /* twice */
    if (is_null(p, end))
        return p + 4;
    if (*p != '{')
        return NULL;
    event->args.start = p;
    p = read_args(p, end, args);
    if (p)
        event->args.length = (uint32_t)(p - event->args.start);
    return p;
}

static inline const char *read_member(Event *event, const char *key, uint32_t length, const char *p, const char *end,
                                      Args *args) {
    switch (length) {
    case 2:
        if (IS("ph"))
            return read_text(p, end, &event->phase);
        if (IS("ts"))
            return read_time(p, end, &event->time);
        if (IS("id")) {
            int is_text = *p == '"';
            p = read_number(p, end, &event->id);
            return p && event->id.kind == ODD && !is_text ? NULL : p;
        }
        break;
    case 3:
        if (IS("cat"))
            return read_text(p, end, &event->category);
        if (IS("pid"))
            return read_id(p, end, &event->pid);
        if (IS("tid"))
            return read_id(p, end, &event->tid);
        if (IS("dur"))
            return read_time(p, end, &event->duration);
        break;
    case 4:
        if (IS("name"))
            return read_text(p, end, &event->name);
        if (IS("args"))
            return read_args_of(event, p, end, args);
        break;
    }
    return skip_value(p, end, 1);
}

/* Behind the event at `p`. `args` is only set where `event->args` is there. */
static const char *read_event(const char *p, const char *end, Event *event, Args *args) {
    const char *key;
    uint32_t length;
    memset(event, 0, sizeof *event);
    event->start = p;
    if (*p != '{')
        return NULL;
    p = skip_blanks(p + 1);
    while (*p != '}') {
        if (!(p = read_key(p, end, &key, &length)) || !(p = read_member(event, key, length, p, end, args)) ||
            !(p = read_comma(p, '}')))
            return NULL;
    }
    event->end = p + 1;
    return p + 1;
}

#endif
