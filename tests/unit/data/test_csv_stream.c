/* CSV from standard input: trained on while it comes, or read to its end where all of it must be known. label: thread */
#include "csv_test.h"

/* Numbers only, larger than what is read before samples are given out. */
static char *stream_text(int rows)
{
    char *text = malloc((size_t)rows * 64 + 64), *at = text + sprintf(text, "a,b,label\n");
    for (int i = 0; i < rows; i++) {
        at += sprintf(at, "%d,%d.25,%d\n", i, -i, i % 7);
    }
    return text;
}

static bw_dataset *read_stream(world *w, const char *text, const bw_read_options *options)
{
    *w = (world){0};
    assert_true(world_begin(w, (const unsigned char *)text, strlen(text)));
    w->ctx->log = keep_log;
    logged[0] = 0;
    return bw_read(w->ctx, "-", options);
}

static void test_stream(void **state)
{
    (void)state;
    enum { ROWS = 200000 };
    char *text = stream_text(ROWS), place[200];
    world w;
    bw_dataset *stream = read_stream(&w, text, NULL);
    assert_non_null(stream);
    assert_int_equal(bw_dataset_count(stream), -1);
    assert_int_equal(bwi_dataset_field(stream, 1)->dtype, BW_I32);
    assert_int_equal(bwi_dataset_facts(stream)->features, 2);
    int64_t calls = w.io_calls;
    assert_true(calls < (int64_t)strlen(text) / 777 / 2); /* most of it has not been read */
    bw_dataset *batches = bw_batches(stream, 100);
    bwi_gather_schedule schedule = {.first = 100, .count = 100, .tile = 10, .lanes = 1, .workers = 1};
    assert_int_equal(bwi_dataset_begin(batches, &schedule), BW_OK);
    assert_true(w.io_calls == calls);
    assert_int_equal(bwi_dataset_finish(batches), BW_OK);
    assert_int_equal(bw_dataset_count(batches), ROWS);
    assert_string_equal(bwi_dataset_location(batches, 150000, place, sizeof place), "standard input, line 150002");
    world v;
    v = (world){0};
    same_values(batches, read_text(&v, text, NULL));
    world_end(&v);
    world_end(&w);
    free(text);
}

/* Several targets are a row of numbers, and each is a field by its name, wherever the rows have moved to meanwhile. */
static void test_stream_targets(void **state)
{
    (void)state;
    enum { ROWS = 200000 };
    char *text = stream_text(ROWS);
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.target = "label,a";
    world w;
    bw_dataset *stream = read_stream(&w, text, &options);
    assert_non_null(stream);
    assert_int_equal(bw_dataset_count(stream), -1);
    assert_int_equal(bwi_dataset_fields(stream), 4);
    assert_string_equal(bwi_dataset_field(stream, 2)->name, "label");
    assert_string_equal(bwi_dataset_field(stream, 3)->name, "a");
    assert_int_equal(bwi_dataset_finish(stream), BW_OK);
    int64_t n, rows;
    float *both = gather_all(stream, 1, &n), *label = gather_all(stream, 2, &rows), *a = gather_all(stream, 3, &rows);
    assert_int_equal(rows, ROWS);
    for (int64_t i = 0; i < ROWS; i++) {
        assert_true(both[2 * i] == (float)(i % 7) && both[2 * i + 1] == (float)i);
        assert_true(label[i] == both[2 * i] && a[i] == both[2 * i + 1]);
    }
    free(both);
    free(label);
    free(a);
    world_end(&w);
    free(text);
}

static void test_stream_taken(void **state)
{
    (void)state;
    char *text = stream_text(200000);
    world w;
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.take = 90000;
    bw_dataset *stream = read_stream(&w, text, &options);
    assert_int_equal(bwi_dataset_finish(stream), BW_OK);
    assert_int_equal(bw_dataset_count(stream), 90000);
    assert_true(w.io_calls < (int64_t)strlen(text) / 777);
    world_end(&w);
    free(text);
}

/* A mistake is told with its line, again and again; samples before it stay. */
static void test_stream_mistakes(void **state)
{
    (void)state;
    world w;
    char *text = stream_text(200000);
    strstr(text, "\n150000,")[1] = 'x';
    bw_dataset *stream = read_stream(&w, text, NULL);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(bwi_dataset_finish(stream), BW_INVALID_ARGUMENT);
        assert_contains(bw_message(w.ctx), "standard input: line 150002: column 'a': 'x50000' is no number");
    }
    bwi_destination to = bwi_host_destination((float[2]){0}, BW_F32, 2);
    int64_t number = 20000;
    assert_int_equal(bwi_dataset_gather(stream, 0, 0, &number, 1, &to, NULL), BW_OK);
    assert_true(((float *)to.data)[0] == 20000 && ((float *)to.data)[1] == -20000.25f);
    world_end(&w);
    strstr(text, "\nx50000,")[1] = '1';
    memcpy(strstr(text, "\n160000,"), "\n160000,-160000,0.50", 20);
    stream = read_stream(&w, text, NULL);
    assert_int_equal(bwi_dataset_finish(stream), BW_INVALID_ARGUMENT);
    assert_contains(bw_message(w.ctx), "standard input, line 160002: the target 0.5 is no whole number");
    world_end(&w);
    stream = read_stream(&w, text, NULL);
    w.io_fail = w.io_calls + 10;
    assert_int_equal(bwi_dataset_finish(stream), BW_DATA_LOSS);
    assert_contains(bw_message(w.ctx), "cannot read standard input");
    world_end(&w);
    for (int64_t nth = 2; nth < 60; nth++) { /* whichever allocation fails, nothing is left behind */
        w = (world){.allocation_fail = nth};
        assert_true(world_begin(&w, (const unsigned char *)text, strlen(text)));
        stream = bw_read(w.ctx, "-", NULL);
        if (w.allocations >= nth) {
            assert_true((stream ? bwi_dataset_finish(stream) : bwi_pending(w.ctx)) == BW_RESOURCE_EXHAUSTED);
        }
        world_end(&w);
    }
    free(text);
}

/* What must be known of all records is: it is read to its end first, and that is said. */
static void test_no_stream(void **state)
{
    (void)state;
    world w;
    char *text = stream_text(100000);
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.missing = BW_MISSING_MEAN;
    assert_int_equal(bw_dataset_count(read_stream(&w, text, &options)), 100000);
    assert_contains(logged, "standard input: is read to its end first: missing values become the mean");
    world_end(&w);
    options = (bw_read_options)BW_READ_OPTIONS_DEFAULT;
    options.categorical = "label";
    assert_int_equal(bw_dataset_count(read_stream(&w, text, &options)), 100000);
    assert_contains(logged, "first: column 2 ('label') holds texts");
    world_end(&w);
    options = (bw_read_options)BW_READ_OPTIONS_DEFAULT;
    options.missing = BW_MISSING_ZERO;
    memcpy(strstr(text, "\n90000,"), "\n     ,", 7);
    bw_dataset *stream = read_stream(&w, text, &options);
    assert_int_equal(bw_dataset_count(stream), -1);
    assert_int_equal(bwi_dataset_finish(stream), BW_OK);
    int64_t n;
    float *x = gather_all(stream, 0, &n);
    assert_true(x[2 * 90000] == 0 && x[2 * 90000 + 1] == -90000.25f && x[2 * 90001] == 90001);
    free(x);
    world_end(&w);
    options.missing = BW_MISSING_SKIP;
    stream = read_stream(&w, text, &options);
    assert_int_equal(bwi_dataset_finish(stream), BW_OK);
    assert_int_equal(bw_dataset_count(stream), 99999);
    assert_contains(logged, "1 of 100000 records have missing values and are left out");
    world_end(&w);
    free(text);
}

/* gzip on standard input, of several members, a few bytes at a time. */
static void test_packed_input(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = load(BW_TEST_DATA, "numbers.csv.gz", &size);
    bw_context *ctx = open_context(1);
    world w = {0};
    assert_true(world_begin(&w, bytes, size));
    same_values(bw_read(w.ctx, "-", NULL), read_fixture(ctx, "numbers.csv.gz", NULL));
    world_end(&w);
    w = (world){0};
    assert_true(world_begin(&w, bytes, size - 9));
    assert_failed(w.ctx, bw_read(w.ctx, "-", NULL), BW_DATA_LOSS, "standard input: the gzip file is damaged after");
    world_end(&w);
    w = (world){0};
    assert_true(world_begin(&w, (const unsigned char *)"1", 1)); /* less than what tells gzip */
    assert_int_equal(bw_dataset_count(bw_read(w.ctx, "-", NULL)), 1);
    world_end(&w);
    bw_close(ctx);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream),          cmocka_unit_test(test_stream_targets), cmocka_unit_test(test_stream_taken),
        cmocka_unit_test(test_stream_mistakes), cmocka_unit_test(test_no_stream),      cmocka_unit_test(test_packed_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
