/* Writes ONNX for activations: one operator where ONNX has it, otherwise the few that compute its formula. */
#include "file/onnx.h"

/* Adds one operator with at most two numbers. */
static void put_with(bwi_onnx *o, const char *x, const char *y, const char *type, const char *first, float a, const char *second,
                     float b)
{
    bwi_onnx_begin(o, type, (const char *[]){x, NULL}, y);
    bwi_onnx_put_float(o, first, a);
    if (second) {
        bwi_onnx_put_float(o, second, b);
    }
    bwi_onnx_end(o);
}

/* x > c: min(x, b), else a (x - c) */
static void put_bent_relu(bwi_onnx *o, const char *x, const char *y, const bwi_activation_attributes *attributes)
{
    bwi_onnx_name a, b, c, above, least, less, below;
    bwi_onnx_float(o, c, attributes->p[2]);
    bwi_onnx_add(o, "Greater", bwi_onnx_new(o, above), x, c, NULL);
    bwi_onnx_add(o, "Min", bwi_onnx_new(o, least), x, bwi_onnx_float(o, b, attributes->p[1]), NULL);
    bwi_onnx_add(o, "Sub", bwi_onnx_new(o, less), x, c, NULL);
    bwi_onnx_add(o, "Mul", bwi_onnx_new(o, below), less, bwi_onnx_float(o, a, attributes->p[0]), NULL);
    bwi_onnx_add(o, "Where", y, above, least, below, NULL);
}

static void put_silu(bwi_onnx *o, const char *x, const char *y, const bwi_activation_attributes *a)
{
    (void)a;
    bwi_onnx_name share;
    bwi_onnx_add(o, "Sigmoid", bwi_onnx_new(o, share), x, NULL);
    bwi_onnx_add(o, "Mul", y, x, share, NULL);
}

/* x / 2 (1 + erf(x / sqrt 2)) */
static void put_gelu(bwi_onnx *o, const char *x, const char *y, const bwi_activation_attributes *a)
{
    (void)a;
    bwi_onnx_name root, one, half, part, error, more, less;
    bwi_onnx_add(o, "Mul", bwi_onnx_new(o, part), x, bwi_onnx_float(o, root, 0.707106781F), NULL);
    bwi_onnx_add(o, "Erf", bwi_onnx_new(o, error), part, NULL);
    bwi_onnx_add(o, "Add", bwi_onnx_new(o, more), error, bwi_onnx_float(o, one, 1), NULL);
    bwi_onnx_add(o, "Mul", bwi_onnx_new(o, less), x, bwi_onnx_float(o, half, 0.5F), NULL);
    bwi_onnx_add(o, "Mul", y, less, more, NULL);
}

/* x t with t = tanh(softplus x) */
static void put_mish(bwi_onnx *o, const char *x, const char *y, const bwi_activation_attributes *a)
{
    (void)a;
    bwi_onnx_name plus, share;
    bwi_onnx_add(o, "Softplus", bwi_onnx_new(o, plus), x, NULL);
    bwi_onnx_add(o, "Tanh", bwi_onnx_new(o, share), plus, NULL);
    bwi_onnx_add(o, "Mul", y, x, share, NULL);
}

static const char *hard_sigmoid(bwi_onnx *o, const char *x, float slope, const char *y)
{
    bwi_onnx_begin(o, "HardSigmoid", (const char *[]){x, NULL}, y);
    bwi_onnx_put_float(o, "alpha", slope);
    bwi_onnx_put_float(o, "beta", 0.5F);
    bwi_onnx_end(o);
    return y;
}

static void put_hard_silu(bwi_onnx *o, const char *x, const char *y, const bwi_activation_attributes *a)
{
    (void)a;
    bwi_onnx_name share;
    bwi_onnx_add(o, "Mul", y, x, hard_sigmoid(o, x, 1 / 6.0F, bwi_onnx_new(o, share)), NULL);
}

static void put_hard_sigmoid(bwi_onnx *o, const char *x, const char *y, const bwi_activation_attributes *a)
{
    hard_sigmoid(o, x, a->kind == BWI_HARD_SIGMOID ? 1 / 6.0F : 0.5F, y);
}

/* h^2 with h = (x + 1) / 2 between 0 and 1; from 1 on x. */
static void put_sparse_plus(bwi_onnx *o, const char *x, const char *y, const bwi_activation_attributes *a)
{
    (void)a;
    bwi_onnx_name half, square, one, below;
    hard_sigmoid(o, x, 0.5F, bwi_onnx_new(o, half));
    bwi_onnx_add(o, "Mul", bwi_onnx_new(o, square), half, half, NULL);
    bwi_onnx_add(o, "Less", bwi_onnx_new(o, below), x, bwi_onnx_float(o, one, 1), NULL);
    bwi_onnx_add(o, "Where", y, below, square, x, NULL);
}

static void put_hard_tanh(bwi_onnx *o, const char *x, const char *y, const bwi_activation_attributes *a)
{
    (void)a;
    bwi_onnx_name low, high;
    bwi_onnx_float(o, low, -1);
    bwi_onnx_add(o, "Clip", y, x, low, bwi_onnx_float(o, high, 1), NULL);
}

/* (x + sqrt(x^2 + a)) / 2 */
static void put_squareplus(bwi_onnx *o, const char *x, const char *y, const bwi_activation_attributes *a)
{
    bwi_onnx_name square, more, root, sum, add, half;
    bwi_onnx_add(o, "Mul", bwi_onnx_new(o, square), x, x, NULL);
    bwi_onnx_add(o, "Add", bwi_onnx_new(o, more), square, bwi_onnx_float(o, add, a->p[0]), NULL);
    bwi_onnx_add(o, "Sqrt", bwi_onnx_new(o, root), more, NULL);
    bwi_onnx_add(o, "Add", bwi_onnx_new(o, sum), x, root, NULL);
    bwi_onnx_add(o, "Mul", y, sum, bwi_onnx_float(o, half, 0.5F), NULL);
}

static void put_log_sigmoid(bwi_onnx *o, const char *x, const char *y, const bwi_activation_attributes *a)
{
    (void)a;
    bwi_onnx_name other, plus;
    bwi_onnx_add(o, "Neg", bwi_onnx_new(o, other), x, NULL);
    bwi_onnx_add(o, "Softplus", bwi_onnx_new(o, plus), other, NULL);
    bwi_onnx_add(o, "Neg", y, plus, NULL);
}

/* ONNX's Shrink is soft if its bias is its lambda, and hard if it is 0. */
static void put_shrink(bwi_onnx *o, const char *x, const char *y, const bwi_activation_attributes *a)
{
    put_with(o, x, y, "Shrink", "lambd", a->p[0], "bias", a->kind == BWI_SOFT_SHRINK ? a->p[0] : 0);
}

static void put_tanh_shrink(bwi_onnx *o, const char *x, const char *y, const bwi_activation_attributes *a)
{
    (void)a;
    bwi_onnx_name less;
    bwi_onnx_add(o, "Tanh", bwi_onnx_new(o, less), x, NULL);
    bwi_onnx_add(o, "Sub", y, x, less, NULL);
}

/* Selu is gamma (x > 0: x, else alpha (e^x - 1)). */
static void put_elu(bwi_onnx *o, const char *x, const char *y, const bwi_activation_attributes *a)
{
    put_with(o, x, y, "Selu", "alpha", a->p[1] / a->p[0], "gamma", a->p[0]);
}

static void put_leaky_relu(bwi_onnx *o, const char *x, const char *y, const bwi_activation_attributes *a)
{
    put_with(o, x, y, "LeakyRelu", "alpha", a->p[0], NULL, 0);
}

/* An activation is one operator without parameters, or has a writer. */
static const struct {
    const char *type;
    void (*write)(bwi_onnx *o, const char *x, const char *y, const bwi_activation_attributes *a);
} activations[BWI_ACTIVATIONS] = {
    [BWI_SIGMOID] = {"Sigmoid", NULL},
    [BWI_TANH] = {"Tanh", NULL},
    [BWI_SOFTPLUS] = {"Softplus", NULL},
    [BWI_SOFTSIGN] = {"Softsign", NULL},
    [BWI_EXPONENTIAL] = {"Exp", NULL},
    [BWI_ELU] = {NULL, put_elu},
    [BWI_HARD_SIGMOID] = {NULL, put_hard_sigmoid},
    [BWI_LEAKY_RELU] = {NULL, put_leaky_relu},
    [BWI_BENT_RELU] = {NULL, put_bent_relu},
    [BWI_SILU] = {NULL, put_silu},
    [BWI_GELU] = {NULL, put_gelu},
    [BWI_HARD_SILU] = {NULL, put_hard_silu},
    [BWI_HARD_TANH] = {NULL, put_hard_tanh},
    [BWI_MISH] = {NULL, put_mish},
    [BWI_SQUAREPLUS] = {NULL, put_squareplus},
    [BWI_LOG_SIGMOID] = {NULL, put_log_sigmoid},
    [BWI_SOFT_SHRINK] = {NULL, put_shrink},
    [BWI_HARD_SHRINK] = {NULL, put_shrink},
    [BWI_TANH_SHRINK] = {NULL, put_tanh_shrink},
    [BWI_SPARSE_PLUS] = {NULL, put_sparse_plus},
    [BWI_SPARSE_SIGMOID] = {NULL, put_hard_sigmoid},
};

void bwi_onnx_activation(bwi_onnx *o, const bwi_activation_attributes *a, const char *x, const char *y)
{
    if (activations[a->kind].type) {
        bwi_onnx_add(o, activations[a->kind].type, y, x, NULL);
    } else {
        activations[a->kind].write(o, x, y, a);
    }
}
