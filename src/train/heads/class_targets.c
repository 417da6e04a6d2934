/*
 * Checks targets that are classes with names, such as texts in a table or folders of images. Their numbers only give the names
 * an order: an output of one number that is fitted to them learns that a cat lies between an ape and a dog. So that is refused,
 * unless there are two classes and the output or the loss is made for two.
 */
#include "train/internal.h"

#include <string.h>

enum { LISTED = 3 };

static int count_classes(const bw_dataset *dataset)
{
    int count = 0;
    while (bw_dataset_class(dataset, count)) {
        count++;
    }
    return count;
}

/* Names come from files, so bytes that are not ASCII may be meant to control the terminal. */
static void add_name(bwi_text *names, const char *name, int number)
{
    bool ascii = true;
    for (const char *c = name; *c; c++) {
        ascii = ascii && (unsigned char)*c < 0x80;
    }
    if (ascii) {
        bwi_text_add(names, "%s%.40s", number ? ", " : "", name);
    } else {
        bwi_text_add(names, "%sclass %d", number ? ", " : "", number);
    }
}

static bool tells_two_apart(bw_node *prediction, const bwi_loss_row *row)
{
    return row->kind == BWI_LOSS_BINARY || row->kind == BWI_LOSS_HINGE || row->kind == BWI_LOSS_SQUARED_HINGE ||
           bwi_binary_logits_of(prediction);
}

static bw_status refuse(const bwi_session *s, const bw_dataset *dataset, int classes, int64_t outputs, const bwi_loss_row *row)
{
    bw_context *ctx = s->training->ctx;
    bwi_text names = {.ctx = ctx};
    for (int i = 0; i < classes && i < LISTED; i++) {
        add_name(&names, bw_dataset_class(dataset, i), i);
    }
    bw_status status = names.failed
                           ? BW_RESOURCE_EXHAUSTED
                           : bwi_fail(ctx, BW_INVALID_ARGUMENT,
                                      "the targets are %d classes (%s%s), but %s has %lld output%s with the loss %.*s; expected "
                                      "%sdense(%d,softmax) with sparse_categorical_crossentropy",
                                      classes, names.bytes, classes > LISTED ? ", ..." : "", bwi_output_name(s->training->model, 0),
                                      (long long)outputs, outputs == 1 ? "" : "s", (int)strcspn(row->names, " "), row->names,
                                      classes == 2 ? "dense(1,sigmoid), or " : "", classes);
    bwi_text_free(&names);
    return status;
}

bw_status bwi_class_targets_check(const bwi_session *s, const bw_dataset *dataset, bw_node *prediction, int64_t values,
                                  const bwi_loss_row *row)
{
    int classes = s->output_count == 1 && values == 1 && prediction->shape.ndim == 1 ? count_classes(dataset) : 0;
    int64_t outputs = prediction->shape.extent[0];
    if (classes < 2) {
        return BW_OK;
    }
    bool fits = outputs == 1 ? classes == 2 && tells_two_apart(prediction, row) : row->target == BW_I32 && outputs >= classes;
    return fits ? BW_OK : refuse(s, dataset, classes, outputs, row);
}
