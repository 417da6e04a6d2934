/* Inside of data: functions of programs that make or change samples. */
#ifndef BWI_DATA_FUNCTION_H
#define BWI_DATA_FUNCTION_H

#include "data/internal.h"

/* What a function is told; `error` has BW_ERROR_TEXT bytes. */
bw_sample bwi_sample(const bw_dataset *dataset, uint64_t seed, int epoch, int64_t number, char *error);
/* After a function returned false: the status, and a text that names the sample. */
bw_status bwi_sample_failed(const bw_dataset *dataset, const bw_sample *sample, const char *what, char *error);
/* Columns without data, inputs first; the first extent of an array counts samples and is not looked at. */
bw_status bwi_dataset_declare_fields(bw_dataset *dataset, const bw_field *fields, int count);

#endif
