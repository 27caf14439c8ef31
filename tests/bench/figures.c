/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <time.h>

#include "figures.h"

double now_usec(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double quantile(double *values, size_t n, double q)
{
	qsort(values, n, sizeof(*values), compare_double);
	return values[(size_t)((double)(n - 1) * q)];
}
