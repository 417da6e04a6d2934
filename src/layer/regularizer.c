/* Keras's regularizers, as penalties on a variable: l1 sum |w| + l2 sum w^2, or on rows or columns that are not orthogonal. */
#include "layer/internal.h"

#include <string.h>

static const bwi_argument l1_arguments[] = {{"l1", NULL, BWI_FLOAT, "0.01", 0, 1e9, NULL}};
static const bwi_argument l2_arguments[] = {{"l2", NULL, BWI_FLOAT, "0.01", 0, 1e9, NULL}};
static const bwi_argument both_arguments[] = {{"l1", NULL, BWI_FLOAT, "0", 0, 1e9, NULL},
                                              {"l2", NULL, BWI_FLOAT, "0", 0, 1e9, NULL}};

static const bwi_argument orthogonal_arguments[] = {{"factor", NULL, BWI_FLOAT, "0.01", 0, 1e9, NULL},
                                                    {"mode", NULL, BWI_TEXT, "rows", 0, 0, "rows columns"}};

/* l1 and l2 say which argument is that penalty's factor; -1: there is none. */
static const struct {
    const char *name;
    const bwi_argument *arguments;
    int count, l1, l2;
} rows[] = {{"l1", l1_arguments, 1, 0, -1},
            {"l2", l2_arguments, 1, -1, 0},
            {"l1_l2", both_arguments, 2, 0, 1},
            {"orthogonal", orthogonal_arguments, 2, -1, -1}};

const char *bwi_regularizer_name(int index)
{
    return index >= 0 && index < (int)BWI_COUNT(rows) ? rows[index].name : NULL;
}

static bw_status read_term(bw_context *ctx, bwi_variable *variable, const bwi_term *term)
{
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        if (bwi_term_resembles(term, rows[i].name)) {
            bwi_argument_value values[2];
            bw_status status = bwi_arguments_read(ctx, rows[i].name, term, rows[i].arguments, rows[i].count, values);
            variable->l1 = rows[i].l1 >= 0 ? (float)values[rows[i].l1].number : 0;
            variable->l2 = rows[i].l2 >= 0 ? (float)values[rows[i].l2].number : 0;
            if (status == BW_OK && rows[i].arguments == orthogonal_arguments) {
                variable->orthogonal = (float)values[0].number;
                variable->orthogonal_columns = strcmp(values[1].text, "columns") == 0;
                status = variable->shape.ndim == 2
                             ? BW_OK
                             : bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: orthogonal: expected a variable with two axes, it has %d",
                                        variable->name, variable->shape.ndim);
            }
            return status;
        }
    }
    return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: there is no regularizer '%.*s'; there are l1, l2, l1_l2, orthogonal",
                    variable->name, term->length, term->text);
}

bw_status bwi_regularizer_read(bw_context *ctx, bwi_variable *variable, const char *text)
{
    bwi_expression e;
    bw_status status = bwi_term_parse(ctx, &e, "regularizer", text);
    if (status == BW_OK && !bwi_term_is_none(&e.terms[0])) {
        status = read_term(ctx, variable, &e.terms[0]);
    }
    bwi_expression_free(&e);
    return status;
}

bw_status bwi_activity_read(bw_context *ctx, const bwi_layer *layer, bw_node *node)
{
    bwi_variable values = {.shape = {.ndim = 0}}; /* the factors are read as those of a variable */
    snprintf(values.name, sizeof values.name, "%s/activity", layer->name);
    bw_status status = bwi_regularizer_read(ctx, &values, layer->activity);
    node->activity[0] = values.l1;
    node->activity[1] = values.l2;
    return status;
}
