/*
 * Augments images while training. A text lists rows of the table below, which are applied in its order, e.g.
 * "flip,shift=0.1,rotate=15,noise=0.05". What happens to a sample is a function of seed, epoch and the sample's number alone. In
 * validation, evaluation and prediction images are left unchanged.
 *
 * Geometry. Each geometric row is an affine map from a pixel of its result to a point of its source. Consecutive rows are composed
 * and the image is sampled once: bilinearly between the four neighbours, where points outside take the nearest pixel of the edge.
 * Pixels count from 0, the centre is ((w - 1) / 2, (h - 1) / 2). Flips and shifts meet pixels exactly and change no value.
 */
#include "data/read/read.h"
#include "data/transform/transform.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 32, NAME = 16 };

/* x' = m[0] x + m[1] y + m[2], y' = m[3] x + m[4] y + m[5] */
typedef struct view {
    double m[6];
} view;

typedef struct image {
    int64_t h, w, c;
    float *at;
} image;

typedef struct step step;

typedef struct row {
    const char *name;
    double least, most; /* limits of its number; both 0: it has none */
    const char *words;  /* or one of these, separated by blanks; the first is the default; NULL: it needs a number */
    view (*look)(const step *step, const image *size, bw_random *random); /* for a geometric row */
    void (*change)(const step *step, const image *p, bw_random *random);  /* for other rows */
} row;

struct step {
    const row *row;
    double number;
    int word;
};

typedef struct augment {
    uint64_t seed;
    int count;
    step steps[MOST_ROWS];
} augment;

/* Draws a number from -1 to 1. */
static double draw(bw_random *random)
{
    return 2 * (double)bw_random_uniform(random) - 1;
}

/* ---- Geometry ---- */

/* Applies the outer map first, then the inner one. */
static view compose(const view *inner, const view *outer)
{
    const double *a = inner->m, *b = outer->m;
    return (view){{a[0] * b[0] + a[1] * b[3], a[0] * b[1] + a[1] * b[4], a[0] * b[2] + a[1] * b[5] + a[2],
                   a[3] * b[0] + a[4] * b[3], a[3] * b[1] + a[4] * b[4], a[3] * b[2] + a[4] * b[5] + a[5]}};
}

/* Makes a linear map about the image's centre. */
static view about_centre(const image *size, double xx, double xy, double yx, double yy)
{
    double x = (double)(size->w - 1) / 2, y = (double)(size->h - 1) / 2;
    return (view){{xx, xy, x - xx * x - xy * y, yx, yy, y - yx * x - yy * y}};
}

enum { FLIP_HORIZONTAL, FLIP_VERTICAL };

/* Flips along each axis with probability 1/2. */
static view look_flip(const step *s, const image *size, bw_random *random)
{
    bool x = bw_random_uniform(random) < 0.5F, y = bw_random_uniform(random) < 0.5F;
    return about_centre(size, x && s->word != FLIP_VERTICAL ? -1 : 1, 0, 0, y && s->word != FLIP_HORIZONTAL ? -1 : 1);
}

/* Shifts by whole pixels. A number below 1 is a share of the side, otherwise a number of pixels. */
static view look_shift(const step *s, const image *size, bw_random *random)
{
    double x = draw(random), y = draw(random);
    double wide = s->number < 1 ? s->number * (double)size->w : s->number;
    double high = s->number < 1 ? s->number * (double)size->h : s->number;
    return (view){{1, 0, round(x * wide), 0, 1, round(y * high)}};
}

/* Takes a random window with at least the given share of each side, and makes it the whole image. */
static view look_crop(const step *s, const image *size, bw_random *random)
{
    double share = s->number + (1 - s->number) * (double)bw_random_uniform(random);
    double x = (double)bw_random_uniform(random), y = (double)bw_random_uniform(random);
    return (view){{share, 0, x * (1 - share) * (double)(size->w - 1), 0, share, y * (1 - share) * (double)(size->h - 1)}};
}

static view look_rotate(const step *s, const image *size, bw_random *random)
{
    double angle = draw(random) * s->number * (M_PI / 180);
    return about_centre(size, cos(angle), -sin(angle), sin(angle), cos(angle));
}

static view look_zoom(const step *s, const image *size, bw_random *random)
{
    double factor = 1 + draw(random) * s->number;
    return about_centre(size, factor, 0, 0, factor);
}

/* Returns the left one of the two pixels around a coordinate, and the share of the right one. */
static int64_t between(double coordinate, int64_t extent, float *share)
{
    double last = (double)(extent - 1);
    coordinate = coordinate > 0 ? coordinate < last ? coordinate : last : 0;
    int64_t left = (int64_t)coordinate < extent - 2 ? (int64_t)coordinate : extent - 2;
    *share = (float)(coordinate - (double)left);
    return left;
}

static void sample(const view *v, const image *from, float *to)
{
    int64_t right = from->w > 1 ? from->c : 0, below = from->h > 1 ? from->w * from->c : 0;
    for (int64_t y = 0; y < from->h; y++) {
        for (int64_t x = 0; x < from->w; x++) {
            float fx = 0, fy = 0;
            double px = v->m[0] * (double)x + v->m[1] * (double)y + v->m[2],
                   py = v->m[3] * (double)x + v->m[4] * (double)y + v->m[5];
            int64_t left = from->w > 1 ? between(px, from->w, &fx) : 0, top = from->h > 1 ? between(py, from->h, &fy) : 0;
            const float *at = from->at + (top * from->w + left) * from->c;
            for (int64_t c = 0; c < from->c; c++, at++) {
                float upper = (1 - fx) * at[0] + fx * at[right], lower = (1 - fx) * at[below] + fx * at[below + right];
                *to++ = (1 - fy) * upper + fy * lower;
            }
        }
    }
}

/* ---- Values ---- */

static void change_brightness(const step *s, const image *p, bw_random *random)
{
    float factor = (float)(1 + draw(random) * s->number);
    for (int64_t i = 0; i < p->h * p->w * p->c; i++) {
        p->at[i] *= factor;
    }
}

/* Scales the differences from the channel's mean. */
static void change_contrast(const step *s, const image *p, bw_random *random)
{
    float factor = (float)(1 + draw(random) * s->number);
    int64_t pixels = p->h * p->w;
    for (int64_t c = 0; c < p->c; c++) {
        double sum = 0;
        for (int64_t i = 0; i < pixels; i++) {
            sum += (double)p->at[i * p->c + c];
        }
        float mean = (float)(sum / (double)pixels);
        for (int64_t i = 0; i < pixels; i++) {
            p->at[i * p->c + c] = (p->at[i * p->c + c] - mean) * factor + mean;
        }
    }
}

static void change_noise(const step *s, const image *p, bw_random *random)
{
    for (int64_t i = 0; i < p->h * p->w * p->c; i++) {
        p->at[i] += (float)s->number * bw_random_normal(random);
    }
}

/* Clears a square around a random pixel; what reaches over the edge is cut off. */
static void change_cutout(const step *s, const image *p, bw_random *random)
{
    int64_t side = (int64_t)s->number, x = bw_random_below(random, p->w) - side / 2, y = bw_random_below(random, p->h) - side / 2;
    for (int64_t line = y > 0 ? y : 0; line < y + side && line < p->h; line++) {
        int64_t begin = x > 0 ? x : 0, end = x + side < p->w ? x + side : p->w;
        for (int64_t i = begin * p->c; i < end * p->c; i++) {
            p->at[line * p->w * p->c + i] = 0;
        }
    }
}

static const row rows[] = {
    {"flip", 0, 0, "horizontal vertical both", look_flip, NULL},
    {"shift", 0, 1e6, NULL, look_shift, NULL},
    {"crop", 1e-3, 1, NULL, look_crop, NULL},
    {"rotate", 0, 360, NULL, look_rotate, NULL},
    {"zoom", 0, 0.999, NULL, look_zoom, NULL},
    {"brightness", 0, 1e6, NULL, NULL, change_brightness},
    {"contrast", 0, 1e6, NULL, NULL, change_contrast},
    {"noise", 0, 1e6, NULL, NULL, change_noise},
    {"cutout", 1, 1e6, NULL, NULL, change_cutout},
};

/* ---- Samples ---- */

/* Each sampling moves the image from one buffer to the other; in the end the result is in `to`. */
static void apply(const augment *state, image size, float *from, float *to, bw_random *random)
{
    static const view still = {{1, 0, 0, 0, 1, 0}};
    size_t bytes = (size_t)(size.h * size.w * size.c) * sizeof(float);
    view pending = still;
    bool moved = false;
    float *now = from, *other = to;
    for (int i = 0; i <= state->count; i++) {
        const step *s = &state->steps[i];
        if (i < state->count && s->row->look) {
            view next = s->row->look(s, &size, random);
            pending = compose(&pending, &next);
            moved = true;
            continue;
        }
        size.at = now;
        if (moved) {
            sample(&pending, &size, other);
            size.at = other;
            other = now;
            now = size.at;
        }
        pending = still;
        moved = false;
        if (i < state->count) {
            s->row->change(s, &size, random);
        }
    }
    if (now != to) {
        memcpy(to, now, bytes);
    }
}

static bool is_image(const bwi_field *field)
{
    return field->role == BWI_ROLE_INPUT && field->ndim == 3;
}

static void to_floats(void *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int32_t whole;
        memcpy(&whole, (char *)values + i * 4, sizeof whole);
        ((float *)values)[i] = (float)whole;
    }
}

/* Images pass unchanged when there is no epoch, because the model is used and not trained. */
static bw_status make(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error)
{
    const augment *state = dataset->state;
    const bw_dataset *below = dataset->upstream;
    void *from[BWI_FIELD_LIMIT];
    char text[BW_ERROR_TEXT];
    bwi_scratch_slot slot = bwi_scratch_slot_take(below, from);
    bw_status status = bwi_content_work(below->upstream, epoch, number, from, error);
    for (int f = 0; f < dataset->column_count && status == BW_OK; f++) {
        const bwi_column *column = &dataset->columns[f];
        const bwi_field *field = &column->field;
        if (!values[f]) {
            continue;
        }
        if (is_image(field) && below->columns[f].field.dtype == BW_I32) {
            to_floats(from[f], column->rows.values);
        }
        if (!is_image(field) || epoch < 0) {
            memcpy(values[f], from[f], (size_t)column->rows.values * 4);
            continue;
        }
        bw_sample own_sample = bwi_sample(dataset, state->seed, epoch, number, text);
        apply(state, (image){.h = field->shape[0], .w = field->shape[1], .c = field->shape[2]}, from[f], values[f],
              &own_sample.random);
    }
    bwi_scratch_slot_give(slot);
    return status;
}

static const bwi_dataset_kind kind = {.name = "augment", .make = make};

bool bwi_dataset_augments(const bw_dataset *dataset)
{
    for (; dataset; dataset = dataset->upstream) {
        if (dataset->kind == &kind ||
            (dataset->second && dataset->kind->order.renumbers && bwi_dataset_augments(dataset->second))) {
            return true;
        }
    }
    return false;
}

/* ---- Reading the text ---- */

static int find_word(const char *words, const char *text, size_t length)
{
    for (int i = 0; *words; i++, words += strspn(words, " ")) {
        size_t size = strcspn(words, " ");
        if (size == length && strncmp(words, text, size) == 0) {
            return i;
        }
        words += size;
    }
    return -1;
}

static bw_status fail_text(bw_context *ctx, const char *item, size_t length)
{
    char known[512] = "";
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        size_t used = strlen(known);
        if (rows[i].words) {
            snprintf(known + used, sizeof known - used, "%s%s (or =%s)", i ? ", " : "", rows[i].name, rows[i].words);
        } else {
            bwi_print(known + used, sizeof known - used, "%s%s=%g..%g", i ? ", " : "", rows[i].name, rows[i].least, rows[i].most);
        }
    }
    return bwi_fail(ctx, BW_INVALID_ARGUMENT, "augment: '%.*s': expected %s", (int)(length < 64 ? length : 64), item, known);
}

static bool read_step(const char *item, size_t length, step *s)
{
    const char *equals = memchr(item, '=', length), *end = item + length, *stop = equals ? equals : end;
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        if (strlen(rows[i].name) == (size_t)(stop - item) && memcmp(rows[i].name, item, (size_t)(stop - item)) == 0) {
            s->row = &rows[i];
        }
    }
    if (!s->row || (!equals && !s->row->words)) {
        return false;
    }
    if (s->row->words) {
        s->word = equals ? find_word(s->row->words, equals + 1, (size_t)(end - equals - 1)) : 0;
        return s->word >= 0;
    }
    return bwi_parse_double(equals + 1, end, &s->number) && s->number >= s->row->least && s->number <= s->row->most;
}

static bw_status read_steps(bw_context *ctx, augment *state, const char *text)
{
    for (;;) {
        size_t length = strcspn(text, ",");
        if (state->count == MOST_ROWS) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "augment: more than %d changes", (int)MOST_ROWS);
        }
        if (!read_step(text, length, &state->steps[state->count++])) {
            return fail_text(ctx, text, length);
        }
        if (!text[length]) {
            return BW_OK;
        }
        text += length + 1;
    }
}

/* ---- Building ---- */

/* Images become float32; samples without any image are refused, since nothing would happen to them. */
static bw_status declare(bw_dataset *made)
{
    const bw_dataset *below = made->upstream;
    bw_status status = BW_OK;
    int images = 0;
    for (int f = 0; f < below->column_count && status == BW_OK; f++) {
        bwi_field field = below->columns[f].field;
        if (is_image(&field)) {
            field.dtype = BW_F32;
            images++;
        }
        status = bwi_dataset_declare(made, &field, "augment");
    }
    if (status == BW_OK && images == 0) {
        char shape[256];
        int64_t extents[BW_MAX_NDIM] = {0};
        int ndim = bw_dataset_shape(below, extents);
        status = bwi_fail(made->owned.ctx, BW_INVALID_ARGUMENT,
                          "augment: expected images (height, width, channels), found inputs of shape %s; give them a shape",
                          bwi_format_shape(shape, ndim < 0 ? 0 : ndim, extents));
    }
    return status;
}

static bw_dataset *build(bw_dataset *dataset, const char *text, uint64_t seed)
{
    bw_context *ctx = dataset->owned.ctx;
    augment state = {.seed = seed};
    bw_status status = text ? read_steps(ctx, &state, text) : bwi_fail(ctx, BW_INVALID_ARGUMENT, "augment: there is no text");
    bw_dataset *below = status == BW_OK ? bwi_dataset_stage(dataset) : NULL;
    if (!below) {
        return bwi_pass_on(ctx);
    }
    bw_dataset *made = bwi_dataset_take(below, bwi_dataset_over(below, &kind, below->column_count, sizeof state));
    if (!made) {
        return NULL;
    }
    *(augment *)made->state = state;
    return bwi_dataset_working(made, declare(made));
}

bw_dataset *bw_augment(bw_dataset *dataset, const char *text, uint64_t seed)
{
    return dataset ? bwi_dataset_take(dataset, build(dataset, text, seed)) : NULL;
}
