/*
 * Claims and writes the directory of a run (docs/reference/run-directory.md): what was requested and what came of it, for other
 * commands, programs and people. run.json is written last: if it exists, the other files are complete.
 */
#include "cli/page.h"
#include "cli/report.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
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

/* Whether a name is that of a file that a killed run was writing: history.json.1234.tmp, model.keras.1234-5.tmp. Where the lock
 * file tells of no run, one was killed before it wrote more than run.json on trial; other files are the user's. */
static bool is_unfinished(const char *name)
{
    size_t length = strlen(name), tail = strlen(".tmp");
    if (length <= tail || strcmp(name + length - tail, ".tmp") != 0) {
        return false;
    }
    if (claimed.fresh && strncmp(name, "run.json.", strlen("run.json.")) != 0) {
        return false;
    }
    size_t end = length - tail, at = end;
    while (at > 0 && (isdigit((unsigned char)name[at - 1]) || name[at - 1] == '-')) {
        at--;
    }
    return at < end && at > 1 && name[at - 1] == '.';
}

/* Removes what killed processes had not finished writing. */
static void remove_unfinished(DIR *names)
{
    rewinddir(names);
    for (const struct dirent *entry = readdir(names); entry; entry = readdir(names)) {
        if (is_unfinished(entry->d_name)) {
            (void)unlinkat(dirfd(names), entry->d_name, 0);
        }
    }
}

/* A killed run leaves the lock file, some of its files, and one that it had not finished, which goes if the folder may be taken; in
 * another folder nothing is touched. Returns false after a message. */
static bool check_content(const char *folder, bool replace)
{
    char other[256] = "";
    bool complete = false;
    DIR *names = opendir(folder);
    for (const struct dirent *entry = names ? readdir(names) : NULL; entry; entry = readdir(names)) {
        const char *name = entry->d_name;
        bool own = strcmp(name, lock_name) == 0 || (replace && strcmp(name, "checkpoints") == 0);
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !own && !is_unfinished(name)) {
            complete = complete || strcmp(name, "run.json") == 0;
            snprintf(other, sizeof other, "%s", name);
        }
    }
    if (!names) {
        cli_fail("%s: cannot list the folder of the run: %s", folder, strerror(errno));
        return false;
    }
    bool taken = false;
    if (complete && !replace) {
        cli_fail("%s: expected a new folder, found a run in it; give another name", folder);
    } else if (!complete && other[0] && claimed.fresh) {
        cli_fail(
            "%s: expected a new or an empty folder, found '%s' in it, and files of a run might replace others; give another name",
            folder, other);
    } else {
        remove_unfinished(names);
        taken = true;
    }
    closedir(names);
    return taken;
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

/* ---- All files ------------------------------------------------------------------------------------------ */

static bool write_history(const cli_result *result, const char *path)
{
    return cli_history_write(path, cli_history_find(path), result->history);
}

static bool write_model(const cli_result *result, const char *path)
{
    return cli_result_save(result, path, NULL);
}

static bool write_steps(const cli_result *result, const char *path)
{
    cli_output output;
    if (!cli_output_open(&output, path)) {
        return false;
    }
    cli_json json = {.file = output.file};
    cli_record_json(&json, NULL, &result->record);
    fputc('\n', output.file);
    return cli_output_commit(&output);
}

/* The text of run.json, which the caller frees; NULL after a message. */
static char *make_text(const cli_result *result, size_t *length)
{
    char *text = NULL;
    FILE *memory = open_memstream(&text, length);
    if (memory) {
        cli_json json = {.file = memory};
        cli_run_json(&json, result);
        fputc('\n', memory);
    }
    if (!memory || fclose(memory) != 0) {
        free(text);
        cli_fail("no memory for the text of run.json");
        return NULL;
    }
    return text;
}

/* The page is made from the files, as `batchwise report` makes it; run.json is written last, so it is taken from memory. */
static bool write_page(const cli_result *result, const char *path, const char *text, size_t length)
{
    cli_page_run run = {.name = result->run.folder};
    run.texts[CLI_PAGE_RUN] = strdup(text);
    run.lengths[CLI_PAGE_RUN] = length;
    bool written = cli_page_read(&run, result->run.folder) && cli_page_write(path, &run, 1);
    cli_page_free(&run);
    return written;
}

static bool write_text(const char *path, const char *text, size_t length)
{
    cli_output output;
    if (!cli_output_open(&output, path)) {
        return false;
    }
    fwrite(text, 1, length, output.file);
    return cli_output_commit(&output);
}

static bool finish(const cli_result *result)
{
    size_t length;
    char *text = make_text(result, &length), *page = cli_run_path(&result->run, "report.html");
    char *path = cli_run_path(&result->run, "run.json");
    bool named = page && path;
    if (!named) {
        cli_fail("no memory for the names of the run's files");
    }
    bool written = named && text && write_page(result, page, text, length) && write_text(path, text, length);
    free(text);
    free(page);
    free(path);
    return written;
}

static bool write_findings(const cli_result *result, const char *path)
{
    cli_output output;
    if (!cli_output_open(&output, path)) {
        return false;
    }
    cli_json json = {.file = output.file};
    cli_findings_json(&json, NULL, result->findings);
    fputc('\n', output.file);
    return cli_output_commit(&output);
}

bool cli_run_write(const cli_result *result)
{
    static const struct {
        const char *name;
        bool (*write)(const cli_result *result, const char *path);
    } files[] = {{"history.json", write_history},   {"history.csv", write_history}, {"model.keras", write_model},
                 {"ledger.json", cli_ledger_write}, {"steps.json", write_steps},    {"evaluation.json", cli_evaluation_write},
                 {"findings.json", write_findings}};
    bool written = true;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && written; i++) {
        char *path = cli_run_path(&result->run, files[i].name);
        if (!path) {
            cli_fail("no memory for the name of %s", files[i].name);
        }
        written = path && files[i].write(result, path);
        free(path);
    }
    return written && finish(result);
}
