/*
 * The command-line program. It uses batchwise.h and the C library only, so that it is also an example of the library. A subcommand
 * is one file, one declaration here and one row in main.c.
 *
 * Standard output carries results, standard error everything else. A command returns its exit code and never calls exit, so that
 * main can check that standard output was written completely.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <batchwise.h>

#include "cli/json.h"
#include "cli/options.h"
#include "cli/ranks.h"

/* Each subcommand's main function; argv[0] is the subcommand's name. */
int cli_train(int argc, char **argv);
int cli_plan(int argc, char **argv);
int cli_verify(int argc, char **argv);
int cli_eval(int argc, char **argv);
int cli_predict(int argc, char **argv);
int cli_summary(int argc, char **argv);
int cli_profile_command(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_tune_command(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_report_command(int argc, char **argv);
int cli_convert(int argc, char **argv);
int cli_demo(int argc, char **argv);

/* ---- Options that several commands share: rows for a table over the command's `arguments` ------------------- */

#define CLI_MODEL_OPTION                                 \
    "model", &cli_text, offsetof(arguments, model), "M", \
        "an expression, a text file that holds one, or a file of\nKeras: .keras, .json, .h5 (required)"
#define CLI_TRAINED_MODEL_OPTION "model", &cli_text, offsetof(arguments, model), "M", "a file with weights: .keras, .h5 (required)"
#define CLI_OPTIMIZER_OPTION "optimizer", &cli_text, offsetof(arguments, optimizer), "O", "e.g. 'adam(lr=0.001)' (adam)"
#define CLI_LOSS_OPTION \
    "loss", &cli_text, offsetof(arguments, loss), "L", "by Keras's name; default: from the last layer and the targets"
#define CLI_MEMORY_OPTION \
    "memory", &cli_size, offsetof(arguments, memory), "SIZE", "the memory budget, e.g. 512M; default: what is available"
#define CLI_WORKERS_OPTION "workers", &cli_count, offsetof(arguments, workers), "N", "threads; default: one per CPU"
#define CLI_TILE_OPTION \
    "tile", &cli_extent, offsetof(arguments, tile), "N", "samples a worker processes at once; default: from the\nmodel"
#define CLI_LANES_OPTION \
    "lanes", &cli_power, offsetof(arguments, lanes), "N", "gradient sums, a power of two; default: from the model"
#define CLI_EXACT_KERNELS_OPTION                                          \
    "exact-kernels", &cli_flag, offsetof(arguments, exact_kernels), NULL, \
        "convolutions by their definition only, not by Winograd's\nfaster algorithm"
#define CLI_JSON_OPTION "json", &cli_flag, offsetof(arguments, json), NULL, "one JSON object on standard output"

/* ---- session.c: the context of a command, its messages and its interruption ----------------------------- */

/* What a command needs from its context, as in bw_context_options. */
typedef struct cli_session {
    int workers;
    size_t memory;
    bool exact_kernels;
    bool quiet;  /* logs warnings only; otherwise the whole log goes to standard error */
    bool silent; /* logs nothing, as others have logged it */
    bool ranks;  /* trains, or plans, together with the other ranks, if there are any */
    double watchdog;
} cli_session;

/* Opens a context that Ctrl-C cancels: the first Ctrl-C makes the running library call return BW_CANCELLED, a second one ends the
 * process. Returns NULL after a message. */
bw_context *cli_session_open(cli_session session);
/* Closes the context. Returns the command's exit code: `code`, or 128 and the number of the
 * signal (130 after Ctrl-C, 143 after SIGTERM) if that ended it. */
int cli_session_close(bw_context *ctx, int code);
/* While `stepping` is set, Ctrl-C is only counted, so that the current step can finish: the training callbacks check for it after
 * each step. */
void cli_session_stepping(bool stepping);
/* Returns true once Ctrl-C was pressed. */
bool cli_session_interrupted(void);

/* Writes "batchwise: ..." as one line to standard error and returns CLI_FAILURE. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Reports the library's last failure: as wrong usage if a text or an option was wrong, otherwise as a failure. Returns the exit
 * code. */
int cli_report(bw_context *ctx, const char *command);

/* ---- output.c: files that appear complete or not at all ------------------------------------------------- */

typedef struct cli_output {
    FILE *file;
    const char *path; /* borrowed */
    char *temporary;
} cli_output;

/* Opens a temporary file beside `path`. Returns false after a message that names the path. */
bool cli_output_open(cli_output *output, const char *path);
/* Flushes and syncs the file and renames it to its path. Returns false after a message. The output is closed either way. */
bool cli_output_commit(cli_output *output);
/* Closes and removes the temporary file. */
void cli_output_discard(cli_output *output);

/* Formats a size such as "1.5 MiB"; `text` holds CLI_BYTES_TEXT characters. */
enum { CLI_BYTES_TEXT = 32 };
const char *cli_bytes_text(char *text, size_t bytes);
const char *cli_plural(int64_t count); /* the plural's ending: "" for a count of 1, otherwise "s" */

/* Formats a time such as "3.8 ms" or "12.34 s"; `text` holds CLI_SECONDS_TEXT characters. */
enum { CLI_SECONDS_TEXT = 32 };
const char *cli_seconds_text(char *text, double seconds);

/* Prints a name that came from a file, padded to `width` columns (left-aligned if negative) and cut if it is longer. Control
 * characters become '?'. */
void cli_print_name(FILE *file, const char *name, int width);
/* Returns how many columns a name takes, at most `most`. */
int cli_name_width(const char *name, int most);

/* ---- model.c: the values of --model and --optimizer ----------------------------------------------------- */

/* Opens the model that `argument` gives: a Keras file (*loaded is set: it may be compiled, and has its input's shape), an
 * expression, or a text file that holds an expression. An error in an expression is shown with a caret. Returns CLI_SUCCESS, or an
 * exit code after a message. */
int cli_model_open(bw_model **model, bool *loaded, bw_context *ctx, const char *command, const char *argument);
/* Opens the model and compiles it. An optimizer or loss that is NULL stays as the file has it. */
int cli_model_make(bw_model **model, bw_context *ctx, const char *command, const char *argument, const char *optimizer,
                   const char *loss);
/* Lists the extensions of the kinds of files that are `wanted`, such as ".keras, .h5 or .c"; `text` holds CLI_ENDINGS_TEXT
 * characters. */
enum { CLI_ENDINGS_TEXT = 128 };
const char *cli_model_endings(char *text, bool (*wanted)(const bw_file_kind *kind));
bool cli_model_is_saved(const bw_file_kind *kind);
bool cli_model_is_trained(const bw_file_kind *kind); /* bw_load reads it, and it holds weights */

/* Returns the optimizer's text with its learning rate replaced by `rate`, a number or a schedule; `optimizer` may be NULL (Adam).
 * The caller frees the text. Returns NULL if there is no memory. */
char *cli_optimizer_text(const char *optimizer, const char *rate);
bool cli_optimizer_has_rate(const char *optimizer); /* whether the text (NULL: Adam) gives a learning rate */

/* ---- explain.c: out-of-memory messages of other systems -------------------------------------------------- */

typedef struct cli_explanation {
    const char *model, *data; /* as given on the command line; data may be NULL */
    /* What the message says: a number of bytes, exact to within `slack`, and a shape if ndim > 0. */
    size_t bytes, slack;
    int ndim;
    int64_t shape[BW_MAX_NDIM];
    /* What the message is about. */
    bool found;
    int64_t batch; /* 0: not known */
    bw_layer_memory layer;
    bw_memory_facts facts; /* the memory of the plan for this batch */
} cli_explanation;

/* Reads a message. Returns false if it names neither a shape nor a number of bytes. */
bool cli_explanation_read(cli_explanation *explanation, const char *text);
/* Looks for the layer. A message without a shape is assumed to be about the plan's batch if one was given. */
void cli_explanation_find(cli_explanation *explanation, const bw_plan *plan, bool batch_given);
void cli_explanation_print(FILE *file, const cli_explanation *explanation);
void cli_explanation_json(cli_json *json, const cli_explanation *explanation);

/* ---- data.c: the values of --data and the options that go with it ---------------------------------------- */

typedef struct cli_data {
    const char *path;
    double scale; /* 0: not given */
    cli_extents shape;
    const char *target, *categorical, *ignore, *text, *input, *na, *separator;
    int missing; /* bw_missing */
    int skip_rows;
    bool header, no_header, unpack_any;
    int64_t take;     /* samples to use; 0: all */
    double bad;       /* share of records that may be invalid */
    const char *part; /* which part of a file that has several; NULL: the training part */
} cli_data;

#define CLI_DATA_DEFAULT \
    {                    \
        .path = NULL     \
    }

/* Rows for the option table of a command whose arguments have a cli_data as `member`. */
#define CLI_DATA_OPTIONS(arguments, member)                                                                                        \
    {"data", &cli_paths, offsetof(arguments, member.path), "D...",                                                                 \
     "samples: .npz, x.npy,y.npy, .csv (.tsv, .data, .txt), IDX, .h5,\n.tfrecord, a folder of images or of .txt, synth:NAME, or "  \
     "- (CSV "                                                                                                                     \
     "on\nstandard input); several files, as of *.png"},                                                                           \
        {"shape", &cli_shape, offsetof(arguments, member.shape), "HxWxC", "the shape of one input, e.g. 28x28x1 for 784 columns"}, \
        {"scale", &cli_ratio, offsetof(arguments, member.scale), "S", "multiply the inputs by S, e.g. 1/255"},                     \
        {"target", &cli_text, offsetof(arguments, member.target), "COLUMN",                                                        \
         "the target, by name or number (the last); several: A,B"},                                                                \
        {"input", &cli_text, offsetof(arguments, member.input), "NAME", "the inputs of .h5 and .tfrecord files (x or image)"},     \
        {"header", &cli_flag, offsetof(arguments, member.header), NULL, "a CSV file's first line names the columns"},              \
        {"no-header", &cli_flag, offsetof(arguments, member.no_header), NULL, "it does not; default: detected and logged"},        \
        {"missing", &cli_missing, offsetof(arguments, member.missing), "HOW",                                                      \
         "missing values: error, mean, zero or skip (error)"},                                                                     \
        {"na", &cli_text, offsetof(arguments, member.na), "A,B", "further texts that stand for missing values"},                   \
        {"separator", &cli_text, offsetof(arguments, member.separator), "C",                                                       \
         "of fields: a character, tab or space; default: found"},                                                                  \
        {"skip-rows", &cli_number, offsetof(arguments, member.skip_rows), "N",                                                     \
         "lines before a CSV file's header or first record"},                                                                      \
        {"take", &cli_extent, offsetof(arguments, member.take), "N", "only the first N samples, e.g. of an endless input"},        \
        {"unpack-any", &cli_flag, offsetof(arguments, member.unpack_any), NULL,                                                    \
         "also unpack what becomes more than 960 times as large"},                                                                 \
        {"categorical", &cli_text, offsetof(arguments, member.categorical), "A,B", "columns whose numbers are categories"},        \
        {"text", &cli_text, offsetof(arguments, member.text), "A,B", "columns of text, for layers such as text_vectorization"},    \
    {                                                                                                                              \
        "ignore", &cli_text, offsetof(arguments, member.ignore), "A,B", "columns to leave out"                                     \
    }

/* Checks that the options are consistent. Returns CLI_SUCCESS, or an exit code after a message. */
int cli_data_check(const char *command, const cli_data *data);
/* Reads samples and prepares them as the model's training data was, or like another dataset (both may be NULL). Returns NULL after
 * a message. */
bw_dataset *cli_data_read(bw_context *ctx, const cli_data *data, const char *path, bw_model *model, const bw_dataset *like);

/* Opens a trained model from a file that holds weights, and reads samples for it. Returns CLI_SUCCESS, or an exit code after a
 * message. */
int cli_model_open_trained(bw_model **model, bw_dataset **dataset, bw_context *ctx, const char *command, const char *argument,
                           const cli_data *data);

/* ---- predictions.c: a model's predictions for samples ----------------------------------------------------- */

typedef struct cli_predictions {
    int64_t samples, each; /* each: values per sample */
    float *values;
    bw_output_facts facts;
    const bw_model *model; /* for class names; kept, like the dataset */
    const bw_dataset *dataset;
} cli_predictions;

/* Predicts with all outputs of the model, at most `capacity`, and keeps the values unchanged. Returns the number of outputs, or -1
 * after a message. The caller frees each. */
int cli_predictions_make(cli_predictions *made, int capacity, bw_context *ctx, bw_model *model, bw_dataset *dataset);
/* Turns logits into probabilities; other outputs stay unchanged. */
void cli_predictions_normalise(cli_predictions *made);
void cli_predictions_free(cli_predictions *made, int count);
/* Returns the number of classes if the output assigns each sample to one of them, otherwise 0. */
int cli_predictions_classes(const cli_predictions *made);
int cli_predictions_class(const cli_predictions *made, int64_t sample);
/* Returns the class's name if the model or the data has one (both may be NULL), otherwise its number as text; `text` holds
 * CLI_CLASS_TEXT characters. */
enum { CLI_CLASS_TEXT = 16 };
const char *cli_class_name(char *text, const bw_model *model, const bw_dataset *dataset, int number);
/* Formats the value as the shortest text that reads back as the same float. */
const char *cli_float_text(char *text, float value);

/* ---- weights.c: class weights ----------------------------------------------------------------------------- */

enum { CLI_MAX_CLASSES = 1 << 16 };

typedef struct cli_weights {
    float *weight; /* CLI_MAX_CLASSES values; NULL: none */
    int count;
} cli_weights;

/* Sets each class's weight to samples / (classes * samples of the class), so that every class contributes equally to the loss.
 * Returns CLI_SUCCESS, or an exit code after a message. */
int cli_weights_balance(cli_weights *weights, bw_context *ctx, bw_dataset *dataset);
void cli_weights_print(FILE *file, const cli_weights *weights, const bw_dataset *dataset);

/* ---- run.c: the directory of a run ------------------------------------------------------------------------ */

typedef struct cli_run {
    const char *folder; /* NULL: no run directory was requested */
    char **arguments;   /* the command line's arguments; ends with NULL */
    uint64_t seed;
    const char *data;
    const char *title, *about; /* the report's heading and its first sentence; NULL: made from data and result */
} cli_run;

/* Steps that a run traces, for the timeline of one of them, and from one measurement of the noise scale to the next. */
enum { CLI_RUN_TRACED = 3, CLI_RUN_NOISE = 16 };

/* Makes the folder and claims it for this process. The folder must be empty, hold what a killed run left, or, if `replace` is set,
 * hold a run. Returns false after a message. */
bool cli_run_open(const char *folder, bool replace);
void cli_run_close(void); /* releases the claim on the folder, if there is one */
/* Returns the path of a file of the run, which the caller frees; NULL if there is no memory. */
char *cli_run_path(const cli_run *run, const char *file);

/* ---- result.c: the results of a training ------------------------------------------------------------------ */

enum { CLI_FAILURE_TEXT = 1024 };

/* What --log-steps keeps for each update that it logs: its number, the epoch (from 0), and the epoch's values so far. */
typedef struct cli_steps {
    int64_t count, capacity;
    int columns;
    double *rows; /* [count][2 + columns] */
    char names[32][64];
} cli_steps;

/* Prints a line on standard error and keeps the values. If there is no memory for them, it only prints. */
void cli_steps_add(cli_steps *steps, const bw_progress *progress);
void cli_steps_json(cli_json *json, const char *key, const cli_steps *steps);
void cli_steps_free(cli_steps *steps);

/* What a run keeps of its course: points at equal distances, of which every second is dropped when there are too many
 * (record.c). */
enum { CLI_RECORD_POINTS = 512, CLI_RECORD_COLUMNS = 16 };

typedef struct cli_record {
    int64_t updates, next, every; /* so far; the next one that is kept; from one to the next */
    int count, columns;
    struct cli_point *points;
    char names[CLI_RECORD_COLUMNS][64]; /* of metrics */
    /* The last point: its epoch, and what that had summed up until then. */
    int epoch;
    double samples, loss, seconds;
    double noise_steps, noise_trace, noise_signal;
    int64_t *epoch_ends; /* [epoch]: the updates so far at its end */
    int epochs, epoch_capacity;
} cli_record;

/* To be called before the training. If there is no memory, the run has no points. */
void cli_record_open(cli_record *record);
/* Looks at a step; keeps it if it is due. */
void cli_record_step(cli_record *record, const bw_model *model, const bw_progress *progress);
void cli_record_epoch(cli_record *record, const bw_progress *progress);
/* Fills in the losses of the points, averaged over neighbours so that there are at most `most`. Returns how many there are. */
int cli_record_losses(const cli_record *record, double *losses, int most);
void cli_record_json(cli_json *json, const char *key, const cli_record *record);
void cli_record_free(cli_record *record);

typedef struct cli_result {
    bw_context *ctx;
    bw_model *model;
    bw_dataset *training;
    bw_dataset *validation;   /* NULL: none, or a part of the training data */
    bw_history *history;      /* NULL: no step was made */
    bw_findings *findings;    /* what is wrong, as far as it is known; NULL: nobody looked */
    int epochs;               /* the number requested */
    int64_t batch;            /* the largest per update; INT64_MAX: all samples */
    bw_plan_options planning; /* the training's plan, except accumulation, which `batch` includes */
    const char *history_path, *model_path;
    const bw_tuning *tuning; /* of --batch auto; NULL: none */
    bool profile;            /* --profile: the JSON has the profile, too */
    cli_run run;
    cli_steps steps;                /* filled by --log-steps */
    cli_record record;              /* filled if there is a run directory */
    double validation_split;        /* of the training data; 0: none */
    const char *batch_text;         /* as given; NULL: `batch` */
    const char *stopped;            /* "interrupted", "early stopping", "failed"; NULL: training ran to its end */
    char failure[CLI_FAILURE_TEXT]; /* the message of the failure in training or in saving; "": nothing failed */
} cli_result;

/* Writes the model. Returns false after a message, which is copied to `failure` unless that is NULL. */
bool cli_result_save(const cli_result *result, const char *path, char *failure);

/* Writes the history, the model and the run directory. After a failed training no model is written; after an interruption a
 * message says what was saved. Returns the exit code. */
int cli_result_finish(cli_result *result, bw_status status);
void cli_result_json(const cli_result *result);
/* Writes the list "text_columns": the columns of a table that became categories, and these. */
void cli_result_text_columns(cli_json *json, const bw_dataset *dataset);
void cli_result_print(const cli_result *result);
double cli_result_speed(const cli_result *result); /* samples per second; NaN: not measured */
/* Writes the run's files. Returns false after a message. */
bool cli_run_write(const cli_result *result);

/* ---- findings.c ------------------------------------------------------------------------------------------- */

void cli_findings_print(FILE *file, const bw_findings *findings);
void cli_findings_json(cli_json *json, const char *key, const bw_findings *findings); /* an array */
/* Prints the most severe finding in one line, and how to see more; nothing if there is none. */
void cli_findings_line(FILE *file, const bw_findings *findings);
/* Writes the first finding as an object, or null. */
void cli_finding_json(cli_json *json, const char *key, const bw_findings *findings);

/* ---- tune_print.c: a tuning, for people and as JSON -------------------------------------------------------- */

void cli_tuning_print(const bw_tuning *tuning);
void cli_tuning_json(cli_json *json, const char *key, const bw_tuning *tuning);
/* Prints the choice in one line on standard error. */
void cli_tuning_tell(const bw_tuning *tuning, bool kept_rate);

/* ---- confusion.c ------------------------------------------------------------------------------------------ */

typedef struct cli_confusion {
    int classes;
    int64_t *counts; /* [true class][predicted class] */
    const bw_model *model;
    const bw_dataset *dataset;
} cli_confusion;

/* Predicts and counts. `counts` stays NULL if the model is not a classifier or the targets are not its classes. Returns false
 * after a message. The caller frees the matrix. */
bool cli_confusion_make(cli_confusion *made, bw_context *ctx, bw_model *model, bw_dataset *dataset);
/* Counts predictions that are there already. Returns false, with `counts` NULL, if the targets are not classes of the output. */
bool cli_confusion_count(cli_confusion *made, bw_dataset *dataset, const cli_predictions *predictions);
/* Returns the class that a row of `each` targets stands for: its number, or the index of the largest value of a one-hot row; -1: it
 * is not a class. */
int cli_class_of_target(const float *row, int64_t each, int classes);
void cli_confusion_free(cli_confusion *made);
double cli_confusion_precision(const cli_confusion *made, int number); /* NaN: never predicted */
double cli_confusion_recall(const cli_confusion *made, int number);    /* NaN: not in the data */
void cli_confusion_print(FILE *file, const cli_confusion *made);
void cli_confusion_json(cli_json *json, const cli_confusion *made);

/* ---- history.c ------------------------------------------------------------------------------------------ */

typedef bool (*cli_history_format)(FILE *file, const bw_history *history);

/* Returns the writer for the path's extension (.json, .csv), or NULL if there is none. */
cli_history_format cli_history_find(const char *path);
/* Checks, before hours of training, that a file can be made at `path`. Returns false after a message. */
bool cli_history_probe(const char *path);
/* Returns how much of a plan is tables and scratch memory, which figures for whole batches do not include. */
size_t cli_tables_bytes(const bw_memory_facts *memory);
/* Writes the history. Returns false after a message. */
bool cli_history_write(const char *path, cli_history_format format, const bw_history *history);
/* Writes an object of lists, like Keras's History.history. */
void cli_history_json(cli_json *json, const char *key, const bw_history *history);

#endif
