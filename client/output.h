/* SPDX-License-Identifier: MIT */
/* Text for people: colours, cells of a given width, bars, wrapped paragraphs. Whatever came from the
 * daemon or from /proc is data: these functions never let a control character, an invalid byte or a
 * bidirectional override reach the terminal. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "util.h"

typedef enum Style {
	STYLE_PLAIN,
	STYLE_BOLD,
	STYLE_DIM,
	STYLE_GOOD,
	STYLE_WARN,
	STYLE_BAD,
} Style;

typedef struct Output {
	FILE *f;          /* not owned */
	unsigned columns; /* of the terminal, else 80 */
	unsigned rows;    /* 0 = no terminal */
	bool color;
	bool utf8;        /* the user's own locale can show block characters */
} Output;

/* Sets the locale for LC_CTYPE, without which texts are no more than ASCII, and looks at stdout,
 * NO_COLOR and TERM. */
void output_init(Output *o);
/* Reads the terminal's size again. */
void output_measure(Output *o);

void output_style(const Output *o, Style style); /* until the next call; STYLE_PLAIN ends it */

unsigned text_width(const char *s);
/* At most max columns; a text that is cut ends in "~". Returns the columns written. */
unsigned text_put(FILE *f, const char *s, unsigned max);
/* Exactly width columns, and a space behind it. */
void output_left(const Output *o, const char *s, unsigned width);
/* Exactly width columns, right-aligned, and a space before it. */
void output_right(const Output *o, const char *s, unsigned width);
/* Words wrapped at the terminal's width; the first line is taken to start at column indent. */
void output_wrap(const Output *o, const char *s, unsigned indent);
/* used of whole, with a mark where the protected part of whole ends. */
void output_bar(const Output *o, uint64_t used, uint64_t mark, uint64_t whole, unsigned width);

/* "vramctl: ..." on stderr, in one line whatever the arguments hold. */
void complain(const char *format, ...) _printf_(1, 2);
