/* The events of a Kineto trace as records, without an object for each of them and without Python's lock.
 *
 * `Decoder.decode` takes events as msgspec's decoder of `Event` does, up to the first unusual one, and finds in them
 * what the collector would find. Texts and lanes are numbered by their spelling in the file; what a spelling means,
 * Python finds out once for each.
 */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "records.h"

#ifndef SOURCES
#define SOURCES "" /* a digest of these files, so that a module that was built from others is told */
#endif

typedef struct {
    PyObject_HEAD
    Reader reader;
    uint32_t taken[POOLS]; /* how many texts Python knows */
    int is_busy;
} Decoder;

static PyObject *records_of(const Decoder *self) {
    PyObject *all = PyTuple_New(BUCKETS);
    for (int bucket = 0; all && bucket < BUCKETS; bucket++) {
        const Bucket *from = &self->reader.buckets[bucket];
        PyObject *bytes = PyBytes_FromStringAndSize(from->records, from->count * RECORD_SIZES[bucket]);
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

/* Records of the events of a text: from its start on, or where `start` is given from wherever one seems to start. */
static PyObject *decode_text(Decoder *self, PyObject *argument, int64_t *start, int64_t *behind) {
    char *text;
    const char *stop;
    Py_ssize_t size;
    Outcome outcome = TAKEN;
    if (PyBytes_AsStringAndSize(argument, &text, &size))
        return NULL;
    if (refuse_if_busy(self))
        return NULL;
    self->is_busy = 1;
    for (int bucket = 0; bucket < BUCKETS; bucket++)
        self->reader.buckets[bucket].count = 0;
    if (size < INT32_MAX) {
        Py_BEGIN_ALLOW_THREADS
        if (start)
            outcome = decode_inside(&self->reader, text, text + size, start, behind);
        else
            outcome = decode(&self->reader, text, text, text + size, behind, &stop);
        Py_END_ALLOW_THREADS
    }
    self->is_busy = 0;
    return outcome == NO_MEMORY ? PyErr_NoMemory() : records_of(self);
}

static PyObject *Decoder_decode(Decoder *self, PyObject *argument) {
    int64_t behind = 0;
    PyObject *records = decode_text(self, argument, NULL, &behind);
    return records ? Py_BuildValue("NL", records, (long long)behind) : NULL;
}

static PyObject *Decoder_decode_inside(Decoder *self, PyObject *argument) {
    int64_t start = -1, behind = 0;
    PyObject *records = decode_text(self, argument, &start, &behind);
    return records ? Py_BuildValue("NLL", records, (long long)start, (long long)behind) : NULL;
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
    for (uint32_t number = self->taken[pool]; list && number < self->reader.pools[pool].count; number++) {
        const Entry *entry = &self->reader.pools[pool].entries[number];
        PyObject *bytes = PyBytes_FromStringAndSize(self->reader.pools[pool].bytes + entry->start, entry->length);
        if (!bytes || PyList_Append(list, bytes)) {
            Py_XDECREF(bytes);
            Py_DECREF(list);
            return NULL;
        }
        Py_DECREF(bytes);
    }
    self->taken[pool] = self->reader.pools[pool].count;
    return list;
}

static PyObject *Decoder_held_bytes(Decoder *self, PyObject *nothing) {
    size_t held = 0;
    (void)nothing;
    if (refuse_if_busy(self))
        return NULL;
    for (int pool = 0; pool < POOLS; pool++)
        held += self->reader.pools[pool].size + self->reader.pools[pool].room * (sizeof(Entry) + 2 * sizeof(uint32_t));
    return PyLong_FromSize_t(held);
}

/* Fills the categories of the reader and what they stand for from two dicts, bytes -> number. */
static int set_categories(Decoder *self, PyObject *slices, PyObject *flows) {
    size_t most = PyDict_Size(slices) + PyDict_Size(flows) + 1;
    self->reader.bucket_of = malloc(most * sizeof(int32_t));
    self->reader.flow_of = malloc(most * sizeof(int32_t));
    if (!self->reader.bucket_of || !self->reader.flow_of) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < most; i++)
        self->reader.bucket_of[i] = self->reader.flow_of[i] = -1;
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
            if ((category = texts_number(&self->reader.categories, text, (uint32_t)length)) < 0) {
                PyErr_NoMemory();
                return -1;
            }
            (which ? self->reader.flow_of : self->reader.bucket_of)[category] = (int32_t)number;
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
    if (texts_begin(&self->reader.categories, seed) < 0)
        goto no_memory;
    for (int pool = 0; pool < POOLS; pool++)
        if (texts_begin(&self->reader.pools[pool], seed) < 0)
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
    texts_end(&self->reader.categories);
    for (int pool = 0; pool < POOLS; pool++)
        texts_end(&self->reader.pools[pool]);
    for (int bucket = 0; bucket < BUCKETS; bucket++)
        free(self->reader.buckets[bucket].records);
    free(self->reader.bucket_of);
    free(self->reader.flow_of);
    release(self);
    Py_DECREF((PyObject *)type);
}

static PyMethodDef decoder_methods[] = {
    {"decode", (PyCFunction)Decoder_decode, METH_O, "Records of the first events of a text, and the byte behind them."},
    {"decode_inside", (PyCFunction)Decoder_decode_inside, METH_O, "The same of a text that starts anywhere."},
    {"new_texts", (PyCFunction)Decoder_new_texts, METH_O, "The texts of a pool that are new since the last call."},
    {"held_bytes", (PyCFunction)Decoder_held_bytes, METH_NOARGS, "How much memory the texts take."},
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
    "tracker.readers.torch_profiler.native._compiled.Decoder",
    sizeof(Decoder),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    decoder_slots,
};

/* How many bytes of a record are stored, bucket by bucket. */
static PyObject *record_sizes(void) {
    PyObject *sizes = PyTuple_New(BUCKETS);
    for (int bucket = 0; sizes && bucket < BUCKETS; bucket++) {
        PyObject *size = PyLong_FromSize_t(RECORD_SIZES[bucket]);
        if (!size || PyTuple_SetItem(sizes, bucket, size)) {
            Py_DECREF(sizes);
            return NULL;
        }
    }
    return sizes;
}

static int fill(PyObject *module) {
    PyObject *type = PyType_FromSpec(&decoder_spec), *sizes = record_sizes();
    int failed = !type || PyModule_AddObjectRef(module, "Decoder", type) || !sizes ||
                 PyModule_AddObjectRef(module, "RECORD_SIZES", sizes);
    Py_XDECREF(type);
    Py_XDECREF(sizes);
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
