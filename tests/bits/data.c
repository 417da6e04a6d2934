/*
 * The cases of data: where samples come from, and what is done to them on their way.
 */
#include "bits.h"

#include <pthread.h>
#include <unistd.h>

enum { STREAM_LINES = 32000 };

/* ---- Sources ---- */

/* Bytes, which a layer of the model scales. */
static bw_dataset *read_bytes(bw_context *ctx)
{
    static uint8_t bytes[SAMPLES * 300];
    for (int i = 0; i < COUNT_OF(bytes); i++) {
        bytes[i] = (uint8_t)(bits_number(20, (uint64_t)i) * 256);
    }
    bw_array x = {bytes, BW_U8, 4, {SAMPLES, 10, 10, 3}, {0}}, y = bits_targets(CLASSES);
    return bw_from_arrays(ctx, &x, &y, NULL);
}

/* Every other row, and columns backwards. */
static bw_dataset *read_strided(bw_context *ctx)
{
    enum { WIDTH = 12 };
    static double numbers[2 * SAMPLES * WIDTH];
    static uint8_t classes[SAMPLES];
    for (int i = 0; i < COUNT_OF(numbers); i++) {
        numbers[i] = bits_number(21, (uint64_t)i) - 0.5;
    }
    for (int i = 0; i < SAMPLES; i++) {
        classes[i] = (uint8_t)(bits_number(22, (uint64_t)i) * CLASS_COUNT);
    }
    bw_array x = {numbers + WIDTH - 1, BW_F64, 2, {SAMPLES, WIDTH}, {2 * WIDTH * sizeof(double), -(int64_t)sizeof(double)}};
    bw_array y = {classes, BW_U8, 1, {SAMPLES}, {0}};
    return bw_from_arrays(ctx, &x, &y, NULL);
}

static bw_dataset *read_half(bw_context *ctx)
{
    static uint16_t halves[SAMPLES * 12];
    for (int i = 0; i < COUNT_OF(halves); i++) {
        halves[i] = (uint16_t)(bits_number(23, (uint64_t)i) * 0x3c00); /* 0 to 1 */
    }
    bw_array x = {halves, BW_F16, 2, {SAMPLES, 12}, {0}}, y = bits_targets(CLASSES);
    return bw_from_arrays(ctx, &x, &y, NULL);
}

static bw_dataset *read_synth(bw_context *ctx)
{
    return bw_read(ctx, "synth:images?n=40", NULL);
}

/* Lines of CSV, written into `text`: returns their length. */
static size_t csv_text(char *text, size_t room, int lines)
{
    static const char *const cities[] = {"Rom", "Ulm", "Bern"};
    size_t length = (size_t)snprintf(text, room, "a,b,city,label\n");
    for (int i = 0; i < lines && length < room; i++) {
        uint64_t k = (uint64_t)i;
        length += i % 11 == 5 ? (size_t)snprintf(text + length, room - length, "%.6f,,%s,%d\n", bits_number(24, k),
                                                 cities[(int)(bits_number(25, k) * 3)], i % CLASS_COUNT)
                              : (size_t)snprintf(text + length, room - length, "%.6f,%.4f,%s,%d\n", bits_number(24, k),
                                                 bits_number(26, k), cities[(int)(bits_number(25, k) * 3)], i % CLASS_COUNT);
    }
    return length;
}

/* CSV that comes through a pipe as standard input. All of it has room in the pipe. */
static bw_dataset *read_pipe(bw_context *ctx)
{
    char text[8192];
    size_t length = csv_text(text, sizeof text, 60);
    int ends[2];
    if (pipe(ends) != 0 || write(ends[1], text, length) != (ssize_t)length || dup2(ends[0], STDIN_FILENO) < 0) {
        return NULL;
    }
    close(ends[0]);
    close(ends[1]);
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.missing = BW_MISSING_MEAN;
    return bw_read(ctx, "-", &options);
}

/* More than what is read before the first samples are given out: it is trained on while it comes. */
static void *write_stream(void *user)
{
    FILE *file = fdopen(*(int *)user, "w");
    fprintf(file, "a,b,label\n");
    for (int i = 0; i < STREAM_LINES; i++) {
        fprintf(file, "%.16f,%.16f,%d\n", bits_number(29, (uint64_t)i), bits_number(30, (uint64_t)i), i % CLASS_COUNT);
    }
    fclose(file);
    return NULL;
}

static bw_dataset *read_stream(bw_context *ctx)
{
    static int ends[2];
    pthread_t writer;
    if (pipe(ends) != 0 || dup2(ends[0], STDIN_FILENO) < 0 || pthread_create(&writer, NULL, write_stream, &ends[1]) != 0) {
        return NULL;
    }
    close(ends[0]);
    pthread_detach(writer);
    return bw_read(ctx, "-", NULL);
}

static bw_dataset *read_fields(bw_context *ctx)
{
    bw_field fields[] = {{"x", bits_inputs(IMAGE)}, {"y", bits_targets(CLASSES)}, {"w", bits_weights()}};
    return bw_from_fields(ctx, fields, COUNT_OF(fields));
}

static bool make_sample(void *user, bw_sample *sample, void *const *values)
{
    float *x = values[0];
    int32_t *y = values[1];
    (void)user;
    for (int k = 0; x && k < 12; k++) {
        x[k] = (float)bits_number(27, (uint64_t)(sample->number * 12 + k)) + 0.1F * bw_random_normal(&sample->random);
    }
    if (y) {
        *y = (int32_t)(sample->number % CLASS_COUNT);
    }
    return true;
}

static const bw_field row_fields[] = {{"x", {NULL, BW_F32, 2, {SAMPLES, 12}, {0}}}, {"y", {NULL, BW_I32, 1, {SAMPLES}, {0}}}};

static bw_dataset *read_function(bw_context *ctx)
{
    return bw_from_function(ctx, row_fields, COUNT_OF(row_fields), make_sample, NULL);
}

static int next_sample(void *user, bw_sample *sample, void *const *values)
{
    return sample->number < SAMPLES && make_sample(user, sample, values);
}

static bw_dataset *read_generator(bw_context *ctx)
{
    return bw_from_generator(ctx, row_fields, COUNT_OF(row_fields), next_sample, NULL);
}

/* Sequences of 1 to 12 steps of 4 numbers, one after another. */
static bw_dataset *read_sequences(bw_context *ctx)
{
    static int64_t offsets[SAMPLES + 1];
    bw_array x = bits_inputs(SEQUENCE), y = bits_targets(CLASSES);
    for (int i = 0; i < SAMPLES; i++) {
        offsets[i + 1] = offsets[i] + 1 + (int64_t)(bits_number(28, (uint64_t)i) * STEPS);
    }
    bw_array steps = {x.data, BW_F32, 2, {offsets[SAMPLES], 4}, {0}};
    return bw_from_sequences(ctx, &steps, offsets, SAMPLES, &y, NULL);
}

/* ---- Changes ---- */

static bool brighten(void *user, bw_sample *sample, const void *const *from, void *const *to)
{
    const float *in = from[0];
    float *out = to[0];
    float by = bw_random_uniform(&sample->random);
    (void)user;
    for (int k = 0; k < 12; k++) {
        out[k] = in[k] * by;
    }
    return true;
}

static bw_dataset *mapped(bw_dataset *dataset)
{
    bw_map_options options = BW_MAP_OPTIONS_DEFAULT;
    options.seed = 5;
    return bw_map(dataset, brighten, NULL, &options);
}

static bool sum_pairs(void *user, bw_sample *sample, const void *const *from, void *const *to)
{
    const float *in = from[0];
    float *out = to[0];
    (void)user;
    (void)sample;
    for (int k = 0; k < 6; k++) {
        out[k] = in[2 * k] + in[2 * k + 1];
    }
    return true;
}

/* To other fields. */
static bw_dataset *mapped_fields(bw_dataset *dataset)
{
    static const bw_field fields[] = {{"x", {NULL, BW_F32, 2, {1, 6}, {0}}}, {"y", {NULL, BW_I32, 1, {1}, {0}}}};
    bw_map_options options = BW_MAP_OPTIONS_DEFAULT;
    options.fields = fields;
    options.field_count = COUNT_OF(fields);
    return bw_map(dataset, sum_pairs, NULL, &options);
}

static bool is_positive(void *user, bw_sample *sample, const void *const *from)
{
    const float *x = from[0];
    (void)user;
    (void)sample;
    return x[0] > -0.5F;
}

static bw_dataset *filtered(bw_dataset *dataset)
{
    return bw_filter(dataset, is_positive, NULL);
}

static bw_dataset *cached(bw_dataset *dataset)
{
    return bw_shuffle(bw_cache(mapped(dataset)), 3);
}

static bw_dataset *shuffled(bw_dataset *dataset)
{
    return bw_shuffle(dataset, 9);
}

static bw_dataset *mapped_and_shuffled(bw_dataset *dataset)
{
    return shuffled(mapped(dataset));
}

static bw_dataset *prefetched(bw_dataset *dataset)
{
    bw_prefetch_options options = BW_PREFETCH_OPTIONS_DEFAULT;
    options.threads = 2;
    options.samples = 10;
    return bw_prefetch(bw_shuffle(mapped(dataset), 3), &options);
}

static bw_dataset *augmented(bw_dataset *dataset)
{
    return bw_augment(dataset, "flip=both,shift=0.2,crop=0.8,rotate=15,zoom=0.1,brightness=0.2,contrast=0.3,noise=0.05,cutout=3",
                      6);
}

static bw_dataset *flipped(bw_dataset *dataset)
{
    return bw_shuffle(bw_augment(dataset, "flip,shift=2", 7), 8);
}

static bw_dataset *standardised(bw_dataset *dataset)
{
    return bw_standardise(bw_shuffle(dataset, 2), NULL);
}

static bw_dataset *normalised(bw_dataset *dataset)
{
    return bw_normalise(dataset, NULL);
}

static bw_dataset *one_hot(bw_dataset *dataset)
{
    return bw_one_hot(dataset, CLASS_COUNT);
}

static bw_dataset *taken(bw_dataset *dataset)
{
    return bw_take(bw_skip(bw_shuffle(dataset, 4), 5), 30);
}

static bw_dataset *sharded(bw_dataset *dataset)
{
    return bw_shard(dataset, 3, 1);
}

static bw_dataset *repeated(bw_dataset *dataset)
{
    return bw_repeat(bw_batches(bw_shuffle(dataset, 2), 10), 2);
}

static bw_dataset *batched(bw_dataset *dataset)
{
    return bw_batch_sizes(dataset, "9,14", true);
}

static bw_dataset *taken_batches(bw_dataset *dataset)
{
    return bw_take(bw_skip(bw_batch_sizes(dataset, "4,9", false), 3), 33);
}

/* Some samples cannot be made. */
static bool refuse_some(void *user, bw_sample *sample, const void *const *from, void *const *to)
{
    (void)user;
    (void)from;
    (void)to;
    return sample->number % 9 != 4;
}

static bw_dataset *allowed(bw_dataset *dataset)
{
    return bw_allow_bad(bw_map(dataset, refuse_some, NULL, NULL), 0.2);
}

static bw_dataset *first_part(bw_dataset *dataset)
{
    bw_dataset *training = NULL, *validation = NULL;
    return bw_split(bw_shuffle(dataset, 6), 0.3, &training, &validation) == BW_OK ? training : NULL;
}

static bw_dataset *bucketed(bw_dataset *dataset)
{
    static const int64_t lengths[] = {3, 5, 8};
    return bw_shuffle(bw_bucket(dataset, lengths, COUNT_OF(lengths)), 3);
}

/* The second dataset is made like the first, but for its order. */
static bw_dataset *concatenated(bw_context *ctx)
{
    return bw_concatenate(bw_batches(bw_take(read_function(ctx), 25), 10), bw_batches(bw_skip(read_function(ctx), 20), 7));
}

static bw_dataset *interleaved(bw_context *ctx)
{
    return bw_interleave(bw_take(read_function(ctx), 25), bw_shuffle(bw_skip(read_function(ctx), 20), 2), 3);
}

static bw_dataset *zipped(bw_context *ctx)
{
    bw_array x = bits_inputs(ROWS), y = bits_targets(NUMBERS);
    return bw_shuffle(bw_zip(bw_from_arrays(ctx, &x, NULL, NULL), bw_from_arrays(ctx, &y, NULL, NULL)), 2);
}

/* ---- The table ---- */

#define DENSE "dense(9,relu) dense(5,softmax)"
#define IMAGES "conv2d(6,3,relu) maxpool2d(2) flatten dense(5,softmax)"
#define STEPWISE "conv1d(8,3,relu,padding=same) global_maxpool1d dense(5,softmax)"
#define WORDWISE "embedding(20,6,mask_zero=true) dense(8,tanh) global_avgpool1d dense(5,softmax)"

static const bits_case rows[] = {
    {"data/bytes", "rescaling(0.00392156863) " IMAGES, .read = read_bytes},
    {"data/bytes/thin", "rescaling(0.01) conv2d(16,3,relu) maxpool2d(2) flatten dense(5,softmax)", .read = read_bytes,
     .change = shuffled},
    {"data/bytes/augment", "rescaling(0.01) " IMAGES, .read = read_bytes, .change = augmented},
    {"data/strided", DENSE, .read = read_strided},
    {"data/half", DENSE, .read = read_half},
    {"data/synth", "conv2d(8,3,relu) maxpool2d(2) flatten dense(10,softmax)", .read = read_synth},
    {"data/pipe", DENSE, .read = read_pipe},
    {"data/pipe/standardise", DENSE, .read = read_pipe, .change = standardised},
    {"data/pipe/stream", DENSE, .read = read_stream, .change = shuffled, .batch = 1000, .epochs = 1, .tile = -1},
    {"data/fields", IMAGES, .read = read_fields, .metrics = "accuracy(weighted=true)"},
    {"data/function", DENSE, .read = read_function, .change = shuffled},
    {"data/function/batchnorm", "dense(9) batchnorm relu dense(5,softmax)", .read = read_function},
    {"data/function/ranges", "dense(2048,relu) dense(128,relu) dense(5,softmax)", .read = read_function, .lanes = 16},
    {"data/function/ranks", DENSE, .read = read_function, .ranks = 2},
    {"data/generator", DENSE, .read = read_generator},
    {"data/generator/shuffle", DENSE, .read = read_generator, .change = shuffled, .epochs = 3},
    {"data/generator/map", DENSE, .read = read_generator, .change = mapped, .accumulate = 2},
    {"data/generator/validation", DENSE, .read = read_generator, .validation = 0.2},
    {"data/map", DENSE, .change = mapped},
    {"data/map/shuffle", DENSE, .change = mapped_and_shuffled, .validation = 0.2},
    {"data/map/fields", DENSE, .change = mapped_fields},
    {"data/filter", DENSE, .change = filtered},
    {"data/cache", DENSE, .change = cached},
    {"data/shuffle", DENSE, .change = shuffled, .validation = 0.3},
    {"data/prefetch", DENSE, .change = prefetched, .accumulate = 2},
    {"data/augment", IMAGES, .input = IMAGE, .change = augmented},
    {"data/augment/flip", IMAGES, .input = IMAGE, .change = flipped, .validation = 0.2},
    {"data/augment/batchnorm", "conv2d(6,3) batchnorm relu flatten dense(5,softmax)", .input = IMAGE, .change = flipped},
    {"data/standardise", DENSE, .change = standardised, .validation = 0.2},
    {"data/standardise/images", IMAGES, .input = IMAGE, .change = standardised},
    {"data/normalise", DENSE, .change = normalised},
    {"data/one_hot", DENSE, .change = one_hot, .weighted = true},
    {"data/take", DENSE, .change = taken},
    {"data/take/batches", DENSE, .change = taken_batches, .batch = -1},
    {"data/allow_bad", DENSE, .change = allowed},
    {"data/split", DENSE, .change = first_part},
    {"data/shard", DENSE, .change = sharded, .batch = 4},
    {"data/repeat", DENSE, .change = repeated, .batch = -1},
    {"data/batches", DENSE, .change = batched, .batch = -1},
    {"data/concatenate", DENSE, .read = concatenated, .batch = -1},
    {"data/interleave", DENSE, .read = interleaved},
    {"data/zip", "dense(9,relu) dense(5)", .read = zipped},
    {"sequence/padded", STEPWISE, .read = read_sequences},
    {"sequence/buckets", STEPWISE, .read = read_sequences, .change = bucketed},
    {"sequence/buckets/mask", WORDWISE, .input = TOKENS, .change = bucketed},
    {"sequence/buckets/accumulate", WORDWISE, .input = TOKENS, .change = bucketed, .accumulate = 2, .validation = 0.2},
    {"sequence/buckets/budget", STEPWISE, .read = read_sequences, .change = bucketed, .tile = 1, .lanes = 1, .budget = TIGHTEST},
};

void bits_data_cases(bits_visitor visit, void *user)
{
    for (int i = 0; i < COUNT_OF(rows); i++) {
        visit(user, &rows[i]);
    }
}
