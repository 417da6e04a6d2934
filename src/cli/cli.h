/*
 * cli: the command. It uses batchwise.h and the C library only. One subcommand is one file, one declaration here
 * and one row in main.c.
 *
 * Standard output carries results, standard error everything else. A command returns its exit code; it never
 * calls exit, so that main can tell whether standard output was written completely.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <batchwise.h>

#include "cli/json.h"
#include "cli/options.h"

enum { CLI_SUCCESS = 0, CLI_FAILURE = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

/* Subcommands; argv[0] is the subcommand's name. */
int cli_train(int argc, char **argv);
int cli_plan(int argc, char **argv);
int cli_verify(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_convert(int argc, char **argv);

/* ---- session.c: the context of a command, its messages and its interruption ----------------------------- */

/* Opens a context whose log goes to standard error (nowhere if quiet) and that Ctrl-C cancels: the first one ends
 * what the library is doing with BW_CANCELLED, a second one ends the process. NULL after a message. */
bw_context *cli_session_open(int workers, bool quiet);
/* For contexts that are opened from now on: bw_context_options.exact_kernels. */
void cli_session_exact_kernels(bool wanted);
void cli_session_close(bw_context *ctx);
/* True once Ctrl-C was pressed. */
bool cli_session_interrupted(void);

/* Writes "batchwise: ..." as one line to standard error and returns CLI_FAILURE. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- output.c: files that appear complete or not at all ------------------------------------------------- */

typedef struct cli_output {
    FILE *file;
    const char *path; /* borrowed */
    char *temporary;
} cli_output;

/* Opens a temporary file beside `path`; false after a message that names the path. */
bool cli_output_open(cli_output *output, const char *path);
/* Flushes, syncs and renames it to its path; false after a message. The output is closed either way. */
bool cli_output_commit(cli_output *output);
/* Removes it again. */
void cli_output_discard(cli_output *output);

/* "1.5 MiB"; `text` has CLI_BYTES_TEXT places. */
enum { CLI_BYTES_TEXT = 32 };
const char *cli_bytes_text(char *text, size_t bytes);

/* ---- model.c: what --model and --optimizer say ---------------------------------------------------------- */

/* The expression that `argument` is, or that the text file of this name holds. Returns CLI_SUCCESS, or an exit code
 * after a message. The caller frees *expression. */
int cli_model_text(char **expression, const char *command, const char *argument);

/* Whether the argument names a model's file by its extension (.keras, .json, .h5): bw_load reads it. */
bool cli_model_is_file(const char *argument);
/* Either of the two, compiled; what is NULL stays as the file has it. Returns CLI_SUCCESS, or an exit code after a message. */
int cli_model_make(bw_model **model, bw_context *ctx, const char *command, const char *argument, const char *optimizer,
                   const char *loss);
/* Whether bw_save can write a model to this name. */
bool cli_model_can_be_saved(const char *path);

/* The optimizer's text with its learning rate replaced by `rate`; `optimizer` may be NULL (Adam). The caller frees
 * it; NULL: no memory. */
char *cli_optimizer_text(const char *optimizer, double rate);

/* ---- explain.c: out-of-memory messages of other systems -------------------------------------------------- */

typedef struct cli_explanation {
    const char *model, *data; /* as given; data may be NULL */
    /* What the message says: bytes, known to `slack`, and a shape if rank > 0. */
    size_t bytes, slack;
    int rank;
    int64_t shape[BW_MAX_RANK];
    /* What it is about. */
    bool found;
    int64_t batch; /* 0: not known */
    bw_layer_memory layer;
    bw_memory_facts facts; /* of the plan for this batch */
} cli_explanation;

/* False if the text names neither a shape nor bytes. */
bool cli_explanation_read(cli_explanation *explanation, const char *text);
/* Looks for the layer; a message without a shape is taken to be of the plan's batch if that was given. */
void cli_explanation_find(cli_explanation *explanation, const bw_plan *plan, bool batch_given);
void cli_explanation_print(FILE *file, const cli_explanation *explanation);
void cli_explanation_json(cli_json *json, const cli_explanation *explanation);

/* ---- history.c ------------------------------------------------------------------------------------------ */

typedef bool (*cli_history_format)(FILE *file, const bw_history *history);

/* The writer for the path's extension (.json, .csv); NULL: there is none. */
cli_history_format cli_history_find(const char *path);
/* Tries, before hours of training, whether a file can be made at `path`; false after a message. */
bool cli_history_probe(const char *path);
/* False after a message. */
bool cli_history_write(const char *path, cli_history_format format, const bw_history *history);
/* An object of lists, as Keras's History.history. */
void cli_history_json(cli_json *json, const char *key, const bw_history *history);

#endif
