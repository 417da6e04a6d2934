/* Event files: records whose checksums are right, Keras's tags and folders, values of the history; the same bits as without; and a
 * disk that is full. */
#include "support/context.h"
#include "support/folder.h"

#include "insight/internal.h"

#include <dirent.h>
#include <math.h>

static float x[64 * 36], y[64];

static int open_all(void **state)
{
    for (size_t i = 0; i < BWI_COUNT(x); i++) {
        x[i] = (float)(i * 7 % 17) / 17;
    }
    for (size_t i = 0; i < BWI_COUNT(y); i++) {
        y[i] = (float)(i % 3);
    }
    return make_folder(state) != 0 ? -1 : open_context(state);
}

static int close_all(void **state)
{
    return close_context(state) != 0 ? -1 : remove_folder(state);
}

static uint64_t train(bw_tensorboard *board, const char *text, bw_history **history)
{
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 4, .shape = {64, 6, 6, 1}};
    bw_array targets = {.data = y, .dtype = BW_F32, .ndim = 1, .shape = {64}};
    bw_model *model = bw_model_parse(ctx, text);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 2;
    options.batch = 16;
    options.validation_split = 0.25;
    options.tensorboard = board;
    check_ok(ctx, bw_compile(model, "adam", "sparse_categorical_crossentropy", "accuracy"));
    check_ok(ctx, bw_fit(model, bw_from_arrays(ctx, &inputs, &targets, NULL), &options, history));
    return bw_model_hash(model);
}

/* The bytes of the only event file in a folder. */
static size_t read_events(const char *name, unsigned char *bytes, size_t capacity)
{
    DIR *names = opendir(inside(name));
    assert_non_null(names);
    size_t size = 0;
    int found = 0;
    for (const struct dirent *entry = readdir(names); entry; entry = readdir(names)) {
        if (strstr(entry->d_name, "tfevents")) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", inside(name), entry->d_name);
            FILE *file = fopen(path, "rb");
            assert_non_null(file);
            size = fread(bytes, 1, capacity, file);
            fclose(file);
            found++;
        }
    }
    closedir(names);
    assert_int_equal(found, 1);
    return size;
}

static uint64_t little_endian(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++) {
        value |= (uint64_t)bytes[i] << 8 * i;
    }
    return value;
}

/* CRC-32C bit by bit, then masked. */
static uint32_t checksum(const unsigned char *bytes, size_t size)
{
    uint32_t crc = ~UINT32_C(0);
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82F63B78) : 0);
        }
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + UINT32_C(0xA282EAD8);
}

/* Checks all records, and counts those that contain a text. */
static int count_records(const unsigned char *bytes, size_t size, const char *text)
{
    int found = 0;
    for (size_t at = 0; at < size;) {
        uint64_t length = little_endian(bytes + at, 8);
        assert_true(at + 16 + length <= size);
        assert_int_equal(little_endian(bytes + at + 8, 4), checksum(bytes + at, 8));
        const unsigned char *message = bytes + at + 12;
        assert_int_equal(little_endian(message + length, 4), checksum(message, length));
        bool has = false;
        for (size_t i = 0; i + strlen(text) <= length && !has; i++) {
            has = memcmp(message + i, text, strlen(text)) == 0;
        }
        found += has;
        at += 16 + length;
    }
    return found;
}

static void test_files(void **state)
{
    (void)state;
    static unsigned char bytes[1 << 18];
    bw_history *history;
    uint64_t without = train(NULL, "conv2d(4,3,relu) flatten dense(3,softmax)", &history);
    bw_tensorboard *board = bw_tensorboard_new(ctx, inside("a/b"), NULL);
    check_ok(ctx, bw_tensorboard_number(board, "dropout", 0.5));
    check_ok(ctx, bw_tensorboard_text(board, "note", "first try"));
    assert_true(train(board, "conv2d(4,3,relu) flatten dense(3,softmax)", &history) == without);
    size_t size = read_events("a/b/train", bytes, sizeof bytes);
    static const struct {
        const char *text;
        int count;
    } expected[] = {
        {"brain.Event:2", 1},
        {"epoch_loss", 2},
        {"epoch_accuracy", 2},
        {"epoch_learning_rate", 2},
        {"sequential/conv2d/kernel/histogram", 2},
        {"dense/bias/gradient", 2},
        {"resources/utilisation", 2},
        {"\x89PNG", 1},
        {"sequential/input", 1},
    };
    for (size_t i = 0; i < BWI_COUNT(expected); i++) {
        assert_int_equal(count_records(bytes, size, expected[i].text), expected[i].count);
    }
    size = read_events("a/b/validation", bytes, sizeof bytes);
    assert_int_equal(count_records(bytes, size, "epoch_loss"), 2);
    assert_int_equal(count_records(bytes, size, "evaluation_loss_vs_iterations"), 2);
    float loss = (float)bw_history_value(history, "val_loss", 1);
    char pattern[5] = {0};
    memcpy(pattern, &loss, sizeof loss);
    bool whole = strlen(pattern) == 4; /* no zero byte in it */
    assert_true(!whole || count_records(bytes, size, pattern) == 2);
    size = read_events("a/b", bytes, sizeof bytes);
    assert_int_equal(count_records(bytes, size, "_hparams_/session_start_info"), 1);
    assert_int_equal(count_records(bytes, size, "first try"), 1);
    assert_int_equal(count_records(bytes, size, "_hparams_/session_end_info"), 1);
}

/* Large dense layers defer their gradients to the update: looking at them changes no bit. */
static void test_deferred(void **state)
{
    (void)state;
    bw_history *history;
    const char *text = "flatten dense(2048,relu) dense(512,relu) dense(3,softmax)";
    uint64_t without = train(NULL, text, &history);
    assert_true(train(bw_tensorboard_new(ctx, inside("deferred"), NULL), text, &history) == without);
}

static void test_refused(void **state)
{
    (void)state;
    FILE *file = fopen(inside("file"), "w");
    fclose(file);
    assert_null(bw_tensorboard_new(ctx, inside("file"), NULL));
    assert_non_null(strstr(bw_message(ctx), "cannot make the folder"));
    assert_null(bw_tensorboard_new(ctx, "", NULL));
    assert_non_null(strstr(bw_message(ctx), "there is no folder"));
    bw_tensorboard *board = bw_tensorboard_new(ctx, inside("own"), NULL);
    check_fails(ctx, bw_tensorboard_number(board, "", 1), BW_INVALID_ARGUMENT, "hyperparameters");
    check_ok(ctx, bw_tensorboard_scalar(board, "train", "mine", 3, 1.5));
    static unsigned char bytes[4096];
    assert_int_equal(count_records(bytes, read_events("own/train", bytes, sizeof bytes), "mine"), 1);
    bw_tensorboard_free(board);
}

static int warnings;

static void on_log(void *user, bw_log_level level, const char *message)
{
    (void)user;
    warnings += level == BW_LOG_WARNING && strstr(message, "training goes on");
}

static int writes;

static int64_t full_disk(void *user, int file, const void *bytes, size_t count, int64_t offset)
{
    (void)user, (void)file, (void)bytes, (void)offset;
    return ++writes > 3 ? -28 : (int64_t)count; /* ENOSPC after /proc's peak and the first two files */
}

/* A disk that fills up is told once, and the training is the same. */
static void test_full(void **state)
{
    (void)state;
    bw_history *history;
    uint64_t without = train(NULL, "flatten dense(3,softmax)", &history);
    ctx->log = on_log;
    ctx->io.write = full_disk;
    assert_true(train(bw_tensorboard_new(ctx, inside("full"), NULL), "flatten dense(3,softmax)", &history) == without);
    assert_int_equal(bw_history_epochs(history), 2);
    assert_int_equal(warnings, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_files, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_deferred, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_refused, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_full, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
