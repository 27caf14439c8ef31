/* SPDX-License-Identifier: MIT */
/* A program that uses the simulated GPU, frame by frame, as the bench tells it. */
#pragma once

#include "util.h"

/* What is said of a frame, and of everything else that was asked for. */
typedef struct Report {
	uint64_t begin_ns, end_ns;   /* CLOCK_MONOTONIC */
	uint64_t ioctl_ns;           /* of it in the driver */
	uint64_t resident, spilled;  /* bytes of what was used, as the last submission left it */
	uint64_t moved;              /* bytes that the device moved in or out, since it is there */
	uint64_t out, evictions;     /* and out alone; buffers thrown out */
	uint64_t failed;             /* submissions and new buffers that were refused, since the start */
	uint64_t submits;            /* submissions that were not, since the start */
	uint64_t retries, stall_ns;  /* the most that one submission needed, and the longest, refused or not */
} Report;

/* --- The GPU (workload-gpu.c) -------------------------------------------------------------------------------- */

typedef struct Buffers {
	uint32_t *handles;
	size_t n, n_alloc;
} Buffers;

typedef struct Gpu {
	int fd;
	uint32_t hold_us; /* how long a submission keeps the locks, for what the GPU would compute */
	bool backoff;     /* submissions back off from contended locks, where the kernel lets them */
	Buffers used;     /* listed in each submission; private buffers need not be */
	Report report;
} Gpu;

/* A refusal for want of memory is counted, and no error: then *ret_handle is 0. */
int gpu_open(Gpu *gpu, const char *path);
int gpu_create(Gpu *gpu, uint64_t size, uint32_t flags, uint32_t *ret_handle);
int gpu_use(Gpu *gpu, uint32_t handle);
int gpu_close(Gpu *gpu, uint32_t handle); /* and use it no more */
int gpu_submit(Gpu *gpu);
int gpu_set_priority(Gpu *gpu, uint32_t handle, uint32_t priority);
int gpu_in_vram(Gpu *gpu, uint32_t handle, bool *ret);
int gpu_flip(Gpu *gpu, uint32_t handle);
int gpu_count_moved(Gpu *gpu);
int gpu_export(Gpu *gpu, uint32_t handle, int *ret_fd);
int gpu_import(Gpu *gpu, int fd, uint32_t *ret_handle);
void gpu_done(Gpu *gpu);
uint64_t now_ns(void);

/* --- The bench's socket (workload-link.c) --------------------------------------------------------------------- */

#define IMAGES 3 /* of a swapchain: one on the screen, one next, one being drawn */

/* A message, and perhaps the images of a swapchain with it. */
typedef struct Message {
	char text[640];
	int fds[IMAGES];
	size_t n_fds;
} Message;

int link_open(const char *path, int *ret_fd);
int link_send(int fd, const Message *m);
int link_receive(int fd, int flags, Message *ret); /* 0: the bench has gone */
void message_done(Message *m);

/* --- Kinds of programs (workload-kinds.c, workload-classes.c) ------------------------------------------------- */

typedef struct Options {
	uint64_t size;              /* bytes in all */
	uint64_t smallest, largest; /* of a buffer; games have all sizes between them, others the largest */
	uint64_t churn;             /* bytes of VRAM-only buffers that are made in a frame, used for one, and freed */
	uint32_t seed;
	bool vram_only;             /* a game's buffers must be in VRAM */
	bool classes;               /* a game reports of each class of buffers how much is in VRAM and how much is not */
	bool priorities;            /* it tells the kernel how much they matter */
	bool scattered;             /* a game's buffers are used in another order each time, not by address */
} Options;

#define CLASSES 4 /* by how much a buffer matters, or how often it is read: 0 the least */

typedef struct Class {
	Buffers buffers;
	uint64_t *sizes;
	size_t n_sizes_alloc;
	uint64_t bytes;
} Class;

typedef struct Workload {
	Gpu gpu;
	Options options;
	uint64_t n_frames;
	uint64_t random;
	uint32_t images[IMAGES]; /* drawn in turn: the game's swapchain, or what the compositor shows */
	Buffers imported;        /* the game's images, from which the compositor draws */
	Buffers grown, churned;
	Class classes[CLASSES];
} Workload;

/* Bytes of each class that are in VRAM, and that are not. */
typedef struct Places {
	uint64_t in[CLASSES], out[CLASSES];
} Places;

typedef struct Kind {
	const char *name;
	Options defaults;
	int (*setup)(Workload *w);
	int (*frame)(Workload *w);
} Kind;

extern const Kind kinds[];

/* The buffer gets into the class that has least so far: all get about the same. */
int classes_add(Workload *w, uint32_t handle, uint64_t size);
void classes_done(Workload *w);

int workload_grow(Workload *w, uint64_t bytes, bool vram_only);
int workload_shrink(Workload *w);
int workload_image(Workload *w); /* what a new image for the screen needs; it goes at once */
int workload_turn(Workload *w);  /* what mattered least matters most now, everything else less */
int workload_look(Workload *w, Places *ret);
int workload_export(Workload *w, Message *ret);
int workload_import(Workload *w, const Message *m); /* in place of what was imported before */
void workload_done(Workload *w);
