/* SPDX-License-Identifier: MIT */
/* Layer 3. What we changed and what was there before, in a file that survives us but not the boot.
 *
 * Rule: a record with the old value and the value about to be written is on file before the write, so
 * that a kill at any instant leaves nothing that cannot be put back. A value is only ever put back
 * where the present one is ours: a stranger's later value stays. The file is replaced atomically; it
 * names the boot and each group's inode, since a path may come back as another group.
 *
 * Format, one record a line after "vramd-journal 1 <boot id>", fields split by tabs:
 *   value  <path> <inode> <region> <dmem.min|dmem.low|dmem.max> <old> <ours> <ours before>
 *   owner  <path> <inode> <uid> <gid> <octal mode>
 *   dmem   <path> <inode>              (+dmem in its cgroup.subtree_control is ours)  */
#pragma once

#include "cgroup.h"

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
	/* RECORD_OWNER */
	FileOwner owner;
} Record;

typedef struct Journal {
	int dir_fd;        /* the runtime directory; -EBADF: kept in memory only (dry run) */
	char boot_id[40];
	Record **records;
	size_t n, n_alloc;
	bool dirty;        /* memory and file differ */
} Journal;

/* Opens the journal of a runtime directory (created if missing, mode 0700) and reads what an earlier run
 * left. Records of another boot are dropped. A damaged line is skipped and counted in *ret_bad: the
 * others are still put back. */
int journal_open(const Roots *roots, const char *dir, Journal *ret, unsigned *ret_bad);
void journal_done(Journal *j);
/* Writes the file if it is dirty; removes it when there are no records. */
int journal_sync(Journal *j);

Record *journal_find(const Journal *j, RecordKind kind, const char *path, const char *region, DmemLimit limit);
/* A fresh record with path and, if not NULL, region copied. */
int journal_add(Journal *j, RecordKind kind, const char *path, const char *region, Record **ret);
void journal_remove(Journal *j, Record *record);

/* For tests and the fuzzer. */
int journal_parse(Journal *j, const char *text, unsigned *ret_bad);
int journal_format(const Journal *j, char **ret, size_t *ret_size);
