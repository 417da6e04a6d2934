/*
 * C source that predicts: declarations that csource.c (the file) and csource_memory.c share with the writers of operators
 * (csource_ops.c, csource_spatial.c). A node becomes a block of loops that reads x (x0, x1, ... if it has several inputs) and
 * writes y.
 */
#ifndef BWI_CSOURCE_H
#define BWI_CSOURCE_H

#include "file/export.h"

/* Where a node's values are stored. */
typedef enum bwi_home { BWI_HOME_MEMORY, BWI_HOME_INPUT, BWI_HOME_OUTPUT } bwi_home;

typedef struct bwi_csource_place {
    int value; /* the node that made the values: this one, or the one it is a view of */
    int last;  /* for a value: the last node that reads it */
    bwi_home home;
    int64_t at; /* offset in the memory, or number of the input or output */
} bwi_csource_place;

typedef struct bwi_csource {
    bw_context *ctx;
    bw_model *model;
    char name[64];   /* prefix of the function's name */
    bwi_text arrays; /* weights; where those of variables belong there */
    size_t *late_at;
    const bwi_variable **late;
    int late_count;
    bwi_text body;
    bwi_csource_place *places; /* indexed by the node's number */
    bool *needed;
    bool *written; /* indexed by variable: whether its array has been written */
    int made;      /* number of arrays without a variable */
    int64_t weights, memory;
    bw_status status; /* first failure, apart from those of the texts */
} bwi_csource;

/* Writes a line of the body, indented by `depth`. */
void bwi_csource_line(bwi_csource *s, int depth, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Returns the name of an array with the variable's values, which are written only once. */
const char *bwi_csource_variable(bwi_csource *s, const bwi_variable *variable, char name[160]);
/* Writes an array of values that are not a variable's, and returns its name. */
const char *bwi_csource_array(bwi_csource *s, const char *layer, const char *what, const float *values, int64_t count,
                              char name[160]);
/* An activation as a formula of v; `text` has room for it. */
const char *bwi_csource_formula(const bwi_activation_attributes *a, char text[256]);
/* The writer of recurrent layers (csource_recurrent.c). */
void bwi_csource_recurrent(bwi_csource *s, const bw_node *node);
/* The writer of attention (csource_attention.c). */
void bwi_csource_attention(bwi_csource *s, const bw_node *node);
/* Whether x is an array of ints. */
bool bwi_csource_reads_ints(const bwi_csource *s, const bw_node *node);
/* Writes a number such as "0.5f" into a buffer of 32 bytes. */
const char *bwi_csource_number(char text[32], float value);
/* Opens and closes one loop for each axis of `shape`, the outermost first, with counters a0, a1, ...; `at` receives the index of
 * an element whose strides along the axes are given ("a0 * 12 + a2"). */
void bwi_csource_loops(bwi_csource *s, int ndim, const int64_t *extent);
void bwi_csource_loops_end(bwi_csource *s, int ndim);
const char *bwi_csource_at(char text[256], int ndim, const int64_t *strides);

/* The writer of one operator. */
typedef struct bwi_csource_row {
    const bwi_op *op;
    void (*write)(bwi_csource *source, const bw_node *node);
    bool in_place; /* element-wise: y may be x */
} bwi_csource_row;

extern const bwi_csource_row bwi_csource_ops[], bwi_csource_spatial[]; /* each ends with NULL */

/* Memory (csource_memory.c): the writer of an operator, NULL if there is none; whether a node's values are those of its input; and
 * the places of all values. */
const bwi_csource_row *bwi_csource_row_of(const bwi_op *op);
bool bwi_csource_is_view(const bw_node *node);
bw_status bwi_csource_lay(bwi_csource *s);

#endif
