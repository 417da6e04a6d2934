/* Optimizers with Keras's names, defaults and formulas. They work on variables as stored: all are elementwise. */
#include "train/train.h"

#include <math.h>

/* ---- SGD: v = mu v - lr g; w += v; Nesterov: w += mu v - lr g ---- */

enum { SGD_RATE, SGD_MOMENTUM, SGD_NESTEROV, SGD_COUNT };

static const bwi_argument sgd_arguments[SGD_COUNT] = {
    [SGD_RATE] = {"learning_rate", "lr", BWI_FLOAT, "0.01", 0, 1e9, NULL},
    [SGD_MOMENTUM] = {"momentum", NULL, BWI_FLOAT, "0", 0, 1, NULL},
    [SGD_NESTEROV] = {"nesterov", NULL, BWI_BOOL, "false", 0, 0, NULL},
};

static int sgd_slots(const bwi_optimizer *o)
{
    return o->values[SGD_MOMENTUM].number > 0 ? 1 : 0;
}

static void sgd_update(const bwi_optimizer *o, int64_t count, const float *gradient, float *const *slots, float *w)
{
    o->kernels->sgd(count, (float)o->rate, (float)o->values[SGD_MOMENTUM].number, o->values[SGD_NESTEROV].flag, o->scale, gradient,
                    o->slot_count ? slots[0] : NULL, w);
}

static const bwi_optimizer_row sgd = {"sgd", sgd_arguments, SGD_COUNT, sgd_slots, {"momentum"}, sgd_update};

/* ---- Adam: a = lr sqrt(1 - b2^t) / (1 - b1^t); w -= a m / (sqrt(v) + eps) ---- */

enum { ADAM_RATE, ADAM_BETA1, ADAM_BETA2, ADAM_EPSILON, ADAM_COUNT };

static const bwi_argument adam_arguments[ADAM_COUNT] = {
    [ADAM_RATE] = {"learning_rate", "lr", BWI_FLOAT, "0.001", 0, 1e9, NULL},
    [ADAM_BETA1] = {"beta_1", NULL, BWI_FLOAT, "0.9", 0, 1, NULL},
    [ADAM_BETA2] = {"beta_2", NULL, BWI_FLOAT, "0.999", 0, 1, NULL},
    [ADAM_EPSILON] = {"epsilon", NULL, BWI_FLOAT, "1e-7", 0, 1e9, NULL},
};

static int adam_slots(const bwi_optimizer *o)
{
    (void)o;
    return 2;
}

static void adam_update(const bwi_optimizer *o, int64_t count, const float *gradient, float *const *slots, float *w)
{
    double b1 = o->values[ADAM_BETA1].number, b2 = o->values[ADAM_BETA2].number, t = (double)(o->iterations + 1);
    double corrected = sqrt(1 - pow(b2, t)) / (1 - pow(b1, t));
    bwi_adam step = {.rate = (float)(o->rate * corrected),
                     .beta1 = b1,
                     .beta2 = b2,
                     .epsilon = (float)o->values[ADAM_EPSILON].number,
                     .scale = o->scale};
    o->kernels->adam(count, &step, gradient, slots[0], slots[1], w);
}

static const bwi_optimizer_row adam = {"adam", adam_arguments, ADAM_COUNT, adam_slots, {"momentum", "velocity"}, adam_update};

const bwi_optimizer_row *const bwi_optimizer_rows[] = {&sgd, &adam, NULL};

/* ---- Slots ---- */

bw_status bwi_optimizer_open_slots(bwi_training *t)
{
    bwi_optimizer *o = &t->optimizer;
    const bwi_graph *graph = &t->model->graph;
    o->slot_count = o->row->slots(o);
    if (o->slots) {
        return BW_OK;
    }
    float **slots = bwi_allocate(t->ctx, (size_t)graph->variable_count * BWI_MAX_SLOTS, sizeof(float *));
    if (!slots) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int v = 0; v < graph->variable_count; v++) {
        for (int s = 0; graph->variables[v]->trainable && s < o->slot_count; s++) {
            float *slot = bwi_allocate(t->ctx, (size_t)graph->variables[v]->count, sizeof(float));
            if (!slot) {
                for (int k = 0; k < graph->variable_count * BWI_MAX_SLOTS; k++) {
                    bwi_release(t->ctx, slots[k]);
                }
                bwi_release(t->ctx, (void *)slots);
                return BW_RESOURCE_EXHAUSTED;
            }
            slots[v * BWI_MAX_SLOTS + s] = slot;
        }
    }
    o->slots = slots;
    return BW_OK;
}

size_t bwi_optimizer_bytes(const bwi_training *t)
{
    size_t bytes = 0;
    for (int v = 0; v < t->model->graph.variable_count; v++) {
        const bwi_variable *variable = t->model->graph.variables[v];
        if (variable->trainable) {
            bytes =
                bwi_size_add(bytes, bwi_size_multiply((size_t)variable->count * sizeof(float), (size_t)t->optimizer.slot_count));
        }
    }
    return bytes;
}
