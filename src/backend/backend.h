/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions that a device backend fills: memory, streams, events and kernels. C types only, so that a
 * backend can be a plugin built by another compiler. The CPU's table is linked in (tutti_cpu_backend, defined in
 * src/kernels/cpu); the CUDA plugin exports tutti_backend_v1.
 *
 * Rules
 *   - Every entry returns a status; 0 is success. After another status error_text() copies this thread's message into
 *     the caller's buffer. No exception crosses.
 *   - Who allocates frees. Views are borrowed for the call (on a device: until the stream has run it).
 *   - Kernels are enqueued on `stream`; NULL is the device's default stream. CPU streams run work inline.
 *   - Shapes are checked by the caller (floor 6). Inputs of pointwise kernels come broadcast to the output's shape with
 *     stride 0. Strides count elements. Outputs never overlap inputs except where they are the same view (in place).
 *   - A kernel that a backend lacks, or a dtype that it does not take, is TUTTI_UNSUPPORTED with a text; a null pointer
 *     is not allowed.
 *   - Results are bit-equal for any number of threads.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_BACKEND_VERSION 1
#define TUTTI_MAX_DIMS 8

/* Same values as tutti::DType. */
enum {
  TUTTI_F64,
  TUTTI_F32,
  TUTTI_F16,
  TUTTI_BF16,
  TUTTI_I64,
  TUTTI_I32,
  TUTTI_I16,
  TUTTI_I8,
  TUTTI_U8,
  TUTTI_BOOL
};

typedef enum tutti_status {
  TUTTI_OK = 0,
  TUTTI_UNSUPPORTED = 1, /* no such kernel for this dtype or device -> DTypeError / DeviceError */
  TUTTI_INVALID = 2, /* an argument that only the kernel can check (an index out of range) -> IndexError */
  TUTTI_OUT_OF_MEMORY = 3, /* -> MemoryError */
  TUTTI_DEVICE_FAILED = 4  /* the device or a vendor library reports an error -> DeviceError */
} tutti_status;

typedef struct tutti_stream_handle* tutti_stream;
typedef struct tutti_event_handle* tutti_event;

/* A strided array. data points at element (0, ..., 0). */
typedef struct tutti_view {
  void* data;
  int32_t dtype;
  int32_t ndim;
  int64_t sizes[TUTTI_MAX_DIMS];
  int64_t strides[TUTTI_MAX_DIMS];
} tutti_view;

/* A number in both forms: kernels of floating dtypes read `f`, the others `i`. */
typedef struct tutti_scalar {
  double f;
  int64_t i;
} tutti_scalar;

/* Philox4x32-10: key = seed, counter = (offset + element / 4, stream), lane = element % 4. */
typedef struct tutti_philox {
  uint64_t seed;
  uint64_t stream;
  uint64_t offset;
} tutti_philox;

/* Belongs to a tensor's storage. A kernel that re-packs a weight keeps the result here and re-uses it while `version`
 * is the storage's version; the storage calls destroy(handle). Guarded by the kernel's own lock. */
typedef struct tutti_packed_slot {
  void* handle;
  void (*destroy)(void* handle);
} tutti_packed_slot;

/* A weight operand: its packed copy may be kept in *slot if slot is not null. */
typedef struct tutti_weight {
  tutti_view view;
  tutti_packed_slot* slot;
  uint64_t version;
} tutti_weight;

/* ---- pointwise: out = f(in[0], in[1], in[2]); one entry a functor, in the order of functors/list.hpp ------------- */
typedef struct tutti_pointwise {
  tutti_stream stream;
  int32_t inputs;       /* 1 to 3 */
  int32_t scalar_input; /* index of the input that is the number `scalar` instead of a view; -1: none */
  tutti_scalar scalar;
  double params[4]; /* the functor's own constants */
  tutti_view out;
  tutti_view in[3]; /* all of one dtype, but for functors that say otherwise (where: bool first) */
} tutti_pointwise;

/* ---- reductions over the dims of which `out` has size 1 and `in` more, or where out_dims says so ------------------ */
enum { TUTTI_SUM, TUTTI_MEAN, TUTTI_AMAX, TUTTI_AMIN, TUTTI_PROD, TUTTI_SUM_SQUARES, TUTTI_REDUCTIONS };
typedef struct tutti_reduce {
  tutti_stream stream;
  int32_t op;
  uint32_t dims; /* bit d set: dim d of `in` is reduced */
  tutti_view
      out; /* same ndim as in, size 1 in the reduced dims; f16/bf16/f32 accumulate in f32, integers in i64 */
  tutti_view in;
} tutti_reduce;
/* Position of the greatest (smallest) element along one dim; the first of equal ones; NaN counts as greatest. */
typedef struct tutti_arg_reduce {
  tutti_stream stream;
  int32_t dim;
  int32_t smallest;
  tutti_view indices; /* i64, size 1 in dim */
  tutti_view values;  /* data may be null */
  tutti_view in;
} tutti_arg_reduce;

/* ---- matrix product: out = epilogue(a @ b + bias) + beta * out ----------------------------------------------------
 * a [..., m, k], b [..., k, n], out [..., m, n], equal batch dims (stride 0 where broadcast), any strides. */
enum { TUTTI_EPILOGUE_NONE, TUTTI_EPILOGUE_RELU, TUTTI_EPILOGUE_GELU };
typedef struct tutti_matmul {
  tutti_stream stream;
  int32_t epilogue;
  int32_t precision; /* 0 highest, 1 high, 2 medium: set_float32_matmul_precision */
  double beta;       /* 0 or 1 */
  tutti_view out;
  tutti_view a;
  tutti_weight b;  /* b.slot may be null: not a weight */
  tutti_view bias; /* [n]; data may be null */
} tutti_matmul;

/* ---- convolution; images [N, C, H, W] in shape, any strides (channels-last is the fast one); weight [O, C/g, kh, kw] */
typedef struct tutti_conv2d {
  tutti_stream stream;
  int32_t stride[2], padding[2], dilation[2];
  int32_t groups;
  int32_t epilogue;
  int32_t precision;
  double beta;         /* weight gradient only: 0 or 1 */
  tutti_view x;        /* input, or its gradient (backward_data writes it) */
  tutti_weight weight; /* weight, or its gradient (backward_weight writes it) */
  tutti_view bias;     /* [O], or its gradient; data may be null */
  tutti_view y;        /* output, or its gradient */
} tutti_conv2d;

/* ---- pooling over the last two dims of [N, C, H, W] --------------------------------------------------------------- */
typedef struct tutti_pool2d {
  tutti_stream stream;
  int32_t kernel[2], stride[2], padding[2], dilation[2]; /* dilation: max only */
  int32_t count_include_pad;                             /* average only */
  int32_t divisor_override;                              /* average only; 0: none */
  int32_t
      relu_gradient; /* max forward only: x is the result of relu, and windows without an element above 0 get index -1
                            (255), which no place has: backward gives them no gradient, and is relu's as well */
  tutti_view x;
  tutti_view y;
  tutti_view
      indices; /* max: position in the window (row * kernel width + column), u8 if the window has at most 255 elements, else i32 */
} tutti_pool2d;

/* ---- softmax family over one dim ---------------------------------------------------------------------------------- */
typedef struct tutti_softmax {
  tutti_stream stream;
  int32_t dim;
  int32_t log;
  tutti_view out;  /* forward: result; backward: gradient of the input */
  tutti_view in;   /* forward: input; backward: the forward's result */
  tutti_view grad; /* backward only: gradient of the result */
} tutti_softmax;
/* Fused log-softmax and negative log likelihood; logits [N, C] (rows may be strided), targets [N] i64.
 * losses [N] f32 (f64 for f64 logits): loss of each row, 0 where ignored; log_sum_exp [N]; both written by forward.
 * backward: grad_logits = (softmax - smoothed one-hot) * grad_losses[n]; grad_losses may have stride 0. */
typedef struct tutti_cross_entropy {
  tutti_stream stream;
  int64_t ignore_index;
  double label_smoothing;
  tutti_view logits;
  tutti_view targets;
  tutti_view weight; /* [C] class weights; data may be null */
  tutti_view losses;
  tutti_view
      row_weights; /* [N] weight of each row's target, 0 where ignored: the mean's denominator is its sum */
  tutti_view log_sum_exp;
  tutti_view grad_losses;
  tutti_view grad_logits;
} tutti_cross_entropy;

/* ---- batch norm over dim 1 of [N, C, ...] -------------------------------------------------------------------------- */
typedef struct tutti_batch_norm {
  tutti_stream stream;
  double momentum; /* of the running statistics; PyTorch's meaning */
  double eps;
  int32_t training;
  tutti_view x;
  tutti_view weight, bias;              /* [C]; data may be null */
  tutti_view running_mean, running_var; /* [C]; data may be null; updated in training */
  tutti_view y;                         /* forward */
  tutti_view save_mean,
      save_invstd;           /* [C], f32 (f64 for f64): written by forward in training, read by backward */
  tutti_view grad_y, grad_x; /* backward; grad_x.data may be null */
  tutti_view grad_weight, grad_bias; /* backward; data may be null */
} tutti_batch_norm;

/* ---- random ------------------------------------------------------------------------------------------------------- */
enum { TUTTI_UNIFORM, TUTTI_NORMAL, TUTTI_BERNOULLI, TUTTI_RANDINT };
typedef struct tutti_random {
  tutti_stream stream;
  int32_t kind;
  tutti_philox philox;
  double a, b;       /* uniform [a, b); normal mean a, deviation b; bernoulli probability a */
  int64_t low, high; /* randint [low, high) */
  tutti_view
      out; /* logical (row-major) element i draws number i (normal: pairs; i64 randint: 2 numbers each) */
} tutti_random;
/* out = in * mask / (1 - p); the mask depends on philox and the logical element index alone, so backward and recompute get the same. */
typedef struct tutti_dropout {
  tutti_stream stream;
  tutti_philox philox;
  double p;
  tutti_view out;
  tutti_view in;
} tutti_dropout;

/* ---- copies and indexing ------------------------------------------------------------------------------------------ */
typedef struct tutti_copy {
  tutti_stream stream;
  tutti_view out;
  /* The same shape (stride 0 where broadcast), any strides, any dtype. Values convert like a C++ cast; copy.cpp says what becomes
     of those that the dtype can't hold. */
  tutti_view in;
} tutti_copy;
typedef struct tutti_fill {
  tutti_stream stream;
  tutti_scalar value;
  tutti_view out;
} tutti_fill;
typedef struct tutti_arange { /* out[i] = start + i * step, computed in f64 / i64 */
  tutti_stream stream;
  tutti_scalar start, step;
  tutti_view out;
} tutti_arange;
/* index_select: out = in taken at indices [K] (i64 or i32) along dim. index_add: out += in added at indices along dim,
 * in order of K (deterministic). An index out of range is TUTTI_INVALID. */
typedef struct tutti_index {
  tutti_stream stream;
  int32_t dim;
  tutti_view out;
  tutti_view in;
  tutti_view indices;
} tutti_index;

/* ---- optimizers: one pass over all parameters; arrays of `count` contiguous arrays ---------------------------------- */
typedef struct tutti_tensor_list {
  int64_t count;
  const int64_t* numels;
  int32_t dtype; /* of all arrays */
  void* const* params;
  void* const* grads;
  void* const* state1; /* sgd: momentum buffer (null array: none); adam: exp_avg */
  void* const* state2; /* adam: exp_avg_sq */
  void* const* state3; /* adam with amsgrad: max_exp_avg_sq, else null */
} tutti_tensor_list;
typedef struct tutti_sgd {
  tutti_stream stream;
  tutti_tensor_list list;
  double lr, momentum, dampening, weight_decay;
  int32_t nesterov, maximize, first_step; /* first_step: buffer = gradient, without dampening */
} tutti_sgd;
typedef struct tutti_adam {
  tutti_stream stream;
  tutti_tensor_list list;
  double lr, beta1, beta2, eps, weight_decay;
  int64_t step; /* already incremented: 1 in the first step; the same for all arrays of the list */
  int32_t decoupled, amsgrad, maximize;
} tutti_adam;
/* Sum over all arrays of |x|^2, f64 whatever the arrays' dtype, in list order; fixed partial sums. */
typedef struct tutti_list_norm {
  tutti_stream stream;
  tutti_tensor_list list; /* params */
  double* sum_of_squares; /* host memory on the CPU; device memory on a device */
} tutti_list_norm;
typedef struct tutti_list_scale {
  tutti_stream stream;
  tutti_tensor_list list; /* params *= factor */
  double factor;
} tutti_list_scale;

typedef struct tutti_memory_functions {
  tutti_status (*allocate)(int32_t device, size_t bytes,
                           void** out); /* system allocation, 64-byte aligned at least */
  tutti_status (*release)(int32_t device, void* data, size_t bytes);
  tutti_status (*allocate_pinned)(size_t bytes, void** out);
  tutti_status (*release_pinned)(void* data, size_t bytes);
  /* kind of each side: 1 on this backend's device, 0 host */
  tutti_status (*copy)(tutti_stream stream, void* out, int32_t out_on_device, const void* in,
                       int32_t in_on_device, size_t bytes);
  tutti_status (*info)(int32_t device, size_t* free_bytes, size_t* total_bytes);
} tutti_memory_functions;

typedef struct tutti_stream_functions {
  tutti_status (*create)(int32_t device, int32_t priority, tutti_stream* out);
  tutti_status (*destroy)(tutti_stream stream);
  tutti_status (*synchronize)(tutti_stream stream);
  tutti_status (*query)(tutti_stream stream, int32_t* done);
  tutti_status (*wait_event)(tutti_stream stream, tutti_event event);
  tutti_status (*event_create)(int32_t device, int32_t timing, tutti_event* out);
  tutti_status (*event_destroy)(tutti_event event);
  tutti_status (*event_record)(tutti_event event, tutti_stream stream);
  tutti_status (*event_query)(tutti_event event, int32_t* done);
  tutti_status (*event_synchronize)(tutti_event event);
  tutti_status (*event_elapsed)(tutti_event begin, tutti_event end, float* milliseconds);
  tutti_status (*device_count)(int32_t* count);
  tutti_status (*device_name)(int32_t device, char* buffer, size_t size);
  tutti_status (*device_synchronize)(int32_t device);
} tutti_stream_functions;

typedef tutti_status (*tutti_pointwise_function)(const tutti_pointwise*);

typedef struct tutti_kernel_functions {
  const tutti_pointwise_function* pointwise; /* pointwise_count entries, in the order of functors/list.hpp */
  int32_t pointwise_count;
  tutti_status (*reduce)(const tutti_reduce*);
  tutti_status (*arg_reduce)(const tutti_arg_reduce*);
  tutti_status (*matmul)(const tutti_matmul*);
  tutti_status (*conv2d_forward)(const tutti_conv2d*);
  tutti_status (*conv2d_backward_data)(const tutti_conv2d*);
  tutti_status (*conv2d_backward_weight)(const tutti_conv2d*); /* and bias */
  tutti_status (*max_pool2d_forward)(const tutti_pool2d*);
  tutti_status (*max_pool2d_backward)(const tutti_pool2d*); /* x: gradient written, y: gradient read */
  tutti_status (*avg_pool2d_forward)(const tutti_pool2d*);
  tutti_status (*avg_pool2d_backward)(const tutti_pool2d*);
  tutti_status (*softmax_forward)(const tutti_softmax*);
  tutti_status (*softmax_backward)(const tutti_softmax*);
  tutti_status (*cross_entropy_forward)(const tutti_cross_entropy*);
  tutti_status (*cross_entropy_backward)(const tutti_cross_entropy*);
  tutti_status (*batch_norm_forward)(const tutti_batch_norm*);
  tutti_status (*batch_norm_backward)(const tutti_batch_norm*);
  tutti_status (*random)(const tutti_random*);
  tutti_status (*dropout)(const tutti_dropout*);
  tutti_status (*copy)(const tutti_copy*);
  tutti_status (*fill)(const tutti_fill*);
  tutti_status (*arange)(const tutti_arange*);
  tutti_status (*index_select)(const tutti_index*);
  tutti_status (*index_add)(const tutti_index*);
  tutti_status (*sgd)(const tutti_sgd*);
  tutti_status (*adam)(const tutti_adam*);
  tutti_status (*list_norm)(const tutti_list_norm*);
  tutti_status (*list_scale)(const tutti_list_scale*);
} tutti_kernel_functions;

typedef struct tutti_backend {
  int32_t version;     /* TUTTI_BACKEND_VERSION */
  int32_t struct_size; /* sizeof(tutti_backend) */
  const char* build_id;
  const char* name; /* "cpu", "cuda" */
  void (*error_text)(char* buffer, size_t size);
  tutti_memory_functions memory;
  tutti_stream_functions streams;
  tutti_kernel_functions kernels;
} tutti_backend;

/* What a plugin may call of its host. */
typedef struct tutti_host_services {
  int32_t version;
  int32_t struct_size;
  void (*log)(int32_t level, const char* text);
  int64_t (*now_ns)(void);
  int32_t (*trace_enabled)(void);
} tutti_host_services;

typedef const tutti_backend* (*tutti_backend_entry)(const tutti_host_services* host);

/* The CPU's table: linked in, defined on floor 3. */
const tutti_backend* tutti_cpu_backend(void);

#ifdef __cplusplus
}
#endif
