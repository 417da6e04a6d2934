/*
 * Writes files that appear complete or not at all: each is written under a temporary name in the same folder, flushed, synced and
 * renamed, and the folder is synced. Each of these steps can fail (a full disk often shows only in the flush), and each failure
 * names the path and removes the temporary file.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool report(const char *path, const char *what, int error)
{
    cli_fail("%s: cannot %s: %s", path, what, error == 0 ? "a write failed; is the disk full?" : strerror(error));
    return false;
}

bool cli_output_open(cli_output *output, const char *path)
{
    struct stat status;
    *output = (cli_output){.path = path};
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        return report(path, "write the file", EISDIR);
    }
    size_t length = strlen(path) + 32;
    output->temporary = malloc(length);
    if (!output->temporary) {
        return report(path, "write the file", ENOMEM);
    }
    snprintf(output->temporary, length, "%s.%ld.tmp", path, (long)getpid());
    int file = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 || !(output->file = fdopen(file, "w"))) {
        int error = errno;
        if (file >= 0) {
            close(file);
            unlink(output->temporary);
        }
        free(output->temporary);
        output->temporary = NULL;
        return report(path, "create the file", error);
    }
    return true;
}

void cli_output_discard(cli_output *output)
{
    if (output->file) {
        fclose(output->file);
    }
    if (output->temporary) {
        unlink(output->temporary);
        free(output->temporary);
    }
    *output = (cli_output){.path = output->path};
}

/* After this, the new name survives a crash of the machine. Some file systems cannot sync a folder; the file is complete even
 * then, so this is not a failure. */
static void sync_folder(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash) {
        slash[1] = 0;
    }
    int folder = open(!slash ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        (void)fsync(folder);
        close(folder);
    }
}

bool cli_output_commit(cli_output *output)
{
    bool failed = ferror(output->file) != 0; /* an earlier write failed, and its errno is lost */
    int error = 0;
    if (!failed && (fflush(output->file) != 0 || fsync(fileno(output->file)) != 0)) {
        failed = true;
        error = errno;
    }
    if (fclose(output->file) != 0 && !failed) {
        failed = true;
        error = errno;
    }
    output->file = NULL;
    if (!failed && rename(output->temporary, output->path) != 0) {
        failed = true;
        error = errno;
    }
    if (failed) {
        cli_output_discard(output);
        return report(output->path, "write the file", error);
    }
    sync_folder(output->temporary);
    free(output->temporary);
    output->temporary = NULL;
    return true;
}

const char *cli_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

const char *cli_bytes_text(char *text, size_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < 1024) {
        snprintf(text, CLI_BYTES_TEXT, "%zu byte%s", bytes, bytes == 1 ? "" : "s");
        return text;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    snprintf(text, CLI_BYTES_TEXT, "%.1f %s", value, units[unit]);
    return text;
}

const char *cli_seconds_text(char *text, double seconds)
{
    if (seconds < 1) {
        snprintf(text, CLI_SECONDS_TEXT, "%.1f ms", 1000 * seconds);
    } else {
        snprintf(text, CLI_SECONDS_TEXT, "%.2f s", seconds);
    }
    return text;
}

static bool continues(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80; /* a continuation byte of UTF-8 */
}

int cli_name_width(const char *name, int most)
{
    int width = 0;
    for (; *name && width < most; name++) {
        width += !continues(*name);
    }
    return width;
}

void cli_print_name(FILE *file, const char *name, int width)
{
    int most = abs(width), taken = cli_name_width(name, most), printed = 0;
    if (width > 0) {
        fprintf(file, "%*s", most - taken, "");
    }
    for (; *name && (printed < taken || continues(*name)); name++) {
        printed += !continues(*name);
        fputc((unsigned char)*name < ' ' || *name == 0x7F ? '?' : *name, file);
    }
    if (width < 0) {
        fprintf(file, "%*s", most - taken, "");
    }
}
