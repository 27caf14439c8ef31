/* SPDX-License-Identifier: MIT */
/*
 * The emulated tree: groups, their files, their processes and the dmem regions. Knows nothing of
 * FUSE. Functions that return int give 0 or a negative errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/queue.h>
#include <sys/types.h>

typedef struct Group Group;

/* Who asks: owns the files that come into being. */
typedef struct Caller {
	uid_t uid;
	gid_t gid;
	pid_t pid;
} Caller;

typedef struct FileType FileType;

/* A file or directory. It outlives its removal until the kernel forgets it. */
typedef struct Node {
	const FileType *type;		/* NULL: a directory, embedded in a Group */
	Group *group;			/* NULL once removed */
	uint64_t ino;
	uint64_t nlookup;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	uint64_t n_events;		/* times that it told of a change */
	LIST_HEAD(, Opened) opened;
	LIST_ENTRY(Node) all;
} Node;

/* An open file that may be waited for. */
typedef struct Opened {
	uint64_t seen;			/* of its n_events, when it was read */
	struct fuse_pollhandle *waiting;
	LIST_ENTRY(Opened) of_node;
} Opened;

struct FileType {
	const char *name;
	mode_t mode;
	unsigned int flags;		/* SLOW: without O_NONBLOCK, its writers wait for moves */
	int value;			/* dmem files: which value */
	void (*show)(const Node *n, FILE *out);
	int (*write)(const Node *n, char *text, const Caller *by);
};

/* HELPED: our helper writes to it, and is not root when we are not. SERIES: only with the companion kernel series.
 * POLLED: tells of changes by POLLPRI. */
enum { IN_ROOT = 1, IN_GROUPS = 2, DMEM = 4, HIDDEN = 8, HELPED = 16, SERIES = 32, POLLED = 64, SLOW = 128 };

typedef struct Process {
	pid_t pid;
	int pidfd;
	Group *group;
	LIST_ENTRY(Process) by_pid;
	TAILQ_ENTRY(Process) in_group;
} Process;

#define MAX_FILES 16

struct Group {
	Node node;			/* first: a directory's Node is its Group */
	Group *parent;
	char *name;
	Node *files[MAX_FILES];		/* indexed like file_types */
	struct Pool *pools;		/* per region; NULL without the dmem controller */
	unsigned int subtree_control;
	unsigned int n_children;
	unsigned int n_populated;	/* own processes + populated children */
	TAILQ_HEAD(, Process) processes;
	TAILQ_HEAD(, Group) children;
	TAILQ_ENTRY(Group) sibling;
	LIST_ENTRY(Group) by_name;
};

extern const FileType file_types[];
extern const size_t n_file_types;
extern Group *tree_root;
/* Files of the companion kernel series are there as well; set before there are groups. */
extern bool with_series;

/* Takes a kernel-style number ("8G", "0x1000") of at most max. */
int parse_word(const char *word, uint64_t max, uint64_t *ret);

int region_add(const char *name, uint64_t capacity);

/* Makes a group with its files; one without parent becomes tree_root. */
int group_new(Group *parent, const char *name, const Caller *by, Group **ret);
/* For a group without children and processes. */
void group_remove(Group *g);
Group *group_find_child(const Group *parent, const char *name);

/* Frees the node if it was removed and the kernel knows it no more (nlookup is 0). */
void node_release(Node *n);

/* The process ended. */
void process_remove(Process *p);

/* Frees everything; no node may be used afterwards. */
void tree_free(void);

/* The program supplies these. */

/* The group's "populated" changed. */
void emu_populated_changed(const Group *g);
/* From now on, writes that the kernel would not answer before buffers were moved out are not answered either;
 * or they are, and those that wait. */
void emu_slow(bool slow);
/* The file has new text: wakes up who waits for that. */
void emu_file_changed(Node *n);
/* It is still open, at the end of everything. */
void emu_close_all(Node *n);
/* Call process_remove(p) once pidfd becomes readable. */
int emu_watch(int pidfd, void *p);
