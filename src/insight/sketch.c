/* A dataset for plans without data. It has the fields that the model's inputs, outputs and loss need, but no values. */
#include "insight/internal.h"

#include <string.h>

enum { MOST_FIELDS = 3 * BWI_MAX_HEADS, FIELD_NAME = 72 };

typedef struct sketch {
    bw_field fields[MOST_FIELDS];
    char names[MOST_FIELDS][FIELD_NAME];
    int count;
} sketch;

static void add(sketch *s, char role, const char *name, bw_dtype dtype, const bwi_shape *shape)
{
    static const double nothing; /* fields need an address, which nobody reads */
    if (s->count == MOST_FIELDS || shape->ndim >= BW_MAX_NDIM) {
        return;
    }
    bw_field *field = &s->fields[s->count];
    snprintf(s->names[s->count], FIELD_NAME, "%c%s%s", role, name[0] ? "_" : "", name);
    *field = (bw_field){.name = s->names[s->count], .array = {.data = &nothing, .dtype = dtype, .ndim = shape->ndim + 1}};
    field->array.shape[0] = 1;
    memcpy(field->array.shape + 1, shape->extent, (size_t)shape->ndim * sizeof shape->extent[0]);
    s->count++;
}

static bool known(const sketch *s, char role, const char *name)
{
    for (int k = 0; k < s->count; k++) {
        const char *field = s->names[k];
        if (field[0] == role && strcmp(field[1] ? field + 2 : "", name) == 0) {
            return true;
        }
    }
    return false;
}

static void add_inputs(sketch *s, const bw_model *model)
{
    for (int n = 0; n < model->graph.count; n++) {
        const bw_node *node = model->graph.nodes[n];
        if (node->op->flags & BWI_OP_INPUT) {
            const bwi_input_attributes *a = node->attributes;
            char role = "xyw"[a->role];
            if (a->dtype != BW_TEXT && !known(s, role, a->name)) {
                add(s, role, a->name, node->dtype, &a->shape);
            }
        }
    }
}

static void add_targets(sketch *s, const bw_model *model)
{
    for (int k = 0; k < model->output_count; k++) {
        bw_node *output = model->outputs[k];
        const char *name = model->output_names[k][0] ? model->output_names[k] : output->name;
        const bwi_chosen_loss *chosen = bwi_loss_of(model, k);
        if (chosen && !chosen->row) {
            continue; /* the output is not trained */
        }
        const bwi_loss_row *row = chosen ? chosen->row : NULL;
        bool classes = row ? row->target == BW_I32 : !!bwi_logits_of(output);
        bwi_shape shape = output->shape;
        shape.ndim -= classes && shape.ndim > 0; /* class numbers, one for each distribution */
        if (!known(s, 'y', model->output_count > 1 ? name : "")) {
            add(s, 'y', model->output_count > 1 ? name : "", classes ? BW_I32 : BW_F32, &shape);
        }
    }
}

bw_dataset *bwi_sketch_data(bw_model *model)
{
    sketch s = {.count = 0};
    add_inputs(&s, model);
    if (!model->loss_count || (model->training && ((const bwi_training *)model->training)->loss_count)) {
        add_targets(&s, model);
    }
    return bw_from_fields(model->ctx, s.fields, s.count);
}
