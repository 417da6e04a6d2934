/* Folders of images: order, classes, sizes, what is left out, what is refused, and messages that name the file. */
#include "data_test.h"
#include "support/folder.h"

#include <sys/stat.h>
#include <unistd.h>

static char heard[4096];

static void hear(void *user, bw_log_level level, const char *message)
{
    (void)user;
    size_t used = strlen(heard);
    snprintf(heard + used, sizeof heard - used, "%s%s\n", level == BW_LOG_WARNING ? "! " : "", message);
}

static bw_context *open_hearing(void)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 2;
    options.log = hear;
    heard[0] = 0;
    return bw_open(&options);
}

static void put(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(inside(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void put_picture(const char *name, const char *from)
{
    size_t size;
    unsigned char *bytes = load(BW_TEST_DATA "/images", from, &size);
    put(name, bytes, size);
    free(bytes);
}

static void test_values(void **state)
{
    (void)state;
    bw_context *ctx = open_hearing();
    bw_dataset *dataset = bw_read(ctx, BW_TEST_DATA "/images/classes", NULL);
    bw_dataset *expected = bw_read(ctx, BW_TEST_DATA "/images/classes.npz", NULL);
    int64_t shape[BW_MAX_NDIM], count, other;
    char place[256];
    assert_int_equal(bw_dataset_count(dataset), 6);
    assert_int_equal(bw_dataset_shape(dataset, shape), 3);
    assert_int_equal(shape[0] * 10000 + shape[1] * 100 + shape[2], 81003);
    for (int field = 0; field < 2; field++) {
        float *values = gather_all(dataset, field, &count), *right = gather_all(expected, field, &other);
        assert_int_equal(count, other);
        assert_memory_equal(values, right, (size_t)count * sizeof *values);
        free(values);
        free(right);
    }
    assert_string_equal(bw_dataset_class(dataset, 0), "cat");
    assert_string_equal(bw_dataset_class(dataset, 1), "dog");
    assert_null(bw_dataset_class(dataset, 2));
    assert_contains(bwi_dataset_location(dataset, 4, place, sizeof place), "classes/dog/1.png");
    assert_contains(heard, "images are brought to 8x10x3, the size of cat/0.png");
    assert_contains(heard, "6 images of 2 classes");
    bw_close(ctx);
}

/* The shape that is asked for, and that of a dataset a model was trained with. */
static void test_shapes(void **state)
{
    (void)state;
    bw_context *ctx = open_hearing();
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    const char *path = BW_TEST_DATA "/images/classes/";
    int64_t shape[BW_MAX_NDIM], count;
    options.ndim = 3;
    memcpy(options.shape, (int64_t[]){4, 5, 1}, 3 * sizeof(int64_t));
    bw_dataset *small = bw_read(ctx, path, &options);
    assert_int_equal(bw_dataset_shape(small, shape), 3);
    assert_int_equal(shape[0] * 10000 + shape[1] * 100 + shape[2], 40501);
    float *values = gather_all(small, 0, &count);
    assert_int_equal(count, 6 * 20);
    for (int64_t i = 0; i < count; i++) {
        assert_true(values[i] >= 0 && values[i] <= 255);
    }
    free(values);
    options.ndim = 2;
    assert_int_equal(bw_dataset_shape(bw_read(ctx, path, &options), shape), 2);
    options.ndim = 0;
    options.like = small;
    assert_int_equal(bw_dataset_shape(bw_read(ctx, path, &options), shape), 3);
    assert_int_equal(shape[0] * 10000 + shape[1] * 100 + shape[2], 40501);
    options.like = NULL;
    static const int64_t wrong[][4] = {{3, 4, 5, 2}, {3, 0, 5, 3}, {3, 100000, 5, 3}, {1, 784, 0, 0}, {3, 60000, 60000, 3}};
    for (size_t i = 0; i < BWI_COUNT(wrong); i++) {
        options.ndim = (int)wrong[i][0];
        memcpy(options.shape, wrong[i] + 1, 3 * sizeof(int64_t));
        assert_failed(ctx, bw_read(ctx, path, &options), BW_INVALID_ARGUMENT, "images cannot have the shape");
    }
    options.ndim = 0;
    options.target = "label";
    assert_failed(ctx, bw_read(ctx, path, &options), BW_INVALID_ARGUMENT, "'target' is not for this kind");
    bw_close(ctx);
}

static void test_folder(void **state)
{
    (void)state;
    mkdir(inside("b"), 0777);
    mkdir(inside("a"), 0777);
    mkdir(inside(".hidden"), 0777);
    mkdir(inside("a/deeper.png"), 0777);
    put_picture("a/2.PNG", "gray.png");
    put_picture("a/10.jpeg", "photo.jpg");
    put_picture("a/.x.png", "gray.png");
    put_picture("a/jpeg_inside.png", "photo.jpg");
    put_picture("loose.png", "gray.png");
    put("a/notes.txt", "x", 1);
    bw_context *ctx = open_hearing();
    bw_dataset *dataset = bw_read(ctx, folder, NULL);
    char place[256];
    int64_t count;
    assert_int_equal(bw_dataset_count(dataset), 3);
    assert_contains(bwi_dataset_location(dataset, 0, place, sizeof place), "/a/10.jpeg");
    assert_contains(bwi_dataset_location(dataset, 1, place, sizeof place), "/a/2.PNG");
    assert_string_equal(bw_dataset_class(dataset, 1), "b");
    free(gather_all(dataset, 0, &count));
    assert_contains(heard, "brought to 61x83x3, the size of a/10.jpeg");
    assert_contains(heard, "/b: no PNG or JPEG images in this class folder");
    assert_contains(heard, "left out: 2 names in class folders that are no .png, .jpg or .jpeg, 1 image beside");
    bw_close(ctx);
}

/* A model that knows cat and dog. */
static void test_like(void **state)
{
    (void)state;
    mkdir(inside("dog"), 0777);
    put_picture("dog/1.png", "rgb.png");
    bw_context *ctx = open_hearing();
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.like = bw_read(ctx, BW_TEST_DATA "/images/classes", NULL);
    bw_dataset *dataset = bw_read(ctx, folder, &options);
    int64_t count;
    float *labels = gather_all(dataset, 1, &count);
    assert_int_equal(count, 1);
    assert_true(labels[0] == 1);
    assert_string_equal(bw_dataset_class(dataset, 0), "cat");
    free(labels);
    mkdir(inside("bird"), 0777);
    assert_failed(ctx, bw_read(ctx, folder, &options), BW_INVALID_ARGUMENT, "the class 'bird' is none of the 2");
    bw_close(ctx);
}

static void test_refused(void **state)
{
    (void)state;
    bw_context *ctx = open_hearing();
    assert_failed(ctx, bw_read(ctx, folder, NULL), BW_NOT_FOUND, "no class folders in it");
    assert_failed(ctx, bw_read(ctx, inside("none/"), NULL), BW_NOT_FOUND, "cannot list the folder");
    mkdir(inside("a"), 0777);
    assert_failed(ctx, bw_read(ctx, folder, NULL), BW_NOT_FOUND, "no PNG or JPEG images in its 1 class folder");
    mkdir(inside("a/cat"), 0777);
    assert_failed(ctx, bw_read(ctx, folder, NULL), BW_NOT_FOUND,
                  "in its 1 class folder, holding folders; name the folder that holds the class folders, such as ");
    rmdir(inside("a/cat"));
    assert_failed(ctx, bw_read(ctx, inside("a/none.png"), NULL), BW_NOT_FOUND, "none.png: not found: there is no such file");
    put_picture("a/1.png", "rgb.png");
    assert_non_null(bw_read(ctx, folder, NULL));
    assert_contains(heard, "1 image of 1 class");
    assert_contains(heard, "there is one class folder, 'a', so that a classifier has nothing to tell apart");
    unlink(inside("a/1.png"));
    assert_int_equal(symlink(BW_TEST_DATA "/images/rgb.png", inside("a/link.png")), 0);
    assert_failed(ctx, bw_read(ctx, folder, NULL), BW_INVALID_ARGUMENT, "/a/link.png: is a symbolic link");
    unlink(inside("a/link.png"));
    put_picture("a/1.png", "rgb.png");
    assert_int_equal(symlink(BW_TEST_DATA "/images/classes/dog", inside("dog")), 0);
    assert_failed(ctx, bw_read(ctx, folder, NULL), BW_INVALID_ARGUMENT, "/dog: is a symbolic link");
    unlink(inside("dog"));
    bw_dataset *dataset = bw_read(ctx, folder, NULL);
    assert_non_null(dataset);
    /* A link that comes later is not followed either. */
    unlink(inside("a/1.png"));
    assert_int_equal(symlink(BW_TEST_DATA "/images/rgb.png", inside("a/1.png")), 0);
    unsigned char values[13 * 17 * 3 * 4];
    bwi_destination to = bwi_host_destination(values, BW_F32, 13 * 17 * 3);
    char error[BWI_GATHER_ERROR] = "";
    int64_t zero = 0;
    assert_int_not_equal(bwi_dataset_gather(dataset, 0, 0, &zero, 1, &to, error), BW_OK);
    assert_contains(error, "a/1.png): cannot read it");
    bw_close(ctx);
}

/* A damaged file: the sample, the file and what is wrong, while reading if it is the first one, else when it is gathered. */
static void test_damaged(void **state)
{
    (void)state;
    mkdir(inside("a"), 0777);
    put_picture("a/1.png", "huge.png");
    bw_context *ctx = open_hearing();
    assert_failed(ctx, bw_read(ctx, folder, NULL), BW_INVALID_ARGUMENT, "a/1.png: an image of 60000 x 60000 pixels");
    put_picture("a/1.png", "rgb.png");
    put_picture("a/2.png", "text.png");
    put_picture("a/3.jpg", "damaged.jpg");
    bw_dataset *dataset = bw_read(ctx, folder, NULL);
    float values[13 * 17 * 3];
    bwi_destination to = {
        .kernels = bwi_kernels_host()->gather, .data = values, .dtype = BW_F32, .h = 13, .w = 17, .c = 3, .block = 3};
    for (int64_t i = 1; i < 3; i++) {
        char error[BWI_GATHER_ERROR] = "", expected[sizeof folder + 64];
        assert_int_equal(bwi_dataset_gather(dataset, 0, 0, &i, 1, &to, error), BW_DATA_LOSS);
        snprintf(expected, sizeof expected, "sample %d (%s/a/%s): ", (int)i, folder, i == 1 ? "2.png" : "3.jpg");
        assert_contains(error, expected);
        assert_contains(error, i == 1 ? "neither PNG nor JPEG" : "damaged JPEG");
    }
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test_setup_teardown(test_folder, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_like, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_refused, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_damaged, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
