/* Reading JSON in place. What is read here is a part of what msgspec reads: everything unusual is refused (NULL, or
 * ODD), and the caller leaves the whole text to msgspec. So nothing here decides what is an error, or what it means.
 *
 * A text ends with a NUL byte that is not counted, as CPython's bytes do: it is no part of any token, so a loop that
 * looks at one byte at a time needs no other end.
 */
#ifndef TRACKER_SCAN_H
#define TRACKER_SCAN_H

#include <stdint.h>
#include <string.h>

#define MAX_DIGITS 18 /* a number of so many digits fits 64 bits, whatever they are */
#define MAX_DEPTH 64
#define MAX_TIME_NS ((int64_t)1 << 62)

typedef struct {
    const char *start; /* NULL: absent or null */
    uint32_t length;
    int is_plain; /* a text without escapes: its bytes are what it says */
} Span;

typedef enum { NONE, WHOLE, ODD } Kind; /* absent or null, a whole number, something else */

typedef struct {
    Kind kind;
    int64_t value;
} Number;

static inline const char *skip_blanks(const char *p) {
    while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

static inline int is_digit(char c) { return c >= '0' && c <= '9'; }

static inline int is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/* Behind the escape at `p`, a backslash; NULL for a wrong one and for halves of characters (\ud800 to \udfff). */
static const char *skip_escape(const char *p) {
    if (p[1] == 'u') {
        for (int i = 2; i < 6; i++)
            if (!is_hex(p[i]))
                return NULL;
        return (p[2] == 'd' || p[2] == 'D') && p[3] >= '8' ? NULL : p + 6;
    }
    return p[1] && strchr("\"\\/bfnrt", p[1]) ? p + 2 : NULL;
}

/* The closing quote of the text whose first byte is `p`; NULL where it has none, or a control character before it. */
static inline const char *text_end(const char *p, const char *end, int *is_plain) {
    const uint64_t ones = ~(uint64_t)0 / 255, highs = ones * 128;
    *is_plain = 1;
    for (;;) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        while (end - p >= 8) { /* eight bytes at once: the lowest mark stands for the first quote, \ or control */
            uint64_t word, quote, slash, marks;
            memcpy(&word, p, 8);
            quote = word ^ (ones * '"');
            slash = word ^ (ones * '\\');
            marks = ((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((word - ones * 0x20) & ~word);
            if (marks & highs) {
                p += __builtin_ctzll(marks & highs) >> 3;
                break;
            }
            p += 8;
        }
#endif
        while (*p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
            p++;
        if (*p == '"')
            return p;
        if (*p != '\\')
            return NULL;
        *is_plain = 0;
        p = skip_escape(p);
        if (!p)
            return NULL;
    }
}

/* Behind the number at `p`, any that JSON allows. */
static const char *skip_number(const char *p) {
    p += *p == '-';
    if (!is_digit(*p) || (*p == '0' && is_digit(p[1])))
        return NULL;
    while (is_digit(*p))
        p++;
    if (*p == '.') {
        if (!is_digit(*++p))
            return NULL;
        while (is_digit(*p))
            p++;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '+' || *p == '-';
        if (!is_digit(*p))
            return NULL;
        while (is_digit(*p))
            p++;
    }
    return p;
}

static const char *skip_word(const char *p) {
    if (!memcmp(p, "null", 4) || !memcmp(p, "true", 4))
        return p + 4;
    return !memcmp(p, "false", 5) ? p + 5 : NULL;
}

/* Behind the value at `p`, of any kind. */
static const char *skip_value(const char *p, const char *end, int depth) {
    int is_plain;
    char close;
    if (*p == '"') {
        p = text_end(p + 1, end, &is_plain);
        return p ? p + 1 : NULL;
    }
    if (*p == '-' || is_digit(*p))
        return skip_number(p);
    if (*p != '{' && *p != '[')
        return end - p >= 5 ? skip_word(p) : NULL;
    if (depth >= MAX_DEPTH)
        return NULL;
    close = *p == '{' ? '}' : ']';
    p = skip_blanks(p + 1);
    if (*p == close)
        return p + 1;
    for (;;) {
        if (close == '}') {
            if (*p != '"' || !(p = text_end(p + 1, end, &is_plain)))
                return NULL;
            p = skip_blanks(p + 1);
            if (*p != ':')
                return NULL;
            p = skip_blanks(p + 1);
        }
        p = skip_value(p, end, depth + 1);
        if (!p)
            return NULL;
        p = skip_blanks(p);
        if (*p == close)
            return p + 1;
        if (*p != ',')
            return NULL;
        p = skip_blanks(p + 1);
    }
}

static inline int is_null(const char *p, const char *end) { return *p == 'n' && end - p >= 4 && !memcmp(p, "null", 4); }

/* Up to MAX_DIGITS digits at `p` as a number; NULL where there is none, or more. */
static inline const char *read_digits(const char *p, int64_t *value) {
    const char *start = p;
    *value = 0;
    while (is_digit(*p)) {
        if (p - start == MAX_DIGITS)
            return NULL;
        *value = *value * 10 + (*p++ - '0');
    }
    return p == start || (*start == '0' && p - start > 1) ? NULL : p;
}

/* A number that is whole, or whatever stands there instead. */
static inline const char *read_number(const char *p, const char *end, Number *number) {
    if (*p == '-' || is_digit(*p)) {
        const char *behind = read_digits(p + (*p == '-'), &number->value);
        number->kind = behind && *behind != '.' && *behind != 'e' && *behind != 'E' ? WHOLE : ODD;
        if (number->kind == ODD)
            return skip_number(p);
        if (*p == '-')
            number->value = -number->value;
        return behind;
    }
    number->kind = is_null(p, end) ? NONE : ODD;
    return skip_value(p, end, 1);
}

#define MAX_EXACT_DIGITS 15 /* a whole number of so many digits is a double */
#define MAX_EXACT_POWER 22  /* 10 to this power is a double */

typedef struct {
    Kind kind; /* WHOLE: `value` is what stands there */
    double value;
} Real;

/* The double next to a number: the quotient of two exact doubles, which rounds once. ODD: too many digits, an exponent. */
static inline void set_real(const char *p, const char *behind, Real *real) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    int64_t digits = 0;
    int count = 0, decimals = 0, is_fraction = 0, is_negative = *p == '-';
    real->kind = ODD;
    for (p += is_negative; p < behind; p++) {
        if (*p == '.') {
            is_fraction = 1;
            continue;
        }
        if (!is_digit(*p) || count == MAX_EXACT_DIGITS || decimals == MAX_EXACT_POWER)
            return;
        digits = digits * 10 + (*p - '0');
        count += digits > 0;
        decimals += is_fraction;
    }
    real->kind = WHOLE;
    real->value = (is_negative ? -1 : 1) * ((double)digits / powers[decimals]);
}

/* A number, or whatever stands there instead; NULL for lists, and for numbers that msgspec might refuse: 1e999. */
static inline const char *read_real(const char *p, const char *end, Real *real) {
    const char *behind;
    if (*p == '{' || *p == '[')
        return NULL;
    if (*p != '-' && !is_digit(*p)) {
        real->kind = is_null(p, end) ? NONE : ODD;
        return skip_value(p, end, 1);
    }
    behind = skip_number(p);
    if (!behind)
        return NULL;
    set_real(p, behind, real);
    return real->kind == WHOLE || (behind - p <= 32 && !memchr(p, 'e', behind - p) && !memchr(p, 'E', behind - p))
               ? behind
               : NULL;
}

/* Microseconds with at most three decimals, as ns. ODD: any other number, a text; NULL: neither. */
static inline const char *read_time(const char *p, const char *end, Number *time) {
    int64_t whole, fraction = 0;
    const char *behind;
    time->kind = NONE;
    if (is_null(p, end))
        return p + 4;
    time->kind = ODD;
    if (*p == '"')
        return skip_value(p, end, 1);
    if (*p != '-' && !is_digit(*p))
        return NULL;
    behind = read_digits(p + (*p == '-'), &whole);
    if (!behind || whole >= MAX_TIME_NS / 1000)
        return NULL;
    if (*behind == '.') {
        int unit = 100;
        for (behind++; is_digit(*behind); behind++, unit /= 10) {
            if (!unit)
                return NULL;
            fraction += unit * (*behind - '0');
        }
        if (unit == 100)
            return NULL;
    }
    if (*behind == 'e' || *behind == 'E')
        return NULL;
    time->kind = WHOLE;
    time->value = (whole * 1000 + fraction) * (*p == '-' ? -1 : 1);
    return behind;
}

/* A text, or null. */
static inline const char *read_text(const char *p, const char *end, Span *span) {
    const char *close;
    span->start = NULL;
    if (is_null(p, end))
        return p + 4;
    if (*p != '"' || !(close = text_end(p + 1, end, &span->is_plain)))
        return NULL;
    span->start = p + 1;
    span->length = (uint32_t)(close - p - 1);
    return close + 1;
}

/* A value of any kind as it stands there. */
static inline const char *read_raw(const char *p, const char *end, Span *span) {
    const char *behind = skip_value(p, end, 1);
    span->start = p;
    span->length = behind ? (uint32_t)(behind - p) : 0;
    return behind;
}

/* A text or a whole number as it stands there, or null. */
static inline const char *read_id(const char *p, const char *end, Span *span) {
    Number number;
    const char *behind = *p == '"' ? skip_value(p, end, 1) : read_number(p, end, &number);
    if (!behind || (*p != '"' && number.kind == ODD))
        return NULL;
    span->start = is_null(p, end) ? NULL : p;
    span->length = (uint32_t)(behind - p);
    return behind;
}

/* A value that msgspec would read and we need not: NULL where it might refuse it. */
static inline const char *read_simple(const char *p, const char *end) {
    Number number;
    if (*p == '{' || *p == '[')
        return NULL;
    if (*p != '-' && !is_digit(*p))
        return skip_value(p, end, 1);
    p = read_number(p, end, &number);
    return number.kind == WHOLE ? p : NULL;
}

#endif
