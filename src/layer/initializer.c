/* Keras's initialisers. A value is a function of the seed, the variable's place in the model and the element alone. */
#include "layer/layer.h"

#include <math.h>
#include <string.h>

typedef void (*fill)(const bwi_variable *variable, uint64_t seed, float *values, int64_t count);

static void constant(float *values, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = value;
    }
}

static void zeros(const bwi_variable *variable, uint64_t seed, float *values, int64_t count)
{
    (void)variable;
    (void)seed;
    constant(values, count, 0);
}

static void ones(const bwi_variable *variable, uint64_t seed, float *values, int64_t count)
{
    (void)variable;
    (void)seed;
    constant(values, count, 1);
}

/* Uniform in +-sqrt(6 / (fan_in + fan_out)). */
static void glorot_uniform(const bwi_variable *variable, uint64_t seed, float *values, int64_t count)
{
    float limit = (float)sqrt(6.0 / fmax(1, (double)(variable->fan_in + variable->fan_out)));
    for (int64_t i = 0; i < count; i += 4) {
        bwi_random r = bwi_random_at(seed, (uint64_t)variable->index, (uint64_t)i / 4);
        for (int64_t k = 0; k < 4 && i + k < count; k++) {
            values[i + k] = (2 * bwi_random_uniform(r.word[k]) - 1) * limit;
        }
    }
}

static const struct {
    const char *name;
    fill fill;
} rows[] = {{"zeros", zeros}, {"ones", ones}, {"glorot_uniform", glorot_uniform}};

bw_status bwi_initialize(bw_context *ctx, bwi_variable *variable, uint64_t seed)
{
    int64_t count = bwi_shape_count(&variable->shape);
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        if (strcmp(rows[i].name, variable->initializer) == 0) {
            float *values = bwi_allocate(ctx, (size_t)count, sizeof *values);
            if (!values) {
                return BW_RESOURCE_EXHAUSTED;
            }
            rows[i].fill(variable, seed, values, count);
            bwi_variable_write(variable, values);
            bwi_release(ctx, values);
            return BW_OK;
        }
    }
    return bwi_fail(ctx, BW_INVALID_ARGUMENT, "variable %s: there is no initializer '%s'", variable->name, variable->initializer);
}
