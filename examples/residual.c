/*
 * A residual network with BatchNormalization, whose statistics are those of the whole batch, however large. Within a budget, what
 * the batch must keep between its passes is held, computed again, or spilled to a file; the result is the same to the bit.
 */
#include <batchwise.h>
#include <inttypes.h>
#include <stdio.h>

enum { BATCH = 1024 };

static bw_node *block(bw_node *x, const char *convolution)
{
    bw_node *y = bw_activation(bw_layer(bw_layer(x, convolution), "batchnorm"), "relu");
    y = bw_layer(bw_layer(y, convolution), "batchnorm");
    bw_node *both[] = {x, y};
    return bw_activation(bw_merge("add", both, 2), "relu");
}

static bw_model *make_model(bw_context *ctx)
{
    const int64_t shape[] = {32, 32, 1};
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_layer(bw_input(model, "x", BW_F32, 3, shape), "conv2d(16,3,relu,padding=same)");
    x = block(bw_layer(x, "maxpool2d(2)"), "conv2d(16,3,padding=same)");
    x = block(bw_layer(x, "maxpool2d(2)"), "conv2d(16,3,padding=same)");
    (void)bw_output(bw_layer(bw_layer(x, "globalavgpool2d"), "dense(4,softmax)"), "shape"); /* a failure comes out of bw_fit */
    return model;
}

static bw_status train(bw_context *ctx, const char *name, size_t memory, uint64_t *hash)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = BATCH;
    options.epochs = 2;
    options.memory = memory;
    bw_model *model = make_model(ctx);
    bw_dataset *shapes = bw_shuffle(bw_cache(bw_read(ctx, "synth:shapes?n=2048", NULL)), 1);
    bw_history *history = NULL;
    bw_status status = bw_fit(model, shapes, &options, &history);
    if (status == BW_OK) {
        bw_run_facts facts = bw_history_facts(history);
        *hash = bw_model_hash(model);
        printf("%-16s %5.1f MiB in memory, %5.1f MiB in a file, %.1f s, loss %.4f, weights %016" PRIx64 "\n", name,
               (double)facts.planned_bytes / 1048576, (double)facts.spilled_bytes / 1048576, facts.seconds,
               bw_history_last(history, "loss"), *hash);
    }
    return status;
}

int main(void)
{
    uint64_t ample = 0, tight = 1;
    bw_context *ctx = bw_open(NULL);
    bw_status status = train(ctx, "ample memory:", 0, &ample);
    if (status == BW_OK) {
        status = train(ctx, "within 12 MiB:", 12 << 20, &tight);
    }
    if (status != BW_OK) {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK || ample != tight;
}
