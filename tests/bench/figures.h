/* SPDX-License-Identifier: MIT */
/* What benchmarks measure with. */
#pragma once

#include <stddef.h>

/* Exit status of a benchmark that misses a mark. */
#define EXIT_SHORT 3

/* Microseconds of CLOCK_MONOTONIC. */
double now_usec(void);
/* Sorts the values. q: 0.5 is the median. */
double quantile(double *values, size_t n, double q);
