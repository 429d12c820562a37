/* Distinct texts, numbered in order of first sight. */
#ifndef TRACKER_TEXTS_H
#define TRACKER_TEXTS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t hash;
    size_t start; /* in `bytes` */
    uint32_t length;
} Entry;

typedef struct {
    Entry *entries;
    char *bytes;
    uint32_t *slots; /* 1 + number of an entry; 0: free */
    uint32_t count, room, mask;
    size_t used, size;
    uint64_t seed; /* of this process: nobody can write texts that all share one slot */
} Texts;

static inline uint64_t mixed(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    a ^= a >> 32;
    a *= b;
    a ^= a >> 29;
    a *= 0xbf58476d1ce4e5b9u;
    return a ^ (a >> 32);
#endif
}

static inline uint64_t hash_of(const char *text, uint32_t length, uint64_t seed) {
    uint64_t hash = seed ^ length, word;
    for (; length >= 8; text += 8, length -= 8) {
        memcpy(&word, text, 8);
        hash = mixed(hash ^ word, 0x9e3779b97f4a7c15u);
    }
    if (length) {
        word = 0;
        memcpy(&word, text, length);
        hash = mixed(hash ^ word, 0xa0761d6478bd642fu);
    }
    return mixed(hash, 0xe7037ed1a0b428dbu);
}

static int texts_begin(Texts *texts, uint64_t seed) {
    memset(texts, 0, sizeof *texts);
    texts->room = 256;
    texts->mask = 2 * texts->room - 1;
    texts->size = 1 << 12;
    texts->seed = seed;
    texts->entries = malloc(texts->room * sizeof(Entry));
    texts->bytes = malloc(texts->size);
    texts->slots = calloc(2 * (size_t)texts->room, sizeof(uint32_t));
    return texts->entries && texts->bytes && texts->slots ? 0 : -1;
}

static void texts_end(Texts *texts) {
    free(texts->entries);
    free(texts->bytes);
    free(texts->slots);
}

static void texts_reslot(Texts *texts) {
    memset(texts->slots, 0, ((size_t)texts->mask + 1) * sizeof(uint32_t));
    for (uint32_t number = 0; number < texts->count; number++) {
        uint32_t slot = (uint32_t)texts->entries[number].hash & texts->mask;
        while (texts->slots[slot])
            slot = (slot + 1) & texts->mask;
        texts->slots[slot] = number + 1;
    }
}

static int texts_grow(Texts *texts, uint32_t length) {
    if (texts->count == texts->room) {
        Entry *entries = realloc(texts->entries, 2 * (size_t)texts->room * sizeof(Entry));
        uint32_t *slots;
        if (!entries)
            return -1;
        texts->entries = entries;
        slots = realloc(texts->slots, 4 * (size_t)texts->room * sizeof(uint32_t));
        if (!slots)
            return -1;
        texts->slots = slots;
        texts->room *= 2;
        texts->mask = 2 * texts->room - 1;
        texts_reslot(texts);
    }
    if (texts->size - texts->used < length) {
        size_t size = 2 * texts->size + length;
        char *bytes = realloc(texts->bytes, size);
        if (!bytes)
            return -1;
        texts->bytes = bytes;
        texts->size = size;
    }
    return 0;
}

/* The number of a text, -1 where it has none. */
static inline int32_t texts_find(const Texts *texts, const char *text, uint32_t length, uint64_t hash) {
    for (uint32_t slot = (uint32_t)hash & texts->mask; texts->slots[slot]; slot = (slot + 1) & texts->mask) {
        uint32_t number = texts->slots[slot] - 1;
        const Entry *entry = &texts->entries[number];
        if (entry->hash == hash && entry->length == length && !memcmp(texts->bytes + entry->start, text, length))
            return (int32_t)number;
    }
    return -1;
}

/* The number of a text, given out on first use; -1: no memory. */
static inline int32_t texts_number(Texts *texts, const char *text, uint32_t length) {
    uint64_t hash = hash_of(text, length, texts->seed);
    int32_t known = texts_find(texts, text, length, hash);
    uint32_t slot;
    if (known >= 0)
        return known;
    if (texts->count >= INT32_MAX / 4 || texts_grow(texts, length))
        return -1;
    memcpy(texts->bytes + texts->used, text, length);
    texts->entries[texts->count] = (Entry){hash, texts->used, length};
    texts->used += length;
    for (slot = (uint32_t)hash & texts->mask; texts->slots[slot];)
        slot = (slot + 1) & texts->mask;
    texts->slots[slot] = ++texts->count;
    return (int32_t)(texts->count - 1);
}

#endif
