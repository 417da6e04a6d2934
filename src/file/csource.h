/*
 * C source that predicts: what csource.c (the file and its memory) and the writers of operators (csource_ops.c, csource_spatial.c)
 * share. A node becomes a block of loops that reads x (x0, x1, ... of several inputs) and writes y.
 */
#ifndef BWI_CSOURCE_H
#define BWI_CSOURCE_H

#include "file/export.h"

/* Where a node's values are. */
typedef enum bwi_home { BWI_HOME_MEMORY, BWI_HOME_INPUT, BWI_HOME_OUTPUT } bwi_home;

typedef struct bwi_csource_place {
    int value; /* the node that made the values: this one, or the one whose view it is */
    int last;  /* of a value: the last node that reads it */
    bwi_home home;
    int64_t at; /* in the memory; or which input or output */
} bwi_csource_place;

typedef struct bwi_csource {
    bw_context *ctx;
    bw_model *model;
    char name[64];   /* what the function's begins with */
    bwi_text arrays; /* of weights */
    bwi_text body;
    bwi_csource_place *places; /* by number of the node */
    bool *needed;
    bool *written; /* variables, by index: their arrays are there */
    int made;      /* arrays without a variable */
    int64_t weights, memory;
    bw_status status; /* the first failure, besides those of the texts */
} bwi_csource;

/* Writes a line of the body, indented by `depth`. */
void bwi_csource_line(bwi_csource *s, int depth, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The name of an array with the variable's values; they are written once. */
const char *bwi_csource_variable(bwi_csource *s, const bwi_variable *variable, char name[160]);
/* The same of other values. */
const char *bwi_csource_array(bwi_csource *s, const char *layer, const char *what, const float *values, int64_t count,
                              char name[160]);
/* Is x an array of ints? */
bool bwi_csource_reads_ints(const bwi_csource *s, const bw_node *node);
/* A number such as "0.5f" into a buffer of 32 bytes. */
const char *bwi_csource_number(char text[32], float value);
/* Opens and closes one loop for each axis of `shape` from the outermost, with counters a0, a1, ...; `at` gets the place of an
 * element whose strides along the axes are given ("a0 * 12 + a2"). */
void bwi_csource_loops(bwi_csource *s, int ndim, const int64_t *extent);
void bwi_csource_loops_end(bwi_csource *s, int ndim);
const char *bwi_csource_at(char text[256], int ndim, const int64_t *strides);

/* One operator's writer. */
typedef struct bwi_csource_row {
    const bwi_op *op;
    void (*write)(bwi_csource *source, const bw_node *node);
    bool in_place; /* y may be x: element by element */
} bwi_csource_row;

extern const bwi_csource_row bwi_csource_ops[], bwi_csource_spatial[]; /* end with NULL */

#endif
