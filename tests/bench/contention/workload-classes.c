/* SPDX-License-Identifier: MIT */
#include "workload.h"

static int class_add(Class *class, uint32_t handle, uint64_t size)
{
	Buffers *b = &class->buffers;

	if (!GROW(b->handles, b->n_alloc, b->n) || !GROW(class->sizes, class->n_sizes_alloc, b->n))
		return -ENOMEM;
	b->handles[b->n] = handle;
	class->sizes[b->n++] = size;
	class->bytes += size;
	return 0;
}

int classes_add(Workload *w, uint32_t handle, uint64_t size)
{
	size_t least = 0;
	int r = 0;

	if (handle == 0)
		return 0;
	for (size_t i = 1; i < CLASSES; i++)
		if (w->classes[i].bytes < w->classes[least].bytes)
			least = i;
	if (w->options.priorities)
		r = gpu_set_priority(&w->gpu, handle, (uint32_t)least);
	return r < 0 ? r : class_add(&w->classes[least], handle, size);
}

int workload_turn(Workload *w)
{
	Class least = w->classes[0];
	int r = 0;

	memmove(&w->classes[0], &w->classes[1], (CLASSES - 1) * sizeof(Class));
	w->classes[CLASSES - 1] = least;
	if (!w->options.priorities)
		return 0;
	for (uint32_t c = 0; c < CLASSES; c++)
		for (size_t i = 0; r >= 0 && i < w->classes[c].buffers.n; i++)
			r = gpu_set_priority(&w->gpu, w->classes[c].buffers.handles[i], c);
	return r;
}

int workload_look(Workload *w, Places *ret)
{
	Places places = { 0 };

	for (size_t c = 0; c < CLASSES; c++) {
		const Class *class = &w->classes[c];

		for (size_t i = 0; i < class->buffers.n; i++) {
			bool in;
			int r = gpu_in_vram(&w->gpu, class->buffers.handles[i], &in);

			if (r < 0)
				return r;
			*(in ? &places.in[c] : &places.out[c]) += class->sizes[i];
		}
	}
	*ret = places;
	return 0;
}

void classes_done(Workload *w)
{
	for (size_t c = 0; c < CLASSES; c++) {
		free(w->classes[c].buffers.handles);
		free(w->classes[c].sizes);
	}
}
