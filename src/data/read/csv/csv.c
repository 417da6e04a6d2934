/* The CSV reader. It reads files, gzip files and standard input one after another, region by region, and parses each region on all
 * workers. */
#include "data/read/csv/csv.h"

#include <string.h>

#define BLOCK ((size_t)1 << 20)
#define STREAM_BLOCK (BLOCK / 8) /* for standard input, whose regions are smaller */

typedef struct work {
    csv_reading *r;
    csv_block *blocks;
    bool guessed;        /* there are quotes, so it is a guess that the blocks begin with records */
    int64_t *row, *line; /* where each block begins; for lines also where the last one ends */
    csv_span *spans;     /* of this region */
    int64_t count;
} work;

/* ---- On workers ---- */

static bw_status count_block(void *user, int64_t i, int worker, char *error)
{
    work *w = user;
    (void)worker;
    (void)error;
    bwi_csv_block_count(&w->blocks[i]);
    return BW_OK;
}

/* Mistakes are kept in the result rather than reported, because they may come from a wrong guess about the blocks. */
static bw_status parse_block(void *user, int64_t i, int worker, char *error)
{
    work *w = user;
    csv_reading *r = w->r;
    csv_result *result = &w->spans[i].result;
    (void)worker;
    (void)error;
    /* A table without inputs, targets or rows has no memory for them. */
    float *x = r->x ? r->x + w->row[i] * r->table.width : NULL;
    double *y = r->y ? r->y + w->row[i] * r->table.stride : NULL;
    bwi_csv_block_parse(&r->table, &w->blocks[i], w->line[i], x, y, result);
    return result->status;
}

/* ---- Capacity ---- */

/* A mapped file has been counted completely and gets exactly what it needs; for text that arrives in blocks the capacity
 * doubles. */
static bw_status reserve_rows(csv_reading *r, int64_t records, bool whole)
{
    if (records <= r->capacity) {
        return BW_OK;
    }
    int64_t rows = whole || records > 2 * r->capacity ? records : 2 * r->capacity;
    size_t width = (size_t)r->table.width * sizeof *r->x;
    bw_status status =
        bwi_backing_grow(r->ctx, &r->x_backing, (size_t)r->rows * width, bwi_size_multiply((size_t)rows, width), r->paths[0]);
    if (status == BW_OK) {
        size_t depth = (size_t)r->table.stride * sizeof *r->y;
        status =
            bwi_backing_grow(r->ctx, &r->y_backing, (size_t)r->rows * depth, bwi_size_multiply((size_t)rows, depth), r->paths[0]);
    }
    r->x = r->x_backing.memory;
    r->y = r->y_backing.memory;
    if (status == BW_OK) {
        r->capacity = rows;
    }
    return status;
}

/* Appends a span for each block, with room for the texts of its columns if there are categories. */
static bw_status make_spans(csv_reading *r, int64_t count, int file)
{
    if (r->span_count + count > r->span_capacity) {
        int64_t capacity = r->span_count + count + r->span_capacity;
        csv_span *larger = bwi_grow(r->ctx, r->spans, (size_t)r->span_count, (size_t)capacity, sizeof *larger);
        if (!larger) {
            return BW_RESOURCE_EXHAUSTED;
        }
        r->spans = larger;
        r->span_capacity = capacity;
    }
    bool categories = false;
    for (int i = 0; i < r->table.count; i++) {
        categories = categories || r->table.columns[i].kind == CSV_CATEGORY;
    }
    for (int64_t i = 0; i < count; i++) {
        csv_span *span = &r->spans[r->span_count];
        *span = (csv_span){.file = file};
        if (categories) {
            span->result.words = bwi_allocate(r->ctx, (size_t)r->table.count, sizeof *span->result.words);
            if (!span->result.words) {
                return BW_RESOURCE_EXHAUSTED;
            }
        }
        r->span_count++;
    }
    return BW_OK;
}

/* ---- Regions ---- */

/* Moves the rows of the blocks together, since rows that were left out make gaps between them. */
static void close_gaps(csv_reading *r, work *w)
{
    int64_t width = r->table.width, depth = r->table.stride;
    for (int64_t i = 0; i < w->count; i++) {
        csv_span *span = &w->spans[i];
        span->first = r->rows;
        if (w->row[i] != r->rows) {
            memmove(r->x + r->rows * width, r->x + w->row[i] * width, (size_t)(span->result.rows * width) * sizeof *r->x);
            memmove(r->y + r->rows * depth, r->y + w->row[i] * depth, (size_t)(span->result.rows * depth) * sizeof *r->y);
        }
        r->rows += span->result.rows;
    }
}

/* Appends the texts of the blocks to those of the table, and lets the blocks' memory go. */
static bw_status take_texts(csv_reading *r, work *w)
{
    bw_status status = BW_OK;
    for (int64_t i = 0; i < w->count && r->table.texts > 0; i++) {
        csv_result *result = &w->spans[i].result;
        csv_texts *t = &result->texts;
        for (int64_t k = 0; k < result->rows * r->table.texts && status == BW_OK; k++) {
            status = bwi_texts_add(r->ctx, &r->texts, t->bytes + t->cells[k].at, t->cells[k].size, r->paths[0]);
        }
        bwi_release(r->ctx, t->bytes);
        bwi_release(r->ctx, t->cells);
        *t = (csv_texts){.rows = 0};
    }
    return status;
}

static bw_status for_blocks(work *w, bwi_item what)
{
    char error[BWI_ITEM_ERROR];
    return bwi_parallel_for(w->r->ctx, w->count, what, w, error);
}

static size_t block_size(const csv_text *text)
{
    return text->input.pipe.open ? STREAM_BLOCK : BLOCK;
}

/* Cuts the region at newlines. A newline within quotes does not end a record; one with an odd number of quotes before it is
 * assumed to be such, which is a guess. */
static bw_status guess_blocks(work *w, const csv_text *text)
{
    bw_status status = bwi_csv_blocks_cut(text, block_size(text), false, &w->blocks, &w->count);
    if (status == BW_OK) {
        status = for_blocks(w, count_block);
    }
    if (status != BW_OK) {
        return status;
    }
    int64_t kept = 0, quotes = 0;
    for (int64_t i = 0; i < w->count; i++) {
        const csv_block *block = &w->blocks[i];
        if (quotes % 2) {
            w->blocks[kept - 1].end = block->end;
            w->blocks[kept - 1].lines += block->lines;
            w->blocks[kept - 1].records += block->records;
        } else {
            w->blocks[kept++] = *block;
        }
        quotes += block->quotes;
    }
    w->guessed = quotes > 0 && w->count > 1;
    w->count = kept;
    return BW_OK;
}

static bw_status cut_blocks(work *w, const csv_text *text)
{
    bw_status status = bwi_csv_blocks_cut(text, block_size(text), true, &w->blocks, &w->count);
    if (status == BW_OK) {
        status = for_blocks(w, count_block);
    }
    w->guessed = false;
    return status;
}

/* Counts records first: that gives each block its first row and line, so that all blocks can be parsed at the same time. */
static bw_status run_blocks(csv_reading *r, work *w, const csv_text *text, int file)
{
    int64_t records = r->rows, line = text->line;
    w->row = bwi_allocate(r->ctx, (size_t)w->count, sizeof *w->row);
    w->line = w->row ? bwi_allocate(r->ctx, (size_t)w->count + 1, sizeof *w->line) : NULL;
    if (!w->line) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int64_t i = 0; i < w->count; i++) {
        w->row[i] = records;
        w->line[i] = line;
        records += w->blocks[i].records;
        line += w->blocks[i].lines;
    }
    w->line[w->count] = line;
    bw_status status = reserve_rows(r, records, !text->gzip && !text->input.pipe.open);
    if (status == BW_OK) {
        status = make_spans(r, w->count, file);
    }
    if (status != BW_OK) {
        return status;
    }
    w->spans = r->spans + r->span_count - w->count;
    status = for_blocks(w, parse_block);
    return status == BW_CANCELLED ? status : BW_OK;
}

/* The guess was right if there is no mistake, because every quote was then closed within its block. */
static bool right(const work *w)
{
    bool good = true;
    for (int64_t i = 0; w->guessed && i < w->count; i++) {
        good = good && w->spans[i].result.bad == 0;
    }
    return good;
}

static bw_status take_blocks(csv_reading *r, work *w, csv_text *text)
{
    int64_t failed = 0;
    while (failed < w->count && w->spans[failed].result.status == BW_OK) {
        failed++;
    }
    if (failed < w->count) {
        const csv_result *result = &w->spans[failed].result;
        if (result->bad == 0) {
            return result->status; /* no memory; the message has been written */
        }
        const csv_mistake *first = &result->mistakes[0];
        return bwi_fail_line(r->ctx, result->status, text->path, first->line, first->column, "%s", first->text);
    }
    text->line = w->line[w->count];
    text->at = text->end;
    close_gaps(r, w);
    return take_texts(r, w);
}

static void drop_blocks(csv_reading *r, work *w)
{
    bwi_release(r->ctx, w->blocks);
    bwi_release(r->ctx, w->row);
    bwi_release(r->ctx, w->line);
    *w = (work){.r = r};
}

void bwi_csv_spans_drop(csv_reading *r, int64_t count)
{
    while (r->span_count > count) {
        bwi_csv_result_free(r->ctx, &r->table, &r->spans[--r->span_count].result);
    }
}

static bw_status parse_region(csv_reading *r, csv_text *text, int file)
{
    int64_t spans = r->span_count;
    work w = {.r = r};
    bw_status status = guess_blocks(&w, text);
    if (status == BW_OK) {
        status = run_blocks(r, &w, text, file);
    }
    if (status == BW_OK && !right(&w)) {
        drop_blocks(r, &w);
        bwi_csv_spans_drop(r, spans);
        status = cut_blocks(&w, text);
        if (status == BW_OK) {
            status = run_blocks(r, &w, text, file);
        }
    }
    if (status == BW_OK) {
        status = take_blocks(r, &w, text);
    }
    drop_blocks(r, &w);
    return status;
}

/* Skips the header in the first region of a file. */
static bw_status skip_header(csv_reading *r, csv_text *text, int file)
{
    const csv_table *table = &r->table;
    if (!table->header) {
        return BW_OK;
    }
    text->at = bwi_csv_skip_notes(&text->dialect, text->at, text->end, &text->line);
    const char *next = bwi_csv_record_end(&text->dialect, text->at, text->end);
    if (file > 0 && ((size_t)(next - text->at) != table->first_size || memcmp(text->at, table->first, table->first_size) != 0)) {
        return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: its header is not that of %s", text->path, r->paths[0]);
    }
    for (; text->at < next; text->at++) {
        text->line += *text->at == '\n';
    }
    return BW_OK;
}

/* Reads the first region, which tells what the columns are. */
static bw_status begin_file(csv_reading *r, int file)
{
    csv_text *text = &r->text;
    csv_dialect dialect = r->table.dialect; /* a later file is written like the first */
    bw_status status = file == 0 ? bwi_csv_dialect_choose(r->ctx, &dialect, &r->options) : BW_OK;
    if (status == BW_OK) {
        status = bwi_csv_text_open(r->ctx, text, r->paths[file], &dialect, &r->options);
    }
    if (status == BW_OK) {
        status = bwi_csv_text_next(text);
    }
    if (status == BW_OK && file == 0) {
        status = bwi_csv_table_open(&r->table, r->ctx, text, &r->options);
    }
    return status == BW_OK ? skip_header(r, text, file) : status;
}

bw_status bwi_csv_read_region(csv_reading *r, int file)
{
    bw_status status = r->text.at == r->text.end ? bwi_csv_text_next(&r->text) : BW_OK;
    if (status != BW_OK || r->text.at == r->text.end) {
        return status;
    }
    if (bwi_cancelled(r->ctx)) {
        return bwi_cancel_report(r->ctx);
    }
    return parse_region(r, &r->text, file);
}

static bool enough(const csv_reading *r)
{
    return r->options.take > 0 && r->rows >= r->options.take;
}

static bw_status read_file(csv_reading *r, int file)
{
    bw_status status = BW_OK;
    while (status == BW_OK && !enough(r) && !(r->text.finished && r->text.at == r->text.end)) {
        status = bwi_csv_read_region(r, file);
    }
    return status;
}

void bwi_csv_reading_free(csv_reading *r)
{
    bwi_csv_spans_drop(r, 0);
    bwi_csv_text_close(&r->text);
    bwi_release(r->ctx, r->spans);
    bwi_backing_free(r->ctx, &r->x_backing);
    bwi_backing_free(r->ctx, &r->y_backing);
    bwi_texts_free(r->ctx, &r->texts);
    bwi_csv_table_close(&r->table);
    bwi_release(r->ctx, r->na);
    pthread_mutex_destroy(&r->mutex);
    bwi_release(r->ctx, r);
}

static bw_status check_options(bw_context *ctx, const bw_read_options *options)
{
    if ((int)options->header < 0 || options->header > BW_HEADER_NO) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "bw_read_options.header is %d", (int)options->header);
    }
    if ((int)options->missing < 0 || options->missing > BW_MISSING_SKIP) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "bw_read_options.missing is %d", (int)options->missing);
    }
    if (!(options->bad_records >= 0 && options->bad_records <= 1)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "bad_records is a share from 0 to 1, found %g", options->bad_records);
    }
    return BW_OK;
}

/* The files of a list are read one after another into one table. A single pipe becomes a stream instead, which goes on reading
 * while samples are being used. */
bw_status bwi_csv_read(bw_context *ctx, bw_dataset **root, const char *const *paths, int count, const bw_read_options *options)
{
    *root = NULL;
    bw_status status = check_options(ctx, options);
    csv_reading *r = status == BW_OK ? bwi_allocate(ctx, 1, sizeof *r) : NULL;
    if (!r) {
        return status == BW_OK ? BW_RESOURCE_EXHAUSTED : status;
    }
    *r = (csv_reading){.ctx = ctx, .paths = paths, .files = count, .options = *options, .text = {.ctx = ctx}};
    pthread_mutex_init(&r->mutex, NULL);
    r->table.lock = &r->mutex;
    if (options->na) {
        r->na = bwi_copy_text(ctx, options->na);
        r->options.na = r->na;
        status = r->na ? BW_OK : BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < count && status == BW_OK && !*root && !enough(r); i++) {
        status = begin_file(r, i);
        if (status == BW_OK && count == 1 && r->text.input.pipe.open && r->table.texts == 0) {
            status = bwi_csv_stream_make(r, root);
        }
        if (*root) {
            return BW_OK; /* the stream keeps r */
        }
        if (status == BW_OK) {
            status = read_file(r, i);
        }
        bwi_csv_text_close(&r->text);
    }
    if (status == BW_OK) {
        status = bwi_csv_finish(r, root);
    }
    bwi_csv_reading_free(r);
    return status;
}
