/* The keys of objects, which follow each other in nearly every event as in the one before.
 *
 * What stands between two values, from the comma to the colon with key and blanks, is compared with what stood there
 * after the same key the last time. Equal bytes mean the same, so nothing is read again, and the processor goes on
 * behind them without having to wait for where they end. Anything else is read byte by byte, and remembered.
 */
#ifndef TRACKER_KEYS_H
#define TRACKER_KEYS_H

#include "scan.h"

#define SEEN_WORDS 4
#define SEEN_BYTES (8 * SEEN_WORDS)
#define MOST_SEEN 128
#define FIRSTS 32 /* places in front of the first key of an object */

typedef struct {
    uint64_t words[SEEN_WORDS], masks[SEEN_WORDS];
    uint32_t length; /* 0: nothing */
    int16_t meaning;
    int16_t is_first;
} Seen;

typedef struct {
    Seen seen[MOST_SEEN];
    uint8_t next[FIRSTS + MOST_SEEN]; /* what followed each place the last time */
} Keys;

/* What the caller makes of a key. */
typedef int (*MeaningOf)(const char *key, uint32_t length);

enum { REFUSED_KEY = -2, CLOSED = -1 }; /* beside the meanings; CLOSED: the object ends here */

static inline int is_seen(const Seen *seen, const char *p) {
    uint64_t difference = 0, word;
    for (int i = 0; i < SEEN_WORDS; i++) {
        memcpy(&word, p + 8 * i, 8);
        difference |= (word ^ seen->words[i]) & seen->masks[i];
    }
    return !difference;
}

/* Remembers the bytes from `p` to `behind`, of which SEEN_BYTES may be read, as what follows `place`; returns the place
 * behind them.
 */
static uint32_t remember(Keys *keys, uint32_t place, const char *p, const char *behind, int meaning, int is_first) {
    uint32_t length = (uint32_t)(behind - p), slot = 2 * length + (uint32_t)is_first;
    Seen *seen;
    for (uint32_t i = 0; i < length; i++)
        slot = 0x01000193u * (slot ^ (unsigned char)p[i]);
    slot = (slot >> 16 ^ slot) % MOST_SEEN;
    seen = &keys->seen[slot];
    memset(seen, 0, sizeof *seen);
    memcpy(seen->words, p, length);
    memset(seen->masks, 0xff, length);
    seen->length = length;
    seen->meaning = (int16_t)meaning;
    seen->is_first = (int16_t)is_first;
    keys->next[place] = (uint8_t)slot;
    return FIRSTS + slot;
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

/* The meaning of the key that follows at `*p`, in an object whose last key left `*place`; moves both behind it. */
static inline int next_key(Keys *keys, const char **p, const char *end, uint32_t *place, int is_first,
                           MeaningOf meaning_of) {
    const Seen *seen = &keys->seen[keys->next[*place]];
    const char *at = *p, *key;
    uint32_t length;
    int meaning = CLOSED;
    if (end - at >= SEEN_BYTES && seen->length && seen->is_first == is_first && is_seen(seen, at)) {
        *place = FIRSTS + keys->next[*place];
        *p = at + seen->length;
        return seen->meaning;
    }
    at = skip_blanks(at);
    if (*at == '}') {
        at++;
    } else {
        if (!is_first && *at != ',')
            return REFUSED_KEY;
        if (!is_first)
            at = skip_blanks(at + 1);
        if (!(at = read_key(at, end, &key, &length)))
            return REFUSED_KEY;
        meaning = meaning_of(key, length);
    }
    if (end - *p >= SEEN_BYTES && at - *p <= SEEN_BYTES)
        *place = remember(keys, *place, *p, at, meaning, is_first);
    *p = at;
    return meaning;
}

#endif
