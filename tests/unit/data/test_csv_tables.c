/* Tables as people have them: separators, decimal commas, titles, comments, dates, several targets, and columns that hold something
 * else than they seem to. What is decided is in the log, what cannot be is refused with the remedy. */
#include "csv_test.h"

#include <stdlib.h>

static const bw_read_options none = BW_READ_OPTIONS_DEFAULT;

static void test_separators(void **state)
{
    (void)state;
    bw_read_options options = none;
    expect("a;b;y\n1;2;3\n4;5;6\n", NULL, "1 2 -> 3; 4 5 -> 6; ");
    assert_contains(logged, "a.csv: fields are separated by ';'");
    expect("a\tb\ty\n1\t2\t3\n4\t\"5\"\t6\n", NULL, "1 2 -> 3; 4 5 -> 6; ");
    assert_contains(logged, "a.csv: fields are separated by tabs");
    expect("  1   2\t3  \r\n4 5 6\n\n  \n7   8 9", NULL, "1 2 -> 3; 4 5 -> 6; 7 8 -> 9; ");
    assert_contains(logged, "a.csv: fields are separated by blanks");
    expect("18.0  8\t\"a car\"\n17.0  9\t\"b car\"\n", NULL, "18 8 -> 0; 17 9 -> 1; ");
    /* Decimal commas; the same text with another separator has other numbers. */
    expect("a;b;y\r\n1,5;2;3\r\n-4,25;5;6,5\r\n", NULL, "1.5 2 -> 3; -4.25 5 -> 6.5; ");
    assert_contains(logged, "a.csv: numbers have a decimal comma");
    expect("1,5\n4,25\n", NULL, "1 -> 5; 4 -> 25; ");
    expect("a;b\n1.234,5;1\n2,5;2\n", &(bw_read_options){.size = sizeof options, .scale = 1, .ignore = "0", .target = ""},
           "1 ; 2 ; ");
    /* A comma stays one where texts hold other marks, and one column has none. */
    expect("1,a;b,2\n3,c;d,4\n", NULL, "1 1 0 -> 2; 3 0 1 -> 4; ");
    expect("petal length\n1.5\n2.5\n", NULL, "1.5 ; 2.5 ; ");
    expect("a|b|y\n1|2|3\n4|5|6\n", NULL, "1 2 -> 3; 4 5 -> 6; ");
    options.separator = "|";
    expect("1|2,5|3\n4|5,5|6\n", &options, "1 2.5 -> 3; 4 5.5 -> 6; ");
    options.separator = "tab";
    expect("1\t2\n3\t4\n", &options, "1 -> 2; 3 -> 4; ");
    options.separator = "::";
    refuse("1|2\n", &options, BW_INVALID_ARGUMENT, "separator: expected a character such as ; or |, tab or space, found '::'");
    refuse("1;2;3\n4;5\n6;7;8\n", NULL, BW_INVALID_ARGUMENT, "a.csv: line 2: 2 fields, expected 3");
    refuse("1 2 3\n4 5 6\n7 8\n", NULL, BW_INVALID_ARGUMENT, "a.csv: line 3: ");
}

static void test_beginnings(void **state)
{
    (void)state;
    bw_read_options options = none;
    static const char *const title = "My data\na,b,y\n1,2,3\n4,5,6\n";
    refuse(title, NULL, BW_INVALID_ARGUMENT,
           "a.csv: line 1: 1 field, but the lines after it have 3 (separated by ','); if it is a title, skip it (--skip-rows)");
    options.skip_rows = 1;
    expect(title, &options, "1 2 -> 3; 4 5 -> 6; ");
    options.skip_rows = 9;
    refuse(title, &options, BW_INVALID_ARGUMENT, "a.csv: 9 rows are to be skipped, but it has 4 lines");
    options.skip_rows = -1;
    refuse(title, &options, BW_INVALID_ARGUMENT, "bw_read_options.skip_rows is -1");
    refuse("a,b\n1,2,3\n4,5,6\n", NULL, BW_INVALID_ARGUMENT,
           "line 1: 2 fields, but the lines after it have 3 (separated by ','); does the header lack a name");
    /* Comments have other fields than records; a header or a record may begin with # as well. */
    expect("# by me\na,b,y\n1,2,3\n# a note, so\n4,5,6\n", NULL, "1 2 -> 3; 4 5 -> 6; ");
    assert_contains(logged, "a.csv: comments (lines that begin with #) among the records: 1");
    expect("#,b,y\n1,2,3\n4,5,6\n", NULL, "1 2 -> 3; 4 5 -> 6; ");
    options = none;
    options.target = "a";
    expect("# a,b,y\n1,2,3\n4,5,6\n", &options, "2 3 -> 1; 5 6 -> 4; ");
    refuse("a,b,y\n1,2,3\n#4,5,6\n7,8,9\n", NULL, BW_INVALID_ARGUMENT, "line 3: column 'a': '#4' is no number");
    refuse("\xFF\xFE"
           "a\x01,b\n",
           NULL, BW_INVALID_ARGUMENT, "a.csv: is text in UTF-16; save it as UTF-8");
    refuse("a,b\r1,2\r3,4\r", NULL, BW_INVALID_ARGUMENT, "its lines end with CR alone");
    /* A separator at the end of every line makes no column. */
    expect("a,b,y,\n1,2,3,\n4,5,6,\n", NULL, "1 2 -> 3; 4 5 -> 6; ");
    assert_contains(logged, "every line ends with ','; the empty column after it is left out");
    refuse("a,b,y,z\n1,2,3,\n4,5,6,\n", NULL, BW_INVALID_ARGUMENT, "column 'z': a value is missing");
}

/* Appends rows "i,word or number,i % 2". */
static char *table(int rows, int at, const char *word, const char *prefix)
{
    char *text = malloc(64 * (size_t)rows + 64), *end = text + sprintf(text, "a,hp,y\n");
    for (int i = 0; i < rows; i++) {
        end += sprintf(end, "%d.5,", i);
        end += i == at ? sprintf(end, "%s", word) : sprintf(end, "%s%d", prefix, i);
        end += sprintf(end, ",%d\n", i % 2);
    }
    return text;
}

static int64_t width_of(const char *text, const bw_read_options *options)
{
    world w = {0};
    int64_t shape[BW_MAX_NDIM] = {0};
    bw_dataset *dataset = read_text(&w, text, options);
    if (!dataset) {
        fail_msg("%s", bw_message(w.ctx));
    }
    bw_dataset_shape(dataset, shape);
    world_end(&w);
    return shape[0];
}

static void test_kinds(void **state)
{
    (void)state;
    bw_read_options options = none;
    /* One word among 300 numbers is a mistake, not 301 inputs. */
    char *text = table(300, 32, "abc", "");
    refuse(text, NULL, BW_INVALID_ARGUMENT,
           "a.csv: line 34: column 'hp': 'abc' is no number; if it stands for a missing value, say so (--na); if the column's "
           "values are "
           "categories, name the column (--categorical)");
    options.na = "x,abc";
    refuse(text, &options, BW_INVALID_ARGUMENT, "line 34: column 'hp': a value is missing");
    options.missing = BW_MISSING_SKIP;
    assert_int_equal(width_of(text, &options), 2);
    options = none;
    options.categorical = "hp";
    assert_int_equal(width_of(text, &options), 301);
    assert_contains(logged, "column 'hp' is text (line 34 has 'abc') and becomes 300 inputs");
    assert_contains(logged, "leave it out with --ignore hp");
    options = none;
    options.bad_records = 0.1;
    assert_int_equal(width_of(text, &options), 2);
    free(text);
    /* Numbers may stand for missing values, also in the middle of a fast line. */
    options = none;
    options.na = "-999";
    options.missing = BW_MISSING_ZERO;
    expect("1,2,3\n4,-999,6\n", &options, "1 2 -> 3; 4 0 -> 6; ");
    /* Infinity is a number, and refused. */
    text = table(30, 5, "-Inf", "");
    refuse(text, NULL, BW_INVALID_ARGUMENT,
           "a.csv: line 7: column 'hp': '-Inf' is not finite; if it stands for a missing value, say --na");
    free(text);
    text = table(30, 5, "1e39", "");
    refuse(text, NULL, BW_INVALID_ARGUMENT, "a.csv: line 7: column 'hp': 1e+39 is too large for float32");
    free(text);
    /* Every text column has its line. */
    assert_int_equal(width_of("a,city,y\n1,Bonn,no\n2,Rome,yes\n3,Bonn,no\n", NULL), 3);
    assert_contains(logged, "a.csv: column 'city' is text (line 2 has 'Bonn') and becomes 2 inputs, one for each category");
    assert_contains(logged, "a.csv: the target, column 'y', is text (line 2 has 'no'): 2 classes");
    text = table(100, -1, "", "car ");
    assert_int_equal(width_of(text, NULL), 101);
    assert_contains(logged,
                    "and becomes 100 inputs, one for each category, for 100 samples, which can only be learned by heart; leave "
                    "it out with --ignore hp");
    free(text);
}

static void test_no_numbers(void **state)
{
    (void)state;
    static const char *const dates[][2] = {
        {"2020-01-0", ""}, {"1/", "/20"}, {"", ".3.2020"}, {"2020-02-0", " 10:00:00"}, {"2020/1/", ""}};
    bw_read_options options = none;
    for (size_t i = 0; i < sizeof dates / sizeof dates[0]; i++) {
        char text[256] = "a,when,y\n";
        for (int k = 1; k < 5; k++) {
            sprintf(text + strlen(text), "%d,%s%d%s,%d\n", k, dates[i][0], k, dates[i][1], k % 2);
        }
        refuse(text, NULL, BW_INVALID_ARGUMENT, "a.csv: line 2: column 'when' holds dates ('");
        options.ignore = "when";
        assert_int_equal(width_of(text, &options), 1);
        options.ignore = NULL;
    }
    refuse("a,p,y\n1,\"1,234\",2\n2,\"12,345.5\",3\n", NULL, BW_INVALID_ARGUMENT,
           "a.csv: line 2: column 'p' holds numbers with signs or separated thousands ('1,234'), which cannot be read as numbers; "
           "write "
           "them as numbers, leave the column out (--ignore p), or make each value a category (--categorical p)");
    refuse("a,p,y\n1,12%,2\n2,$5,3\n", NULL, BW_INVALID_ARGUMENT, "column 'p' holds numbers with signs");
    assert_int_equal(width_of("a,v,y\n1,1.2.3,0\n2,x/y,1\n", NULL), 3); /* a version, a text */
    /* What counts the rows is told. */
    width_of(",a,y\n0,4.5,0\n1,3,1\n2,9,0\n", NULL);
    assert_contains(logged, "a.csv: column 0 counts the rows and says nothing about them; leave it out with --ignore 0");
    width_of("Id,a,y\n1,4.5,0\n2,3,1\n3,9,0\n", NULL);
    assert_contains(logged, "leave it out with --ignore Id");
    width_of("id,a,y\n842302,4.5,0\n842303,3,1\n842304,9,0\n", NULL);
    assert_contains(logged, "leave it out with --ignore id");
    width_of("t,a,y\n1,4.5,0\n2,3,1\n3,9,0\n", NULL);
    assert_null(strstr(logged, "counts the rows"));
}

static void test_nul_bytes(void **state)
{
    (void)state;
    static const char text[] = "a,b\n1,2\nNA\0\0,3\n4,5\n";
    world w = {0};
    assert_true(world_begin(&w, (const unsigned char *)text, sizeof text - 1));
    bw_read_options options = none;
    options.missing = BW_MISSING_SKIP;
    assert_failed(w.ctx, bw_read(w.ctx, "a.csv", &options), BW_INVALID_ARGUMENT,
                  "line 3: column 'a': 'NA?"
                  "?' is no number");
    world_end(&w);
}

static void test_several_targets(void **state)
{
    (void)state;
    static const char *const text = "a,y1,b,\"y,2\"\n1,2,3,4.5\n5,6,7,8\n";
    bw_read_options options = none;
    options.target = "y1,b";
    expect(text, &options, "1 4.5 -> 2 3; 5 8 -> 6 7; ");
    options.target = "b,0";
    expect(text, &options, "2 4.5 -> 3 1; 6 8 -> 7 5; ");
    options.target = "y,2";
    expect(text, &options, "1 2 3 -> 4.5; 5 6 7 -> 8; ");
    options.target = "y1,y1";
    refuse(text, &options, BW_INVALID_ARGUMENT, "the option 'target' names column 'y1' twice");
    options.target = "y1,y3";
    refuse(text, &options, BW_NOT_FOUND, "the option 'target' names a column 'y3', which is not there; did you mean 'y1'?");
    options.target = "a";
    refuse("a,b,a\n1,2,3\n4,5,6\n", &options, BW_INVALID_ARGUMENT,
           "the option 'target' names column 'a', as columns 0 and 2 are called; give its number");
    options.target = "0";
    expect("a,b,a\n1,2,3\n4,5,6\n", &options, "2 3 -> 1; 5 6 -> 4; ");
    options.target = "y1,c";
    refuse("a,y1,c\n1,2,x\n5,6,y\n", &options, BW_INVALID_ARGUMENT, "line 2: column 'c', one of 2 targets, is text");
    options.target = "y1,b";
    refuse("a,y1,b\n1,2,3\n5,,7\n", &options, BW_INVALID_ARGUMENT, "line 3: column 'y1': a value is missing");
}

/* Reads `second` as `first` was, with options for each; gives what `expect` would. */
static void like(const char *first, const bw_read_options *options, const char *second, const bw_read_options *given,
                 const char *expected)
{
    world w = {0};
    bw_dataset *other = read_text(&w, first, options);
    assert_non_null(other);
    bw_read_options again = *given;
    again.like = other;
    w.bytes = (const unsigned char *)second;
    w.size = strlen(second);
    bw_dataset *dataset = bw_read(w.ctx, "b.csv", &again);
    if (!dataset) {
        assert_contains(bw_message(w.ctx), expected);
        bw_dataset_free(other);
        world_end(&w);
        return;
    }
    char found[256] = "";
    int64_t n, m = 0;
    float *x = gather_all(dataset, 0, &n), *y = bwi_dataset_fields(dataset) > 1 ? gather_all(dataset, 1, &m) : NULL;
    for (int64_t i = 0; i < n; i++) {
        sprintf(found + strlen(found), "%g ", (double)x[i]);
    }
    for (int64_t i = 0; i < m; i++) {
        sprintf(found + strlen(found), "-> %g", (double)y[i]);
    }
    assert_string_equal(found, expected);
    free(x);
    free(y);
    bw_dataset_free(dataset);
    bw_dataset_free(other);
    world_end(&w);
}

/* Without names the same columns are targets and left out again. */
static void test_places(void **state)
{
    (void)state;
    static const char *const all = "1,2,3,4,5\n6,7,8,9,10\n";
    bw_read_options options = none, given = none;
    options.target = "1";
    options.ignore = "3";
    like(all, &options, "11,12,13,14,15\n", &none, "11 13 15 -> 12");
    like(all, &options, "11,13,15\n", &none, "11 13 15 ");
    like(all, &options, "11,12,13,15\n", &none,
         "b.csv: 4 columns, but the dataset given as `like` had 5: 3 inputs, 1 target, 1 left out");
    given.target = "";
    like(all, &options, "11,13,14,15\n", &given, "11 13 15 ");
    given.target = "1";
    like(all, &options, "11,12,13,15\n", &given, "11 13 15 -> 12");
    options.target = "3,0";
    options.ignore = NULL;
    like(all, &options, "11,12,13,14,15\n", &none, "12 13 15 -> 14-> 11");
    like(all, &options, "12,13,15\n", &none, "12 13 15 ");
    /* By names: what an option names must be there, and must not contradict the model. */
    static const char *const named = "a,b,c,y\n1,2,3,4\n5,6,7,8\n";
    options = given = none;
    options.ignore = "b";
    like(named, &options, "y,c,a\n1,2,3\n", &none, "3 2 -> 1");
    given.ignore = "nme";
    like(named, &options, "y,c,a\n1,2,3\n", &given, "the option 'ignore' names a column 'nme', which is not there");
    given.ignore = "c";
    like(named, &options, "y,c,a\n1,2,3\n", &given, "the option 'ignore' leaves out column 'c', which the model was trained with");
    given = none;
    given.categorical = "foo";
    like(named, &options, "y,c,a\n1,2,3\n", &given, "the option 'categorical' names a column 'foo', which is not there");
    given.categorical = "a";
    like(named, &options, "y,c,a\n1,2,3\n", &given, "the option 'categorical' names column 'a', which holds numbers");
    options.target = "y,c";
    options.ignore = NULL;
    like(named, &options, "y,c,a,b\n1,2,3,4\n", &none, "3 4 -> 1-> 2");
    like(named, &options, "a,b\n3,4\n", &none, "3 4 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_separators), cmocka_unit_test(test_beginnings), cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_no_numbers), cmocka_unit_test(test_nul_bytes),  cmocka_unit_test(test_several_targets),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
