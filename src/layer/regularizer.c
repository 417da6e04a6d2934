/* Keras's regularizers, as penalties of a variable: l1 sum |w| + l2 sum w^2. */
#include "layer/layer.h"

enum { L1, L2, COUNT };

static const bwi_argument l1_arguments[] = {{"l1", NULL, BWI_FLOAT, "0.01", 0, 1e9, NULL}};
static const bwi_argument l2_arguments[] = {{"l2", NULL, BWI_FLOAT, "0.01", 0, 1e9, NULL}};
static const bwi_argument both_arguments[COUNT] = {{"l1", NULL, BWI_FLOAT, "0", 0, 1e9, NULL},
                                                   {"l2", NULL, BWI_FLOAT, "0", 0, 1e9, NULL}};

bw_status bwi_regularizer_read(bw_context *ctx, bwi_variable *variable, const char *text)
{
    bwi_expression e;
    bw_status status = bwi_term_parse(ctx, &e, "regularizer", text);
    if (status != BW_OK) {
        return status;
    }
    const bwi_term *term = &e.terms[0];
    bwi_argument_value values[COUNT];
    if (bwi_term_is(term, "l1")) {
        status = bwi_arguments_read(ctx, "l1", term, l1_arguments, 1, &values[L1]);
        variable->l1 = (float)values[L1].number;
    } else if (bwi_term_is(term, "l2")) {
        status = bwi_arguments_read(ctx, "l2", term, l2_arguments, 1, &values[L2]);
        variable->l2 = (float)values[L2].number;
    } else if (bwi_term_is(term, "l1_l2")) {
        status = bwi_arguments_read(ctx, "l1_l2", term, both_arguments, COUNT, values);
        variable->l1 = (float)values[L1].number;
        variable->l2 = (float)values[L2].number;
    } else if (!bwi_term_is(term, "none")) {
        status =
            bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: there is no regularizer '%s'; there are l1, l2, l1_l2", variable->name, text);
    }
    bwi_expression_free(&e);
    return status;
}
