/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/file.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <systemd/sd-id128.h>

#include "journal.h"
#include "log.h"
#include "parse.h"

#define JOURNAL_MAGIC "vramd-journal 1 "
#define JOURNAL_FIELDS_MAX 8
#define JOURNAL_KNOB "knob\t"

static const char *const record_kinds[_RECORD_KIND_MAX] = {
	[RECORD_VALUE] = "value",
	[RECORD_OWNER] = "owner",
	[RECORD_DMEM] = "dmem",
};

static Record *record_free(Record *r)
{
	if (!r)
		return NULL;
	free(r->path);
	free(r->region);
	free(r);
	return NULL;
}
DEFINE_CLEANUP(Record *, record_free)
#define auto_record _cleanup_(record_freep)

/* --- The table ------------------------------------------------------------------------------- */

static int record_compare(const Record *a, const Record *b)
{
	int r = strcmp(a->path, b->path);

	if (r != 0)
		return r;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->kind != RECORD_VALUE)
		return 0;
	r = strcmp(a->region, b->region);
	return r != 0 ? r : (int)a->limit - (int)b->limit;
}

static size_t journal_lower_bound(const Journal *j, const Record *key)
{
	size_t lo = 0, hi = j->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (record_compare(j->records[mid], key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

Record *journal_find(const Journal *j, RecordKind kind, const char *path, const char *region, DmemLimit limit)
{
	const Record key = {
		.kind = kind,
		.path = (char *)path,
		.region = (char *)region,
		.limit = limit,
	};
	size_t i = journal_lower_bound(j, &key);

	return i < j->n && record_compare(j->records[i], &key) == 0 ? j->records[i] : NULL;
}

size_t journal_first(const Journal *j, const char *path)
{
	const Record key = {
		.kind = RECORD_VALUE,
		.path = (char *)path,
		.region = (char *)"",
	};

	return journal_lower_bound(j, &key);
}

/* Takes the record over on success. */
static int journal_insert(Journal *j, Record *record)
{
	size_t i = journal_lower_bound(j, record);

	if (i < j->n && record_compare(j->records[i], record) == 0)
		return -EEXIST;
	if (j->n >= JOURNAL_RECORDS_MAX)
		return -ENOSPC;
	if (!GROW(j->records, j->n_alloc, j->n))
		return -ENOMEM;
	memmove(j->records + i + 1, j->records + i, (j->n - i) * sizeof(*j->records));
	j->records[i] = record;
	j->n++;
	j->dirty = true;
	return 0;
}

static int record_new(RecordKind kind, const char *path, const char *region, DmemLimit limit, Record **ret)
{
	auto_record Record *r = NULL;
	char line[DMEM_LINE_MAX];

	if (cgroup_path_check(path) < 0)
		return -EINVAL;
	if (kind == RECORD_VALUE && dmem_format(line, region, 0) < 0)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->kind = kind;
	r->limit = limit;
	r->path = strdup(path);
	if (!r->path)
		return -ENOMEM;
	if (kind == RECORD_VALUE) {
		r->region = strdup(region);
		if (!r->region)
			return -ENOMEM;
	}
	*ret = TAKE_PTR(r);
	return 0;
}

int journal_add(Journal *j, RecordKind kind, const char *path, const char *region, DmemLimit limit,
		Record **ret)
{
	auto_record Record *record = NULL;
	int r;

	r = record_new(kind, path, region, limit, &record);
	if (r < 0)
		return r;
	r = journal_insert(j, record);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(record);
	return 0;
}

void journal_touch(Journal *j, Record *record)
{
	record->logged = false;
	j->dirty = true;
}

void journal_remove(Journal *j, Record *record)
{
	size_t i = journal_lower_bound(j, record);

	if (i >= j->n || j->records[i] != record)
		return;
	j->n--;
	memmove(j->records + i, j->records + i + 1, (j->n - i) * sizeof(*j->records));
	record_free(record);
	j->dirty = true;
}

void journal_set_knob(Journal *j, Knob knob, KnobRecord record)
{
	record.logged = false;
	j->knobs[knob] = record;
	j->dirty = true;
}

static bool journal_is_empty(const Journal *j)
{
	bool empty = j->n == 0;

	for (Knob k = 0; k < _KNOB_MAX; k++)
		empty = empty && !j->knobs[k].used;
	return empty;
}

static void journal_clear(Journal *j)
{
	for (size_t i = 0; i < j->n; i++)
		record_free(j->records[i]);
	free(j->records);
	j->records = NULL;
	j->n = j->n_alloc = 0;
}

/* --- Text to records ------------------------------------------------------------------------- */

static int parse_mode(const char *s, mode_t *ret)
{
	mode_t mode = 0;
	size_t n = strlen(s);

	if (n == 0 || n > 4 || strspn(s, "01234567") != n)
		return -EINVAL;
	for (; *s; s++)
		mode = mode << 3 | (mode_t)(*s - '0');
	*ret = mode;
	return 0;
}

static int parse_owner(char *const *field, FileOwner *ret)
{
	FileOwner o;

	if (parse_u32(field[0], &o.uid) < 0 || parse_u32(field[1], &o.gid) < 0 ||
			parse_mode(field[2], &o.mode) < 0)
		return -EINVAL;
	/* chown(2) takes -1 for "leave it". */
	if (o.uid == (uid_t)-1 || o.gid == (gid_t)-1)
		return -EINVAL;
	*ret = o;
	return 0;
}

static int parse_values(char *const *field, Record *record)
{
	if (parse_u64(field[0], &record->old) < 0 || parse_u64(field[1], &record->ours) < 0 ||
			parse_u64(field[2], &record->ours_before) < 0)
		return -EINVAL;
	return 0;
}

static RecordKind record_kind_from_string(const char *s)
{
	RecordKind kind = 0;

	while (kind < _RECORD_KIND_MAX && !streq(record_kinds[kind], s))
		kind++;
	return kind;
}

static size_t split_fields(char *line, char **ret)
{
	size_t n = 0;
	char *field;

	while ((field = strsep(&line, "\t"))) {
		if (n == JOURNAL_FIELDS_MAX)
			return 0;
		ret[n++] = field;
	}
	return n;
}

static int record_parse(char *line, Record **ret)
{
	static const size_t n_fields[_RECORD_KIND_MAX] = {
		[RECORD_VALUE] = 8,
		[RECORD_OWNER] = 6,
		[RECORD_DMEM] = 3,
	};
	auto_record Record *record = NULL;
	char *field[JOURNAL_FIELDS_MAX];
	size_t n = split_fields(line, field);
	RecordKind kind = n > 0 ? record_kind_from_string(field[0]) : _RECORD_KIND_MAX;
	DmemLimit limit = 0;
	int r;

	if (kind == _RECORD_KIND_MAX || n != n_fields[kind])
		return -EINVAL;
	if (kind == RECORD_VALUE) {
		limit = dmem_limit_from_file(field[4]);
		if (limit < 0)
			return -EINVAL;
	}
	r = record_new(kind, field[1], kind == RECORD_VALUE ? field[3] : NULL, limit, &record);
	if (r < 0)
		return r;
	r = parse_u64(field[2], &record->inode);
	if (r >= 0 && kind == RECORD_VALUE)
		r = parse_values(field + 5, record);
	if (r >= 0 && kind == RECORD_OWNER)
		r = parse_owner(field + 3, &record->owner);
	if (r < 0)
		return -EINVAL;
	*ret = TAKE_PTR(record);
	return 0;
}

static Knob knob_from_path(const char *path)
{
	Knob k = 0;

	for (; k < _KNOB_MAX; k++) {
		const char *rest = startswith(path, knob_infos[k].module);

		if (rest && *rest == '/' && streq(rest + 1, knob_infos[k].parameter))
			break;
	}
	return k;
}

static int parse_knob(Journal *j, char *fields)
{
	KnobRecord record = { .used = true };
	char *field[JOURNAL_FIELDS_MAX];
	size_t n = split_fields(fields, field);
	Knob k = n == 5 ? knob_from_path(field[0]) : _KNOB_MAX;

	if (k == _KNOB_MAX || parse_u64(field[1], &record.inode) < 0 || parse_u32(field[2], &record.old) < 0 ||
			parse_u32(field[3], &record.ours) < 0 || parse_u32(field[4], &record.ours_before) < 0)
		return -EINVAL;
	journal_set_knob(j, k, record);
	return 0;
}

static int parse_line(Journal *j, char *line)
{
	auto_record Record *record = NULL;
	Record *earlier;
	int r;

	if (startswith(line, JOURNAL_KNOB))
		return parse_knob(j, line + strlen(JOURNAL_KNOB));

	r = record_parse(line, &record);
	if (r < 0)
		return r;
	earlier = journal_find(j, record->kind, record->path, record->region, record->limit);
	if (earlier)
		journal_remove(j, earlier);
	r = journal_insert(j, record);
	if (r < 0)
		return r;
	(void)TAKE_PTR(record);
	return 0;
}

int journal_parse(Journal *j, const char *text, unsigned *ret_bad)
{
	auto_free char *copy = strdup(text);
	const char *boot;
	char *rest = copy, *line;
	unsigned bad = 0;
	int r;

	if (!copy)
		return -ENOMEM;
	line = strsep(&rest, "\n");
	boot = startswith(line, JOURNAL_MAGIC);
	if (!rest || !boot) {
		/* Without a boot id no inode means anything. */
		*ret_bad = 1;
		return 0;
	}
	if (streq(boot, j->boot_id)) {
		while ((line = strsep(&rest, "\n")) && (rest || *line)) {
			r = rest ? parse_line(j, line) : -EINVAL;
			if (r == -ENOMEM)
				return r;
			if (r < 0)
				bad++;
		}
	}
	*ret_bad = bad;
	return 0;
}

/* --- Records to text ------------------------------------------------------------------------- */

static void record_print(const Record *r, FILE *f)
{
	fprintf(f, "%s\t%s\t%" PRIu64, record_kinds[r->kind], r->path, r->inode);
	if (r->kind == RECORD_VALUE)
		fprintf(f, "\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64, r->region,
				dmem_limit_to_file(r->limit), r->old, r->ours, r->ours_before);
	else if (r->kind == RECORD_OWNER)
		fprintf(f, "\t%u\t%u\t%04o", r->owner.uid, r->owner.gid, r->owner.mode);
	fputc('\n', f);
}

static void knob_print(Knob k, const KnobRecord *r, FILE *f)
{
	fprintf(f, JOURNAL_KNOB "%s/%s\t%" PRIu64 "\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu32 "\n", knob_infos[k].module,
			knob_infos[k].parameter, r->inode, r->old, r->ours, r->ours_before);
}

/* All of it as a file, or the lines that the file lacks. */
static int format_records(const Journal *j, bool only_new, char **ret, size_t *ret_size)
{
	auto_free char *text = NULL;
	size_t size = 0;
	bool failed;
	FILE *f;

	f = open_memstream(&text, &size);
	if (!f)
		return -ENOMEM;
	if (!only_new)
		fprintf(f, JOURNAL_MAGIC "%s\n", j->boot_id);
	for (size_t i = 0; i < j->n; i++)
		if (!only_new || !j->records[i]->logged)
			record_print(j->records[i], f);
	for (Knob k = 0; k < _KNOB_MAX; k++)
		if (j->knobs[k].used && (!only_new || !j->knobs[k].logged))
			knob_print(k, &j->knobs[k], f);
	failed = ferror(f);
	if (fclose(f) != 0 || failed)
		return -ENOMEM;
	*ret = TAKE_PTR(text);
	*ret_size = size;
	return 0;
}

int journal_format(const Journal *j, char **ret, size_t *ret_size)
{
	return format_records(j, false, ret, ret_size);
}

static void note_logged(Journal *j)
{
	for (size_t i = 0; i < j->n; i++)
		j->records[i]->logged = true;
	for (Knob k = 0; k < _KNOB_MAX; k++)
		j->knobs[k].logged = true;
}

/* Leaves the old file as it is on an error. */
static int journal_replace(Journal *j)
{
	auto_free char *text = NULL;
	size_t size;
	int r, fd;

	r = journal_format(j, &text, &size);
	if (r < 0)
		return r;
	if (size > JOURNAL_TEXT_MAX)
		return -E2BIG;
	r = write_atomic_at(j->dir_fd, JOURNAL_FILE, text, size, 0600, &fd);
	if (r < 0)
		return r;
	close_fd(j->file_fd);
	j->file_fd = fd;
	j->file_size = size;
	return 0;
}

static int journal_unlink(Journal *j)
{
	j->file_fd = close_fd(j->file_fd);
	return unlinkat(j->dir_fd, JOURNAL_FILE, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int journal_sync(Journal *j)
{
	int r = 0;

	if (!j->dirty)
		return 0;
	if (j->dir_fd >= 0)
		r = journal_is_empty(j) ? journal_unlink(j) : journal_replace(j);
	if (r < 0)
		return r;
	note_logged(j);
	j->dirty = false;
	return 0;
}

int journal_append(Journal *j)
{
	auto_free char *text = NULL;
	size_t size;
	int r;

	if (!j->dirty || j->file_fd < 0)
		return journal_sync(j);
	r = format_records(j, true, &text, &size);
	if (r < 0)
		return r;
	if (j->file_size + size > JOURNAL_TEXT_MAX)
		return journal_sync(j);
	if (size > 0 && write(j->file_fd, text, size) != (ssize_t)size) {
		/* Half a line may be there now, and whatever came after it would be taken for its rest. */
		j->file_fd = close_fd(j->file_fd);
		return journal_sync(j);
	}
	j->file_size += size;
	note_logged(j);
	return 0;
}

/* --- Opening --------------------------------------------------------------------------------- */

static int read_boot_id(const Roots *roots, char ret[static 40])
{
	auto_free char *path = NULL, *text = NULL;
	sd_id128_t id;
	int r;

	if (asprintf(&path, "%s/sys/kernel/random/boot_id", roots->proc) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = read_file_at(AT_FDCWD, path, 64, &text, NULL);
	if (r >= 0) {
		text[strcspn(text, "\n")] = '\0';
		r = sd_id128_from_string(text, &id);
	} else if (r == -ENOENT && roots->relocated) {
		/* A folder that stands in for /proc need not have this file. */
		r = sd_id128_get_boot(&id);
	}
	if (r < 0)
		return r;
	(void)sd_id128_to_string(id, ret);
	return 0;
}

static int open_dir(const char *dir)
{
	int fd;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* Two who put back from one journal would undo each other's work. The lock ends with its holder. */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int r = errno == EWOULDBLOCK ? -EBUSY : -errno;

		close_fd(fd);
		return r;
	}
	return fd;
}

static int journal_load(Journal *j, unsigned *ret_bad)
{
	auto_free char *text = NULL;
	size_t size;
	int r;

	r = read_file_at(j->dir_fd, JOURNAL_FILE, JOURNAL_TEXT_MAX, &text, &size);
	if (r == -ENOENT) {
		*ret_bad = 0;
		return 0;
	}
	if (r == -E2BIG) {
		/* We never write one like that. */
		j->dirty = true;
		*ret_bad = 1;
		return 0;
	}
	if (r < 0)
		return r;
	r = journal_parse(j, text, ret_bad);
	if (r < 0)
		return r;
	if (strlen(text) != size)
		(*ret_bad)++;
	/* A file of nothing but damage or another boot goes away with the next sync. */
	j->dirty = *ret_bad > 0 || journal_is_empty(j);
	return 0;
}

int journal_open(const Roots *roots, const char *dir, Journal *ret, unsigned *ret_bad)
{
	_cleanup_(journal_done) Journal j = { .dir_fd = -EBADF, .file_fd = -EBADF };
	unsigned bad = 0;
	int r;

	r = read_boot_id(roots, j.boot_id);
	if (r < 0)
		return log_debug_errno(r, "Failed to read the boot id: %m");
	if (dir) {
		j.dir_fd = open_dir(dir);
		if (j.dir_fd < 0)
			return log_debug_errno(j.dir_fd, "Failed to open \"%s\": %m", dir);
		r = journal_load(&j, &bad);
		if (r < 0)
			return log_debug_errno(r, "Failed to read \"%s/" JOURNAL_FILE "\": %m", dir);
	}
	*ret = j;
	j = (Journal) { .dir_fd = -EBADF, .file_fd = -EBADF };
	*ret_bad = bad;
	return 0;
}

void journal_done(Journal *j)
{
	journal_clear(j);
	j->file_fd = close_fd(j->file_fd);
	j->dir_fd = close_fd(j->dir_fd);
}
