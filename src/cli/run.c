/*
 * Writes the directory of a run (docs/reference/run-directory.md): what was requested and what came of it, for other commands,
 * programs and people. run.json is written last: if it exists, the other files are complete.
 */
#include "cli/report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

static char *join(const char *folder, const char *file)
{
    size_t length = strlen(folder) + strlen(file) + 2;
    char *path = malloc(length);
    if (path) {
        snprintf(path, length, "%s/%s", folder, file);
    }
    return path;
}

char *cli_run_path(const cli_run *run, const char *file)
{
    return join(run->folder, file);
}

/* Makes the folder and its parents. */
static bool make_folder(const char *folder)
{
    char *path = strdup(folder);
    bool made = path;
    for (char *at = path; made && at;) {
        at = strchr(at + 1, '/');
        if (at) {
            *at = 0;
        }
        made = mkdir(path, 0777) == 0 || errno == EEXIST;
        if (at) {
            *at = '/';
        }
    }
    free(path);
    return made;
}

/* ---- Claiming -------------------------------------------------------------------------------------------- */

/*
 * A folder is claimed by locking the file run.lock in it. The system releases the lock when the process ends, however it ends. A
 * lock file that holds a process number but is not locked was left by a killed run, so its folder may be claimed.
 */
static const char lock_name[] = "run.lock";

static struct {
    char *path; /* NULL: no folder is claimed */
    int file;
    bool fresh; /* the lock file is new: no killed run left it */
} claimed;

/* Tells whether the open file still has this name: the previous owner of the claim may have removed it meanwhile. */
static bool is_current(int file, const char *path)
{
    struct stat opened, named;
    return fstat(file, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

/* Opens and locks the file. Returns false after a message. */
static bool lock(const char *folder)
{
    struct stat status;
    claimed.file = open(claimed.path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    bool locked = claimed.file >= 0 && flock(claimed.file, LOCK_EX | LOCK_NB) == 0;
    claimed.fresh = locked && fstat(claimed.file, &status) == 0 && status.st_size == 0;
    if (!locked) {
        bool taken = claimed.file >= 0 && errno == EWOULDBLOCK;
        cli_fail("%s: %s%s", folder, taken ? "another training is writing to this folder; give another name" : "cannot claim it: ",
                 taken ? "" : strerror(errno));
        if (claimed.file >= 0) {
            close(claimed.file);
        }
    }
    return locked;
}

/* Claims the folder. Returns false after a message. */
static bool claim(const char *folder)
{
    claimed.path = join(folder, lock_name);
    while (claimed.path && lock(folder)) {
        if (is_current(claimed.file, claimed.path)) {
            return true;
        }
        close(claimed.file);
    }
    free(claimed.path);
    claimed.path = NULL;
    return false;
}

void cli_run_close(void)
{
    if (claimed.path) {
        unlink(claimed.path);
        close(claimed.file);
        free(claimed.path);
        claimed.path = NULL;
    }
}

/* A killed run leaves the lock file and some of its files; nothing else may be overwritten. Returns false after a message. */
static bool check_content(const char *folder, bool replace)
{
    char other[256] = "";
    bool complete = false;
    DIR *names = opendir(folder);
    for (const struct dirent *entry = names ? readdir(names) : NULL; entry; entry = readdir(names)) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, lock_name) != 0) {
            complete = complete || strcmp(name, "run.json") == 0;
            snprintf(other, sizeof other, "%s", name);
        }
    }
    if (!names) {
        cli_fail("%s: cannot list the folder of the run: %s", folder, strerror(errno));
        return false;
    }
    closedir(names);
    if (complete && !replace) {
        cli_fail("%s: expected a new folder, found a run in it; give another name", folder);
    } else if (!complete && other[0] && claimed.fresh) {
        cli_fail(
            "%s: expected a new or an empty folder, found '%s' in it, and files of a run might replace others; give another name",
            folder, other);
    } else {
        return true;
    }
    return false;
}

bool cli_run_open(const char *folder, bool replace)
{
    struct stat status;
    if (!make_folder(folder) || stat(folder, &status) != 0 || !S_ISDIR(status.st_mode)) {
        cli_fail("%s: cannot make the folder of the run: %s", folder, errno != 0 ? strerror(errno) : "it is no folder");
        return false;
    }
    if (!claim(folder)) {
        return false;
    }
    char *path = check_content(folder, replace) ? join(folder, "run.json") : NULL;
    bool opened = path && cli_history_probe(path) && dprintf(claimed.file, "%ld\n", (long)getpid()) > 0;
    free(path);
    if (!opened) {
        cli_run_close();
    }
    return opened;
}

/* ---- run.json ------------------------------------------------------------------------------------------- */

/* Computes FNV-1a over the values of at most 64 samples, spread evenly: enough to notice other data, and cheap for large
 * datasets. */
static bool hash_field(uint64_t *hash, bw_dataset *dataset, const char *field)
{
    enum { LOOKED_AT = 64 };
    int64_t shape[BW_MAX_NDIM], each = 1, samples = bw_dataset_count(dataset);
    int ndim = bw_dataset_field(dataset, field, shape);
    for (int i = 0; i < ndim; i++) {
        each *= shape[i];
    }
    float *values = ndim < 0 ? NULL : calloc((size_t)each, sizeof *values);
    for (int64_t i = 0; values && i < LOOKED_AT && i < samples; i++) {
        int64_t number = samples <= LOOKED_AT ? i : i * (samples / LOOKED_AT);
        if (bw_dataset_values(dataset, field, number, 1, values, (size_t)each) != BW_OK) {
            free(values);
            return false;
        }
        const unsigned char *bytes = (const unsigned char *)values;
        for (size_t b = 0; b < (size_t)each * sizeof *values; b++) {
            *hash = (*hash ^ bytes[b]) * UINT64_C(0x100000001B3);
        }
    }
    free(values);
    return true;
}

/* The fingerprint hashes inputs and targets, so that a run can be told from one on other data of the same name and size. */
static void put_data(cli_json *json, const cli_result *result)
{
    int64_t shape[BW_MAX_NDIM], samples = bw_dataset_count(result->training);
    int ndim = bw_dataset_shape(result->training, shape);
    uint64_t hash = UINT64_C(0xCBF29CE484222325) ^ (uint64_t)samples;
    cli_json_object(json, "data");
    cli_json_text(json, "path", result->run.data);
    cli_json_whole(json, "samples", samples);
    cli_json_array(json, "shape");
    for (int i = 0; i < ndim; i++) {
        cli_json_whole(json, NULL, shape[i]);
    }
    cli_json_array_end(json);
    cli_json_array(json, "classes");
    for (int i = 0; bw_dataset_class(result->training, i); i++) {
        cli_json_text(json, NULL, bw_dataset_class(result->training, i));
    }
    cli_json_array_end(json);
    if (hash_field(&hash, result->training, "x") && hash_field(&hash, result->training, "y")) {
        cli_json_hash(json, "fingerprint", hash);
    } else {
        (void)bw_message(result->ctx); /* not a failure of the run */
        cli_json_text(json, "fingerprint", NULL);
    }
    cli_json_object_end(json);
}

static void put_machine(cli_json *json)
{
    struct utsname names;
    bool named = uname(&names) == 0;
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    cli_json_object(json, "machine");
    cli_json_text(json, "system", named ? names.sysname : NULL);
    cli_json_text(json, "architecture", named ? names.machine : NULL);
    cli_json_whole(json, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
    cli_json_bytes(json, "memory_bytes", pages > 0 && size > 0 ? (size_t)pages * (size_t)size : 0);
    cli_json_object_end(json);
}

static void put_plan(cli_json *json, const bw_run_facts *facts)
{
    cli_json_object(json, "plan");
    cli_json_whole(json, "tile", facts->tile);
    cli_json_whole(json, "lanes", facts->lanes);
    cli_json_whole(json, "workers", facts->workers);
    cli_json_flag(json, "exact_kernels", facts->exact_kernels);
    cli_json_bytes(json, "planned_bytes", facts->planned_bytes);
    cli_json_object_end(json);
}

static void put_result(cli_json *json, const cli_result *result, const bw_run_facts *facts)
{
    const bw_history *history = result->history;
    cli_json_object(json, "result");
    cli_json_text(json, "failure", result->failure[0] ? result->failure : NULL);
    cli_json_text(json, "stopped", result->stopped);
    cli_json_whole(json, "epochs", bw_history_epochs(history));
    cli_json_whole(json, "steps", facts->updates);
    cli_json_whole(json, "samples", facts->samples);
    cli_json_real(json, "seconds", facts->seconds);
    cli_json_real(json, "samples_per_s", cli_result_speed(result));
    cli_json_bytes(json, "peak_bytes", facts->peak_bytes);
    cli_json_hash(json, "hash", bw_model_hash(result->model));
    cli_json_object(json, "last");
    for (int c = 0; c < bw_history_columns(history) && bw_history_epochs(history) > 0; c++) {
        const char *name = bw_history_column(history, c);
        cli_json_real(json, name, bw_history_last(history, name));
    }
    cli_json_object_end(json);
    cli_json_object_end(json);
}

/* Returns NULL if the model has no expression, which is not a failure of the run: bw_model_describe clears the pending one. */
static const char *expression_of(bw_model *model)
{
    bw_model_facts facts;
    const char *expression = bw_model_expression(model);
    if (!expression) {
        (void)bw_model_describe(model, &facts);
    }
    return expression;
}

static void put_run(cli_json *json, const cli_result *result)
{
    bw_run_facts facts = bw_history_facts(result->history);
    cli_json_object(json, NULL);
    cli_json_whole(json, "format", 1);
    cli_json_text(json, "version", bw_version());
    cli_json_array(json, "command");
    for (char **word = result->run.arguments; *word; word++) {
        cli_json_text(json, NULL, *word);
    }
    cli_json_array_end(json);
    cli_json_seed(json, "seed", result->run.seed);
    cli_json_text(json, "model", expression_of(result->model));
    put_data(json, result);
    put_plan(json, &facts);
    put_machine(json);
    put_result(json, result, &facts);
    cli_json_object_end(json);
}

static bool write_run(const cli_result *result, const char *path)
{
    cli_output output;
    if (!cli_output_open(&output, path)) {
        return false;
    }
    cli_json json = {.file = output.file};
    put_run(&json, result);
    fputc('\n', output.file);
    return cli_output_commit(&output);
}

/* ---- All files ------------------------------------------------------------------------------------------ */

static bool write_history(const cli_result *result, const char *path)
{
    return cli_history_write(path, cli_history_find(path), result->history);
}

static bool write_model(const cli_result *result, const char *path)
{
    return cli_result_save(result, path, NULL);
}

bool cli_run_write(const cli_result *result)
{
    static const struct {
        const char *name;
        bool (*write)(const cli_result *result, const char *path);
    } files[] = {{"history.json", write_history},   {"history.csv", write_history},    {"model.keras", write_model},
                 {"ledger.json", cli_ledger_write}, {"report.html", cli_report_write}, {"run.json", write_run}};
    bool written = true;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && written; i++) {
        char *path = cli_run_path(&result->run, files[i].name);
        if (!path) {
            cli_fail("no memory for the name of %s", files[i].name);
        }
        written = path && files[i].write(result, path);
        free(path);
    }
    return written;
}
