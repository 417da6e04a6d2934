/* Turns --data and the options that go with it into a dataset. */
#include "cli/cli.h"

int cli_data_check(const char *command, const cli_data *data)
{
    if (!data->path) {
        return cli_mistake(command, "--data is required; 'batchwise %s --help' lists the options", command);
    }
    if (data->header && data->no_header) {
        return cli_mistake(command, "--header and --no-header exclude each other; give one of them");
    }
    return CLI_SUCCESS;
}

bw_dataset *cli_data_read(bw_context *ctx, const cli_data *data, const char *path, bw_model *model, const bw_dataset *like)
{
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.scale_given = data->scale < 0 || data->scale > 0;
    options.scale = options.scale_given ? data->scale : 1;
    options.ndim = data->shape.ndim;
    for (int i = 0; i < data->shape.ndim; i++) {
        options.shape[i] = data->shape.extent[i];
    }
    options.na = data->na;
    options.separator = data->separator;
    options.skip_rows = data->skip_rows;
    options.unpack_any = data->unpack_any;
    options.target = data->target;
    options.header = data->header ? BW_HEADER_YES : data->no_header ? BW_HEADER_NO : BW_HEADER_DETECT;
    options.missing = (bw_missing)data->missing;
    options.categorical = data->categorical;
    options.ignore = data->ignore;
    options.text = data->text;
    options.bad_records = data->bad;
    options.input = data->input;
    options.take = like ? 0 : data->take; /* validation uses all samples */
    options.like = like;
    options.part = data->part;
    if (like) { /* `like` knows the columns; validation data need not have the ignored ones */
        options.target = options.categorical = options.ignore = options.text = NULL;
    }
    bw_dataset *dataset = !model ? bw_read(ctx, path, &options) : bw_read_for(model, path, &options);
    if (!dataset) {
        cli_fail("%s", bw_message(ctx));
    }
    return dataset;
}
