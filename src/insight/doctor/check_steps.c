/* Checks of updates: the learning rate, and what gradients tell of layers. */
#include "insight/doctor/doctor.h"

#include <math.h>

/* ---- The learning rate ---- */

/* Of a training that is over: the loss of the last epoch is larger than that of the first. */
static bool loss_rose(const bwi_doctor *d, bwi_finding *found)
{
    int epochs = d->history ? bw_history_epochs(d->history) : 0;
    double first = epochs > 1 ? bw_history_value(d->history, "loss", 0) : 0,
           last = epochs > 1 ? bw_history_last(d->history, "loss") : 0;
    if (epochs < 2 || !isfinite(first) || last <= first + 0.01 * fabs(first)) {
        return false;
    }
    double rate = bw_learning_rate(d->model);
    bwi_fix(found, "", "--lr %.3g", rate / 10);
    bwi_print(found->code, sizeof found->code, "bw_set_learning_rate(model, %.3g);", rate / 10);
    return bwi_found(found, BW_SEVERITY_WARNING,
                     "the loss rose from %.4g in the first to %.4g in the last of %d epochs at a rate of %.3g", first, last, epochs,
                     rate);
}

bool bwi_check_rate_too_high(const bwi_doctor *d, bwi_finding *found)
{
    return loss_rose(d, found);
}

/* ---- Units ---- */

bool bwi_check_dead_units(const bwi_doctor *d, bwi_finding *found)
{
    if (d->constant_output) {
        bwi_fix(found, "", "a smaller --lr, scaled inputs (--standardise), or leaky_relu in place of relu");
        return bwi_found(found, BW_SEVERITY_WARNING, "the model's output is the same for all of %lld samples",
                         (long long)d->looked_at);
    }
    return false;
}
