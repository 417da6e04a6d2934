/*
 * A loop over batches whose sizes the source decides: each call of a generator yields another number of samples. The gradients are
 * computed and applied by hand, and the loss is one of the program's own, sqrt(1 + error^2) - 1, which large errors pull less than
 * a square would. It is built from ops, so its gradient comes by itself.
 */
#include <batchwise.h>
#include <stdio.h>

enum { FEATURES = 4, MOST = 64, UPDATES = 300 };

typedef struct block {
    int64_t size;
    float x[MOST][FEATURES], y[MOST];
} block;

/* Yields 1 to MOST samples of y = x0 - 2*x1 + 3*x2 + noise, and sometimes a wild y. */
static void yield(bw_random *random, block *made)
{
    made->size = 1 + bw_random_below(random, MOST);
    for (int64_t i = 0; i < made->size; i++) {
        for (int k = 0; k < FEATURES; k++) {
            made->x[i][k] = bw_random_normal(random);
        }
        made->y[i] = made->x[i][0] - 2 * made->x[i][1] + 3 * made->x[i][2] + 0.1F * bw_random_normal(random);
        made->y[i] += bw_random_below(random, 50) == 0 ? 100.0F : 0.0F;
    }
}

static bw_model *make_model(bw_context *ctx)
{
    const int64_t width[] = {FEATURES}, one[] = {1};
    bw_model *model = bw_model_new(ctx);
    bw_node *guess = bw_layer(bw_input(model, "x", BW_F32, 1, width), "dense(1)");
    bw_node *error = bw_subtract(guess, bw_target(model, "y", BW_F32, 1, one));
    bw_node *loss = bw_affine(bw_sqrt(bw_affine(bw_square(error), 1, 1)), 1, -1);
    (void)bw_output(guess, "y"); /* failures stay, and come out of bw_build */
    (void)bw_add_loss(bw_sum(loss, BW_ALL), "robust");
    return model;
}

/* Makes one update from one block. */
static bw_status learn(bw_context *ctx, bw_model *model, bw_gradients *gradients, const block *b, double *loss)
{
    bw_array x = {.data = b->x, .dtype = BW_F32, .ndim = 2, .shape = {b->size, FEATURES}};
    bw_array y = {.data = b->y, .dtype = BW_F32, .ndim = 2, .shape = {b->size, 1}};
    bw_dataset *data = bw_batches(bw_from_arrays(ctx, &x, &y, NULL), b->size);
    bw_iterator *batches = bw_iterate(data, 0);
    bw_batch *batch = NULL;
    bw_status status = bw_next(batches, &batch);
    status = status == BW_OK ? bw_gradients_add(gradients, batch, loss) : status;
    status = status == BW_OK ? bw_apply(model, gradients) : status;
    bw_iterator_free(batches);
    bw_dataset_free(data);
    return status;
}

int main(void)
{
    static block made;
    bw_context *ctx = bw_open(NULL);
    bw_random random = {.seed = 1};
    bw_model *model = make_model(ctx);
    bw_status status = bw_compile(model, "adam(lr=0.05)", NULL, NULL);
    status = status == BW_OK ? bw_build(model, 0, NULL, 0) : status;
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    for (int update = 1; update <= UPDATES && status == BW_OK; update++) {
        double loss = 0;
        yield(&random, &made);
        status = learn(ctx, model, gradients, &made, &loss);
        if (status == BW_OK && update % 50 == 0) {
            printf("update %3d, %2lld samples: loss %.4f\n", update, (long long)made.size, loss);
        }
    }
    float weights[FEATURES] = {0};
    status = status == BW_OK ? bw_variable_get(model, 0, weights, FEATURES) : status;
    if (status == BW_OK) {
        printf("weights %.2f %.2f %.2f %.2f, expected 1 -2 3 0\n", (double)weights[0], (double)weights[1], (double)weights[2],
               (double)weights[3]);
    } else {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
