/* What a program reads from a tuning, row by row. A row that does not exist is all zeros. */
#include "insight/tune/tune.h"

bw_tune_facts bw_tuning_facts(const bw_tuning *tuning)
{
    bw_tune_facts facts = {.reason = "there is no tuning"};
    if (tuning) {
        facts = tuning->facts;
        facts.reason = tuning->reason;
        facts.optimizer = facts.decided ? tuning->optimizer : NULL;
    }
    return facts;
}

bw_tune_row bw_tuning_row(const bw_tuning *tuning, int index)
{
    return tuning && index >= 0 && index < tuning->facts.rows ? tuning->rows[index] : (bw_tune_row){.batch = 0};
}

bw_tune_rate bw_tuning_rate(const bw_tuning *tuning, int index)
{
    return tuning && index >= 0 && index < tuning->facts.rates ? tuning->rates[index] : (bw_tune_rate){.batch = 0};
}

bw_tune_point bw_tuning_point(const bw_tuning *tuning, int index)
{
    return tuning && index >= 0 && index < tuning->facts.points ? tuning->points[index] : (bw_tune_point){.x = 0};
}

bw_tune_tile bw_tuning_tile(const bw_tuning *tuning, int index)
{
    return tuning && index >= 0 && index < tuning->facts.tiles ? tuning->tiles[index] : (bw_tune_tile){.tile = 0};
}

bw_tune_branch bw_tuning_branch(const bw_tuning *tuning, int index)
{
    return tuning && index >= 0 && index < tuning->facts.branches ? tuning->branches[index].facts : (bw_tune_branch){.batch = 0};
}

bw_tune_point bw_tuning_branch_point(const bw_tuning *tuning, int branch, int index)
{
    bool known = index >= 0 && index < bw_tuning_branch(tuning, branch).points;
    return known ? tuning->branches[branch].points[index] : (bw_tune_point){.x = 0};
}

void bw_tuning_free(bw_tuning *tuning)
{
    bwi_disown(tuning);
}
