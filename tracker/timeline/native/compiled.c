/* The nesting of spans, see nesting.h, on the buffers of NumPy's arrays and without Python's lock. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "nesting.h"

#ifndef SOURCES
#define SOURCES "" /* a digest of these files, so that a module that was built from others is told */
#endif

enum { ORDER, THREAD, START, END, PARENT, COLUMNS };

typedef struct {
    Py_buffer views[COLUMNS + 3];
    int count;
} Buffers;

static void release(Buffers *buffers) {
    while (buffers->count)
        PyBuffer_Release(&buffers->views[--buffers->count]);
}

/* The memory of an array of one dimension, of numbers of so many bytes, as many as `rows` (-1: any number). */
static void *array_of(Buffers *buffers, PyObject *array, Py_ssize_t bytes, Py_ssize_t rows, int is_written) {
    Py_buffer *view = &buffers->views[buffers->count];
    if (PyObject_GetBuffer(array, view, PyBUF_C_CONTIGUOUS | (is_written ? PyBUF_WRITABLE : 0)))
        return NULL;
    buffers->count++;
    if (view->itemsize != bytes || view->ndim != 1 || (rows >= 0 && view->len / bytes != rows)) {
        PyErr_SetString(PyExc_ValueError, "columns of another type or length");
        return NULL;
    }
    return view->buf;
}

static Py_ssize_t rows_of(const Buffers *buffers, int which) {
    return buffers->views[which].len / buffers->views[which].itemsize;
}

/* The columns of a tree, of which each row that is named must be there. */
static int spans_of(Buffers *buffers, PyObject **columns, int parent_is_written, Spans *spans) {
    Py_ssize_t size;
    if (!(spans->order = array_of(buffers, columns[ORDER], 4, -1, 0)) ||
        !(spans->thread = array_of(buffers, columns[THREAD], 4, -1, 0)))
        return -1;
    size = rows_of(buffers, THREAD);
    if (!(spans->start_ns = array_of(buffers, columns[START], 8, size, 0)) ||
        !(spans->end_ns = array_of(buffers, columns[END], 8, size, 0)) ||
        !(spans->parent = array_of(buffers, columns[PARENT], 4, size, parent_is_written)))
        return -1;
    spans->count = rows_of(buffers, ORDER);
    spans->size = size;
    for (int64_t place = 0; place < spans->count; place++)
        if (spans->order[place] < 0 || spans->order[place] >= size) {
            PyErr_SetString(PyExc_ValueError, "no such row");
            return -1;
        }
    return 0;
}

static PyObject *nest_spans(PyObject *self, PyObject *args) {
    PyObject *columns[COLUMNS], *depths;
    Buffers buffers = {.count = 0};
    Spans spans;
    int32_t *depth;
    int failed = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOO", &columns[ORDER], &columns[THREAD], &columns[START], &columns[END],
                          &columns[PARENT], &depths))
        return NULL;
    if (spans_of(&buffers, columns, 1, &spans) || !(depth = array_of(&buffers, depths, 4, spans.count, 1))) {
        release(&buffers);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    failed = nest(&spans, depth);
    Py_END_ALLOW_THREADS
    release(&buffers);
    if (failed)
        return PyErr_NoMemory();
    return Py_NewRef(Py_None);
}

static PyObject *innermost(PyObject *self, PyObject *args) {
    PyObject *columns[COLUMNS], *lanes, *moments, *rows;
    Buffers buffers = {.count = 0};
    Spans spans;
    const int64_t *threads, *times = NULL;
    int64_t *found = NULL;
    long long rounds, unfinished;
    Py_ssize_t count;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOOOL", &columns[ORDER], &columns[THREAD], &columns[START], &columns[END],
                          &columns[PARENT], &lanes, &moments, &rows, &rounds))
        return NULL;
    if (spans_of(&buffers, columns, 0, &spans) || !(threads = array_of(&buffers, lanes, 8, -1, 0))) {
        release(&buffers);
        return NULL;
    }
    count = rows_of(&buffers, COLUMNS);
    if (!(times = array_of(&buffers, moments, 8, count, 0)) || !(found = array_of(&buffers, rows, 8, count, 1))) {
        release(&buffers);
        return NULL;
    }
    for (int64_t row = 0; row < spans.size; row++)
        if (spans.parent[row] < -1 || spans.parent[row] >= spans.size) {
            release(&buffers);
            PyErr_SetString(PyExc_ValueError, "no such row");
            return NULL;
        }
    Py_BEGIN_ALLOW_THREADS
    unfinished = find_innermost(&spans, threads, times, count, rounds, found);
    Py_END_ALLOW_THREADS
    release(&buffers);
    return PyLong_FromLongLong(unfinished);
}

static PyMethodDef functions[] = {
    {"nest", nest_spans, METH_VARARGS, "Set parents and depths of sorted spans."},
    {"innermost", innermost, METH_VARARGS, "Find the innermost span around each moment of a thread."},
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module) { return PyModule_AddStringConstant(module, "SOURCES", SOURCES); }

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, fill}, {0, NULL}};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_compiled", "Nesting of spans; see nesting.py.", 0, functions, module_slots, NULL, NULL,
    NULL,
};

PyMODINIT_FUNC PyInit__compiled(void) { return PyModuleDef_Init(&module); }
