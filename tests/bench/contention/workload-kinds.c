/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "vramsim_uapi.h"

#include "workload.h"

/* xorshift64: the same sizes on every machine. */
static double random_unit(Workload *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (double)(w->random >> 11) / (double)(UINT64_C(1) << 53);
}

/* Small buffers are as frequent in games as large ones: the logarithm is uniform. */
static uint64_t random_size(Workload *w)
{
	const Options *o = &w->options;
	double size = (double)o->smallest * pow((double)o->largest / (double)o->smallest, random_unit(w));

	return MAX((uint64_t)size & ~(4 * KIB - 1), 4 * KIB);
}

/* Buffers of so many bytes in all: private ones, but where their order matters. */
static int fill(Workload *w, uint64_t bytes, bool random)
{
	const Options *o = &w->options;
	uint32_t flags = (o->scattered ? 0 : VRAMSIM_BO_PRIVATE) | (o->vram_only ? VRAMSIM_BO_VRAM_ONLY : 0);
	uint32_t handle;
	uint64_t size;

	for (uint64_t total = 0; total < bytes; total += size) {
		int r;

		size = random ? random_size(w) : o->largest;
		r = gpu_create(&w->gpu, size, flags, &handle);
		if (r >= 0 && (o->classes || o->priorities))
			r = classes_add(w, handle, size);
		if (r >= 0 && o->scattered)
			r = gpu_use(&w->gpu, handle);
		if (r < 0)
			return r;
	}
	return 0;
}

static int buffers_add(Buffers *to, uint32_t handle)
{
	if (!GROW(to->handles, to->n_alloc, to->n))
		return -ENOMEM;
	to->handles[to->n++] = handle;
	return 0;
}

static int add(Workload *w, Buffers *to, uint64_t size, uint32_t flags)
{
	uint32_t handle;
	int r = gpu_create(&w->gpu, size, flags, &handle);

	if (r < 0 || handle == 0)
		return r;
	r = buffers_add(to, handle);
	return r < 0 ? r : gpu_use(&w->gpu, handle);
}

static int drop(Workload *w, Buffers *from)
{
	int r = 0;

	while (r >= 0 && from->n > 0)
		r = gpu_close(&w->gpu, from->handles[--from->n]);
	return r;
}

int workload_grow(Workload *w, uint64_t bytes, bool vram_only)
{
	int r = 0;

	for (uint64_t done = 0; r >= 0 && done < bytes; done += MIB)
		r = add(w, &w->grown, MIB, vram_only ? VRAMSIM_BO_VRAM_ONLY : 0);
	return r;
}

int workload_shrink(Workload *w)
{
	return drop(w, &w->grown);
}

/* --- A swapchain ---------------------------------------------------------------------------------------------- */

static int make_images(Workload *w, uint32_t flags)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < IMAGES; i++) {
		r = gpu_create(&w->gpu, MIB, flags, &w->images[i]);
		if (r >= 0 && w->images[i] == 0)
			r = -ENOMEM;
	}
	return r;
}

int workload_export(Workload *w, Message *ret)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < IMAGES; i++) {
		r = gpu_export(&w->gpu, w->images[i], &ret->fds[i]);
		if (r >= 0)
			ret->n_fds++;
	}
	return r;
}

int workload_import(Workload *w, const Message *m)
{
	int r = drop(w, &w->imported);
	uint32_t handle;

	for (size_t i = 0; r >= 0 && i < m->n_fds; i++) {
		r = gpu_import(&w->gpu, m->fds[i], &handle);
		if (r >= 0)
			r = buffers_add(&w->imported, handle);
	}
	return r;
}

/* Only these are listed: all the others are private. */
static int draw_into(Workload *w, uint32_t image)
{
	size_t n = w->imported.n;
	int r;

	w->gpu.used.n = 0;
	r = gpu_use(&w->gpu, image);
	if (r >= 0 && n > 0)
		r = gpu_use(&w->gpu, w->imported.handles[w->n_frames % n]);
	return r < 0 ? r : gpu_submit(&w->gpu);
}

/* --- A game: all buffers in each frame ----------------------------------------------------------------------- */

static int game_setup(Workload *w)
{
	int r = make_images(w, 0);
	uint64_t images = IMAGES * MIB;

	return r < 0 ? r : fill(w, MAX(w->options.size, images) - images, true);
}

/* Fisher and Yates */
static void shuffle(Workload *w)
{
	Buffers *used = &w->gpu.used;

	for (size_t i = used->n; i > 1; i--) {
		size_t j = (size_t)(random_unit(w) * (double)i);
		uint32_t handle = used->handles[j];

		used->handles[j] = used->handles[i - 1];
		used->handles[i - 1] = handle;
	}
}

static int game_frame(Workload *w)
{
	int r;

	if (!w->options.scattered)
		return draw_into(w, w->images[w->n_frames % IMAGES]);
	r = gpu_submit(&w->gpu);
	if (r < 0)
		return r;
	/* Once more, or what was last in system memory, and now lies together, would also be evicted together. */
	shuffle(w);
	return gpu_submit(&w->gpu);
}

/* --- A compositor: draws what the game has drawn, and shows it ------------------------------------------------ */

static int compositor_setup(Workload *w)
{
	int r = fill(w, w->options.size, false);

	return r < 0 ? r : make_images(w, VRAMSIM_BO_SCANOUT);
}

static int compositor_frame(Workload *w)
{
	uint32_t image = w->images[w->n_frames % IMAGES];
	int r = draw_into(w, image);

	return r < 0 ? r : gpu_flip(&w->gpu, image);
}

int workload_image(Workload *w)
{
	uint32_t handle;
	int r = gpu_create(&w->gpu, MIB, VRAMSIM_BO_SCANOUT, &handle);

	return r < 0 || handle == 0 ? r : gpu_close(&w->gpu, handle);
}

/* --- Any other program: a browser, Steam's menu, an AI job --------------------------------------------------- */

static int program_setup(Workload *w)
{
	return fill(w, w->options.size, false);
}

static int program_frame(Workload *w)
{
	int r = 0;

	for (uint64_t done = 0; r >= 0 && done < w->options.churn; done += MIB)
		r = add(w, &w->churned, MIB, VRAMSIM_BO_VRAM_ONLY);
	if (r >= 0)
		r = gpu_submit(&w->gpu);
	return r < 0 ? r : drop(w, &w->churned);
}

void workload_done(Workload *w)
{
	gpu_done(&w->gpu);
	classes_done(w);
	free(w->imported.handles);
	free(w->grown.handles);
	free(w->churned.handles);
}

const Kind kinds[] = {
	{ "game", { .smallest = 16 * KIB, .largest = 8 * MIB, .seed = 1 }, game_setup, game_frame },
	{ "compositor", { .size = 4 * MIB, .largest = 512 * KIB, .seed = 1 }, compositor_setup, compositor_frame },
	{ "program", { .largest = 512 * KIB, .seed = 1 }, program_setup, program_frame },
	{ .name = NULL },
};
