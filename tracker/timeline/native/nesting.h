/* Which span lies in which: the stack rule, and look-ups in the tree that it gives. */
#ifndef TRACKER_NESTING_H
#define TRACKER_NESTING_H

#include <stdint.h>
#include <stdlib.h>

/* The spans of a tree: all columns have `size` rows, `order` lists `count` of them by (thread, start, longest first).
 */
typedef struct {
    const int32_t *order, *thread;
    const int64_t *start_ns, *end_ns;
    int32_t *parent; /* -1: none */
    int64_t count, size;
} Spans;

typedef struct {
    int32_t *rows;
    int64_t depth, room;
} Stack;

static int push(Stack *stack, int32_t row) {
    if (stack->depth == stack->room) {
        int64_t room = stack->room ? 2 * stack->room : 256;
        int32_t *rows = realloc(stack->rows, (size_t)room * sizeof *rows);
        if (!rows)
            return -1;
        stack->rows = rows;
        stack->room = room;
    }
    stack->rows[stack->depth++] = row;
    return 0;
}

/* Sets the parent of each row that is in `order`, and its depth: the place in `depth` is that in `order`. The stack
 * drops its top while that ends at or before the start of the new span, or before its end. -1: no memory.
 */
static int nest(const Spans *spans, int32_t *depth) {
    Stack stack = {0};
    int32_t thread = 0;
    for (int64_t place = 0; place < spans->count; place++) {
        int32_t row = spans->order[place];
        int64_t start = spans->start_ns[row], end = spans->end_ns[row];
        if (spans->thread[row] != thread) {
            thread = spans->thread[row];
            stack.depth = 0;
        }
        while (stack.depth) {
            int64_t top = spans->end_ns[stack.rows[stack.depth - 1]];
            if (top > start && top >= end)
                break;
            stack.depth--;
        }
        spans->parent[row] = stack.depth ? stack.rows[stack.depth - 1] : -1;
        depth[place] = (int32_t)stack.depth;
        if (push(&stack, row)) {
            free(stack.rows);
            return -1;
        }
    }
    free(stack.rows);
    return 0;
}

/* The first place from `low` to `high` whose thread is `lane` or a later one. */
static int64_t first_of_lane(const Spans *spans, int64_t low, int64_t high, int64_t lane) {
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (spans->thread[spans->order[middle]] < lane)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int starts_by(const Spans *spans, int64_t place, int64_t time_ns) {
    return spans->start_ns[spans->order[place]] <= time_ns;
}

/* The number of places from `low` to `high`, of one thread, that start by this time. Looks around `near` first, with
 * steps that double: times that are asked one after the other are mostly near each other.
 */
static int64_t starting_by(const Spans *spans, int64_t low, int64_t high, int64_t near, int64_t time_ns) {
    int64_t step = 1;
    if (near < high && starts_by(spans, near, time_ns)) {
        low = near + 1;
        while (low + step < high && starts_by(spans, low + step, time_ns)) {
            low += step + 1;
            step *= 2;
        }
        if (low + step < high)
            high = low + step;
    } else {
        high = near < high ? near : high;
        while (high - step > low && !starts_by(spans, high - step, time_ns)) {
            high -= step;
            step *= 2;
        }
        if (high - step > low)
            low = high - step;
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (starts_by(spans, middle, time_ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* For each (thread, time) the row of the innermost span that contains it, -1 for none. Each climbs at most `rounds`
 * spans outwards, where a deep stack would take quadratic time: returns how many would have had to climb on.
 */
static int64_t find_innermost(const Spans *spans, const int64_t *threads, const int64_t *times, int64_t count,
                              int64_t rounds, int64_t *found) {
    int64_t low = 0, high = 0, near = 0, unfinished = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t place, row = -1, climbed = 0;
        if (!i || threads[i] != threads[i - 1]) {
            low = first_of_lane(spans, 0, spans->count, threads[i]);
            high = threads[i] == INT64_MAX ? spans->count : first_of_lane(spans, low, spans->count, threads[i] + 1);
            near = low;
        }
        place = starting_by(spans, low, high, near, times[i]);
        if (place > low) {
            near = place - 1;
            row = spans->order[near];
            while (row >= 0 && spans->end_ns[row] <= times[i] && climbed < rounds) {
                row = spans->parent[row];
                climbed++;
            }
            unfinished += row >= 0 && spans->end_ns[row] <= times[i];
        }
        found[i] = row;
    }
    return unfinished;
}

#endif
