/*
 * Reads options by their table. Numbers are read strictly: the whole text must be a decimal number within the type's range,
 * without white space, hexadecimal or "inf".
 */
#include "cli/options.h"
#include "cli/ranks.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Kinds of values ------------------------------------------------------------------------------------ */

/* Reads digits up to `end`; false if there are none or the value exceeds 64 bits. */
static bool read_digits(uint64_t *value, const char *text, const char *end)
{
    uint64_t sum = 0;
    if (text == end) {
        return false;
    }
    for (; text != end; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        uint64_t digit = (uint64_t)(*text - '0');
        if (sum > (UINT64_MAX - digit) / 10) {
            return false;
        }
        sum = sum * 10 + digit;
    }
    *value = sum;
    return true;
}

static bool read_whole(uint64_t *value, const char *text, uint64_t low, uint64_t high)
{
    return read_digits(value, text, text + strlen(text)) && *value >= low && *value <= high;
}

static bool read_real(double *value, const char *text)
{
    char *end;
    if (*text == 0 || strspn(text, "0123456789.eE+-") != strlen(text)) {
        return false;
    }
    errno = 0;
    *value = strtod(text, &end);
    return *end == 0 && isfinite(*value) && !(errno == ERANGE && *value == 0);
}

static bool parse_flag(void *target, const char *text)
{
    (void)text;
    *(bool *)target = true;
    return true;
}

static bool parse_text(void *target, const char *text)
{
    *(const char **)target = text;
    return *text != 0;
}

static bool parse_int(void *target, const char *text, uint64_t low)
{
    uint64_t value;
    if (!read_whole(&value, text, low, INT_MAX)) {
        return false;
    }
    *(int *)target = (int)value;
    return true;
}

static bool parse_count(void *target, const char *text)
{
    return parse_int(target, text, 1);
}

static bool parse_number(void *target, const char *text)
{
    return parse_int(target, text, 0);
}

static bool parse_power(void *target, const char *text)
{
    return parse_int(target, text, 1) && (*(int *)target & (*(int *)target - 1)) == 0;
}

static bool parse_extent(void *target, const char *text)
{
    uint64_t value;
    if (!read_whole(&value, text, 1, INT64_MAX)) {
        return false;
    }
    *(int64_t *)target = (int64_t)value;
    return true;
}

static bool parse_seed(void *target, const char *text)
{
    return read_whole(target, text, 0, UINT64_MAX);
}

static bool parse_rate(void *target, const char *text)
{
    return read_real(target, text) && *(double *)target > 0;
}

static bool parse_share(void *target, const char *text)
{
    return read_real(target, text) && *(double *)target >= 0 && *(double *)target < 1;
}

/* Reads a number or a fraction such as 1/255, which no decimal number equals. The numerator is copied since it is not
 * terminated. */
static bool parse_ratio(void *target, const char *text)
{
    const char *slash = strchr(text, '/');
    char numerator[64];
    double above, below = 1;
    if (!slash) {
        slash = text + strlen(text);
    } else if (!read_real(&below, slash + 1)) {
        return false;
    }
    size_t length = (size_t)(slash - text);
    if (length >= sizeof numerator) {
        return false;
    }
    memcpy(numerator, text, length);
    numerator[length] = 0;
    if (!read_real(&above, numerator) || below == 0) {
        return false;
    }
    double ratio = above / below;
    *(double *)target = ratio;
    return isfinite(ratio) && ratio != 0;
}

static bool parse_size(void *target, const char *text)
{
    static const char units[] = "KMGT";
    size_t length = strlen(text);
    int shift = 0;
    if (length > 0 && text[length - 1] >= 'A') {
        char letter = text[length - 1] >= 'a' ? (char)(text[length - 1] - 'a' + 'A') : text[length - 1];
        const char *unit = strchr(units, letter);
        if (!unit) {
            return false;
        }
        shift = 10 * ((int)(unit - units) + 1);
        length--;
    }
    uint64_t value;
    if (!read_digits(&value, text, text + length) || value == 0 || value > (uint64_t)SIZE_MAX >> shift) {
        return false;
    }
    *(size_t *)target = (size_t)value << shift;
    return true;
}

static bool parse_batch(void *target, const char *text)
{
    if (strcmp(text, "full") == 0) {
        *(int64_t *)target = INT64_MAX;
        return true;
    }
    return parse_extent(target, text);
}

/* Checks batch sizes: N or full, or several, separated by commas or slashes. Either all of them have an epoch after @ (0, then
 * increasing), or none has. */
static bool parse_batches(void *target, const char *text)
{
    int64_t last = -1;
    bool first = true, schedule = strchr(text, '@');
    const char *mark = strchr(text, '/') && !schedule ? "/" : ",";
    *(const char **)target = text;
    for (const char *item = text; item; first = false) {
        size_t length = strcspn(item, mark);
        const char *end = item + length, *at = memchr(item, '@', length), *stop = !at ? end : at;
        uint64_t size, epoch = 0;
        bool full = stop - item == 4 && memcmp(item, "full", 4) == 0;
        if (schedule == !at || (!full && (!read_digits(&size, item, stop) || size < 1 || size > INT64_MAX))) {
            return false;
        }
        if (schedule && (!read_digits(&epoch, at + 1, end) || epoch > INT_MAX || (int64_t)epoch <= last || (first && epoch > 0))) {
            return false;
        }
        last = (int64_t)epoch;
        item = *end == 0 ? NULL : end + 1;
    }
    return true;
}

static bool parse_batches_or_auto(void *target, const char *text)
{
    *(const char **)target = text;
    return strcmp(text, "auto") == 0 || parse_batches(target, text);
}

/* Reads a number with a unit; without one it is seconds. */
static bool parse_duration(void *target, const char *text)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"", 1}};
    char number[32];
    size_t length = strspn(text, "0123456789.");
    if (length == 0 || length >= sizeof number) {
        return false;
    }
    memcpy(number, text, length);
    number[length] = 0;
    double value;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(text + length, units[i].name) == 0 && read_real(&value, number) && value > 0) {
            *(double *)target = value * units[i].seconds;
            return value * units[i].seconds <= 1e6;
        }
    }
    return false;
}

static bool parse_shape(void *target, const char *text)
{
    cli_extents *shape = target;
    for (shape->ndim = 0; shape->ndim < BW_MAX_NDIM - 1;) {
        const char *end = text + strcspn(text, "x");
        uint64_t extent;
        if (!read_digits(&extent, text, end) || extent < 1 || extent > INT64_MAX) {
            return false;
        }
        shape->extent[shape->ndim++] = (int64_t)extent;
        if (*end == 0) {
            return true;
        }
        text = end + 1;
    }
    return false;
}

static bool parse_missing(void *target, const char *text)
{
    static const char *const words[] = {
        [BW_MISSING_ERROR] = "error", [BW_MISSING_MEAN] = "mean", [BW_MISSING_ZERO] = "zero", [BW_MISSING_SKIP] = "skip"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i]) == 0) {
            *(int *)target = (int)i;
            return true;
        }
    }
    return false;
}

static bool parse_port(void *target, const char *text)
{
    return parse_number(target, text) && *(int *)target <= 65535;
}

static bool parse_percent(void *target, const char *text)
{
    char number[32];
    size_t length = strlen(text);
    bool percent = length > 1 && text[length - 1] == '%';
    length -= percent;
    if (length >= sizeof number) {
        return false;
    }
    memcpy(number, text, length);
    number[length] = 0;
    if (!read_real(target, number)) {
        return false;
    }
    *(double *)target /= percent ? 100 : 1;
    return *(double *)target > 0 && *(double *)target <= 1;
}

const cli_kind cli_flag = {NULL, parse_flag, NULL};
const cli_kind cli_text = {"a text", parse_text, NULL};
const cli_kind cli_paths = {"a file, a folder or several files", parse_text, NULL};
const cli_kind cli_count = {"a whole number from 1 to 2147483647", parse_count, NULL};
const cli_kind cli_number = {"a whole number from 0 to 2147483647", parse_number, NULL};
const cli_kind cli_port = {"a port from 0 to 65535", parse_port, NULL};
const cli_kind cli_extent = {"a whole number of 1 or more", parse_extent, NULL};
const cli_kind cli_power = {"a power of two", parse_power, NULL};
const cli_kind cli_seed = {"a whole number from 0 to 18446744073709551615", parse_seed, NULL};
const cli_kind cli_rate = {"a number above 0", parse_rate, NULL};
const cli_kind cli_percent = {"a share above 0 up to 1, or a percentage such as 1%", parse_percent, NULL};
const cli_kind cli_share = {"a share from 0 up to, not including, 1", parse_share, NULL};
const cli_kind cli_ratio = {"a number other than 0, or a fraction such as 1/255", parse_ratio, NULL};
const cli_kind cli_size = {"a size such as 512M or 2G", parse_size, NULL};
const cli_kind cli_batch = {"a whole number of 1 or more, or full", parse_batch, NULL};
const cli_kind cli_batches_or_auto = {"a whole number of 1 or more, full, auto, 32,64 (alternating), 32/64 (alternating by "
                                      "epoch) or 32@0,128@5 (from epoch 5 on)",
                                      parse_batches_or_auto, NULL};
const cli_kind cli_duration = {"a time such as 10s, 500ms or 2m", parse_duration, NULL};
const cli_kind cli_some_seconds = {"a time such as 10s, 500ms or 2m", parse_duration, "5s"};
const cli_kind cli_shape = {"extents such as 28x28x1", parse_shape, NULL};
const cli_kind cli_missing = {"error, mean, zero or skip", parse_missing, NULL};

/* ---- Messages ------------------------------------------------------------------------------------------- */

int cli_mistake(const char *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    cli_ranks_keep(format, arguments);
    va_end(arguments);
    fprintf(stderr, "batchwise%s%s: ", !command ? "" : " ", !command ? "" : command);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return CLI_USAGE;
}

enum { WORD = 32 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns the smallest number of insertions, deletions, replacements and swaps of neighbours that turn a into b. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][WORD + 1];
    size_t la = strlen(a), lb = strlen(b);
    if (la > WORD || lb > WORD) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= lb; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= la; i++) {
        const size_t *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = smaller(smaller(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                best = smaller(best, before[j - 2] + 1);
            }
            row[j] = best;
        }
    }
    return rows[la % 3][lb];
}

const char *cli_nearest(const char *word, const char *const *names, size_t count, size_t stride)
{
    const char *nearest = NULL;
    size_t least = strlen(word) / 3 + 1; /* a word that differs more is not a typing error */
    for (size_t i = 0; i < count; i++) {
        const char *name = *(const char *const *)(const void *)((const char *)(const void *)names + i * stride);
        size_t away = distance(word, name);
        if (away <= least && (!nearest || away < least)) {
            nearest = name;
            least = away;
        }
    }
    return nearest;
}

/* What Keras and other tools call an option of ours. */
static const struct {
    const char *theirs, *ours;
} elsewhere[] = {{"batch-size", "batch"},
                 {"learning-rate", "lr"},
                 {"validation-data", "validation"},
                 {"patience", "early-stop"},
                 {"image-size", "input"},
                 {"img-size", "input"},
                 {"size", "input"},
                 {"callbacks", "early-stop"},
                 {"out-model", "save-model"},
                 {"threads", "workers"},
                 {"jobs", "workers"},
                 {"labels", "target"},
                 {"label", "target"},
                 {"delimiter", "separator"},
                 {"sep", "separator"},
                 {"normalize", "normalise"},
                 {"standardize", "standardise"},
                 {"checkpoint", "checkpoint-every"},
                 {"verbose", "log-steps"}};

/* Returns NULL if it is no such word, or the command lacks the option. */
static const char *option_for(const cli_usage *usage, const char *word)
{
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        bool same = strcmp(elsewhere[i].theirs, word) == 0;
        for (const cli_option *option = usage->options; same && option->name; option++) {
            if (strcmp(option->name, elsewhere[i].ours) == 0) {
                return option->name;
            }
        }
    }
    return NULL;
}

/* The most similar option of the table is suggested. */
static void report_unknown(const cli_usage *usage, const char *argument, size_t length)
{
    char word[WORD + 1];
    size_t dashes = strspn(argument, "-"), count = 0;
    const char *nearest = NULL;
    while (usage->options[count].name) {
        count++;
    }
    if (length - dashes <= WORD) {
        memcpy(word, argument + dashes, length - dashes);
        word[length - dashes] = 0;
        for (char *c = word; *c; c++) {
            *c = *c == '_' ? '-' : *c;
        }
        nearest = option_for(usage, word);
        nearest = nearest ? nearest : cli_nearest(word, &usage->options[0].name, count, sizeof usage->options[0]);
    }
    if (nearest) {
        cli_mistake(usage->command, "unknown option '%.*s'; did you mean '--%s'?", (int)length, argument, nearest);
    } else {
        cli_mistake(usage->command, "unknown option '%.*s'; 'batchwise %s --help' lists the options", (int)length, argument,
                    usage->command);
    }
}

/* ---- Help ----------------------------------------------------------------------------------------------- */

static void print_option(const char *name, const char *value, const char *help)
{
    enum { INDENT = 28 };
    int width = printf("  --%s%s%s", name, !value ? "" : " ", !value ? "" : value);
    for (const char *line = help; line;) {
        const char *end = strchr(line, '\n');
        int length = !end ? (int)strlen(line) : (int)(end - line);
        printf("%*s%.*s\n", width < INDENT ? INDENT - width : 1, "", length, line);
        width = 0;
        line = !end ? NULL : end + 1;
    }
}

static void print_help(const cli_usage *usage)
{
    printf("usage: batchwise %s %s\n\n%s\n\noptions:\n", usage->command, usage->synopsis, usage->purpose);
    for (const cli_option *option = usage->options; option->name; option++) {
        print_option(option->name, option->value, option->help);
    }
    print_option("help", NULL, "this text");
    putchar('\n');
    usage->print_more();
}

/* ---- Reading -------------------------------------------------------------------------------------------- */

static const cli_option *find_option(const cli_option *options, const char *name, size_t length)
{
    for (; options->name; options++) {
        if (strlen(options->name) == length && memcmp(options->name, name, length) == 0) {
            return options;
        }
    }
    return NULL;
}

/* Tells whether the option was already given before `end`: a second value would silently replace the first. */
static bool is_given(const cli_option *option, char **argv, int end)
{
    size_t length = strlen(option->name);
    for (int i = 1; i < end; i++) {
        const char *argument = argv[i];
        if (strncmp(argument, "--", 2) == 0 && strncmp(argument + 2, option->name, length) == 0 &&
            (argument[2 + length] == 0 || argument[2 + length] == '=')) {
            return true;
        }
    }
    return false;
}

/* Joins the words from argv[first] to argv[last] to a list with commas, as the library takes several files. The text lives as long
 * as those of argv do: `store` has space for all of them. Returns NULL after a message. */
static const char *join_words(const cli_usage *usage, const cli_option *option, int argc, char **argv, int first, int last)
{
    static char *store;
    static size_t used;
    size_t bytes = 0;
    for (int i = 1; i < argc; i++) {
        bytes += strlen(argv[i]) + 1;
    }
    store = store ? store : malloc(bytes);
    if (!store) {
        cli_mistake(usage->command, "--%s: no memory for %d files", option->name, last - first + 1);
        return NULL;
    }
    char *list = store + used;
    for (int i = first; i <= last; i++) {
        size_t length = strlen(argv[i]);
        if (strchr(argv[i], ',')) {
            cli_mistake(usage->command, "--%s: a name with a comma cannot be in a list, found '%s'; give its folder, or rename it",
                        option->name, argv[i]);
            return NULL;
        }
        memcpy(store + used, argv[i], length);
        used += length;
        store[used++] = i < last ? ',' : 0;
    }
    return list;
}

/* Reads the option at argv[*at] and its value; *at ends at the last argument used. Returns false after a message. */
static bool read_option(const cli_usage *usage, int argc, char **argv, int *at, void *target)
{
    const char *argument = argv[*at], *equals = strchr(argument, '=');
    size_t length = !equals ? strlen(argument) : (size_t)(equals - argument);
    const cli_option *option = strncmp(argument, "--", 2) == 0 ? find_option(usage->options, argument + 2, length - 2) : NULL;
    if (!option) {
        report_unknown(usage, argument, length);
        return false;
    }
    bool again = option->kind->expected && is_given(option, argv, *at);
    const char *value = !equals ? NULL : equals + 1;
    if (!option->kind->expected && value) {
        cli_mistake(usage->command, "--%s takes no value, found '%s'", option->name, value);
        return false;
    }
    if (option->kind->expected && !value) {
        /* What looks like another option means that the value was forgotten. */
        bool missing = *at + 1 >= argc || strncmp(argv[*at + 1], "--", 2) == 0;
        if (missing && !option->kind->standard) {
            cli_mistake(usage->command, "--%s needs a value: expected %s", option->name, option->kind->expected);
            return false;
        }
        value = missing ? option->kind->standard : argv[++*at];
    }
    int first = *at;
    while (option->kind == &cli_paths && *at + 1 < argc && argv[*at + 1][0] != '-' && value == argv[first]) {
        ++*at;
    }
    if (*at > first) {
        value = join_words(usage, option, argc, argv, first, *at);
        if (!value) {
            return false;
        }
    }
    if (!option->kind->parse((char *)target + option->offset, value)) {
        cli_mistake(usage->command, "--%s: expected %s, found '%s'", option->name, option->kind->expected, value);
        return false;
    }
    if (again) {
        cli_mistake(usage->command, "--%s is given twice; expected it once", option->name);
    }
    return !again;
}

static bool has_required(const cli_usage *usage, const void *target)
{
    if (!usage->required) {
        return true;
    }
    const cli_option *option = find_option(usage->options, usage->required, strlen(usage->required));
    const char *const *text = (const void *)((const char *)target + option->offset);
    if (!*text) {
        cli_mistake(usage->command, "--%s is required; 'batchwise %s --help' lists the options", option->name, usage->command);
    }
    return *text;
}

bool cli_options_read(int *code, const cli_usage *usage, int argc, char **argv, void *target)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(usage);
            *code = CLI_SUCCESS;
            return false;
        }
    }
    *code = CLI_USAGE;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            cli_mistake(usage->command, "unexpected argument '%s': expected an option such as --%s", argv[i],
                        usage->options[0].name);
            return false;
        }
        if (!read_option(usage, argc, argv, &i, target)) {
            return false;
        }
    }
    return has_required(usage, target);
}

int cli_options_words(const cli_usage *usage, int *argc, char **argv, char **words, int capacity)
{
    int kept = 1, found = 0;
    for (int i = 1; i < *argc; i++) {
        const cli_option *option = usage->options;
        while (option->name && (strncmp(argv[i], "--", 2) != 0 || strcmp(argv[i] + 2, option->name) != 0)) {
            option++;
        }
        bool word = argv[i][0] != '-' && argv[i][0] != 0;
        if (word && found < capacity) {
            words[found++] = argv[i];
            continue;
        }
        argv[kept++] = argv[i];
        if (option->name && option->kind->expected && i + 1 < *argc) {
            argv[kept++] = argv[++i];
        }
    }
    *argc = kept;
    return found;
}
