/*
 * State: the list of named values that must survive a kill, and the types of values. Names are unique and the size
 * of each value is known to fit.
 */
#include "base/base.h"

#include <string.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [BW_U8] = {"uint8", 1},
    [BW_I8] = {"int8", 1},
    [BW_U16] = {"uint16", 2},
    [BW_I16] = {"int16", 2},
    [BW_U32] = {"uint32", 4},
    [BW_I32] = {"int32", 4},
    [BW_U64] = {"uint64", 8},
    [BW_I64] = {"int64", 8},
    [BW_F16] = {"float16", 2},
    [BW_F32] = {"float32", 4},
    [BW_F64] = {"float64", 8},
    [BW_BOOL] = {"bool", 1},
    [BW_TEXT] = {"text", sizeof(bw_text)},
};

static bool known(bw_dtype dtype)
{
    return (size_t)dtype < BWI_COUNT(dtypes);
}

size_t bwi_dtype_size(bw_dtype dtype)
{
    return known(dtype) ? dtypes[dtype].size : 0;
}

const char *bwi_dtype_name(bw_dtype dtype)
{
    return known(dtype) ? dtypes[dtype].name : "unknown";
}

size_t bwi_state_bytes(const bwi_state_value *value)
{
    size_t bytes = bwi_dtype_size(value->dtype);
    for (int i = 0; i < value->ndim; i++) {
        bytes = bwi_size_multiply(bytes, (size_t)value->shape[i]);
    }
    return bytes;
}

const bwi_state_value *bwi_state_find(const bwi_state *state, const char *name)
{
    for (int i = 0; i < state->count; i++) {
        if (strcmp(state->values[i].name, name) == 0) {
            return &state->values[i];
        }
    }
    return NULL;
}

/* Checks and fills a value; false and a message if it cannot be. */
static bool describe(bw_context *ctx, bwi_state_value *value, bw_dtype dtype, int ndim, const int64_t *shape)
{
    value->dtype = dtype;
    value->ndim = ndim;
    bool right = known(dtype) && ndim >= 0 && ndim <= BW_MAX_NDIM;
    for (int i = 0; right && i < ndim; i++) {
        value->shape[i] = shape[i];
        right = shape[i] >= 0;
    }
    if (!right || bwi_state_bytes(value) == SIZE_MAX) {
        bwi_fail(ctx, BW_INTERNAL, "state value %s: type %d with %d axes of these extents is not possible", value->name, (int)dtype,
                 ndim);
        return false;
    }
    return true;
}

static bool grow(bwi_state *state)
{
    if (state->count < state->capacity) {
        return true;
    }
    int capacity = state->capacity ? 2 * state->capacity : 32;
    bwi_state_value *larger = bwi_grow(state->ctx, state->values, (size_t)state->count, (size_t)capacity, sizeof *state->values);
    if (!larger) {
        return false;
    }
    state->values = larger;
    state->capacity = capacity;
    return true;
}

bwi_state_value *bwi_state_add(bwi_state *state, bw_dtype dtype, int ndim, const int64_t *shape, void *data, const char *name, ...)
{
    bwi_state_value value = {.data = data};
    va_list arguments;
    va_start(arguments, name);
    int length = bwi_format(value.name, sizeof value.name, name, arguments);
    va_end(arguments);
    bool named = length > 0 && (size_t)length < sizeof value.name;
    if (!named) {
        bwi_fail(state->ctx, BW_INVALID_ARGUMENT, "state name %s...: %d bytes long, expected 1 to %zu", value.name, length,
                 sizeof value.name - 1);
    } else if (bwi_state_find(state, value.name)) {
        bwi_fail(state->ctx, BW_INVALID_ARGUMENT, "state name %s is used twice", value.name);
    } else if (describe(state->ctx, &value, dtype, ndim, shape) && grow(state)) {
        state->values[state->count] = value;
        return &state->values[state->count++];
    }
    state->failed = true;
    return NULL;
}

void bwi_state_read(const bwi_state_value *value, void *values)
{
    size_t bytes = bwi_state_bytes(value);
    if (value->get) {
        value->get(value->object, values);
    } else if (bytes) {
        memcpy(values, value->data, bytes);
    }
}

void bwi_state_write(const bwi_state_value *value, const void *values)
{
    size_t bytes = bwi_state_bytes(value);
    if (value->set) {
        value->set(value->object, values);
    } else if (bytes) {
        memcpy(value->data, values, bytes);
    }
}

void bwi_state_free(bwi_state *state)
{
    bwi_release(state->ctx, state->values);
    *state = (bwi_state){.ctx = state->ctx};
}
