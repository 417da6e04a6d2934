/*
 * How fast data is read, beside the least that the same work costs.
 *
 *   data FOLDER  makes its files in FOLDER, measures, and prints a line for each
 *   data FOLDER csv|csv-long|csv-wide|csv-words|csv-quoted|images  [WORKERS]
 *                reads one of them and prints "seconds amount", for peers to compare with
 *
 * Each round times either side once, one after the other; the figure is the median over the rounds of the ratio.
 */
#include "data/internal.h"

#include <jpeglib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ROUNDS = 9, ROWS = 60000, WIDTH = 784, TILE = 32, LINES = 200000, COLUMNS = 20, IMAGES = 400, SIDE = 256, THREADS = 2 };

static void stop(const char *what)
{
    fprintf(stderr, "bench/data: %s\n", what);
    exit(1);
}

static bw_dataset *open_or_stop(bw_context *ctx, bw_dataset *dataset)
{
    if (!dataset) {
        stop(bw_message(ctx));
    }
    return dataset;
}

static char *place(char *path, const char *folder, const char *name)
{
    snprintf(path, 4096, "%s/%s", folder, name);
    return path;
}

static FILE *create(const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file) {
        stop(path);
    }
    return file;
}

static bool is_there(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return values[count / 2];
}

/* ---- The files ---- */

static void write_npy(const char *path)
{
    if (is_there(path)) {
        return;
    }
    FILE *file = create(path);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fprintf(file, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }%*s\n", ROWS, WIDTH,
            117 - snprintf(NULL, 0, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", ROWS, WIDTH), "");
    float row[WIDTH];
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < WIDTH; k++) {
            row[k] = (float)((i * 31 + k) % 1000);
        }
        fwrite(row, sizeof row, 1, file);
    }
    fclose(file);
}

/* ---- CSV files ---- */

static void write_short(FILE *file, bw_random *random)
{
    for (int i = 0; i < COLUMNS; i++) {
        fprintf(file, "c%d,", i);
    }
    fprintf(file, "label\n");
    for (int i = 0; i < LINES; i++) {
        for (int k = 0; k < COLUMNS; k++) {
            fprintf(file, "%.6f,", (double)bw_random_normal(random));
        }
        fprintf(file, "%d\n", (int)bw_random_below(random, 10));
    }
}

/* As doubles are printed that must not lose a bit. */
static void write_long(FILE *file, bw_random *random)
{
    for (int i = 0; i < LINES; i++) {
        for (int k = 0; k < COLUMNS / 2; k++) {
            fprintf(file, "%.17g,", (double)bw_random_normal(random) + 1e-9 * (double)bw_random_normal(random));
        }
        fprintf(file, "%d\n", (int)bw_random_below(random, 10));
    }
}

/* Grey values of images, most of them zero. */
static void write_wide(FILE *file, bw_random *random)
{
    for (int i = 0; i < ROWS / 5; i++) {
        for (int k = 0; k < WIDTH; k++) {
            fprintf(file, "%d,", bw_random_below(random, 5) ? 0 : (int)bw_random_below(random, 256));
        }
        fprintf(file, "%d\n", (int)bw_random_below(random, 10));
    }
}

static void write_words(FILE *file, bw_random *random, const char *quote)
{
    static const char *const work[] = {"private", "self-employed", "state", "federal", "never-worked", "without-pay"};
    static const char *const school[] = {"bachelor", "master", "hs-graduate", "11th", "doctorate", "some-college", "associate"};
    fprintf(file, "age,work,school,gain,hours,score,class\n");
    for (int i = 0; i < 3 * LINES; i++) {
        int age = 17 + (int)bw_random_below(random, 70), hours = (int)bw_random_below(random, 99);
        fprintf(file, "%d,%s%s%s,%s%s%s,%d,%d,%.4f,%s%s%s\n", age, quote, work[bw_random_below(random, 6)], quote, quote,
                school[bw_random_below(random, 7)], quote, (int)bw_random_below(random, 99999), hours,
                (double)bw_random_uniform(random), quote, bw_random_below(random, 3) ? "no" : "yes", quote);
    }
}

static void write_plain(FILE *file, bw_random *random)
{
    write_words(file, random, "");
}

static void write_quoted(FILE *file, bw_random *random)
{
    write_words(file, random, "\"");
}

static const struct table {
    const char *name, *what;
    void (*write)(FILE *file, bw_random *random);
} tables[] = {{"csv", "20 numbers of 6 decimals and a class", write_short},
              {"csv-long", "10 numbers of 17 digits and a class", write_long},
              {"csv-wide", "784 small integers and a class", write_wide},
              {"csv-words", "4 numbers and 3 words", write_plain},
              {"csv-quoted", "4 numbers and 3 words in quotes", write_quoted}};

static const char *table_path(char *path, const char *folder, const struct table *table)
{
    char name[64];
    snprintf(name, sizeof name, "%s.csv", table->name);
    place(path, folder, name);
    if (!is_there(path)) {
        bw_random random = {.seed = 1};
        FILE *file = create(path);
        table->write(file, &random);
        fclose(file);
    }
    return path;
}

/* ---- Images ---- */

static void write_jpeg(const char *path, int number)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned char row[3 * SIDE], *rows[] = {row};
    FILE *file = create(path);
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_width = jpeg.image_height = SIDE;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 90, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    for (int y = 0; y < SIDE; y++) {
        for (int x = 0; x < 3 * SIDE; x++) {
            row[x] = (unsigned char)(128 + 60 * ((x / 3 + number) * (y + 7 * number) % 97) / 97 + (x % 3) * 20 + (x * y) % 13);
        }
        jpeg_write_scanlines(&jpeg, rows, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    fclose(file);
}

static void image_path(char *path, const char *folder, int number)
{
    snprintf(path, 4096, "%s/images/%d/%04d.jpg", folder, number % 2, number);
}

static void write_images(const char *folder)
{
    char path[4096];
    mkdir(place(path, folder, "images"), 0777);
    mkdir(place(path, folder, "images/0"), 0777);
    mkdir(place(path, folder, "images/1"), 0777);
    for (int i = 0; i < IMAGES; i++) {
        image_path(path, folder, i);
        if (!is_there(path)) {
            write_jpeg(path, i);
        }
    }
}

/* ---- Rows of an npy file, in a shuffled order ---- */

static int64_t numbers[ROWS];
static float tile[TILE * WIDTH];

static double gather_rows(bw_dataset *dataset, int epoch)
{
    bwi_destination to = bwi_host_destination(tile, BW_F32, WIDTH);
    int64_t part[TILE];
    double begin = bwi_now();
    for (int64_t first = 0; first < ROWS; first += TILE) {
        bwi_dataset_numbers(dataset, epoch, first, TILE, part);
        if (bwi_dataset_gather(dataset, 0, epoch, part, TILE, &to, NULL) != BW_OK) {
            stop("gather failed");
        }
    }
    return bwi_now() - begin;
}

static double copy_rows(const float *rows)
{
    double begin = bwi_now();
    for (int64_t i = 0; i < ROWS; i++) {
        memcpy(tile + i % TILE * WIDTH, rows + numbers[i] * WIDTH, WIDTH * sizeof *tile);
        __asm__ volatile("" ::: "memory");
    }
    return bwi_now() - begin;
}

static void measure_npy(bw_context *ctx, const char *folder)
{
    char path[4096];
    bwi_bytes bytes;
    write_npy(place(path, folder, "rows.npy"));
    bw_dataset *dataset = open_or_stop(ctx, bw_shuffle(bw_read(ctx, path, NULL), 1));
    if (bwi_file_map(ctx, &bytes, path) != BW_OK) {
        stop(bw_message(ctx));
    }
    const float *rows = (const float *)(const void *)(bytes.data + 128);
    double ratios[ROUNDS], best = 1;
    for (int round = 0; round < ROUNDS; round++) {
        bwi_dataset_numbers(dataset, round, 0, ROWS, numbers);
        copy_rows(rows); /* both files' pages and this round's order are known to the processor alike */
        double mine = gather_rows(dataset, round), plain = copy_rows(rows);
        ratios[round] = plain / mine;
        best = mine < best ? mine : best;
    }
    printf("npy, shuffled rows of %d floats: %.2f GB/s, %.0f percent of memcpy\n", WIDTH,
           ROWS * (double)(WIDTH * sizeof(float)) / best * 1e-9, 100 * median(ratios, ROUNDS));
    bwi_file_unmap(ctx, &bytes);
    bw_dataset_free(dataset);
}

/* ---- Batches of one row in memory ---- */

static void measure_batches(bw_context *ctx)
{
    static float x[1000][4], row[4];
    static int32_t y[1000], label;
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {1000, 4}};
    bw_array targets = {.data = y, .dtype = BW_I32, .ndim = 1, .shape = {1000}};
    bwi_destination to = bwi_host_destination(row, BW_F32, 4);
    bwi_destination to_label = bwi_host_destination(&label, BW_I32, 1);
    bw_dataset *dataset = open_or_stop(ctx, bw_batches(bw_shuffle(bw_from_arrays(ctx, &inputs, &targets, NULL), 1), 1));
    double times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double begin = bwi_now();
        for (int epoch = 0; epoch < 20; epoch++) {
            bw_iterator *iterator = bw_iterate(dataset, epoch);
            bw_batch *batch;
            while (bw_next(iterator, &batch) == BW_OK) {
                bwi_dataset_gather(dataset, 0, epoch, batch->numbers, 1, &to, NULL);
                bwi_dataset_gather(dataset, 1, epoch, batch->numbers, 1, &to_label, NULL);
            }
            bw_iterator_free(iterator);
        }
        times[round] = (bwi_now() - begin) / 20000;
    }
    printf("batches of one shuffled row in memory: %.0f ns each, inputs and target gathered\n", median(times, ROUNDS) * 1e9);
    bw_dataset_free(dataset);
}

/* ---- CSV ---- */

static double read_csv(bw_context *ctx, const char *path)
{
    double begin = bwi_now();
    bw_dataset *dataset = open_or_stop(ctx, bw_read(ctx, path, NULL));
    double seconds = bwi_now() - begin;
    bw_dataset_free(dataset);
    return seconds;
}

static double csv_bytes(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 ? (double)facts.st_size : 0;
}

static void measure_csv(bw_context *ctx, const char *folder)
{
    for (size_t i = 0; i < BWI_COUNT(tables); i++) {
        char path[4096];
        double times[ROUNDS];
        table_path(path, folder, &tables[i]);
        for (int round = 0; round < ROUNDS; round++) {
            times[round] = read_csv(ctx, path);
        }
        printf("csv, %s: %.0f MB/s\n", tables[i].what, csv_bytes(path) / median(times, ROUNDS) * 1e-6);
    }
}

/* ---- JPEG ---- */

typedef struct decoding {
    const char *folder;
    atomic_int next;
} decoding;

/* What a thread of libjpeg-turbo alone does: a file read as a whole, its rows decoded into memory. */
static void decode(const char *path, unsigned char *to)
{
    static _Thread_local unsigned char bytes[1 << 20];
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    FILE *file = fopen(path, "rb");
    if (!file) {
        stop(path);
    }
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, bytes, size);
    jpeg_read_header(&jpeg, TRUE);
    jpeg_start_decompress(&jpeg);
    while (jpeg.output_scanline < jpeg.output_height) {
        unsigned char *row = to + (size_t)jpeg.output_scanline * jpeg.output_width * 3;
        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
}

static void *run_decoder(void *user)
{
    decoding *d = user;
    unsigned char *pixels = malloc(3 * SIDE * SIDE);
    char path[4096];
    for (int i; (i = atomic_fetch_add(&d->next, 1)) < IMAGES;) {
        image_path(path, d->folder, i);
        decode(path, pixels);
    }
    free(pixels);
    return NULL;
}

static double decode_alone(const char *folder)
{
    decoding d = {.folder = folder};
    pthread_t threads[THREADS];
    double begin = bwi_now();
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, run_decoder, &d);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return bwi_now() - begin;
}

/* As training asks for them: batches of 32 in a shuffled order, as float32. */
static double read_images(bw_dataset *dataset, int epoch)
{
    static float pixels[3 * SIDE * SIDE];
    bwi_destination to = {
        .kernels = bwi_kernels_host()->gather, .data = pixels, .dtype = BW_F32, .h = SIDE, .w = SIDE, .c = 3, .block = 3};
    double begin = bwi_now();
    for (int64_t first = 0; first < IMAGES; first += 32) {
        int64_t count = IMAGES - first < 32 ? IMAGES - first : 32;
        bwi_gather_schedule walk = {.epoch = epoch, .first = first, .count = count, .tile = 1, .lanes = 1, .workers = 1};
        char error[BWI_GATHER_ERROR];
        if (bwi_dataset_begin(dataset, &walk) != BW_OK) {
            stop("begin failed");
        }
        for (int64_t i = first; i < first + count; i++) {
            int64_t number = bwi_dataset_number(dataset, epoch, i);
            if (bwi_dataset_gather(dataset, 0, epoch, &number, 1, &to, error) != BW_OK) {
                stop(error);
            }
        }
    }
    return bwi_now() - begin;
}

static bw_dataset *open_images(bw_context *ctx, const char *folder)
{
    char path[4096];
    bw_prefetch_options options = BW_PREFETCH_OPTIONS_DEFAULT;
    options.threads = THREADS;
    write_images(folder);
    return open_or_stop(ctx, bw_prefetch(bw_shuffle(bw_read(ctx, place(path, folder, "images"), NULL), 1), &options));
}

/* The ring makes ahead of what is asked for; so an epoch is timed between two others, and as much is made in it as asked for. */
static void measure_images(bw_context *ctx, const char *folder)
{
    bw_dataset *dataset = open_images(ctx, folder);
    double ratios[ROUNDS], times[ROUNDS];
    read_images(dataset, 0);
    for (int round = 0; round < ROUNDS; round++) {
        double alone = decode_alone(folder);
        read_images(dataset, 2 * round + 1);
        times[round] = read_images(dataset, 2 * round + 2);
        ratios[round] = alone / times[round];
    }
    printf("jpeg folder, %dx%d: %.0f images/s, %.0f percent of %d threads of libjpeg alone\n", SIDE, SIDE,
           IMAGES / median(times, ROUNDS), 100 * median(ratios, ROUNDS), THREADS);
    bw_dataset_free(dataset);
}

/* ---- For peers ---- */

static void serve(bw_context *ctx, const char *folder, const char *what)
{
    char path[4096];
    for (size_t i = 0; i < BWI_COUNT(tables); i++) {
        if (strcmp(what, tables[i].name) == 0) {
            table_path(path, folder, &tables[i]);
            printf("%.6f %.0f\n", read_csv(ctx, path), csv_bytes(path));
            return;
        }
    }
    if (strcmp(what, "images") == 0) {
        bw_dataset *dataset = open_images(ctx, folder);
        read_images(dataset, 0);
        read_images(dataset, 1);
        printf("%.6f %d\n", read_images(dataset, 2), IMAGES);
    } else {
        stop("expected csv, csv-long, csv-wide, csv-words, csv-quoted or images");
    }
}

int main(int count, char **arguments)
{
    if (count < 2) {
        stop("expected a folder for its files");
    }
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = count > 3 ? atoi(arguments[3]) : 0;
    bw_context *ctx = bw_open(&options);
    if (count > 2) {
        serve(ctx, arguments[1], arguments[2]);
    } else {
        measure_npy(ctx, arguments[1]);
        measure_batches(ctx);
        measure_csv(ctx, arguments[1]);
        measure_images(ctx, arguments[1]);
    }
    bw_close(ctx);
    return 0;
}
