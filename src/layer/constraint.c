/* Keras's constraints, which hold a variable after each update: max_norm, non_neg, unit_norm, min_max_norm. */
#include "layer/internal.h"

#include <string.h>

enum { LOW, HIGH, RATE, AXIS, COUNT };

/* clang-format off */
#define AXIS_ARGUMENT {"axis", NULL, BWI_INTS, "0", -BW_MAX_NDIM, BW_MAX_NDIM - 1, NULL}
/* clang-format on */

static const bwi_argument max_norm[] = {{"max_value", NULL, BWI_FLOAT, "2", 0, 1e30, NULL}, AXIS_ARGUMENT};
static const bwi_argument unit_norm[] = {AXIS_ARGUMENT};
static const bwi_argument min_max_norm[] = {{"min_value", NULL, BWI_FLOAT, "0", 0, 1e30, NULL},
                                            {"max_value", NULL, BWI_FLOAT, "1", 0, 1e30, NULL},
                                            {"rate", NULL, BWI_FLOAT, "1", 0, 1, NULL},
                                            AXIS_ARGUMENT};

/* Which argument is the norm's lower and upper limit, the rate and the axes; -1: there is none. */
static const struct {
    const char *name;
    const bwi_argument *arguments;
    int count, at[COUNT];
} rows[] = {{"max_norm", max_norm, 2, {-1, 0, -1, 1}},
            {"non_neg", NULL, 0, {-1, -1, -1, -1}},
            {"unit_norm", unit_norm, 1, {-1, -1, -1, 0}},
            {"min_max_norm", min_max_norm, 4, {0, 1, 2, 3}}};

const char *bwi_constraint_name(int index)
{
    return index >= 0 && index < (int)BWI_COUNT(rows) ? rows[index].name : NULL;
}

static bw_status take_axes(bw_context *ctx, bwi_variable *variable, const bwi_argument_value *axes)
{
    int ndim = variable->shape.ndim;
    for (int i = 0; i < axes->count; i++) {
        int64_t axis = axes->integers[i] < 0 ? axes->integers[i] + ndim : axes->integers[i];
        if (axis < 0 || axis >= ndim) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: constraint: there is no axis %lld among %d", variable->name,
                            (long long)axes->integers[i], ndim);
        }
        variable->constraint.axes |= 1U << axis;
    }
    return BW_OK;
}

static bw_status read_term(bw_context *ctx, bwi_variable *variable, const bwi_term *term)
{
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        if (bwi_term_resembles(term, rows[i].name)) {
            bwi_argument_value values[COUNT];
            const int *at = rows[i].at;
            bw_status status = bwi_arguments_read(ctx, rows[i].name, term, rows[i].arguments, rows[i].count, values);
            if (status != BW_OK || !rows[i].arguments) {
                variable->constraint = (bwi_constraint){.nonnegative = status == BW_OK};
                return status;
            }
            float high = at[HIGH] >= 0 ? (float)values[at[HIGH]].number : 1;
            float low = at[LOW] >= 0 ? (float)values[at[LOW]].number : at[HIGH] >= 0 ? 0 : 1;
            variable->constraint = (bwi_constraint){
                .norms = true, .low = low, .high = high, .rate = at[RATE] >= 0 ? (float)values[at[RATE]].number : 1};
            return take_axes(ctx, variable, &values[at[AXIS]]);
        }
    }
    return bwi_fail(ctx, BW_INVALID_ARGUMENT,
                    "%s: there is no constraint '%.*s'; there are max_norm, non_neg, unit_norm, min_max_norm", variable->name,
                    term->length, term->text);
}

/* The constraint of a variable is named like its initializer: kernel_constraint goes with kernel_initializer. */
static bool is_of(const char *constraint, const char *initializer)
{
    const char *end = strstr(initializer, "_initializer"), *other = strstr(constraint, "_constraint");
    return end && other && end - initializer == other - constraint &&
           strncmp(initializer, constraint, (size_t)(end - initializer)) == 0;
}

bool bwi_constraint_is_argument(const bwi_argument *arguments, int count, const char *name)
{
    bool found = false;
    for (int i = 0; i < count; i++) {
        found = found || is_of(name, arguments[i].name);
    }
    return found;
}

bw_status bwi_constraint_read(bw_context *ctx, const bwi_layer *layer, int initializer, bwi_variable *variable)
{
    bw_status status = BW_OK;
    for (int i = 0; i < layer->constraint_count && status == BW_OK; i++) {
        if (is_of(layer->constraints[i].name, layer->row->arguments[initializer].name)) {
            bwi_expression e;
            status = bwi_term_parse(ctx, &e, "constraint", layer->constraints[i].text);
            if (status == BW_OK) {
                status = read_term(ctx, variable, &e.terms[0]);
            }
            bwi_expression_free(&e);
        }
    }
    return status;
}
