/*
 * Samples from LibSVM text: a line holds a target and pairs index:value of the inputs that are not zero. Indices count from 1, or
 * from 0 if there is a 0 in the file, and rise within a line. There are two passes over the mapped text: the first finds the rows
 * and the largest index, so that nothing is allocated before it is known to fit; the second fills rows. Blank lines and comments
 * (#) are not samples, but they count in the line numbers of messages.
 */
#include "data/read/read.h"
#include "format/format.h"

#include <stdio.h>
#include <string.h>

typedef struct reading {
    bw_context *ctx;
    const char *path;
    char *text; /* the file, followed by a newline */
    size_t size;
    int64_t rows, least, largest; /* number of rows; smallest and largest index */
    float *x;
    double *y;
    int64_t width;
    int64_t *line; /* of each row */
} reading;

static bw_status fail_line(const reading *r, int64_t line, const char *what, const char *at, const char *end)
{
    char quoted[BWI_QUOTE_SIZE];
    const char *stop = at;
    while (stop < end && *stop != ' ' && *stop != '\t' && *stop != '\n' && *stop != '\r') {
        stop++;
    }
    return bwi_fail_line(r->ctx, BW_INVALID_ARGUMENT, r->path, line, -1, "%s, found %s", what,
                         bwi_quote(quoted, at, (size_t)(stop - at)));
}

static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r') {
        at++;
    }
    return at;
}

static bool ends(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '#';
}

/* Reads one pair. Returns what follows it, or NULL if it is not a pair. */
static const char *scan_pair(const char *at, const char *end, int64_t *index, double *value)
{
    const char *colon = at;
    while (*colon >= '0' && *colon <= '9') {
        colon++;
    }
    if (*colon != ':' || !bwi_parse_int(at, colon, index) || *index > INT32_MAX) {
        return NULL;
    }
    at = bwi_number_scan(colon + 1, end, value);
    return at && ends(*at) ? at : NULL;
}

/* Fills the row in the second pass; in the first, when there is no memory for rows, it only finds the indices. */
static bw_status scan_line(reading *r, const char *at, const char *end, int64_t line)
{
    double target, value;
    int64_t index, before = -1;
    char what[80];
    const char *next = bwi_number_scan(at, end, &target);
    if (!next || !ends(*next)) {
        return fail_line(r, line, "expected a number as the target", at, end);
    }
    for (at = skip_blanks(next); *at != '\n' && *at != '#'; at = skip_blanks(next)) {
        if (strncmp(at, "qid:", 4) == 0) {
            for (next = at + 4; !ends(*next); next++)
                ;
            continue;
        }
        next = scan_pair(at, end, &index, &value);
        if (!next) {
            return fail_line(r, line, "expected index:value", at, end);
        }
        if (index <= before) {
            snprintf(what, sizeof what, "expected an index above %lld, since indices rise", (long long)before);
            return fail_line(r, line, what, at, end);
        }
        before = index;
        if (r->x) {
            r->x[r->rows * r->width + index - r->least] = (float)value;
        } else {
            r->least = index < r->least ? index : r->least;
            r->largest = index > r->largest ? index : r->largest;
        }
    }
    if (r->x) {
        r->y[r->rows] = target;
        r->line[r->rows] = line;
    }
    r->rows++;
    return BW_OK;
}

static bw_status scan(reading *r)
{
    const char *end = r->text + r->size;
    int64_t line = 1;
    r->rows = 0;
    for (const char *at = r->text; at < end; line++) {
        const char *next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
        at = skip_blanks(at);
        if (*at != '\n' && *at != '#') {
            bw_status status = scan_line(r, at, next, line);
            if (status != BW_OK) {
                return status;
            }
        }
        at = next;
    }
    return BW_OK;
}

/* ---- The root ---- */

typedef struct locations {
    char *path;
    int64_t *line;
} locations;

static void close_locations(bw_dataset *dataset)
{
    locations *state = dataset->state;
    bwi_release(dataset->owned.ctx, state->path);
    bwi_release(dataset->owned.ctx, state->line);
}

static void locate(const bw_dataset *dataset, int64_t number, char *text, size_t size)
{
    const locations *state = dataset->state;
    snprintf(text, size, "%s, line %lld", state->path, (long long)state->line[number]);
}

static bw_status gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    return bwi_kind_arrays.gather(dataset, demand);
}

static const bwi_dataset_kind kind = {.name = "libsvm", .gather = gather, .locate = locate, .close = close_locations};

/* A few bytes of text can claim a huge index, so the size of the dense rows is compared with the file and with memory. */
static bw_status find_width(reading *r, const bw_read_options *options)
{
    char needed[32];
    if (r->rows == 0) {
        return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: holds no samples", r->path);
    }
    if (r->largest < 0) {
        r->largest = r->least = 1;
    }
    r->least = r->least == 0 ? 0 : 1;
    r->width = r->largest - r->least + 1;
    if (options->like) {
        int64_t width = options->like->content->columns[0].rows.values;
        if (r->width > width) {
            return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: index %lld, but the dataset given as `like` has %lld inputs", r->path,
                            (long long)r->largest, (long long)width);
        }
        r->width = width;
    }
    size_t bytes = bwi_size_multiply((size_t)r->rows, bwi_size_multiply((size_t)r->width, sizeof *r->x));
    if (bytes > (size_t)64 << 20 && (bytes > bwi_memory_available(r->ctx) || bytes / 4096 > r->size)) {
        return bwi_fail(r->ctx, BW_RESOURCE_EXHAUSTED, "%s: %lld rows of %lld inputs need %s of memory", r->path,
                        (long long)r->rows, (long long)r->width, bwi_format_bytes(needed, bytes));
    }
    return BW_OK;
}

/* The second pass writes the rows; their memory then belongs to the columns. */
static bw_status fill(reading *r, bw_dataset *root)
{
    bw_context *ctx = r->ctx;
    locations *state = root->state;
    int64_t rows = r->rows;
    state->path = bwi_copy_text(ctx, r->path);
    r->line = state->line = state->path ? bwi_allocate(ctx, (size_t)rows, sizeof *state->line) : NULL;
    r->y = state->line ? bwi_allocate(ctx, (size_t)rows, sizeof *r->y) : NULL;
    r->x = r->y ? bwi_allocate(ctx, (size_t)rows, (size_t)r->width * sizeof *r->x) : NULL;
    if (!r->x) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bw_status status = scan(r);
    bw_array x = {.data = r->x, .dtype = BW_F32, .ndim = 2, .shape = {rows, r->width}};
    if (status == BW_OK) {
        status = bwi_dataset_add(root, BWI_ROLE_INPUT, "", &x, r->path);
    }
    if (status != BW_OK) {
        return status;
    }
    root->columns[0].memory = r->x;
    r->x = NULL;
    bw_array y = {.data = r->y, .dtype = BW_F64, .ndim = 1, .shape = {rows}};
    status = bwi_dataset_add(root, BWI_ROLE_TARGET, "", &y, r->path);
    if (status != BW_OK) {
        return status;
    }
    root->columns[1].memory = r->y;
    r->y = NULL;
    return bwi_dataset_settle(root, "");
}

/* A newline is appended to the text, so that every line ends and scanning needs no bounds. */
bw_status bwi_libsvm_read(bw_context *ctx, bw_dataset **root, const char *const *paths, int count, const bw_read_options *options)
{
    reading r = {.ctx = ctx, .path = paths[0], .least = INT64_MAX, .largest = -1};
    bwi_bytes file;
    bw_dataset *made = NULL;
    (void)count;
    bw_status status = bwi_read_options_check(ctx, r.path, options, 0);
    if (status == BW_OK) {
        status = bwi_file_map(ctx, &file, r.path);
    }
    if (status != BW_OK) {
        return status;
    }
    r.size = file.size + 1;
    r.text = bwi_allocate(ctx, r.size, 1);
    if (r.text) {
        memcpy(r.text, file.data, file.size);
        r.text[file.size] = '\n';
        status = scan(&r);
    } else {
        status = BW_RESOURCE_EXHAUSTED;
    }
    bwi_file_unmap(ctx, &file);
    if (status == BW_OK) {
        status = find_width(&r, options);
    }
    if (status == BW_OK) {
        made = bwi_dataset_root(ctx, &kind, 2, sizeof(locations));
        status = made ? fill(&r, made) : BW_RESOURCE_EXHAUSTED;
    }
    bwi_release(ctx, r.text);
    bwi_release(ctx, r.x);
    bwi_release(ctx, r.y);
    if (status == BW_OK) {
        *root = made;
    } else {
        bw_dataset_free(made);
    }
    return status;
}
