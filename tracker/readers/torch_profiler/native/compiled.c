/* The events of a Kineto trace as records, without an object for each of them and without Python's lock.
 *
 * `Decoder.decode` takes events as msgspec's decoder of `Event` does, up to the first unusual one, and finds in them
 * what the collector would find. Texts and lanes are numbered by their spelling in the file; what a spelling means,
 * Python finds out once for each.
 */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "event.h"
#include "texts.h"

#ifndef SOURCES
#define SOURCES "" /* a digest of these files, so that a module that was built from others is told */
#endif

enum { OPS, ANNOTATIONS, FRAMES, RUNTIME, DRIVER, KERNELS, COPIES, MEMSETS, MEMORY, FLOWS, THREADS, BUCKETS };
enum { NAMES, LANES, SHAPES, TYPE_LISTS, MODULES, CALL_STACKS, POOLS };

#define SLOTS 6
#define NO_NUMBER INT64_MIN

typedef struct {
    int64_t time_ns, duration_ns;
    int64_t numbers[SLOTS];
    int32_t name, lane;                        /* name -1: none */
    int32_t shapes, types, module, call_stack; /* -1: none */
    int32_t start, end;                        /* of args in the text, of the whole event in THREADS */
    int32_t category;                          /* of flows */
    int32_t is_end;                            /* of flows; of device events: they name a collective */
} Record;

typedef struct {
    Record *records;
    size_t count, room;
} Bucket;

typedef struct {
    PyObject_HEAD
    Texts categories, pools[POOLS];
    int32_t *bucket_of; /* of each category, for slices; -1: none */
    int32_t *flow_of;   /* of each category, for flows; -1: none */
    Bucket buckets[BUCKETS];
    uint32_t taken[POOLS]; /* how many texts Python knows */
    int is_busy;
} Decoder;

static const int FIELDS[BUCKETS][SLOTS] = {
    [OPS] = {SEQUENCE, FORWARD_THREAD, -1},
    [ANNOTATIONS] = {SEQUENCE, FORWARD_THREAD, -1},
    [FRAMES] = {-1},
    [RUNTIME] = {CORRELATION, -1},
    [DRIVER] = {CORRELATION, -1},
    [KERNELS] = {CORRELATION, STREAM, DEVICE, BYTES, -1},
    [COPIES] = {CORRELATION, STREAM, DEVICE, BYTES, -1},
    [MEMSETS] = {CORRELATION, STREAM, DEVICE, BYTES, -1},
    [MEMORY] = {ALLOCATED, ADDRESS, DEVICE_TYPE, DEVICE_ID, TOTAL_ALLOCATED, TOTAL_RESERVED},
    [FLOWS] = {-1},
    [THREADS] = {-1},
};

typedef enum { TAKEN, REFUSED, NO_MEMORY } Outcome;

static Record *new_record(Bucket *bucket) {
    if (bucket->count == bucket->room) {
        size_t room = bucket->room ? 2 * bucket->room : 256;
        Record *records = realloc(bucket->records, room * sizeof(Record));
        if (!records)
            return NULL;
        bucket->records = records;
        bucket->room = room;
    }
    return &bucket->records[bucket->count++];
}

static int category_of(const Decoder *self, const Span *span, const int32_t *of) {
    int32_t known;
    if (!span->start)
        return -1;
    known = texts_find(&self->categories, span->start, span->length,
                       hash_of(span->start, span->length, self->categories.seed));
    return known < 0 ? -1 : of[known];
}

/* The bucket of an event; -1: none; -2: msgspec has to say. */
static int bucket_of(const Decoder *self, const Event *event, int32_t *category) {
    const Span *phase = &event->phase;
    *category = -1;
    if (!phase->start)
        return -1;
    if (!phase->is_plain || (event->category.start && !event->category.is_plain))
        return -2;
    if (phase->length != 1)
        return -1;
    switch (*phase->start) {
    case 'X': return category_of(self, &event->category, self->bucket_of);
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
static Outcome number_lane(Texts *pool, const Event *event, int32_t *number) {
    char key[128];
    uint32_t first = event->pid.start ? event->pid.length : 0, second = event->tid.start ? event->tid.length : 0;
    if (first + second + 1 > sizeof key)
        return REFUSED;
    if (first)
        memcpy(key, event->pid.start, first);
    key[first] = 0;
    if (second)
        memcpy(key + first + 1, event->tid.start, second);
    *number = texts_number(pool, key, first + second + 1);
    return *number < 0 ? NO_MEMORY : TAKEN;
}

static Outcome set_numbers(Record *record, const int *fields, const Args *args) {
    for (int slot = 0; slot < SLOTS; slot++)
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

static Outcome set_texts(Decoder *self, Record *record, int bucket, const Args *args) {
    static const Span nothing = {NULL, 0, 1};
    const Span *spans = args && (bucket == OPS || bucket == ANNOTATIONS) ? args->spans : NULL;
    const Span *shapes = !spans ? &nothing : spans[DIMS].start ? &spans[DIMS] : &spans[OLD_DIMS];
    Texts *pools = self->pools;
    if (number_text(&pools[SHAPES], shapes, &record->shapes) ||
        number_text(&pools[TYPE_LISTS], spans ? &spans[TYPES] : &nothing, &record->types) ||
        number_text(&pools[MODULES], spans ? &spans[MODULE] : &nothing, &record->module) ||
        number_text(&pools[CALL_STACKS], spans ? &spans[CALL_STACK] : &nothing, &record->call_stack))
        return NO_MEMORY;
    return TAKEN;
}

/* Adds the record of an event, if it is of a kind that we take. */
static Outcome take(Decoder *self, const Event *event, const Args *args, const char *text) {
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
    if (!(record = new_record(&self->buckets[bucket])))
        return NO_MEMORY;
    record->time_ns = event->time.value;
    record->duration_ns = bucket < MEMORY ? event->duration.value : 0;
    record->start = start ? (int32_t)(start - text) : 0;
    record->end = end ? (int32_t)(end - text) : 0;
    record->category = category;
    record->is_end = bucket == FLOWS ? *event->phase.start == 'f' : args && args->is_collective;
    if ((outcome = set_numbers(record, FIELDS[bucket], args)) || (outcome = set_texts(self, record, bucket, args)) ||
        (outcome = number_lane(&self->pools[LANES], event, &record->lane)) ||
        (outcome = number_text(&self->pools[NAMES], &event->name, &record->name)))
        self->buckets[bucket].count--;
    else if (bucket == FLOWS)
        record->numbers[0] = event->id.value;
    return outcome;
}

/* Takes the first events of `text`; `*behind`: the byte behind the comma that follows the last of them, 0 for none. */
static Outcome decode(Decoder *self, const char *text, const char *end, Py_ssize_t *behind) {
    const char *p = skip_blanks(text);
    Event event;
    Args args;
    Outcome outcome;
    *behind = 0;
    while ((p = read_event(p, end, &event, &args))) {
        p = skip_blanks(p);
        if (*p != ',')
            break;
        if ((outcome = take(self, &event, event.args.start ? &args : NULL, text)))
            return outcome == REFUSED ? TAKEN : outcome;
        p++;
        *behind = p - text;
        p = skip_blanks(p);
    }
    return TAKEN;
}

static PyObject *records_of(const Decoder *self) {
    PyObject *all = PyTuple_New(BUCKETS);
    for (int bucket = 0; all && bucket < BUCKETS; bucket++) {
        const Bucket *from = &self->buckets[bucket];
        PyObject *bytes = PyBytes_FromStringAndSize((const char *)from->records, from->count * sizeof(Record));
        if (!bytes || PyTuple_SetItem(all, bucket, bytes)) {
            Py_DECREF(all);
            return NULL;
        }
    }
    return all;
}

/* Another thread may be in there, without Python's lock. */
static int refuse_if_busy(const Decoder *self) {
    if (self->is_busy)
        PyErr_SetString(PyExc_RuntimeError, "a decoder is for one thread at a time");
    return self->is_busy;
}

static PyObject *Decoder_decode(Decoder *self, PyObject *argument) {
    char *text;
    Py_ssize_t size, behind = 0;
    Outcome outcome = TAKEN;
    if (PyBytes_AsStringAndSize(argument, &text, &size))
        return NULL;
    if (refuse_if_busy(self))
        return NULL;
    self->is_busy = 1;
    for (int bucket = 0; bucket < BUCKETS; bucket++)
        self->buckets[bucket].count = 0;
    if (size < INT32_MAX) {
        Py_BEGIN_ALLOW_THREADS
        outcome = decode(self, text, text + size, &behind);
        Py_END_ALLOW_THREADS
    }
    self->is_busy = 0;
    if (outcome == NO_MEMORY)
        return PyErr_NoMemory();
    return Py_BuildValue("Nn", records_of(self), behind);
}

static PyObject *Decoder_new_texts(Decoder *self, PyObject *argument) {
    long pool = PyLong_AsLong(argument);
    PyObject *list;
    if ((pool == -1 && PyErr_Occurred()) || refuse_if_busy(self))
        return NULL;
    if (pool < 0 || pool >= POOLS) {
        PyErr_SetString(PyExc_ValueError, "no such pool of texts");
        return NULL;
    }
    list = PyList_New(0);
    for (uint32_t number = self->taken[pool]; list && number < self->pools[pool].count; number++) {
        const Entry *entry = &self->pools[pool].entries[number];
        PyObject *bytes = PyBytes_FromStringAndSize(self->pools[pool].bytes + entry->start, entry->length);
        if (!bytes || PyList_Append(list, bytes)) {
            Py_XDECREF(bytes);
            Py_DECREF(list);
            return NULL;
        }
        Py_DECREF(bytes);
    }
    self->taken[pool] = self->pools[pool].count;
    return list;
}

static PyObject *Decoder_held_bytes(Decoder *self, PyObject *nothing) {
    size_t held = 0;
    (void)nothing;
    if (refuse_if_busy(self))
        return NULL;
    for (int bucket = 0; bucket < BUCKETS; bucket++)
        held += self->buckets[bucket].room * sizeof(Record);
    for (int pool = 0; pool < POOLS; pool++)
        held += self->pools[pool].size + self->pools[pool].room * (sizeof(Entry) + 2 * sizeof(uint32_t));
    return PyLong_FromSize_t(held);
}

/* Fills `self->categories` and what they stand for from two dicts, bytes -> number. */
static int set_categories(Decoder *self, PyObject *slices, PyObject *flows) {
    size_t most = PyDict_Size(slices) + PyDict_Size(flows) + 1;
    self->bucket_of = malloc(most * sizeof(int32_t));
    self->flow_of = malloc(most * sizeof(int32_t));
    if (!self->bucket_of || !self->flow_of) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < most; i++)
        self->bucket_of[i] = self->flow_of[i] = -1;
    for (int which = 0; which < 2; which++) {
        PyObject *key, *value;
        Py_ssize_t position = 0;
        while (PyDict_Next(which ? flows : slices, &position, &key, &value)) {
            char *text;
            Py_ssize_t length;
            long number = PyLong_AsLong(value);
            int32_t category;
            if ((number == -1 && PyErr_Occurred()) || PyBytes_AsStringAndSize(key, &text, &length))
                return -1;
            if (number < 0 || (!which && number >= MEMORY) || number > INT32_MAX) {
                PyErr_SetString(PyExc_ValueError, "no such bucket");
                return -1;
            }
            if ((category = texts_number(&self->categories, text, (uint32_t)length)) < 0) {
                PyErr_NoMemory();
                return -1;
            }
            (which ? self->flow_of : self->bucket_of)[category] = (int32_t)number;
        }
    }
    return 0;
}

static PyObject *Decoder_new(PyTypeObject *type, PyObject *args, PyObject *named) {
    PyObject *slices, *flows;
    unsigned long long seed;
    Decoder *self;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    if (named && PyDict_Size(named)) {
        PyErr_SetString(PyExc_TypeError, "Decoder takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!O!K", &PyDict_Type, &slices, &PyDict_Type, &flows, &seed))
        return NULL;
    if (!(self = (Decoder *)alloc(type, 0)))
        return NULL;
    if (texts_begin(&self->categories, seed) < 0)
        goto no_memory;
    for (int pool = 0; pool < POOLS; pool++)
        if (texts_begin(&self->pools[pool], seed) < 0)
            goto no_memory;
    if (set_categories(self, slices, flows)) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    return (PyObject *)self;
no_memory:
    Py_DECREF((PyObject *)self);
    return PyErr_NoMemory();
}

static void Decoder_dealloc(Decoder *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    texts_end(&self->categories);
    for (int pool = 0; pool < POOLS; pool++)
        texts_end(&self->pools[pool]);
    for (int bucket = 0; bucket < BUCKETS; bucket++)
        free(self->buckets[bucket].records);
    free(self->bucket_of);
    free(self->flow_of);
    release(self);
    Py_DECREF((PyObject *)type);
}

static PyMethodDef decoder_methods[] = {
    {"decode", (PyCFunction)Decoder_decode, METH_O, "Records of the first events of a text, and the byte behind the comma after them."},
    {"new_texts", (PyCFunction)Decoder_new_texts, METH_O, "The texts of a pool that are new since the last call."},
    {"held_bytes", (PyCFunction)Decoder_held_bytes, METH_NOARGS, "How much memory texts and records take."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot decoder_slots[] = {
    {Py_tp_new, Decoder_new},
    {Py_tp_dealloc, Decoder_dealloc},
    {Py_tp_methods, decoder_methods},
    {Py_tp_doc, "Decoder(slices, flows, seed): categories of slices and of flows, bytes -> number."},
    {0, NULL},
};

static PyType_Spec decoder_spec = {
    "tracker.readers.torch_profiler.native._compiled.Decoder", sizeof(Decoder), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    decoder_slots,
};

static int fill(PyObject *module) {
    PyObject *type = PyType_FromSpec(&decoder_spec);
    int failed = !type || PyModule_AddObjectRef(module, "Decoder", type);
    Py_XDECREF(type);
    return failed || PyModule_AddStringConstant(module, "SOURCES", SOURCES) ||
                   PyModule_AddIntConstant(module, "RECORD_BYTES", sizeof(Record))
               ? -1
               : 0;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, fill}, {0, NULL}};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_compiled", "Events of Kineto traces as records; see records.py.", 0, NULL, module_slots,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__compiled(void) { return PyModuleDef_Init(&module); }
