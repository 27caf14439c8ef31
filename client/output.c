/* SPDX-License-Identifier: MIT */
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <wchar.h>
#include <wctype.h>

#include "output.h"

#define COLUMNS_DEFAULT 80
#define COLUMNS_MIN 40

void output_measure(Output *o)
{
	struct winsize size;

	o->columns = COLUMNS_DEFAULT;
	o->rows = 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return;
	o->rows = size.ws_row ? size.ws_row : 24;
	if (size.ws_col)
		o->columns = MAX(size.ws_col, (unsigned)COLUMNS_MIN);
}

void output_init(Output *o)
{
	const char *term = getenv("TERM");

	*o = (Output){ .f = stdout };
	(void)setlocale(LC_CTYPE, "");
	o->utf8 = streq(nl_langinfo(CODESET), "UTF-8");
	/* D-Bus strings are UTF-8, whatever the locale says. */
	if (!o->utf8)
		(void)setlocale(LC_CTYPE, "C.UTF-8");
	output_measure(o);
	o->color = !*strempty(getenv("NO_COLOR")) && isatty(STDOUT_FILENO) && term &&
		   !streq(term, "dumb");
}

void output_style(const Output *o, Style style)
{
	static const char *const codes[] = {
		[STYLE_PLAIN] = "0", [STYLE_BOLD] = "1",  [STYLE_DIM] = "2",
		[STYLE_GOOD] = "32", [STYLE_WARN] = "33", [STYLE_BAD] = "31",
	};

	if (o->color)
		(void)fprintf(o->f, "\033[%sm", codes[style]);
}

/* Characters that reorder what follows them can make one text look like another. */
static bool is_bidi_control(wchar_t c)
{
	return c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* One character from *s, which moves behind it: what to print, how long that is, how wide. */
static const char *next_char(const char **s, size_t *ret_size, unsigned *ret_width)
{
	const char *start = *s;
	mbstate_t state = {};
	wchar_t c;
	size_t n;
	int width;

	n = mbrtowc(&c, start, MB_CUR_MAX, &state);
	if (n == 0 || n > MB_CUR_MAX) {
		*s = start + 1;
		*ret_size = *ret_width = 1;
		return "?";
	}
	*s = start + n;
	width = wcwidth(c);
	*ret_size = *ret_width = 1;
	if (c == L'\n' || c == L'\t')
		return " ";
	if (width < 0 || !iswprint((wint_t)c) || is_bidi_control(c))
		return "?";
	*ret_size = n;
	*ret_width = (unsigned)width;
	return start;
}

unsigned text_width(const char *s)
{
	unsigned width, total = 0;
	size_t size;

	while (*s) {
		(void)next_char(&s, &size, &width);
		total += width;
	}
	return total;
}

unsigned text_put(FILE *f, const char *s, unsigned max)
{
	unsigned width, total = 0, room = max;
	bool cut = text_width(s) > max;
	size_t size;

	if (max == 0)
		return 0;
	if (cut)
		room--;
	while (*s) {
		const char *c = next_char(&s, &size, &width);

		if (total + width > room)
			break;
		(void)fwrite(c, 1, size, f);
		total += width;
	}
	if (cut) {
		(void)fputc('~', f);
		total++;
	}
	return total;
}

void output_left(const Output *o, const char *s, unsigned width)
{
	unsigned n = text_put(o->f, s, width);

	(void)fprintf(o->f, "%*s ", (int)(width - n), "");
}

void output_right(const Output *o, const char *s, unsigned width)
{
	unsigned n = MIN(text_width(s), width);

	(void)fprintf(o->f, " %*s", (int)(width - n), "");
	(void)text_put(o->f, s, width);
}

void output_wrap(const Output *o, const char *s, unsigned indent)
{
	unsigned column = indent;

	while (*s) {
		size_t n = strcspn(s, " \n");
		auto_free char *word = strndup(s, n);
		unsigned width = word ? text_width(word) : 0;

		if (n > 0 && word) {
			if (column > indent && column + 1 + width > o->columns) {
				(void)fprintf(o->f, "\n%*s", (int)indent, "");
				column = indent;
			} else if (column > indent) {
				(void)fputc(' ', o->f);
				column++;
			}
			column += text_put(o->f, word, width);
		}
		s += n;
		if (*s)
			s++;
	}
	(void)fputc('\n', o->f);
}

static unsigned scale(uint64_t part, uint64_t whole, unsigned width)
{
	if (whole == 0)
		return 0;
	return (unsigned)((double)MIN(part, whole) / (double)whole * width + 0.5);
}

void output_bar(const Output *o, uint64_t used, uint64_t mark, uint64_t whole, unsigned width)
{
	const char *full = o->utf8 ? "█" : "#", *none = o->utf8 ? "░" : ".";
	const char *line = o->utf8 ? "┃" : "|";
	unsigned n = scale(used, whole, width), at = scale(mark, whole, width);
	/* Where drivers start to push buffers out, and where they surely do. */
	bool tight = used > percent_of(whole, 85), over = used > percent_of(whole, 97);

	(void)fputc('[', o->f);
	output_style(o, over ? STYLE_BAD : tight ? STYLE_WARN : STYLE_GOOD);
	for (unsigned i = 0; i < width; i++) {
		if (mark > 0 && i + 1 == MAX(at, 1u))
			(void)fputs(line, o->f);
		else
			(void)fputs(i < n ? full : none, o->f);
	}
	output_style(o, STYLE_PLAIN);
	(void)fputc(']', o->f);
}

void complain(const char *format, ...)
{
	auto_free char *text = NULL;
	va_list ap;
	int r;

	va_start(ap, format);
	r = vasprintf(&text, format, ap);
	va_end(ap);
	if (r < 0) {
		text = NULL;
		return;
	}
	(void)fputs("vramctl: ", stderr);
	(void)text_put(stderr, text, UINT32_MAX);
	(void)fputc('\n', stderr);
}
