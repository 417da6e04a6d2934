/*
 * The program `batchwise`: finds the subcommand's row and runs it. Standard output is closed here, so that a full disk is reported
 * as a failure instead of silently truncating the result.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *purpose;
    bool by_ranks; /* runs on all ranks of MPI; the others run on the first alone */
} commands[] = {
    {"train", cli_train, "train a model on a file of samples", true},
    {"plan", cli_plan, "tell the memory of a run before it starts, and what a whole batch would need", false},
    {"verify", cli_verify, "prove on a model and its data that splitting changes nothing", false},
    {"eval", cli_eval, "loss, metrics and a confusion matrix of a trained model", false},
    {"predict", cli_predict, "predict samples with a trained model", false},
    {"summary", cli_summary, "a model's layers, shapes, parameters and bytes", false},
    {"profile", cli_profile_command, "tell where each microsecond of a training step goes", false},
    {"doctor", cli_doctor, "look at data, model and some updates, and name what is wrong", false},
    {"report", cli_report_command, "make one HTML page of a run, or compare several", false},
    {"tune", cli_tune_command, "find a batch size and the learning rate that goes with it", true},
    {"bench", cli_bench, "measure the speed of training on built-in workloads", true},
    {"convert", cli_convert, "convert a model from one file to another", false},
    {"demo", cli_demo, "learn to read handwritten digits, with plan, doctor and report", false},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int show_help(void)
{
    puts("usage: batchwise COMMAND [options]\n\n"
         "Trains neural networks on mini-batches of any size, in memory that does not grow with the batch.\n\n"
         "commands:");
    for (size_t i = 0; i < COMMANDS; i++) {
        printf("  %-10s %s\n", commands[i].name, commands[i].purpose);
    }
    puts("\noptions:\n"
         "  --help     this text; 'batchwise COMMAND --help' for a command's options\n"
         "  --version  the version\n\n"
         "Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted.");
    return CLI_SUCCESS;
}

static int show_version(void)
{
    printf("batchwise %s\n", bw_version());
    return CLI_SUCCESS;
}

static int report_unknown(const char *word)
{
    const char *what = word[0] == '-' ? "option" : "command";
    const char *nearest = cli_nearest(word, &commands[0].name, COMMANDS, sizeof commands[0]);
    if (nearest) {
        return cli_mistake(NULL, "unknown %s '%s'; did you mean '%s'?", what, word, nearest);
    }
    return cli_mistake(NULL, "unknown %s '%s'; 'batchwise --help' lists the commands", what, word);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        return cli_mistake(NULL, "expected a command; 'batchwise --help' lists them");
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return cli_rank() > 0 && !commands[i].by_ranks ? CLI_SUCCESS : commands[i].run(argc - 1, argv + 1);
        }
    }
    bool help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
    bool version = strcmp(argv[1], "--version") == 0;
    if ((help || version) && argc > 2) {
        return cli_mistake(NULL, "unexpected argument '%s' after %s", argv[2], argv[1]);
    }
    return help ? show_help() : version ? show_version() : report_unknown(argv[1]);
}

static int run_and_flush(int argc, char **argv)
{
    int code = run(argc, argv);
    bool failed = ferror(stdout) != 0;
    errno = 0;
    if (fclose(stdout) != 0 || failed) {
        int failure = cli_fail("cannot write to standard output: %s", errno != 0 ? strerror(errno) : "a write failed");
        return code == CLI_SUCCESS ? failure : code;
    }
    return code;
}

int main(int argc, char **argv)
{
    cli_ranks_open();
    return cli_ranks_close(run_and_flush(argc, argv));
}
