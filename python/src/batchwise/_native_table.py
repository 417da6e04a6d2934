"""The public header for ctypes. Written by tools/make_native.py from include/batchwise.h: change that one."""

import ctypes as c

BW_VERSION_MAJOR = 0
BW_VERSION_MINOR = 1
BW_VERSION_PATCH = 0
BW_MAX_NDIM = 8
BW_ERROR_TEXT = 128
BW_ALL = 1000

# bw_status
BW_OK = 0
BW_CANCELLED = 1
BW_INVALID_ARGUMENT = 3
BW_NOT_FOUND = 5
BW_RESOURCE_EXHAUSTED = 8
BW_OUT_OF_RANGE = 11
BW_UNIMPLEMENTED = 12
BW_INTERNAL = 13
BW_UNAVAILABLE = 14
BW_DATA_LOSS = 15

# bw_entry
BW_ENTRY_FILE = 0
BW_ENTRY_FOLDER = 1
BW_ENTRY_LINK = 2
BW_ENTRY_OTHER = 3

# bw_log_level
BW_LOG_INFO = 0
BW_LOG_WARNING = 1

# bw_error_kind
BW_ERROR_NONE = 0
BW_ERROR_USAGE = 1
BW_ERROR_FILE = 2
BW_ERROR_DATA = 3
BW_ERROR_MODEL = 4
BW_ERROR_RESOURCES = 5
BW_ERROR_CANCELLED = 6
BW_ERROR_INTERNAL = 7

# bw_dtype
BW_U8 = 0
BW_I8 = 1
BW_U16 = 2
BW_I16 = 3
BW_U32 = 4
BW_I32 = 5
BW_U64 = 6
BW_I64 = 7
BW_F16 = 8
BW_F32 = 9
BW_F64 = 10
BW_BOOL = 11
BW_TEXT = 12

# bw_header
BW_HEADER_DETECT = 0
BW_HEADER_YES = 1
BW_HEADER_NO = 2

# bw_missing
BW_MISSING_ERROR = 0
BW_MISSING_MEAN = 1
BW_MISSING_ZERO = 2
BW_MISSING_SKIP = 3

# bw_output_kind
BW_OUTPUT_NUMBERS = 0
BW_OUTPUT_CLASSES = 1
BW_OUTPUT_BINARY = 2

# bw_on_nan
BW_NAN_STOP = 0
BW_NAN_SKIP = 1

# bw_part_kind
BW_PART_DATA = 0
BW_PART_GATHER = 1
BW_PART_FORWARD = 2
BW_PART_LOSS = 3
BW_PART_BACKWARD = 4
BW_PART_PREPARE = 5
BW_PART_REDUCE = 6
BW_PART_UPDATE = 7
BW_PART_CALLBACKS = 8
BW_PART_RANKS = 9
BW_PART_IDLE = 10
BW_PART_OVERHEAD = 11

# bw_plan_item
BW_PLAN_PARAMETERS = 0
BW_PLAN_GRADIENTS = 1
BW_PLAN_LANES = 2
BW_PLAN_OPTIMIZER = 3
BW_PLAN_ACTIVATIONS = 4
BW_PLAN_WORKSPACE = 5
BW_PLAN_SCRATCH = 6
BW_PLAN_INPUT = 7
BW_PLAN_DATA = 8
BW_PLAN_STORE = 9
BW_PLAN_BOOKKEEPING = 10
BW_PLAN_ITEMS = 11

# bw_severity
BW_SEVERITY_NOTE = 0
BW_SEVERITY_WARNING = 1
BW_SEVERITY_ERROR = 2

BW_EVENT_STEP = -1
BW_EVENT_SHARE = -2
BW_EVENT_SAMPLE = -3
BW_MOST_GROWTHS = 16

class bw_allocator(c.Structure):
    _fields_ = [
        ("user", c.c_void_p),
        ("allocate", c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_size_t, c.c_size_t)),
        ("release", c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.c_size_t)),
    ]

class bw_io(c.Structure):
    _fields_ = [
        ("user", c.c_void_p),
        ("open", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p, c.c_int, c.c_int)),
        ("read", c.CFUNCTYPE(c.c_int64, c.c_void_p, c.c_int, c.c_void_p, c.c_size_t, c.c_int64)),
        ("write", c.CFUNCTYPE(c.c_int64, c.c_void_p, c.c_int, c.c_void_p, c.c_size_t, c.c_int64)),
        ("size", c.CFUNCTYPE(c.c_int64, c.c_void_p, c.c_int)),
        ("sync", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int)),
        ("close", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int)),
        ("rename", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p, c.c_char_p)),
        ("remove", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p)),
        ("map", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.c_size_t, c.POINTER(c.c_void_p))),
        ("unmap", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_size_t)),
        ("list", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p, c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p, c.c_int), c.c_void_p)),
        ("map_shared", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.c_size_t, c.POINTER(c.c_void_p))),
        ("make_folder", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p, c.c_int)),
    ]

class bw_context_options(c.Structure):
    _defaults_ = {}
    _fields_ = [
        ("size", c.c_size_t),
        ("allocator", c.POINTER(bw_allocator)),
        ("io", c.POINTER(bw_io)),
        ("workers", c.c_int),
        ("instruction_set", c.c_char_p),
        ("ranks", c.c_void_p),
        ("rank", c.c_int),
        ("log", c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p)),
        ("log_user", c.c_void_p),
        ("exact_kernels", c.c_bool),
        ("memory", c.c_size_t),
        ("watchdog", c.c_double),
    ]

class bw_error(c.Structure):
    _fields_ = [
        ("status", c.c_int),
        ("kind", c.c_int),
        ("message", c.c_char_p),
        ("path", c.c_char_p),
        ("line", c.c_int64),
        ("column", c.c_int),
        ("argument", c.c_char_p),
        ("offset", c.c_int64),
        ("layer", c.c_char_p),
        ("sample", c.c_int64),
    ]

class bw_text(c.Structure):
    _fields_ = [
        ("bytes", c.c_char_p),
        ("size", c.c_int64),
    ]

class bw_array(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("dtype", c.c_int),
        ("ndim", c.c_int),
        ("shape", c.c_int64 * BW_MAX_NDIM),
        ("strides", c.c_int64 * BW_MAX_NDIM),
    ]

class bw_random(c.Structure):
    _fields_ = [
        ("seed", c.c_uint64),
        ("stream", c.c_uint64),
        ("drawn", c.c_uint64),
    ]

class bw_read_options(c.Structure):
    _defaults_ = {"scale": 1}
    _fields_ = [
        ("size", c.c_size_t),
        ("scale", c.c_double),
        ("ndim", c.c_int),
        ("shape", c.c_int64 * BW_MAX_NDIM),
        ("target", c.c_char_p),
        ("header", c.c_int),
        ("missing", c.c_int),
        ("categorical", c.c_char_p),
        ("ignore", c.c_char_p),
        ("bad_records", c.c_double),
        ("like", c.c_void_p),
        ("input", c.c_char_p),
        ("take", c.c_int64),
        ("na", c.c_char_p),
        ("separator", c.c_char_p),
        ("skip_rows", c.c_int64),
        ("part", c.c_char_p),
        ("unpack_any", c.c_bool),
        ("text", c.c_char_p),
        ("scale_given", c.c_bool),
    ]

class bw_field(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("array", bw_array),
    ]

class bw_sample(c.Structure):
    _fields_ = [
        ("number", c.c_int64),
        ("epoch", c.c_int),
        ("random", bw_random),
        ("error", c.c_void_p),
        ("context", c.c_void_p),
    ]

class bw_map_options(c.Structure):
    _defaults_ = {}
    _fields_ = [
        ("size", c.c_size_t),
        ("seed", c.c_uint64),
        ("fields", c.POINTER(bw_field)),
        ("field_count", c.c_int),
    ]

class bw_prefetch_options(c.Structure):
    _defaults_ = {}
    _fields_ = [
        ("size", c.c_size_t),
        ("threads", c.c_int),
        ("samples", c.c_int64),
        ("seconds", c.c_double),
    ]

class bw_field_facts(c.Structure):
    _fields_ = [
        ("name", c.c_char * 72),
        ("dtype", c.c_int),
        ("ndim", c.c_int),
        ("shape", c.c_int64 * BW_MAX_NDIM),
    ]

class bw_operator(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("name", c.c_char_p),
        ("shape", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.POINTER(c.c_int), c.POINTER(c.c_void_p), c.POINTER(c.c_int64))),
        ("forward", c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_int64, c.POINTER(c.c_void_p), c.POINTER(c.c_float))),
        ("backward", c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_int64, c.POINTER(c.c_void_p), c.POINTER(c.c_float), c.POINTER(c.c_float), c.POINTER(c.c_void_p))),
        ("user", c.c_void_p),
    ]

class bw_output_facts(c.Structure):
    _fields_ = [
        ("name", c.c_char * 64),
        ("ndim", c.c_int),
        ("shape", c.c_int64 * BW_MAX_NDIM),
        ("kind", c.c_int),
        ("logits", c.c_bool),
    ]

class bw_model_facts(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("sequential", c.c_bool),
        ("layers", c.c_int),
        ("trainable", c.c_int64),
        ("non_trainable", c.c_int64),
        ("optimizer", c.c_int64),
    ]

class bw_layer_facts(c.Structure):
    _fields_ = [
        ("name", c.c_char * 64),
        ("class_name", c.c_char_p),
        ("ndim", c.c_int),
        ("shape", c.c_int64 * BW_MAX_NDIM),
        ("parameters", c.c_int64),
        ("trainable", c.c_int64),
        ("inputs", c.c_int),
    ]

class bw_progress(c.Structure):
    _fields_ = [
        ("epoch", c.c_int),
        ("epochs", c.c_int),
        ("step", c.c_int64),
        ("steps", c.c_int64),
        ("update", c.c_int64),
        ("samples", c.c_int64),
        ("seconds", c.c_double),
        ("logs", c.c_void_p),
        ("history", c.c_void_p),
    ]

bw_callback = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.POINTER(bw_progress))

class bw_fit_options(c.Structure):
    _defaults_ = {"epochs": 1, "batch": -1, "accumulate": 1}
    _fields_ = [
        ("size", c.c_size_t),
        ("epochs", c.c_int),
        ("batch", c.c_int64),
        ("validation_split", c.c_double),
        ("validation", c.c_void_p),
        ("seed", c.c_uint64),
        ("memory", c.c_size_t),
        ("tile", c.c_int64),
        ("lanes", c.c_int),
        ("accumulate", c.c_int),
        ("progress", c.c_void_p),
        ("on_step", bw_callback),
        ("on_epoch", bw_callback),
        ("user", c.c_void_p),
        ("early_stopping", c.c_char_p),
        ("reduce_lr_on_plateau", c.c_char_p),
        ("class_weight", c.c_void_p),
        ("class_count", c.c_int),
        ("batch_sizes", c.c_char_p),
        ("trace_steps", c.c_int),
        ("noise_every", c.c_int),
        ("drop_remainder", c.c_bool),
        ("spill", c.c_char_p),
        ("saves", c.c_bool),
        ("program_bytes", c.c_size_t),
        ("checkpoint_dir", c.c_char_p),
        ("checkpoint_every", c.c_char_p),
        ("checkpoint_keep", c.c_int),
        ("resume", c.c_bool),
        ("on_nan", c.c_int),
        ("tensorboard", c.c_void_p),
    ]

class bw_checkpoint_value(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("data", c.c_void_p),
        ("bytes", c.c_size_t),
    ]

class bw_checkpoint_options(c.Structure):
    _defaults_ = {}
    _fields_ = [
        ("size", c.c_size_t),
        ("keep", c.c_int),
        ("values", c.POINTER(bw_checkpoint_value)),
        ("value_count", c.c_int),
    ]

class bw_part(c.Structure):
    _fields_ = [
        ("kind", c.c_int),
        ("name", c.c_char * 64),
        ("op", c.c_char_p),
        ("pass", c.c_char_p),
        ("seconds", c.c_double),
        ("calls", c.c_double),
        ("flops", c.c_double),
        ("bytes", c.c_double),
    ]

class bw_profile_facts(c.Structure):
    _fields_ = [
        ("parts", c.c_int),
        ("workers", c.c_int),
        ("steps", c.c_int64),
        ("timed_steps", c.c_int64),
        ("step_seconds", c.c_double),
        ("samples", c.c_double),
    ]

class bw_event(c.Structure):
    _fields_ = [
        ("worker", c.c_int),
        ("part", c.c_int),
        ("begin", c.c_double),
        ("seconds", c.c_double),
        ("sample", c.c_int64),
    ]

class bw_growth(c.Structure):
    _fields_ = [
        ("cores", c.c_int),
        ("compute", c.c_double),
        ("bandwidth", c.c_double),
    ]

class bw_machine(c.Structure):
    _fields_ = [
        ("cpu", c.c_char * 64),
        ("instruction_set", c.c_char * 16),
        ("cores", c.c_int),
        ("core_flops", c.c_double),
        ("flops", c.c_double),
        ("core_bandwidth", c.c_double),
        ("bandwidth", c.c_double),
        ("cache_bandwidth", c.c_double),
        ("cache_bytes", c.c_int64),
        ("exchange_bandwidth", c.c_double),
        ("meeting_seconds", c.c_double),
        ("growths", c.c_int),
        ("growth", bw_growth * BW_MOST_GROWTHS),
        ("busy", c.c_bool),
    ]

class bw_hardware(c.Structure):
    _defaults_ = {"compute": 1, "bandwidth": 1, "data": 1}
    _fields_ = [
        ("size", c.c_size_t),
        ("cores", c.c_int),
        ("compute", c.c_double),
        ("bandwidth", c.c_double),
        ("data", c.c_double),
    ]

class bw_prediction(c.Structure):
    _fields_ = [
        ("step_seconds", c.c_double),
        ("compute", c.c_double),
        ("bandwidth", c.c_double),
        ("serial", c.c_double),
        ("data", c.c_double),
    ]

class bw_noise_scale(c.Structure):
    _fields_ = [
        ("determined", c.c_bool),
        ("scale", c.c_double),
        ("low", c.c_double),
        ("high", c.c_double),
        ("trace", c.c_double),
        ("signal", c.c_double),
    ]

class bw_noise_facts(c.Structure):
    _fields_ = [
        ("steps", c.c_int64),
        ("variables", c.c_int),
        ("raw", bw_noise_scale),
        ("seen", bw_noise_scale),
        ("refusal", c.c_char_p),
    ]

class bw_noise_point(c.Structure):
    _fields_ = [
        ("updates", c.c_int64),
        ("steps", c.c_int64),
        ("raw", bw_noise_scale),
        ("seen", bw_noise_scale),
    ]

class bw_tune_options(c.Structure):
    _defaults_ = {"seconds": 15, "reference": 32, "largest": 4096}
    _fields_ = [
        ("size", c.c_size_t),
        ("seconds", c.c_double),
        ("fit", c.POINTER(bw_fit_options)),
        ("reference", c.c_int64),
        ("largest", c.c_int64),
        ("keep_rate", c.c_bool),
        ("tiles", c.c_bool),
        ("confirm", c.c_double),
    ]

class bw_estimate(c.Structure):
    _fields_ = [
        ("value", c.c_double),
        ("low", c.c_double),
        ("high", c.c_double),
    ]

class bw_tune_facts(c.Structure):
    _fields_ = [
        ("decided", c.c_bool),
        ("batch", c.c_int64),
        ("rate", c.c_double),
        ("optimizer", c.c_char_p),
        ("reason", c.c_char_p),
        ("knee", c.c_int64),
        ("noise", bw_noise_scale),
        ("noise_seen", c.c_bool),
        ("refusal", c.c_char_p),
        ("reference", c.c_int64),
        ("reference_rate", c.c_double),
        ("target_loss", c.c_double),
        ("target_samples", c.c_int64),
        ("rows", c.c_int),
        ("rates", c.c_int),
        ("points", c.c_int),
        ("tiles", c.c_int),
        ("branches", c.c_int),
        ("tile", c.c_int64),
        ("default_tile", c.c_int64),
        ("confirmed", c.c_bool),
        ("seconds", c.c_double),
    ]

class bw_tune_row(c.Structure):
    _fields_ = [
        ("batch", c.c_int64),
        ("samples_per_s", c.c_double),
        ("step_seconds", bw_estimate),
        ("peak_bytes", c.c_size_t),
        ("rate", c.c_double),
        ("steps", bw_estimate),
        ("samples", bw_estimate),
        ("seconds", bw_estimate),
    ]

class bw_tune_rate(c.Structure):
    _fields_ = [
        ("batch", c.c_int64),
        ("rate", c.c_double),
        ("loss", c.c_double),
        ("samples", c.c_int64),
    ]

class bw_tune_point(c.Structure):
    _fields_ = [
        ("x", c.c_double),
        ("loss", c.c_double),
    ]

class bw_tune_tile(c.Structure):
    _fields_ = [
        ("tile", c.c_int64),
        ("samples_per_s", c.c_double),
        ("peak_bytes", c.c_size_t),
    ]

class bw_tune_branch(c.Structure):
    _fields_ = [
        ("batch", c.c_int64),
        ("rate", c.c_double),
        ("seconds", c.c_double),
        ("loss", c.c_double),
        ("validation_loss", c.c_double),
        ("points", c.c_int),
    ]

class bw_file_kind(c.Structure):
    _fields_ = [
        ("extension", c.c_char_p),
        ("holds", c.c_char_p),
        ("loads", c.c_bool),
        ("loads_weights", c.c_bool),
        ("saves", c.c_bool),
        ("has_weights", c.c_bool),
    ]

class bw_run_facts(c.Structure):
    _fields_ = [
        ("updates", c.c_int64),
        ("samples", c.c_int64),
        ("seconds", c.c_double),
        ("tile", c.c_int64),
        ("lanes", c.c_int),
        ("workers", c.c_int),
        ("planned_bytes", c.c_size_t),
        ("peak_bytes", c.c_size_t),
        ("process_bytes", c.c_size_t),
        ("code_bytes", c.c_size_t),
        ("mapped_bytes", c.c_size_t),
        ("exact_kernels", c.c_bool),
        ("segments", c.c_int),
        ("kept_bytes", c.c_size_t),
        ("spilled_bytes", c.c_size_t),
        ("swapped_bytes", c.c_size_t),
        ("major_faults", c.c_int64),
        ("skipped_steps", c.c_int64),
        ("resumed_step", c.c_int64),
        ("checkpoints", c.c_int64),
        ("failed_checkpoints", c.c_int64),
        ("last_checkpoint", c.c_int64),
        ("checkpoint_seconds", c.c_double),
    ]

class bw_tensorboard_options(c.Structure):
    _defaults_ = {"histograms": 1, "images": 4, "graph": True}
    _fields_ = [
        ("size", c.c_size_t),
        ("histograms", c.c_int),
        ("log_steps", c.c_int64),
        ("images", c.c_int),
        ("graph", c.c_bool),
    ]

class bw_plan_options(c.Structure):
    _defaults_ = {"accumulate": 1, "epochs": 1}
    _fields_ = [
        ("size", c.c_size_t),
        ("memory", c.c_size_t),
        ("tile", c.c_int64),
        ("lanes", c.c_int),
        ("accumulate", c.c_int),
        ("epochs", c.c_int),
        ("validation", c.c_bool),
        ("spill", c.c_char_p),
    ]

class bw_memory_facts(c.Structure):
    _fields_ = [
        ("batch", c.c_int64),
        ("tile", c.c_int64),
        ("lanes", c.c_int),
        ("workers", c.c_int),
        ("phases", c.c_int),
        ("peak_bytes", c.c_size_t),
        ("items", c.c_size_t * BW_PLAN_ITEMS),
        ("budget", c.c_size_t),
        ("segments", c.c_int),
        ("spill_bytes", c.c_size_t),
        ("whole_batch_bytes", c.c_size_t),
        ("whole_batch_largest", c.c_int64),
    ]

class bw_layer_memory(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("ndim", c.c_int),
        ("shape", c.c_int64 * BW_MAX_NDIM),
        ("parameters", c.c_size_t),
        ("gradients", c.c_size_t),
        ("activations", c.c_size_t),
        ("workspace", c.c_size_t),
        ("whole_batch", c.c_size_t),
    ]

class bw_finding(c.Structure):
    _fields_ = [
        ("id", c.c_char_p),
        ("severity", c.c_int),
        ("evidence", c.c_char_p),
        ("reason", c.c_char_p),
        ("fix", c.c_char_p),
        ("code", c.c_char_p),
    ]

class bw_doctor_options(c.Structure):
    _defaults_ = {"seconds": 2}
    _fields_ = [
        ("size", c.c_size_t),
        ("training", c.POINTER(bw_fit_options)),
        ("seconds", c.c_double),
    ]

bw_sample_function = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.POINTER(bw_sample), c.POINTER(c.c_void_p))

bw_map_function = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.POINTER(bw_sample), c.POINTER(c.c_void_p), c.POINTER(c.c_void_p))

bw_filter_function = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.POINTER(bw_sample), c.POINTER(c.c_void_p))

bw_generator_function = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(bw_sample), c.POINTER(c.c_void_p))

# The functions: what each returns, and its parameters.
FUNCTIONS = {
    "bw_version": (c.c_char_p, []),
    "bw_status_name": (c.c_char_p, [c.c_int]),
    "bw_open": (c.c_void_p, [c.POINTER(bw_context_options)]),
    "bw_close": (None, [c.c_void_p]),
    "bw_message": (c.c_char_p, [c.c_void_p]),
    "bw_last_error": (c.POINTER(bw_error), [c.c_void_p]),
    "bw_cancel": (None, [c.c_void_p]),
    "bw_random_uniform": (c.c_float, [c.POINTER(bw_random)]),
    "bw_random_normal": (c.c_float, [c.POINTER(bw_random)]),
    "bw_random_below": (c.c_int64, [c.POINTER(bw_random), c.c_int64]),
    "bw_random_category": (c.c_int, [c.POINTER(bw_random), c.c_void_p, c.c_int]),
    "bw_random_permute": (c.c_int64, [c.c_uint64, c.c_int64, c.c_int64]),
    "bw_read": (c.c_void_p, [c.c_void_p, c.c_char_p, c.POINTER(bw_read_options)]),
    "bw_from_arrays": (c.c_void_p, [c.c_void_p, c.POINTER(bw_array), c.POINTER(bw_array), c.POINTER(bw_array)]),
    "bw_from_fields": (c.c_void_p, [c.c_void_p, c.POINTER(bw_field), c.c_int]),
    "bw_sample_cancelled": (c.c_bool, [c.POINTER(bw_sample)]),
    "bw_from_function": (c.c_void_p, [c.c_void_p, c.POINTER(bw_field), c.c_int, bw_sample_function, c.c_void_p]),
    "bw_map": (c.c_void_p, [c.c_void_p, bw_map_function, c.c_void_p, c.POINTER(bw_map_options)]),
    "bw_filter": (c.c_void_p, [c.c_void_p, bw_filter_function, c.c_void_p]),
    "bw_allow_bad": (c.c_void_p, [c.c_void_p, c.c_double]),
    "bw_from_generator": (c.c_void_p, [c.c_void_p, c.POINTER(bw_field), c.c_int, bw_generator_function, c.c_void_p]),
    "bw_augment": (c.c_void_p, [c.c_void_p, c.c_char_p, c.c_uint64]),
    "bw_cache": (c.c_void_p, [c.c_void_p]),
    "bw_cache_file": (c.c_void_p, [c.c_void_p, c.c_char_p]),
    "bw_standardise": (c.c_void_p, [c.c_void_p, c.c_void_p]),
    "bw_normalise": (c.c_void_p, [c.c_void_p, c.c_void_p]),
    "bw_one_hot": (c.c_void_p, [c.c_void_p, c.c_int64]),
    "bw_prefetch": (c.c_void_p, [c.c_void_p, c.POINTER(bw_prefetch_options)]),
    "bw_shuffle": (c.c_void_p, [c.c_void_p, c.c_uint64]),
    "bw_take": (c.c_void_p, [c.c_void_p, c.c_int64]),
    "bw_skip": (c.c_void_p, [c.c_void_p, c.c_int64]),
    "bw_split": (c.c_int, [c.c_void_p, c.c_double, c.c_void_p, c.c_void_p]),
    "bw_shard": (c.c_void_p, [c.c_void_p, c.c_int64, c.c_int64]),
    "bw_concatenate": (c.c_void_p, [c.c_void_p, c.c_void_p]),
    "bw_interleave": (c.c_void_p, [c.c_void_p, c.c_void_p, c.c_int64]),
    "bw_zip": (c.c_void_p, [c.c_void_p, c.c_void_p]),
    "bw_repeat": (c.c_void_p, [c.c_void_p, c.c_int64]),
    "bw_batches": (c.c_void_p, [c.c_void_p, c.c_int64]),
    "bw_batch_sizes": (c.c_void_p, [c.c_void_p, c.c_char_p, c.c_bool]),
    "bw_from_sequences": (c.c_void_p, [c.c_void_p, c.POINTER(bw_array), c.c_void_p, c.c_int64, c.POINTER(bw_array), c.POINTER(bw_array)]),
    "bw_bucket": (c.c_void_p, [c.c_void_p, c.c_void_p, c.c_int]),
    "bw_dataset_count": (c.c_int64, [c.c_void_p]),
    "bw_dataset_shape": (c.c_int, [c.c_void_p, c.c_void_p]),
    "bw_dataset_field": (c.c_int, [c.c_void_p, c.c_char_p, c.c_void_p]),
    "bw_dataset_field_at": (c.c_bool, [c.c_void_p, c.c_int, c.POINTER(bw_field_facts)]),
    "bw_dataset_values": (c.c_int, [c.c_void_p, c.c_char_p, c.c_int64, c.c_int64, c.c_void_p, c.c_size_t]),
    "bw_dataset_class": (c.c_char_p, [c.c_void_p, c.c_int]),
    "bw_dataset_column": (c.c_bool, [c.c_void_p, c.c_int, c.c_void_p, c.c_void_p]),
    "bw_dataset_category": (c.c_char_p, [c.c_void_p, c.c_int, c.c_int]),
    "bw_dataset_file": (c.c_bool, [c.c_void_p, c.c_int64, c.c_char_p, c.c_size_t]),
    "bw_dataset_has_part": (c.c_bool, [c.c_void_p, c.c_char_p]),
    "bw_dataset_free": (None, [c.c_void_p]),
    "bw_model_parse": (c.c_void_p, [c.c_void_p, c.c_char_p]),
    "bw_model_new": (c.c_void_p, [c.c_void_p]),
    "bw_input": (c.c_void_p, [c.c_void_p, c.c_char_p, c.c_int, c.c_int, c.c_void_p]),
    "bw_layer": (c.c_void_p, [c.c_void_p, c.c_char_p]),
    "bw_merge": (c.c_void_p, [c.c_char_p, c.c_void_p, c.c_int]),
    "bw_layer_again": (c.c_void_p, [c.c_void_p, c.c_void_p]),
    "bw_layer_part": (c.c_void_p, [c.c_void_p, c.c_int]),
    "bw_output": (c.c_int, [c.c_void_p, c.c_char_p]),
    "bw_target": (c.c_void_p, [c.c_void_p, c.c_char_p, c.c_int, c.c_int, c.c_void_p]),
    "bw_add_loss": (c.c_int, [c.c_void_p, c.c_char_p]),
    "bw_add": (c.c_void_p, [c.c_void_p, c.c_void_p]),
    "bw_subtract": (c.c_void_p, [c.c_void_p, c.c_void_p]),
    "bw_multiply": (c.c_void_p, [c.c_void_p, c.c_void_p]),
    "bw_divide": (c.c_void_p, [c.c_void_p, c.c_void_p]),
    "bw_maximum": (c.c_void_p, [c.c_void_p, c.c_void_p]),
    "bw_minimum": (c.c_void_p, [c.c_void_p, c.c_void_p]),
    "bw_negate": (c.c_void_p, [c.c_void_p]),
    "bw_abs": (c.c_void_p, [c.c_void_p]),
    "bw_square": (c.c_void_p, [c.c_void_p]),
    "bw_sqrt": (c.c_void_p, [c.c_void_p]),
    "bw_exp": (c.c_void_p, [c.c_void_p]),
    "bw_log": (c.c_void_p, [c.c_void_p]),
    "bw_power": (c.c_void_p, [c.c_void_p, c.c_double]),
    "bw_affine": (c.c_void_p, [c.c_void_p, c.c_double, c.c_double]),
    "bw_activation": (c.c_void_p, [c.c_void_p, c.c_char_p]),
    "bw_sum": (c.c_void_p, [c.c_void_p, c.c_int]),
    "bw_mean": (c.c_void_p, [c.c_void_p, c.c_int]),
    "bw_max": (c.c_void_p, [c.c_void_p, c.c_int]),
    "bw_matmul": (c.c_void_p, [c.c_void_p, c.c_void_p]),
    "bw_slice": (c.c_void_p, [c.c_void_p, c.c_int, c.c_int64, c.c_int64]),
    "bw_reshape": (c.c_void_p, [c.c_void_p, c.c_int, c.c_void_p]),
    "bw_custom": (c.c_void_p, [c.POINTER(bw_operator), c.c_void_p, c.c_int]),
    "bw_compile": (c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p, c.c_char_p]),
    "bw_recompile": (c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p, c.c_char_p]),
    "bw_optimizer_name": (c.c_char_p, [c.c_void_p]),
    "bw_loss_name": (c.c_bool, [c.c_void_p, c.c_int, c.c_char_p, c.c_size_t]),
    "bw_build": (c.c_int, [c.c_void_p, c.c_int, c.c_void_p, c.c_uint64]),
    "bw_model_free": (None, [c.c_void_p]),
    "bw_variable_count": (c.c_int, [c.c_void_p]),
    "bw_variable_name": (c.c_char_p, [c.c_void_p, c.c_int]),
    "bw_variable_shape": (c.c_int, [c.c_void_p, c.c_int, c.c_void_p]),
    "bw_variable_trainable": (c.c_bool, [c.c_void_p, c.c_int]),
    "bw_variable_get": (c.c_int, [c.c_void_p, c.c_int, c.c_void_p, c.c_size_t]),
    "bw_variable_set": (c.c_int, [c.c_void_p, c.c_int, c.c_void_p, c.c_size_t]),
    "bw_output_count": (c.c_int, [c.c_void_p]),
    "bw_output_describe": (c.c_int, [c.c_void_p, c.c_int, c.POINTER(bw_output_facts)]),
    "bw_model_describe": (c.c_int, [c.c_void_p, c.POINTER(bw_model_facts)]),
    "bw_layer_describe": (c.c_int, [c.c_void_p, c.c_int, c.POINTER(bw_layer_facts)]),
    "bw_layer_input": (c.c_int, [c.c_void_p, c.c_int, c.c_int, c.c_void_p, c.c_void_p]),
    "bw_model_expression": (c.c_char_p, [c.c_void_p]),
    "bw_model_hash": (c.c_uint64, [c.c_void_p]),
    "bw_fit": (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(bw_fit_options), c.c_void_p]),
    "bw_checkpoint": (c.c_int, [c.c_void_p, c.c_char_p, c.c_int64, c.POINTER(bw_checkpoint_options)]),
    "bw_resume": (c.c_int, [c.c_void_p, c.c_char_p, c.c_void_p, c.POINTER(bw_checkpoint_options)]),
    "bw_adapt": (c.c_int, [c.c_void_p, c.c_void_p]),
    "bw_vectorize": (c.c_void_p, [c.c_void_p, c.c_void_p]),
    "bw_history_profile": (bw_profile_facts, [c.c_void_p]),
    "bw_history_part": (c.c_int, [c.c_void_p, c.c_int, c.POINTER(bw_part)]),
    "bw_history_part_seconds": (c.c_double, [c.c_void_p, c.c_int, c.c_int]),
    "bw_history_refresh": (c.c_int, [c.c_void_p]),
    "bw_history_events": (c.c_int64, [c.c_void_p]),
    "bw_history_event": (c.c_int, [c.c_void_p, c.c_int64, c.POINTER(bw_event)]),
    "bw_history_save_trace": (c.c_int, [c.c_void_p, c.c_char_p]),
    "bw_part_kind_name": (c.c_char_p, [c.c_int]),
    "bw_machine_limits": (c.c_int, [c.c_void_p, c.POINTER(bw_machine)]),
    "bw_history_predict": (c.c_int, [c.c_void_p, c.POINTER(bw_machine), c.POINTER(bw_hardware), c.POINTER(bw_prediction)]),
    "bw_history_noise": (bw_noise_facts, [c.c_void_p]),
    "bw_history_noise_of": (bw_noise_scale, [c.c_void_p, c.c_int]),
    "bw_history_noise_points": (c.c_int, [c.c_void_p]),
    "bw_history_noise_point": (bw_noise_point, [c.c_void_p, c.c_int]),
    "bw_learning_rate": (c.c_double, [c.c_void_p]),
    "bw_set_learning_rate": (c.c_int, [c.c_void_p, c.c_double]),
    "bw_tune": (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(bw_tune_options), c.c_void_p]),
    "bw_tuning_facts": (bw_tune_facts, [c.c_void_p]),
    "bw_tuning_row": (bw_tune_row, [c.c_void_p, c.c_int]),
    "bw_tuning_rate": (bw_tune_rate, [c.c_void_p, c.c_int]),
    "bw_tuning_point": (bw_tune_point, [c.c_void_p, c.c_int]),
    "bw_tuning_tile": (bw_tune_tile, [c.c_void_p, c.c_int]),
    "bw_tuning_branch": (bw_tune_branch, [c.c_void_p, c.c_int]),
    "bw_tuning_branch_point": (bw_tune_point, [c.c_void_p, c.c_int, c.c_int]),
    "bw_tuning_apply": (c.c_int, [c.c_void_p, c.c_void_p]),
    "bw_tuning_free": (None, [c.c_void_p]),
    "bw_evaluate": (c.c_int, [c.c_void_p, c.c_void_p, c.c_void_p]),
    "bw_predict": (c.c_int, [c.c_void_p, c.c_void_p, c.c_void_p, c.c_size_t]),
    "bw_predict_all": (c.c_int, [c.c_void_p, c.c_void_p, c.c_void_p, c.c_void_p, c.c_int]),
    "bw_read_for": (c.c_void_p, [c.c_void_p, c.c_char_p, c.POINTER(bw_read_options)]),
    "bw_model_data": (c.c_void_p, [c.c_void_p]),
    "bw_model_class": (c.c_char_p, [c.c_void_p, c.c_int]),
    "bw_load": (c.c_void_p, [c.c_void_p, c.c_char_p]),
    "bw_save": (c.c_int, [c.c_void_p, c.c_char_p]),
    "bw_load_weights": (c.c_int, [c.c_void_p, c.c_char_p]),
    "bw_file_kind_at": (c.c_bool, [c.c_int, c.POINTER(bw_file_kind)]),
    "bw_file_kind_of": (c.c_bool, [c.c_char_p, c.POINTER(bw_file_kind)]),
    "bw_history_epochs": (c.c_int, [c.c_void_p]),
    "bw_history_columns": (c.c_int, [c.c_void_p]),
    "bw_history_column": (c.c_char_p, [c.c_void_p, c.c_int]),
    "bw_history_value": (c.c_double, [c.c_void_p, c.c_char_p, c.c_int]),
    "bw_history_last": (c.c_double, [c.c_void_p, c.c_char_p]),
    "bw_history_free": (None, [c.c_void_p]),
    "bw_history_facts": (bw_run_facts, [c.c_void_p]),
    "bw_tensorboard_new": (c.c_void_p, [c.c_void_p, c.c_char_p, c.POINTER(bw_tensorboard_options)]),
    "bw_tensorboard_number": (c.c_int, [c.c_void_p, c.c_char_p, c.c_double]),
    "bw_tensorboard_text": (c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p]),
    "bw_tensorboard_scalar": (c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p, c.c_int64, c.c_double]),
    "bw_tensorboard_free": (None, [c.c_void_p]),
    "bw_plan_item_name": (c.c_char_p, [c.c_int]),
    "bw_plan_make": (c.c_void_p, [c.c_void_p, c.c_void_p, c.c_int64, c.POINTER(bw_plan_options)]),
    "bw_plan_facts": (bw_memory_facts, [c.c_void_p]),
    "bw_plan_reason": (c.c_char_p, [c.c_void_p]),
    "bw_plan_layers": (c.c_int, [c.c_void_p]),
    "bw_plan_layer": (bw_layer_memory, [c.c_void_p, c.c_int]),
    "bw_plan_print": (c.c_int, [c.c_void_p, c.c_void_p]),
    "bw_plan_free": (None, [c.c_void_p]),
    "bw_doctor": (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(bw_doctor_options), c.c_void_p]),
    "bw_review": (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(bw_fit_options), c.c_void_p, c.c_void_p]),
    "bw_findings_count": (c.c_int, [c.c_void_p]),
    "bw_findings_at": (c.c_bool, [c.c_void_p, c.c_int, c.POINTER(bw_finding)]),
    "bw_findings_free": (None, [c.c_void_p]),
    "bw_finding_id": (c.c_char_p, [c.c_int]),
    "bw_severity_name": (c.c_char_p, [c.c_int]),
    "bw_iterate": (c.c_void_p, [c.c_void_p, c.c_int]),
    "bw_next": (c.c_int, [c.c_void_p, c.c_void_p]),
    "bw_batch_count": (c.c_int64, [c.c_void_p]),
    "bw_iterator_free": (None, [c.c_void_p]),
    "bw_iterator_position": (c.c_int64, [c.c_void_p]),
    "bw_iterator_seek": (c.c_int, [c.c_void_p, c.c_int64]),
    "bw_batch_numbers": (c.c_void_p, [c.c_void_p]),
    "bw_batch_values": (c.c_int, [c.c_void_p, c.c_char_p, c.c_void_p, c.c_size_t]),
    "bw_batch_select": (c.c_void_p, [c.c_void_p, c.c_void_p, c.c_int64]),
    "bw_gradients_new": (c.c_void_p, [c.c_void_p, c.POINTER(bw_fit_options)]),
    "bw_gradients_add": (c.c_int, [c.c_void_p, c.c_void_p, c.c_void_p]),
    "bw_gradients_samples": (c.c_int64, [c.c_void_p]),
    "bw_gradients_clear": (None, [c.c_void_p]),
    "bw_gradients_norm": (c.c_int, [c.c_void_p, c.c_void_p]),
    "bw_gradients_scale": (c.c_int, [c.c_void_p, c.c_double]),
    "bw_gradients_get": (c.c_int, [c.c_void_p, c.c_int, c.c_void_p, c.c_size_t]),
    "bw_gradients_set": (c.c_int, [c.c_void_p, c.c_int, c.c_void_p, c.c_size_t]),
    "bw_gradients_predict": (c.c_int, [c.c_void_p, c.c_void_p, c.c_int, c.c_void_p, c.c_size_t]),
    "bw_gradients_losses": (c.c_int, [c.c_void_p, c.c_void_p, c.c_void_p, c.c_size_t]),
    "bw_apply": (c.c_int, [c.c_void_p, c.c_void_p]),
    "bw_apply_averages": (c.c_int, [c.c_void_p]),
    "bw_gradients_free": (None, [c.c_void_p]),
    "bw_ranks_open": (c.c_void_p, [c.c_int]),
    "bw_ranks_mpi": (None, [c.POINTER(bw_context_options)]),
    "bw_ranks_count": (c.c_int, [c.c_void_p]),
    "bw_ranks_part": (None, [c.c_void_p]),
    "bw_ranks_end": (c.c_int, [c.c_void_p, c.c_char_p, c.c_void_p]),
    "bw_ranks_close": (None, [c.c_void_p]),
}
