/* CSV files against what pandas wrote and found (tests/data/make_csv.py), and against every kind of mistake in them. label:
 * thread */
#include "csv_test.h"
#include "support/folder.h"

#include <math.h>

static void test_numbers(void **state)
{
    (void)state;
    bw_context *ctx = open_context(1);
    bw_dataset *dataset = read_fixture(ctx, "numbers.csv", NULL), *expected = read_fixture(ctx, "numbers_csv.npz", NULL);
    same_values(dataset, expected);
    assert_contains(logged, "numbers.csv: the first line is a header: 'a,b,c,label'");
    assert_int_equal(bwi_dataset_field(dataset, 1)->dtype, BW_I32);
    const bwi_facts *facts = bwi_dataset_facts(dataset);
    assert_int_equal(facts->features, 3);
    assert_string_equal(facts->feature[1].name, "b");
    assert_string_equal(facts->target, "label");
    same_values(read_fixture(ctx, "numbers.csv.gz", NULL), expected);
    bw_close(ctx);
}

static void test_categories(void **state)
{
    (void)state;
    bw_context *ctx = open_context(2);
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    bw_dataset *dataset = read_fixture(ctx, "table.csv", &options);
    assert_failed(ctx, dataset, BW_INVALID_ARGUMENT, "table.csv: line 4: column 'size': a value is missing");
    options.missing = BW_MISSING_MEAN;
    dataset = read_fixture(ctx, "table.csv", &options);
    same_values(dataset, read_fixture(ctx, "table_csv.npz", NULL));
    assert_string_equal(bw_dataset_class(dataset, 0), "ant");
    assert_string_equal(bw_dataset_class(dataset, 3), "eel");
    assert_null(bw_dataset_class(dataset, 4));
    const bwi_facts *facts = bwi_dataset_facts(dataset);
    assert_int_equal(facts->feature[1].categories, 4);
    assert_string_equal(facts->feature[1].category[2], "the \"big\" one");
    assert_true(facts->feature[0].filled && fabs(facts->feature[0].fill - 25.75 / 6) < 1e-6);
    char place[200];
    assert_contains(bwi_dataset_location(dataset, 0, place, sizeof place), "table.csv, line 2");
    assert_contains(bwi_dataset_location(dataset, 3, place, sizeof place), "table.csv, line 5");
    assert_contains(bwi_dataset_location(dataset, 4, place, sizeof place), "table.csv, line 7"); /* after one of two lines */
    options.missing = BW_MISSING_SKIP;
    dataset = read_fixture(ctx, "table.csv", &options);
    assert_int_equal(bw_dataset_count(dataset), 6);
    assert_contains(logged, "1 of 7 records have missing values and are left out");
    assert_contains(bwi_dataset_location(dataset, 2, place, sizeof place), "table.csv, line 5");
    bw_close(ctx);
}

/* ---- Text in memory ---- */

static void test_forms(void **state)
{
    (void)state;
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    expect("1,2,3\n4,5,6\n", NULL, "1 2 -> 3; 4 5 -> 6; ");
    expect("1,2,3\r\n4,5,6\r\n", NULL, "1 2 -> 3; 4 5 -> 6; ");
    expect("1,2,3\n4,5,6", NULL, "1 2 -> 3; 4 5 -> 6; ");
    expect("\n1,2,3\n\n\r\n4,5,6\n\n", NULL, "1 2 -> 3; 4 5 -> 6; ");
    expect("\xEF\xBB\xBF"
           "1,2,3\n4,5,6\n",
           NULL, "1 2 -> 3; 4 5 -> 6; ");
    expect(" 1 ,\t2,\"3\"\n\"4\" ,+5,-6e0\n", &options, "1 2 -> 3; 4 5 -> -6; ");
    expect("7\n8\n", NULL, "7 ; 8 ; ");
    expect("0,1,2\n4,5,6\n", NULL, "4 5 -> 6; ");
    assert_contains(logged, "counts the columns and is taken as a header");
    options.header = BW_HEADER_NO;
    expect("0,1,2\n4,5,6\n", &options, "0 1 -> 2; 4 5 -> 6; ");
    options.header = BW_HEADER_YES;
    expect("1,2,3\n4,5,6\n", &options, "4 5 -> 6; ");
    options.header = BW_HEADER_DETECT;
    options.target = "0";
    expect("1,2,3\n4,5,6\n", &options, "2 3 -> 1; 5 6 -> 4; ");
    options.target = "-2";
    expect("1,2,3\n4,5,6\n", &options, "1 3 -> 2; 4 6 -> 5; ");
    options.target = "b";
    expect("a,b,\"c,d\"\n1,2,3\n4,5,6\n", &options, "1 3 -> 2; 4 6 -> 5; ");
    options.target = "";
    expect("1,2,3\n4,5,6\n", &options, "1 2 3 ; 4 5 6 ; ");
    options.target = NULL;
    options.ignore = "a,2";
    expect("a,b,c,d\n1,2,3,.5\n4,5,6,7\n", &options, "2 -> 0.5; 5 -> 7; ");
    options.ignore = NULL;
    options.categorical = "a";
    expect("a,b\n10,2\n9,5\n10,3\n", &options, "0 1 -> 2; 1 0 -> 5; 0 1 -> 3; ");
}

static void test_missing(void **state)
{
    (void)state;
    static const char *const text = "a,b,c\n1,x,3\n,y,4\nNA,x,5\n3,?,6\n";
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    refuse(text, &options, BW_INVALID_ARGUMENT, "a.csv: line 3: column 'a': a value is missing");
    options.missing = BW_MISSING_MEAN;
    expect(text, &options, "1 1 0 -> 3; 2 0 1 -> 4; 2 1 0 -> 5; 3 0 0 -> 6; ");
    options.missing = BW_MISSING_ZERO;
    expect(text, &options, "1 1 0 -> 3; 0 0 1 -> 4; 0 1 0 -> 5; 3 0 0 -> 6; ");
    options.missing = BW_MISSING_SKIP;
    expect(text, &options, "1 1 -> 3; ");
    expect("1,2\n3,\n5,6\n", &options, "1 -> 2; 5 -> 6; ");
    options.missing = BW_MISSING_ZERO;
    refuse("1,2\n3,\n5,6\n", &options, BW_INVALID_ARGUMENT, "line 2: column 1: the target is missing");
}

/* A name that matches nothing is refused with the nearest one, whichever option has it. */
static void test_names_that_are_not_there(void **state)
{
    (void)state;
    static const char *const text = "name,age,income\n1,2,3\n4,5,6\n";
    bw_read_options none = BW_READ_OPTIONS_DEFAULT, options = none;
    options.ignore = "nme";
    refuse(text, &options, BW_NOT_FOUND,
           "a.csv: the option 'ignore' names a column 'nme', which is not there; did you mean 'name'?");
    options.ignore = "name,AGE";
    refuse(text, &options, BW_NOT_FOUND, "a column 'AGE', which is not there; did you mean 'age'?");
    options.ignore = "name,,age";
    refuse(text, &options, BW_NOT_FOUND, "a column '', which is not there");
    options.ignore = "3";
    refuse(text, &options, BW_NOT_FOUND, "a column '3', which is not there; the file has 3: 'name', 'age', 'income'");
    refuse("1,2,3\n4,5,6\n", &options, BW_NOT_FOUND, "its columns are numbered from 0 to 2");
    options.ignore = "age,income";
    refuse(text, &options, BW_INVALID_ARGUMENT, "the option 'ignore' leaves out the target, column 'income'");
    options.ignore = "0,-2";
    options.target = "1";
    refuse(text, &options, BW_INVALID_ARGUMENT, "the option 'ignore' leaves out the target, column 'age'");
    options = none;
    options.categorical = "foo";
    refuse(text, &options, BW_NOT_FOUND,
           "the option 'categorical' names a column 'foo', which is not there; the file has 3: 'name'");
    options = none;
    options.target = "incme";
    refuse(text, &options, BW_NOT_FOUND, "the option 'target' names a column 'incme', which is not there; did you mean 'income'?");
    expect("9,1,2,a\n9,3,4,b\n", &(bw_read_options){.size = sizeof options, .scale = 1, .ignore = "0,-2"}, "1 -> 0; 3 -> 1; ");
}

static void test_mistakes(void **state)
{
    (void)state;
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    refuse("", NULL, BW_INVALID_ARGUMENT, "a.csv: is empty");
    refuse("\n\n\r\n", NULL, BW_INVALID_ARGUMENT, "a.csv: is empty");
    refuse("a,b\n", &options, BW_INVALID_ARGUMENT, "cannot tell whether the first line, 'a,b', is a header");
    options.header = BW_HEADER_YES;
    refuse("a,b\n", &options, BW_INVALID_ARGUMENT, "holds no samples");
    refuse("a,b\nc,d\n", NULL, BW_INVALID_ARGUMENT, "cannot tell whether the first line, 'a,b', is a header");
    refuse("A title\nof two lines\na,b\n1,2\n", NULL, BW_INVALID_ARGUMENT,
           "no column has numbers; say so (--header or --no-header), or skip a title (--skip-rows)");
    refuse("1,2,3\n4,5\n7,8,9\n", NULL, BW_INVALID_ARGUMENT, "a.csv: line 2: 2 fields, expected 3");
    refuse("1,2,3\n4,5,6,7\n", NULL, BW_INVALID_ARGUMENT, "a.csv: line 2: 4 fields, expected 3");
    refuse("1,2,3\n4,\"5,6\n", NULL, BW_INVALID_ARGUMENT, "line 2: a quote is not closed");
    refuse("1,2,3\n4,\"5\"x,6\n", NULL, BW_INVALID_ARGUMENT, "line 2: a quote is not closed, or text follows it");
    refuse("1,2,3\n4,5,6,7\n4,5,6,7\n", NULL, BW_INVALID_ARGUMENT, "a.csv: line 1: 3 fields, but the lines after it have 4");
    refuse("1,2\n1e999,3\n", NULL, BW_INVALID_ARGUMENT, "a.csv: line 2: column 0: '1e999' is no number");
    options.header = BW_HEADER_NO;
    options.target = "income";
    refuse("1,2\n3,4\n", &options, BW_NOT_FOUND,
           "a.csv: the option 'target' names a column 'income', which is not there; the file has no header");
    options.target = "2";
    refuse("1,2\n3,4\n", &options, BW_NOT_FOUND,
           "a column '2', which is not there; the file has no header, its columns are numbered from 0 to 1");
    options.target = NULL;
    options.ignore = "0";
    refuse("1,2\n3,4\n", &options, BW_INVALID_ARGUMENT, "no column is left");
    options.ignore = NULL;
    options.bad_records = 1.5;
    refuse("1,2\n3,4\n", &options, BW_INVALID_ARGUMENT, "bad_records is a share from 0 to 1");
    options.bad_records = 0;
    options.ndim = 2;
    options.shape[0] = 2;
    options.shape[1] = 2;
    refuse("1,2,3,4\n", &options, BW_INVALID_ARGUMENT, "a.csv: inputs of shape (3,) cannot have the shape (2, 2)");
    options.shape[1] = INT64_MAX;
    refuse("1,2,3,4\n", &options, BW_INVALID_ARGUMENT, "cannot have the shape");
}

/* Text in a column of numbers that comes too late to make it one of categories. */
static void test_late_text(void **state)
{
    (void)state;
    char *text = malloc(20000), *at = text;
    for (int i = 0; i < 1500; i++) {
        at += sprintf(at, i == 1200 ? "%d,abc,1\n" : "%d,2,1\n", i);
    }
    refuse(text, NULL, BW_INVALID_ARGUMENT, "a.csv: line 1201: column 1: 'abc' is no number");
    free(text);
}

static void test_bad_records(void **state)
{
    (void)state;
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.header = BW_HEADER_NO;
    options.bad_records = 0.5;
    world w = {0};
    char late[8192] = "";
    for (int i = 0; i < 1100; i++) {
        strcat(late, "1,2\n"); /* so that x makes no category */
    }
    char *all = malloc(sizeof late + 64);
    sprintf(all, "%s%s", late, "x,3\n4\n5,6\n7,8\n\"9,1\n");
    bw_dataset *dataset = read_text(&w, all, &options);
    if (!dataset) {
        fail_msg("%s", bw_message(w.ctx));
    }
    assert_int_equal(bw_dataset_count(dataset), 1102);
    assert_contains(logged, "a.csv: line 1101 is left out: column 0: 'x' is no number");
    assert_contains(logged, "a.csv: line 1102 is left out: 1 field, expected 2");
    assert_contains(logged, "a.csv: line 1105 is left out: a quote is not closed");
    assert_contains(logged, "3 of 1105 records are bad and left out");
    char place[200];
    assert_string_equal(bwi_dataset_location(dataset, 1100, place, sizeof place), "a.csv, line 1103");
    int64_t n;
    float *x = gather_all(dataset, 0, &n);
    assert_true(x[1100] == 5 && x[1101] == 7);
    free(x);
    world_end(&w);
    options.bad_records = 0.002;
    refuse(all, &options, BW_INVALID_ARGUMENT,
           "3 of 1105 records are bad, more than the allowed 0.2 percent; the first: line 1101");
    free(all);
}

static void test_like(void **state)
{
    (void)state;
    world w = {0};
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.missing = BW_MISSING_MEAN;
    bw_dataset *training = read_text(&w, "a,b,c\n1,x,yes\n3,y,no\n,z,yes\n", &options);
    assert_non_null(training);
    options.like = training;
    static const char *const later = "a,b,c\n7,z,no\n,z,no\n";
    w.bytes = (const unsigned char *)later;
    w.size = strlen(later);
    bw_dataset *use = bw_read(w.ctx, "b.csv", &options);
    assert_non_null(use);
    int64_t n;
    float *x = gather_all(use, 0, &n), *y;
    static const float expected[] = {7, 0, 0, 1, 2, 0, 0, 1}; /* the mean of the training data stands for what is missing */
    assert_int_equal(n, 8);
    assert_memory_equal(x, expected, sizeof expected);
    y = gather_all(use, 1, &n);
    assert_true(y[0] == 0 && y[1] == 0);
    free(x);
    free(y);
    static const char *const unknown = "a,b,c\n7,q,no\n1,z,no\n";
    w.bytes = (const unsigned char *)unknown;
    w.size = strlen(unknown);
    use = bw_read(w.ctx, "c.csv", &options); /* counts as missing, as long as values may be */
    x = gather_all(use, 0, &n);
    static const float without[] = {7, 0, 0, 0, 1, 0, 0, 1};
    assert_int_equal(n, 8);
    assert_memory_equal(x, without, sizeof without);
    free(x);
    options.missing = BW_MISSING_ERROR;
    assert_failed(w.ctx, bw_read(w.ctx, "c.csv", &options), BW_INVALID_ARGUMENT,
                  "c.csv: column 'b': 'q' is none of the 3 categories of the training data");
    world_end(&w);
}

/* Texts that differ in little: their length, their middle, a quote. */
static void test_words(void **state)
{
    (void)state;
    static const char *const words[] = {"a",
                                        "aa",
                                        "aaa",
                                        "aaaa",
                                        "aaaaaaaa",
                                        "aaaaaaaaa",
                                        "aaaaaaaaaaaaaaaa",
                                        "aaaaaaaaaaaaaaaaa",
                                        "aaaaaaaabaaaaaaaa",
                                        "aaaaaaaabaaaaaaaaa",
                                        "aaaab",
                                        "ab",
                                        "b",
                                        "ba"};
    enum { WORDS = 14, ROWS = 500 };
    char text[ROWS * 40] = "n,word\n", *at = text + strlen(text);
    for (int i = 0; i < ROWS; i++) {
        at += sprintf(at, i % 3 ? "%d,%s\n" : "%d,\"%s\"\n", i, words[i * i % 37 % WORDS]);
    }
    world w = {0};
    bw_dataset *dataset = read_text(&w, text, NULL);
    int64_t n;
    float *y = gather_all(dataset, 1, &n);
    assert_int_equal(n, ROWS);
    for (int i = 0; i < ROWS; i++) { /* the words stand in order */
        assert_true(y[i] == (float)(i * i % 37 % WORDS));
    }
    for (int i = 0; i < WORDS; i++) {
        assert_string_equal(bw_dataset_class(dataset, i), words[i]);
    }
    free(y);
    world_end(&w);
    refuse("x,y\n1, \n2,b\n", NULL, BW_INVALID_ARGUMENT, "a.csv: line 2: column 'y': a value is missing");
    expect("x , z,y\r\n 1, 2 ,3\r\n\r\n-4 ,\t5,6\r\n12345678901, .5,1e2", NULL, "1 2 -> 3; -4 5 -> 6; 1.23457e+10 0.5 -> 100; ");
}

/* ---- Large text: many blocks, on several workers ---- */

/* `quotes`: around commas and newlines. `inch`: one quote that is only text, so that most newlines have an odd number before
 * them. */
static char *large_text(int rows, bool quotes, bool inch)
{
    char *text = malloc((size_t)rows * 64 + 64), *at = text;
    at += sprintf(at, "number,half,word,label\n");
    for (int i = 0; i < rows; i++) {
        at += sprintf(at, "%d,%d.5,%s,%d\n", i, i / 2,
                      inch && i == 100       ? "5\""
                      : quotes && i % 7 == 0 ? "\"b,\n\"\"\""
                      : i % 3                ? "a"
                                             : "c",
                      i % 5);
        if (i % 1000 == 999) {
            at += sprintf(at, "\n");
        }
    }
    return text;
}

static void check_large(bool quotes, bool inch)
{
    enum { ROWS = 150000 };
    char *text = large_text(ROWS, quotes, inch);
    assert_int_equal(make_folder(NULL), 0);
    const char *path = inside("large.csv");
    FILE *stream = fopen(path, "w");
    fputs(text, stream);
    fclose(stream);
    float *first[2] = {NULL, NULL};
    for (int workers = 1; workers <= 8; workers *= 2) {
        bw_context *ctx = open_context(workers);
        if (workers == 8) {
            ctx->backing_limit = 1 << 16; /* as if it were larger than memory */
        }
        bw_dataset *dataset = bw_read(ctx, path, NULL);
        if (!dataset) {
            fail_msg("%s", bw_message(ctx));
        }
        assert_int_equal(bw_dataset_count(dataset), ROWS);
        if (workers == 8) {
            assert_true(bwi_allocated_bytes(ctx) < (size_t)ROWS * sizeof(float)); /* columns are in a file */
        }
        int64_t n;
        for (int field = 0; field < 2; field++) {
            float *x = gather_all(dataset, field, &n);
            if (!first[field]) {
                first[field] = x;
                continue;
            }
            assert_memory_equal(x, first[field], (size_t)n * sizeof *x);
            free(x);
        }
        int width = 4 + quotes + inch, sample = 123456;
        const float *row = first[0] + sample * width;
        assert_true(row[0] == (float)sample && row[1] == (float)(sample / 2) + 0.5f && row[2 + inch] == (sample % 3 ? 1.0f : 0.0f));
        assert_true(first[1][sample] == (float)(sample % 5));
        char place[200], expected[200];
        int line = sample + 2 + sample / 1000 + (quotes ? (sample + 6) / 7 : 0);
        snprintf(expected, sizeof expected, "%s, line %d", path, line);
        assert_string_equal(bwi_dataset_location(dataset, sample, place, sizeof place), expected);
        bw_close(ctx);
    }
    free(first[0]);
    free(first[1]);
    assert_int_equal(remove_folder(NULL), 0);
    free(text);
}

static void test_large(void **state)
{
    (void)state;
    check_large(false, false);
    check_large(true, false);
    check_large(false, true);
    check_large(true, true);
}

/* The first mistake in the file is told, whichever worker met one first. */
static void test_first_mistake(void **state)
{
    (void)state;
    enum { ROWS = 150000 };
    char *text = large_text(ROWS, false, false);
    strstr(text, "\n70000,")[1] = 'x';
    strstr(text, "\n149000,")[1] = 'x';
    assert_int_equal(make_folder(NULL), 0);
    const char *path = inside("large.csv");
    FILE *stream = fopen(path, "w");
    fputs(text, stream);
    fclose(stream);
    for (int run = 0; run < 10; run++) {
        bw_context *ctx = open_context(4);
        assert_failed(ctx, bw_read(ctx, path, NULL), BW_INVALID_ARGUMENT, ": line 70072: column 'number': 'x0000' is no number");
        bw_close(ctx);
    }
    assert_int_equal(remove_folder(NULL), 0);
    free(text);
}

/* ---- Lists, standard input, damage and faults ---- */

static void test_list(void **state)
{
    (void)state;
    bw_context *ctx = open_context(1);
    char path[9000];
    snprintf(path, sizeof path, "%s/numbers.csv,%s/numbers.csv.gz", BW_TEST_DATA, BW_TEST_DATA);
    bw_dataset *both = bw_read(ctx, path, NULL), *one = read_fixture(ctx, "numbers.csv", NULL);
    assert_non_null(both);
    int64_t count = bw_dataset_count(one);
    assert_int_equal(bw_dataset_count(both), 2 * count);
    same_values(bw_take(both, count), one);
    char place[4200];
    bwi_dataset_location(one, count - 1, place, sizeof place);
    assert_contains(place, "numbers.csv, line 64");
    snprintf(path, sizeof path, "%s/numbers.csv,%s/table.csv", BW_TEST_DATA, BW_TEST_DATA);
    assert_failed(ctx, bw_read(ctx, path, NULL), BW_INVALID_ARGUMENT, "table.csv: its header is not that of");
    snprintf(path, sizeof path, "%s/numbers.csv,%s/only_x.npz", BW_TEST_DATA, BW_TEST_DATA);
    assert_failed(ctx, bw_read(ctx, path, NULL), BW_INVALID_ARGUMENT, "only_x.npz: is no file of the same kind");
    bw_close(ctx);
}

static void test_standard_input(void **state)
{
    (void)state;
    world w = {0};
    char *text = large_text(20000, true, false);
    assert_true(world_begin(&w, (const unsigned char *)text, strlen(text)));
    bw_dataset *dataset = bw_read(w.ctx, "-", NULL);
    if (!dataset) {
        fail_msg("%s", bw_message(w.ctx));
    }
    assert_int_equal(bw_dataset_count(dataset), 20000);
    char place[200];
    assert_string_equal(bwi_dataset_location(dataset, 0, place, sizeof place), "standard input, line 2");
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.take = 300;
    assert_int_equal(bw_dataset_count(bw_read(w.ctx, "-", &options)), 300);
    w.io_fail = w.io_calls + 20;
    assert_failed(w.ctx, bw_read(w.ctx, "-", NULL), BW_DATA_LOSS, "cannot read standard input");
    world_end(&w);
    free(text);
}

/* A gzip file cut anywhere, or with a byte changed, is damaged or an error in the text: never a crash, never silent. */
static void test_damaged_gzip(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = load(BW_TEST_DATA, "numbers.csv.gz", &size);
    for (size_t cut = 1; cut < size; cut += 7) {
        world w = {0};
        unsigned char *part = malloc(cut);
        memcpy(part, bytes, cut);
        assert_true(world_begin(&w, part, cut));
        bw_dataset *dataset = bw_read(w.ctx, "a.csv.gz", NULL);
        if (dataset) { /* cut between the members: nothing tells */
            assert_int_equal(bw_dataset_count(dataset) < 63, true);
        } else {
            assert_true(bwi_pending(w.ctx) != BW_OK);
        }
        assert_true(w.largest < (size_t)40 << 20);
        world_end(&w);
        free(part);
    }
    world w = {0};
    bytes[size - 20] ^= 1;
    assert_true(world_begin(&w, bytes, size));
    assert_failed(w.ctx, bw_read(w.ctx, "a.csv.gz", NULL), BW_DATA_LOSS, "a.csv.gz: the gzip file is damaged after");
    world_end(&w);
    free(bytes);
}

/* Each allocation and each call of the system fails once. */
static void test_faults(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = load(BW_TEST_DATA, "table.csv", &size);
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.missing = BW_MISSING_MEAN;
    int failures = 0;
    for (int64_t nth = 2;; nth++) {
        world w = {.allocation_fail = nth};
        assert_true(world_begin(&w, bytes, size));
        bw_dataset *dataset = bw_read(w.ctx, "a.csv", &options);
        bool failed = w.allocations >= nth;
        if (failed) {
            assert_failed(w.ctx, dataset, BW_RESOURCE_EXHAUSTED, "cannot allocate");
        }
        failures += failed;
        world_end(&w);
        if (!failed) {
            break;
        }
    }
    assert_true(failures > 20);
    for (int64_t nth = 1; nth <= 3; nth++) {
        world w = {.io_fail = nth};
        assert_true(world_begin(&w, bytes, size));
        bw_dataset *dataset = bw_read(w.ctx, "a.csv", &options);
        if (!dataset) {
            assert_true(bwi_pending(w.ctx) != BW_OK);
        }
        world_end(&w);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_categories),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_names_that_are_not_there),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_late_text),
        cmocka_unit_test(test_bad_records),
        cmocka_unit_test(test_like),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_first_mistake),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_standard_input),
        cmocka_unit_test(test_damaged_gzip),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
