/* SPDX-License-Identifier: MIT */
/* Layer 3. What we changed and what was there before, in a file that survives us but not the boot.
 *
 * Rule: a record with the old value and the value about to be written is on file before the write, so
 * that a kill at any instant leaves nothing that cannot be put back. A value is only ever put back
 * where the present one is ours: a stranger's later value stays. The file names the boot and each group's
 * inode, since a path may come back as another group. It is replaced atomically; what must be on file before a
 * write is appended to it, so that nobody waits for the whole of it.
 *
 * Format, one record a line after "vramd-journal 1 <boot id>", fields split by tabs:
 *   value  <path> <inode> <region> <dmem.min|dmem.low|dmem.max> <old> <ours> <ours before>
 *   owner  <path> <inode> <uid> <gid> <octal mode>
 *   dmem   <path> <inode>              (+dmem in its cgroup.subtree_control is ours)
 *   knob   <module>/<parameter> <inode> <old> <ours> <ours before>
 * Numbers are decimal but for the mode; "max" is 18446744073709551615. A later line replaces an earlier one of
 * the same value. The last line, too, ends with a newline: one that does not was cut off, and what it would have
 * told of has not been written. No fsync(2): the file need not outlive the boot. */
#pragma once

#include "cgroup.h"
#include "knob.h"

#define JOURNAL_FILE "journal"
#define JOURNAL_TEXT_MAX (4 * MIB)
#define JOURNAL_RECORDS_MAX 16384

typedef enum RecordKind { RECORD_VALUE, RECORD_OWNER, RECORD_DMEM, _RECORD_KIND_MAX } RecordKind;

typedef struct Record {
	RecordKind kind;
	char *path;
	uint64_t inode;
	/* RECORD_VALUE */
	char *region;
	DmemLimit limit;
	uint64_t old;      /* what was there before we came */
	uint64_t ours;     /* what we wrote last, or are about to write */
	uint64_t ours_before; /* what we wrote before that: the write of ours may not have happened */
	bool yielded;      /* a stranger won: never written or put back until the group is planned anew */
	bool known;        /* not on file: the present value is ours for sure, no need to read it */
	bool held;         /* not on file: it was ours when last written or read */
	bool claimed;      /* not on file: the plan that is being applied names it */
	bool logged;       /* not on file: a line of the file says all of this */
	/* RECORD_OWNER */
	FileOwner owner;
} Record;

/* A parameter of the kernel's that we set. */
typedef struct KnobRecord {
	bool used;
	uint64_t inode;       /* of its file: another one when the module was loaded anew */
	uint32_t old, ours, ours_before; /* as in Record */
	bool yielded;         /* not on file: a stranger wrote another value since, which stays */
	bool logged;          /* not on file: a line of the file says all of this */
} KnobRecord;

typedef struct Journal {
	int dir_fd;        /* the runtime directory; -EBADF: kept in memory only (dry run) */
	char boot_id[40];
	Record **records;  /* by path (so parents come first), kind, region, limit */
	size_t n, n_alloc;
	KnobRecord knobs[_KNOB_MAX];
	bool dirty;        /* memory and file differ */
	int file_fd;       /* the file, at its end; -EBADF: there is none, or it is not to be appended to */
	size_t file_size;  /* bytes of the file */
} Journal;

/* Opens the journal of a runtime directory (created if missing, mode 0700) and reads what an earlier run
 * left; with dir NULL it is kept in memory only. Records of another boot are dropped. A damaged line is
 * skipped and counted in *ret_bad: the others are still put back. -EBUSY: another process has it open, and
 * so is at work here. */
int journal_open(const Roots *roots, const char *dir, Journal *ret, unsigned *ret_bad);
void journal_done(Journal *j);
/* Puts on file what is not there yet; what is not needed there any more stays until the next journal_sync().
 * On an error (-E2BIG: longer than JOURNAL_TEXT_MAX) the old records are still there, and nothing may be written
 * to a control group. */
int journal_append(Journal *j);
/* Writes the file anew if it is dirty; removes it when there are no records. Errors as of journal_append(). */
int journal_sync(Journal *j);

/* region and limit count for RECORD_VALUE only: else NULL and 0. */
Record *journal_find(const Journal *j, RecordKind kind, const char *path, const char *region, DmemLimit limit);
/* A fresh record. -EINVAL: path or region could not be read back; -EEXIST; -ENOSPC: JOURNAL_RECORDS_MAX. */
int journal_add(Journal *j, RecordKind kind, const char *path, const char *region, DmemLimit limit,
		Record **ret);
/* What is on file of the record was changed. */
void journal_touch(Journal *j, Record *record);
void journal_remove(Journal *j, Record *record);
/* Takes a knob's record; one that is not used takes it out. */
void journal_set_knob(Journal *j, Knob knob, KnobRecord record);
/* Where the records of a path begin, or would. */
size_t journal_first(const Journal *j, const char *path);

/* For tests and the fuzzer. */
int journal_parse(Journal *j, const char *text, unsigned *ret_bad);
int journal_format(const Journal *j, char **ret, size_t *ret_size);
