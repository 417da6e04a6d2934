/* The values of a session's columns: sums of the last feed, totals of an epoch, and the losses and metrics made from them. */
#include "train/internal.h"

#include <string.h>

bw_status bwi_session_open_totals(bwi_session *s)
{
    size_t count = 0;
    for (int c = 0; c < s->column_count; c++) {
        count += (size_t)s->columns[c].node->op->sums->count(s->columns[c].node);
    }
    s->totals_block = bwi_allocate(s->training->ctx, s->variant_count ? 2 * count : count, sizeof(double));
    double *next = s->totals_block;
    for (int c = 0; next && c < s->column_count; c++) {
        s->columns[c].totals = next;
        s->columns[c].fed = s->variant_count ? next + count : NULL;
        next += s->columns[c].node->op->sums->count(s->columns[c].node);
    }
    return s->totals_block ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

const double *bwi_session_fed_sums(const bwi_session *s, const bwi_logged *column)
{
    return column->fed ? column->fed : bwi_exec_sums(s->exec, column->node);
}

void bwi_session_reset(bwi_session *s)
{
    s->penalty_total = s->fed_total = 0;
    for (int c = 0; c < s->column_count; c++) {
        memset(s->columns[c].totals, 0, (size_t)s->columns[c].node->op->sums->count(s->columns[c].node) * sizeof(double));
    }
}

static int64_t sums_of(const bwi_session *s)
{
    int64_t count = 0;
    for (int c = 0; c < s->column_count; c++) {
        count += s->columns[c].node->op->sums->count(s->columns[c].node);
    }
    return count;
}

int64_t bwi_session_total_count(const bwi_session *s)
{
    return sums_of(s) + 2;
}

void bwi_session_get_totals(const bwi_session *s, double *totals)
{
    int64_t count = sums_of(s);
    memcpy(totals, s->totals_block, (size_t)count * sizeof *totals);
    totals[count] = s->penalty_total;
    totals[count + 1] = s->fed_total;
}

void bwi_session_set_totals(bwi_session *s, const double *totals)
{
    int64_t count = sums_of(s);
    memcpy(s->totals_block, totals, (size_t)count * sizeof *totals);
    s->penalty_total = totals[count];
    s->fed_total = totals[count + 1];
}

/* An epoch's loss is the mean over its feeds, weighted by their samples; a metric is computed from sums over all of them. */
void bwi_session_count(bwi_session *s)
{
    s->penalty_total += s->penalty * s->fed;
    s->fed_total += s->fed;
    for (int c = 0; c < s->column_count; c++) {
        const bwi_logged *column = &s->columns[c];
        const double *sums = bwi_session_fed_sums(s, column);
        if (column->loss) {
            double value = column->summed > 0 ? column->summed * sums[0] : column->value(column->node, sums, column->index);
            column->totals[0] += value * s->fed;
            column->totals[1] += s->fed;
            continue;
        }
        for (int64_t i = 0; i < column->node->op->sums->count(column->node); i++) {
            column->totals[i] += sums[i];
        }
    }
}

static double column_value(const bwi_logged *column)
{
    return column->value(column->node, column->totals, column->index);
}

/* Values are the total loss, then the columns that are shown. With one loss the total is its column, which is not. */
static bool is_shown(const bwi_session *s, int column)
{
    int losses = 0;
    for (int c = 0; c < s->column_count; c++) {
        losses += s->columns[c].loss && !s->columns[c].hidden;
    }
    return !s->columns[column].hidden && !(s->columns[column].loss && losses == 1);
}

/* The column of a value from 1 on. */
static const bwi_logged *column_at(const bwi_session *s, int index)
{
    int c = -1;
    while (index > 0 && c + 1 < s->column_count) {
        index -= is_shown(s, ++c);
    }
    return &s->columns[c];
}

int bwi_session_values(const bwi_session *s)
{
    int values = 1;
    for (int c = 0; c < s->column_count; c++) {
        values += is_shown(s, c);
    }
    return values;
}

int bwi_session_columns(const bwi_session *s, bool validates)
{
    return bwi_session_values(s) * (validates ? 2 : 1) + s->rates + s->noise;
}

size_t bwi_session_history_bytes(const bwi_session *s, bool validates, int epochs)
{
    int width = bwi_session_columns(s, validates);
    return bwi_size_add(bwi_history_bytes(epochs, width), bwi_history_bytes(1, width));
}

const char *bwi_session_value_name(const bwi_session *s, int index)
{
    return index ? column_at(s, index)->name : "loss";
}

double bwi_session_value(const bwi_session *s, int index)
{
    if (index) {
        return column_value(column_at(s, index));
    }
    double loss = s->fed_total > 0 ? s->penalty_total / s->fed_total : 0;
    for (int c = 0; c < s->column_count; c++) {
        loss += s->columns[c].loss ? s->columns[c].weight * column_value(&s->columns[c]) : 0;
    }
    return loss;
}
