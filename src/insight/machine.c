/*
 * What this machine can do at best, measured once and kept in the user's cache folder: a file for each processor, number of cores,
 * instruction set and version, since a home folder may be shared by machines. Nothing about that file is a failure: if it is
 * missing, damaged or cannot be written, the machine is measured.
 */
#include "insight/internal.h"

#include "format/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CPUINFO = 1 << 14, MOST_FILE = 4096 };

static const struct {
    const char *key;
    size_t offset;
} NUMBERS[] = {
    {"core_flops", offsetof(bw_machine, core_flops)},           {"flops", offsetof(bw_machine, flops)},
    {"core_bandwidth", offsetof(bw_machine, core_bandwidth)},   {"bandwidth", offsetof(bw_machine, bandwidth)},
    {"cache_bandwidth", offsetof(bw_machine, cache_bandwidth)}, {"exchange_bandwidth", offsetof(bw_machine, exchange_bandwidth)},
    {"meeting_seconds", offsetof(bw_machine, meeting_seconds)},
};

static double get_number(const bw_machine *machine, size_t k)
{
    double value;
    memcpy(&value, (const char *)machine + NUMBERS[k].offset, sizeof value);
    return value;
}

static void set_number(bw_machine *machine, size_t k, double value)
{
    void *place = (char *)machine + NUMBERS[k].offset;
    memcpy(place, &value, sizeof value);
}

/* Linux names the processor in /proc/cpuinfo, at least on x86. What is cut off is a byte of ASCII text. */
static void find_cpu(bw_context *ctx, char *name, size_t size)
{
    static const char key[] = "\nmodel name";
    char *text = bwi_allocate(ctx, MOST_CPUINFO + 1, 1);
    bwi_print(name, size, "unknown");
    if (text && bwi_file_read_small(ctx, "/proc/cpuinfo", text, MOST_CPUINFO) > 0) {
        const char *found = strstr(text, key), *colon = found ? strchr(found + sizeof key - 1, ':') : NULL;
        if (colon) {
            colon += 1 + strspn(colon + 1, " \t");
            bwi_print(name, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        }
    }
    bwi_release(ctx, text);
}

/* ---- The file ---- */

/* As the XDG base directory specification has it: a relative path does not count. Returns false if there is no such folder. */
static bool find_folder(bwi_text *folder)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/') {
        bwi_text_add(folder, "%s/batchwise", cache);
    } else if (home && home[0] == '/') {
        bwi_text_add(folder, "%s/.cache/batchwise", home);
    }
    return folder->length > 0 && !folder->failed;
}

/* The file is named for what it is about; of the processor's name only letters and digits are fit for a name. */
static void add_path(bwi_text *path, const bw_machine *machine)
{
    char cpu[sizeof machine->cpu];
    bwi_print(cpu, sizeof cpu, "%s", machine->cpu);
    for (char *at = cpu; *at; at++) {
        bool fit = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9');
        *at = fit ? *at : '_';
    }
    bwi_text_add(path, "/limits-%s-%d-%s-%s.json", cpu, machine->cores, machine->instruction_set, bw_version());
}

static bool says(const bwi_json *json, const char *key, const char *expected)
{
    const bwi_json *value = bwi_json_get(json, key);
    const char *text = value ? bwi_json_text(value) : NULL;
    return text && strcmp(text, expected) == 0;
}

/* Rows [cores, compute, bandwidth] for more and more cores, up to all of them. */
static bool take_growths(bw_machine *machine, const bwi_json *rows)
{
    int count = rows && bwi_json_kind_of(rows) == BWI_JSON_LIST ? bwi_json_count(rows) : 0, last = 0;
    bool fine = count > 0 && count <= BW_MOST_GROWTHS;
    for (int k = 0; k < count && fine; k++) {
        const bwi_json *row = bwi_json_at(rows, k);
        int64_t cores = 0;
        bw_growth *growth = &machine->growth[k];
        fine = bwi_json_kind_of(row) == BWI_JSON_LIST && bwi_json_count(row) == 3 && bwi_json_whole(bwi_json_at(row, 0), &cores) &&
               cores > last && cores <= machine->cores && bwi_json_number(bwi_json_at(row, 1), &growth->compute) &&
               growth->compute >= 1 && growth->compute <= (double)cores &&
               bwi_json_number(bwi_json_at(row, 2), &growth->bandwidth) && growth->bandwidth >= 1 &&
               growth->bandwidth <= (double)cores;
        growth->cores = last = (int)cores;
    }
    machine->growths = count;
    return fine && last == machine->cores;
}

/* Whether the file is about this machine and complete; only then are the numbers taken. */
static bool take(bw_machine *machine, const bwi_json *json)
{
    bw_machine found = *machine;
    int64_t cores;
    const bwi_json *of_cores = bwi_json_get(json, "cores"), *of_cache = bwi_json_get(json, "cache_bytes");
    bool same = says(json, "cpu", machine->cpu) && take_growths(&found, bwi_json_get(json, "growth")) &&
                says(json, "instruction_set", machine->instruction_set) && says(json, "version", bw_version()) && of_cores &&
                bwi_json_whole(of_cores, &cores) && cores == machine->cores && of_cache &&
                bwi_json_whole(of_cache, &found.cache_bytes) && found.cache_bytes >= 0;
    for (size_t k = 0; k < BWI_COUNT(NUMBERS) && same; k++) {
        const bwi_json *value = bwi_json_get(json, NUMBERS[k].key);
        double number = 0;
        same = value && bwi_json_number(value, &number) && isfinite(number) && number > 0;
        set_number(&found, k, number);
    }
    *machine = same ? found : *machine;
    return same;
}

static bool read_file(bw_context *ctx, bw_machine *machine, const char *path)
{
    char text[MOST_FILE];
    int64_t size = bwi_file_read_small(ctx, path, text, sizeof text);
    bwi_json *json = NULL;
    bool taken = size > 0 && bwi_json_parse(ctx, &json, text, (size_t)size, path) == BW_OK && take(machine, json);
    bwi_json_free(json);
    return taken;
}

/* What cannot be written is measured again the next time. */
static void write_file(bw_context *ctx, const bw_machine *machine, const char *folder, const char *path)
{
    bwi_json_writer json = {.text = {.ctx = ctx}};
    bwi_json_begin(&json, NULL, '{');
    bwi_json_put_text(&json, "cpu", machine->cpu);
    bwi_json_put_text(&json, "instruction_set", machine->instruction_set);
    bwi_json_put_whole(&json, "cores", machine->cores);
    bwi_json_put_text(&json, "version", bw_version());
    bwi_json_put_whole(&json, "cache_bytes", machine->cache_bytes);
    for (size_t k = 0; k < BWI_COUNT(NUMBERS); k++) {
        bwi_json_put_real(&json, NUMBERS[k].key, get_number(machine, k));
    }
    bwi_json_begin(&json, "growth", '[');
    for (int k = 0; k < machine->growths; k++) {
        bwi_json_begin(&json, NULL, '[');
        bwi_json_put_whole(&json, NULL, machine->growth[k].cores);
        bwi_json_put_real(&json, NULL, machine->growth[k].compute);
        bwi_json_put_real(&json, NULL, machine->growth[k].bandwidth);
        bwi_json_end(&json);
    }
    bwi_json_end(&json);
    bwi_json_end(&json);
    bwi_text_add(&json.text, "\n");
    if (!json.text.failed && bwi_folder_make(ctx, folder) == BW_OK) {
        (void)bwi_file_write(ctx, path, json.text.bytes, json.text.length);
    }
    bwi_text_free(&json.text);
}

/* ---- Public function ---- */

/* What is kept counts; otherwise the machine is measured, and the result kept unless other programs disturbed it. */
static bw_status find(bw_context *own, bw_context *measures, bw_machine *machine)
{
    const bwi_kernels *kernels = bwi_kernels_of(own);
    if (!kernels) {
        return BW_INVALID_ARGUMENT;
    }
    bwi_text folder = {.ctx = own}, path = {.ctx = own};
    machine->cores = own->workers;
    bwi_print(machine->instruction_set, sizeof machine->instruction_set, "%s", kernels->name);
    find_cpu(own, machine->cpu, sizeof machine->cpu);
    bool keeps = find_folder(&folder);
    if (keeps) {
        bwi_text_add(&path, "%s", folder.bytes);
        add_path(&path, machine);
    }
    keeps = keeps && !path.failed;
    bw_status status = BW_OK;
    if (!keeps || !read_file(own, machine, path.bytes)) {
        status = bwi_limits_measure(measures, machine);
        if (status == BW_OK && keeps && !machine->busy) {
            write_file(own, machine, folder.bytes, path.bytes);
        }
    }
    bwi_text_free(&folder);
    bwi_text_free(&path);
    return status;
}

/* A context of its own has a worker for every core, whatever the caller's, and keeps the failures that are none to itself. Only
 * where the caller's has all these workers already, they measure: with more threads than cores, threads sleep while they wait. */
static bw_status find_alone(bw_context *ctx, bw_machine *machine)
{
    if (!machine) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "bw_machine_limits: the pointer to the machine is NULL");
    }
    *machine = (bw_machine){.cores = 0};
    const bwi_kernels *kernels = bwi_kernels_of(ctx);
    if (!kernels) {
        return BW_INVALID_ARGUMENT;
    }
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.allocator = &ctx->allocator;
    options.io = &ctx->io;
    options.instruction_set = kernels->name;
    bw_context *own = bw_open(&options);
    if (!own) {
        return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "bw_machine_limits: no memory for a context");
    }
    bw_status status = find(own, ctx->pool && ctx->workers == own->workers ? ctx : own, machine);
    if (status != BW_OK) {
        bwi_fail(ctx, status, "the machine's limits cannot be measured: %s", bw_message(own));
    }
    bw_close(own);
    return status;
}

bw_status bw_machine_limits(bw_context *ctx, bw_machine *machine)
{
    bw_status status = ctx ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(ctx, find_alone(ctx, machine)) : status;
}
