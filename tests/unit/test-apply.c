/* SPDX-License-Identifier: MIT */
/* Everything here runs against an emulated cgroup2 tree (CGROUPEMU=, or tests/emu/cgroupemu of the build). */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <cmocka.h>

#include "apply.h"
#include "log.h"

#define R0 "drm/0000:03:00.0/vram0"
#define R1 "drm/0000:0c:00.0/vram0"
#define USER "/user.slice"
#define UID_SLICE USER "/user-1000.slice"
#define MANAGER UID_SLICE "/user@1000.service"
#define APP MANAGER "/app.slice"
#define GAME_A APP "/app-steam-app1-10.scope"
#define GAME_B APP "/app-steam-app2-20.scope"
#define STEAM APP "/app-steam.scope"
#define COMPOSITOR MANAGER "/session.slice/compositor.service"
#define SERVICE "/system.slice/ai.service"

#define DECK 1000
#define NOBODY 65534

/* --- The tree -------------------------------------------------------------------------------- */

#define HEARD_MAX 256

typedef struct Heard {
	char text[HEARD_MAX][200];
	size_t n;
} Heard;

typedef struct Fixture {
	char dir[32]; /* holds the mount point "cg" and the runtime directory "run" */
	char cg[40], run[40];
	Roots roots;
	pid_t emulator;
	Hierarchy h;
	sd_event *event;
	Apply *apply;
	Heard written, contested, lost;
	char *first; /* the tree as it was */
} Fixture;

static const char *emulator_path(void)
{
	static char path[PATH_MAX];
	const char *env = getenv("CGROUPEMU");
	ssize_t n;

	if (env)
		return env;
	n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	assert_true(n > 0);
	path[n] = '\0';
	strcpy(strrchr(path, '/'), "/../emu/cgroupemu");
	return path;
}

static pid_t start_emulator(const char *mount_point)
{
	char line[128] = "";
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		(void)dup2(fds[1], STDOUT_FILENO);
		execl(emulator_path(), "cgroupemu", "--region", R0 "=8589934592", "--region",
				R1 "=17179869184", mount_point, NULL);
		_exit(127);
	}
	(void)close(fds[1]);
	if (read(fds[0], line, sizeof(line) - 1) <= 0 || !startswith(line, "mounted")) {
		(void)waitpid(pid, NULL, 0);
		pid = -1;
	}
	(void)close(fds[0]);
	return pid;
}

static char *tree_path(const Fixture *f, const char *group, const char *file)
{
	static char buf[4][PATH_MAX];
	static unsigned next;
	char *s = buf[next++ % ARRAY_SIZE(buf)];

	(void)snprintf(s, sizeof(buf[0]), "%s%s/%s", f->cg, group, file);
	return s;
}

static int try_put(const Fixture *f, const char *group, const char *file, const char *text)
{
	auto_close int fd = open(tree_path(f, group, file), O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static void put(const Fixture *f, const char *group, const char *file, const char *text)
{
	assert_int_equal(try_put(f, group, file, text), 0);
}

static void make(const Fixture *f, const char *group)
{
	assert_int_equal(mkdir(tree_path(f, group, ""), 0755), 0);
}

static void own(const Fixture *f, const char *group, uid_t uid, mode_t mode)
{
	for (DmemLimit l = 0; l < _DMEM_LIMIT_MAX; l++) {
		const char *path = tree_path(f, group, dmem_limit_to_file(l));

		assert_int_equal(chown(path, uid, uid), 0);
		assert_int_equal(chmod(path, mode), 0);
	}
}

static struct stat status_of(const Fixture *f, const char *group, const char *file)
{
	struct stat st;

	assert_int_equal(stat(tree_path(f, group, file), &st), 0);
	return st;
}

static uint64_t value(const Fixture *f, const char *group, const char *file, const char *region)
{
	auto_free char *text = NULL;
	uint64_t v;

	assert_int_equal(read_file_at(AT_FDCWD, tree_path(f, group, file), DMEM_TEXT_MAX, &text, NULL), 0);
	assert_int_equal(dmem_find(text, region, &v), 0);
	return v;
}

static bool has_dmem(const Fixture *f, const char *group)
{
	auto_free char *text = NULL;

	assert_int_equal(read_file_at(AT_FDCWD, tree_path(f, group, "cgroup.subtree_control"), DMEM_TEXT_MAX,
			&text, NULL), 0);
	return strstr(text, "dmem");
}

static const char *const all_groups[] = {
	USER, UID_SLICE, MANAGER, APP, GAME_A, GAME_B, STEAM, MANAGER "/session.slice", COMPOSITOR,
	"/system.slice", SERVICE,
};

static void dump_file(const Fixture *f, const char *group, const char *file, FILE *out)
{
	auto_free char *content = NULL;
	struct stat st;
	int r;

	r = read_file_at(AT_FDCWD, tree_path(f, group, file), DMEM_TEXT_MAX, &content, NULL);
	if (r == -ENOENT)
		return;
	assert_int_equal(r, 0);
	st = status_of(f, group, file);
	fprintf(out, "%s/%s %u:%u %o\n%s", group, file, st.st_uid, st.st_gid, st.st_mode, content);
}

/* Everything that we could change, in a fixed order. */
static char *dump(const Fixture *f)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	dump_file(f, "", "cgroup.subtree_control", out);
	for (size_t i = 0; i < ARRAY_SIZE(all_groups); i++) {
		dump_file(f, all_groups[i], "cgroup.subtree_control", out);
		for (DmemLimit l = 0; l < _DMEM_LIMIT_MAX; l++)
			dump_file(f, all_groups[i], dmem_limit_to_file(l), out);
	}
	assert_int_equal(fclose(out), 0);
	return text;
}

/* cmocka cuts a long text off: shown is the first difference, with the file that it is in. */
static void assert_first_state(const Fixture *f)
{
	auto_free char *now = dump(f);
	size_t at = 0;

	while (now[at] && now[at] == f->first[at])
		at++;
	for (unsigned lines = 0; at > 0 && lines < 4; at--)
		lines += now[at - 1] == '\n';
	assert_string_equal(now + at, f->first + at);
	assert_int_equal(access(tree_path(f, "", "../run/" JOURNAL_FILE), F_OK), -1);
}

/* --- What apply tells ------------------------------------------------------------------------ */

static char *heard_next(Heard *h)
{
	assert_true(h->n < HEARD_MAX);
	return h->text[h->n++];
}

static const char *last_part(const char *path)
{
	return strrchr(path, '/') + (path[1] != '\0');
}

static void on_written(const char *path, const char *region, DmemLimit limit, uint64_t old, uint64_t new,
		void *userdata)
{
	Fixture *f = userdata;

	snprintf(heard_next(&f->written), sizeof(f->written.text[0]), "%s %s %s %" PRIu64 " %" PRIu64,
			last_part(path), streq(region, R0) ? "R0" : "R1", dmem_limit_to_file(limit) + 5,
			old, new);
}

static void on_contested(const char *path, const char *region, DmemLimit limit, uint64_t ours, uint64_t theirs,
		bool yielded, void *userdata)
{
	Fixture *f = userdata;

	snprintf(heard_next(&f->contested), sizeof(f->written.text[0]), "%s %s %s %" PRIu64 " %" PRIu64 "%s",
			last_part(path), streq(region, R0) ? "R0" : "R1", dmem_limit_to_file(limit) + 5,
			ours, theirs, yielded ? " yielded" : "");
}

static void on_lost(const char *path, void *userdata)
{
	Fixture *f = userdata;

	snprintf(heard_next(&f->lost), sizeof(f->written.text[0]), "%s", last_part(path));
}

static const ApplyHooks hooks = { on_written, on_contested, on_lost };

/* Compares and forgets. */
static void assert_heard(Heard *h, size_t n, const char *const *expected)
{
	for (size_t i = 0; i < MIN(h->n, n); i++)
		assert_string_equal(h->text[i], expected[i]);
	assert_int_equal(h->n, n);
	h->n = 0;
}
#define ASSERT_HEARD(h, ...) \
	do { \
		static const char *const _e[] = { __VA_ARGS__ }; \
		assert_heard(&(h), ARRAY_SIZE(_e), _e); \
	} while (0)
#define ASSERT_QUIET(h) assert_heard(&(h), 0, NULL)

static void pump(Fixture *f)
{
	int r;

	while ((r = sd_event_run(f->event, 0)) > 0)
		;
	assert_int_equal(r, 0);
}

static void start(Fixture *f, bool dry_run, bool watch)
{
	f->apply = apply_free(f->apply);
	assert_int_equal(apply_new(&f->h, &f->roots, f->run, dry_run, watch ? f->event : NULL, &hooks, f,
			&f->apply), 0);
}

/* --- Plans ----------------------------------------------------------------------------------- */

typedef struct Claim {
	const char *path;
	unsigned region;
	DmemLimit limit;
	uint64_t value;
} Claim;

static PlanGroup *plan_group(Plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_groups; i++)
		if (streq(plan->groups[i].path, path))
			return &plan->groups[i];

	PlanGroup *g = &plan->groups[plan->n_groups++];

	g->path = strdup(path);
	g->limits = calloc(plan->n_regions, sizeof(*g->limits));
	assert_true(g->path && g->limits);
	for (size_t i = 0; i < plan->n_regions; i++)
		g->limits[i].value[DMEM_MAX] = DMEM_UNLIMITED;
	return g;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const PlanGroup *)a)->path, ((const PlanGroup *)b)->path);
}

static Plan make_plan(size_t n_regions, const Claim *claims, size_t n)
{
	static char *regions[] = { (char *)R0, (char *)R1 };
	Plan plan = { .regions = regions, .n_regions = n_regions, .groups = calloc(64, sizeof(PlanGroup)) };

	assert_non_null(plan.groups);
	for (size_t i = 0; i < n; i++) {
		char *path = strdup(claims[i].path), *up;

		plan_group(&plan, path)->limits[claims[i].region].value[claims[i].limit] = claims[i].value;
		for (; claims[i].limit != DMEM_MAX && cgroup_path_parent(path, &up) == 0 && up[1]; path = up) {
			PlanGroup *g = plan_group(&plan, up);

			g->ancestor = true;
			g->limits[claims[i].region].value[claims[i].limit] += claims[i].value;
			free(path);
		}
		if (claims[i].limit != DMEM_MAX)
			free(up);
		free(path);
	}
	qsort(plan.groups, plan.n_groups, sizeof(PlanGroup), by_path);
	return plan;
}

static int apply_claims_n(Fixture *f, size_t n_regions, const Claim *claims, size_t n)
{
	Plan plan = make_plan(n_regions, claims, n);
	int r = apply_plan(f->apply, &plan);

	for (size_t i = 0; i < plan.n_groups; i++) {
		free(plan.groups[i].path);
		free(plan.groups[i].limits);
	}
	free(plan.groups);
	return r;
}
#define APPLY(f, ...) \
	({ \
		static const Claim _c[] = { __VA_ARGS__ }; \
		apply_claims_n(f, 2, _c, ARRAY_SIZE(_c)); \
	})

#define FRONT(path) { path, 0, DMEM_LOW, 7 * GIB }

/* --- Setting up ------------------------------------------------------------------------------ */

static int setup(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));
	const char *reason;

	if (!f)
		return -1;
	/* A tmpfs, as /run is. */
	strcpy(f->dir, "/dev/shm/test-apply-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->cg, sizeof(f->cg), "%s/cg", f->dir);
	snprintf(f->run, sizeof(f->run), "%s/run", f->dir);
	assert_int_equal(chmod(f->dir, 0755), 0);
	assert_int_equal(mkdir(f->cg, 0755), 0);
	f->emulator = start_emulator(f->cg);
	assert_true(f->emulator > 0);
	f->roots = (Roots) { .proc = (char *)"/proc", .cgroup = f->cg, .relocated = true };
	assert_int_equal(hierarchy_open(&f->roots, &f->h, &reason), 0);
	assert_int_equal(sd_event_new(&f->event), 0);

	for (size_t i = 0; i < ARRAY_SIZE(all_groups); i++)
		make(f, all_groups[i]);
	/* One part has dmem, values and owners already, the other has nothing. */
	put(f, "", "cgroup.subtree_control", "+dmem +memory");
	put(f, "/system.slice", "cgroup.subtree_control", "+dmem");
	put(f, SERVICE, "dmem.low", R0 " 1048576");
	put(f, SERVICE, "dmem.max", R1 " 4294967296");
	own(f, SERVICE, DECK, 0664);
	f->first = dump(f);
	start(f, false, true);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	Fixture *f = *state;
	char journal[80];

	snprintf(journal, sizeof(journal), "%s/" JOURNAL_FILE, f->run);
	apply_free(f->apply);
	sd_event_unref(f->event);
	hierarchy_done(&f->h);
	kill(f->emulator, SIGTERM);
	waitpid(f->emulator, NULL, 0);
	(void)unlink(journal);
	(void)rmdir(f->run);
	(void)rmdir(f->cg);
	(void)rmdir(f->dir);
	free(f->first);
	free(f);
	return 0;
}

/* --- Plans and restoring --------------------------------------------------------------------- */

static void test_order(void **state)
{
	Fixture *f = *state;

	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	ASSERT_HEARD(f->written, "user.slice R0 low 0 7516192768", "user-1000.slice R0 low 0 7516192768",
			"user@1000.service R0 low 0 7516192768", "app.slice R0 low 0 7516192768",
			"app-steam-app1-10.scope R0 low 0 7516192768");
	assert_int_equal(value(f, GAME_A, "dmem.low", R0), 7 * GIB);
	assert_int_equal(value(f, GAME_A, "dmem.low", R1), 0);
	assert_true(has_dmem(f, APP));
	assert_false(has_dmem(f, GAME_A));
	assert_false(has_dmem(f, MANAGER "/session.slice"));

	/* nothing to do, and nothing done */
	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	ASSERT_QUIET(f->written);

	/* the rise comes before the fall; the sums above hold */
	assert_int_equal(APPLY(f, FRONT(GAME_B)), 0);
	ASSERT_HEARD(f->written, "app-steam-app2-20.scope R0 low 0 7516192768",
			"app-steam-app1-10.scope R0 low 7516192768 0");

	/* a ceiling comes down last and goes up first */
	assert_int_equal(APPLY(f, FRONT(GAME_B), { STEAM, 0, DMEM_MAX, GIB },
			{ COMPOSITOR, 0, DMEM_MIN, MIB }), 0);
	ASSERT_HEARD(f->written, "user.slice R0 min 0 1048576", "user-1000.slice R0 min 0 1048576",
			"user@1000.service R0 min 0 1048576", "session.slice R0 min 0 1048576",
			"compositor.service R0 min 0 1048576",
			"app-steam.scope R0 max 18446744073709551615 1073741824");
	assert_int_equal(APPLY(f, { STEAM, 0, DMEM_LOW, GIB }), 0);
	assert_string_equal(f->written.text[0], "app-steam.scope R0 max 1073741824 18446744073709551615");
	assert_string_equal(f->written.text[1], "app-steam.scope R0 low 0 1073741824");
	f->written.n = 0;

	/* falls go bottom-up */
	assert_int_equal(apply_claims_n(f, 2, NULL, 0), 0);
	ASSERT_HEARD(f->written, "app-steam.scope R0 low 1073741824 0", "app.slice R0 low 1073741824 0",
			"user@1000.service R0 low 1073741824 0", "user-1000.slice R0 low 1073741824 0",
			"user.slice R0 low 1073741824 0");
	pump(f);
	ASSERT_QUIET(f->lost);
	ASSERT_QUIET(f->contested);
	assert_int_equal(apply_restore(f->apply), 0);
	ASSERT_QUIET(f->written);
	assert_first_state(f);
}

static void test_restore(void **state)
{
	Fixture *f = *state;
	uint64_t v;

	assert_int_equal(APPLY(f, FRONT(GAME_A), { SERVICE, 0, DMEM_LOW, 2 * MIB }, { SERVICE, 1, DMEM_MAX, MIB }),
			0);
	assert_int_equal(value(f, SERVICE, "dmem.low", R0), 2 * MIB);
	assert_int_equal(value(f, SERVICE, "dmem.max", R1), MIB);
	assert_int_equal(apply_get(f->apply, SERVICE, R1, DMEM_MAX, &v), 0);
	assert_int_equal(v, MIB);
	assert_int_equal(apply_get(f->apply, SERVICE, R1, DMEM_LOW, &v), -ENOENT);

	/* the plan lets go of the service: its own values are back, and its owner */
	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	assert_int_equal(value(f, SERVICE, "dmem.low", R0), MIB);
	assert_int_equal(value(f, SERVICE, "dmem.max", R1), 4 * GIB);
	assert_int_equal(status_of(f, SERVICE, "dmem.max").st_uid, DECK);
	assert_int_equal(apply_restore(f->apply), 0);
	assert_first_state(f);

	/* and after a crash, with nobody watching */
	assert_int_equal(APPLY(f, FRONT(GAME_A), { SERVICE, 0, DMEM_LOW, 2 * MIB }), 0);
	start(f, false, false);
	assert_int_equal(apply_get(f->apply, SERVICE, R0, DMEM_LOW, &v), -ENOENT); /* not looked at yet */
	assert_int_equal(apply_restore(f->apply), 0);
	assert_first_state(f);
}

/* A kill between chown(2) and chmod(2), and then one who goes on instead of putting back. */
static void test_owner_half_given_back(void **state)
{
	Fixture *f = *state;

	assert_int_equal(APPLY(f, { SERVICE, 0, DMEM_LOW, 2 * MIB }), 0);
	for (DmemLimit l = 0; l < _DMEM_LIMIT_MAX; l++)
		assert_int_equal(chown(tree_path(f, SERVICE, dmem_limit_to_file(l)), DECK, DECK), 0);
	start(f, false, false);
	assert_int_equal(APPLY(f, { SERVICE, 0, DMEM_LOW, 2 * MIB }), 0);
	assert_int_equal(status_of(f, SERVICE, "dmem.low").st_uid, 0);
	assert_int_equal(apply_restore(f->apply), 0);
	assert_first_state(f);
}

static void test_unwatched(void **state)
{
	Fixture *f = *state;

	start(f, false, false);
	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	f->written.n = 0;
	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	ASSERT_QUIET(f->written);
	/* a stranger's write is seen by reading */
	put(f, GAME_A, "dmem.low", R0 " 5");
	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	ASSERT_HEARD(f->written, "app-steam-app1-10.scope R0 low 5 7516192768");
	/* so is a new group */
	assert_int_equal(rmdir(tree_path(f, GAME_A, "")), 0);
	make(f, GAME_A);
	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	ASSERT_HEARD(f->written, "app-steam-app1-10.scope R0 low 0 7516192768");
	/* and dmem that went off and on */
	put(f, APP, "cgroup.subtree_control", "-dmem");
	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	ASSERT_HEARD(f->written, "app-steam-app1-10.scope R0 low 0 7516192768");
	assert_int_equal(apply_restore(f->apply), 0);
	assert_first_state(f);
}

static void test_same_value(void **state)
{
	Fixture *f = *state;

	/* what holds already is not written, and is not taken away either */
	assert_int_equal(APPLY(f, { SERVICE, 0, DMEM_LOW, MIB }), 0);
	ASSERT_HEARD(f->written, "system.slice R0 low 0 1048576");
	assert_int_equal(apply_restore(f->apply), 0);
	assert_first_state(f);
}

static void test_foreign_at_restore(void **state)
{
	Fixture *f = *state;

	assert_int_equal(APPLY(f, FRONT(GAME_A), { SERVICE, 0, DMEM_LOW, 2 * MIB }), 0);
	put(f, SERVICE, "dmem.low", R0 " 77");
	assert_int_equal(apply_restore(f->apply), 0);
	assert_int_equal(value(f, SERVICE, "dmem.low", R0), 77);
	put(f, SERVICE, "dmem.low", R0 " 1048576");
	assert_first_state(f);
}

static void test_dmem_stays_where_used(void **state)
{
	Fixture *f = *state;

	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	put(f, "", "emu.control", "charge " GAME_A " " R0 " 4096");
	assert_int_equal(apply_restore(f->apply), 0);
	assert_int_equal(value(f, GAME_A, "dmem.low", R0), 0);
	assert_true(has_dmem(f, APP));
	assert_true(has_dmem(f, USER));
	assert_int_equal(access(tree_path(f, "", "../run/" JOURNAL_FILE), F_OK), 0);

	/* the next run still knows; a stranger's value is as good a reason */
	put(f, "", "emu.control", "charge " GAME_A " " R0 " 0");
	put(f, GAME_B, "dmem.min", R1 " 5");
	start(f, false, false);
	assert_int_equal(apply_restore(f->apply), 0);
	assert_true(has_dmem(f, APP));
	put(f, GAME_B, "dmem.min", R1 " 0");
	put(f, GAME_A, "cgroup.subtree_control", "+dmem");
	assert_int_equal(apply_restore(f->apply), 0);
	assert_true(has_dmem(f, APP));
	put(f, GAME_A, "cgroup.subtree_control", "-dmem");
	assert_int_equal(apply_restore(f->apply), 0);
	assert_first_state(f);
}

static void test_damaged_journal(void **state)
{
	Fixture *f = *state;
	auto_free char *text = NULL, *worse = NULL;
	auto_close int dir = open(f->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(APPLY(f, FRONT(GAME_A), { SERVICE, 0, DMEM_LOW, 2 * MIB }), 0);
	assert_int_equal(read_file_at(dir, "run/" JOURNAL_FILE, JOURNAL_TEXT_MAX, &text, NULL), 0);
	assert_true(asprintf(&worse, "%svalue\t/nowhere\t1\t" R0 "\tdmem.low\t1\t2\t3\nrubbish\n\xff\t", text) > 0);
	assert_int_equal(unlinkat(dir, "run/" JOURNAL_FILE, 0), 0);
	assert_int_equal(write_atomic_at(dir, "journal", worse, strlen(worse), 0600, NULL), 0);
	assert_int_equal(renameat(dir, "journal", dir, "run/" JOURNAL_FILE), 0);
	start(f, false, true);
	assert_int_equal(apply_restore(f->apply), 0);
	assert_first_state(f);
}

/* --- Things that come and go ----------------------------------------------------------------- */

static void test_group_made_anew(void **state)
{
	Fixture *f = *state;

	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	pump(f);
	assert_int_equal(rmdir(tree_path(f, GAME_A, "")), 0);
	pump(f);
	ASSERT_QUIET(f->lost);
	make(f, GAME_A);
	put(f, GAME_A, "dmem.low", R0 " 9");
	pump(f);
	ASSERT_HEARD(f->lost, "app-steam-app1-10.scope");
	f->written.n = 0;
	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	ASSERT_HEARD(f->written, "app-steam-app1-10.scope R0 low 9 7516192768");

	/* before the loop has heard of it */
	assert_int_equal(rmdir(tree_path(f, GAME_A, "")), 0);
	make(f, GAME_A);
	assert_int_equal(APPLY(f, FRONT(GAME_A), { GAME_A, 1, DMEM_LOW, MIB }), 0);
	assert_int_equal(value(f, GAME_A, "dmem.low", R0), 7 * GIB);
	assert_int_equal(value(f, GAME_A, "dmem.low", R1), MIB);

	/* gone for good: no error, nothing left */
	assert_int_equal(rmdir(tree_path(f, GAME_A, "")), 0);
	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	assert_int_equal(apply_restore(f->apply), 0);
	make(f, GAME_A);
	assert_first_state(f);
}

/* user@1000.service ends and comes back */
static void test_subtree_made_anew(void **state)
{
	static const char *const groups[] = {
		GAME_A, GAME_B, STEAM, APP, COMPOSITOR, MANAGER "/session.slice", MANAGER,
	};
	Fixture *f = *state;

	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		assert_int_equal(rmdir(tree_path(f, groups[i], "")), 0);
	for (size_t i = ARRAY_SIZE(groups); i-- > 0;)
		make(f, groups[i]);
	pump(f);
	assert_true(f->lost.n > 0);
	f->written.n = 0;
	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	ASSERT_HEARD(f->written, "user@1000.service R0 low 0 7516192768", "app.slice R0 low 0 7516192768",
			"app-steam-app1-10.scope R0 low 0 7516192768");
	assert_int_equal(apply_restore(f->apply), 0);
	assert_first_state(f);
}

static void test_region_vanishes(void **state)
{
	static const Claim both[] = { FRONT(GAME_A), { GAME_A, 1, DMEM_LOW, GIB } };
	Fixture *f = *state;
	uint64_t v;

	assert_int_equal(apply_claims_n(f, 2, both, 2), 0);
	assert_int_equal(f->written.n, 10);
	f->written.n = 0;
	put(f, "", "emu.control", "region - " R1);
	/* the plan may still name it */
	assert_int_equal(apply_claims_n(f, 2, both, 2), 0);
	assert_int_equal(apply_claims_n(f, 1, both, 1), 0);
	ASSERT_QUIET(f->written);
	assert_int_equal(apply_get(f->apply, GAME_A, R1, DMEM_LOW, &v), -ENOENT);
	put(f, "", "emu.control", "region + " R1 " 17179869184");
	assert_int_equal(apply_claims_n(f, 2, both, 2), 0);
	assert_int_equal(f->written.n, 5);
	assert_int_equal(value(f, GAME_A, "dmem.low", R1), GIB);

	/* vanished while values are changed and put back */
	put(f, "", "emu.control", "region - " R1);
	assert_int_equal(APPLY(f, FRONT(GAME_A), { GAME_A, 1, DMEM_LOW, 2 * GIB }), 0);
	put(f, "", "emu.control", "region + " R1 " 17179869184");
	assert_int_equal(apply_claims_n(f, 2, both, 2), 0);
	put(f, "", "emu.control", "region - " R1);
	assert_int_equal(apply_restore(f->apply), 0);
	put(f, "", "emu.control", "region + " R1 " 17179869184");
	put(f, SERVICE, "dmem.max", R1 " 4294967296");
	assert_first_state(f);
}

static void test_dmem_toggled(void **state)
{
	Fixture *f = *state;

	assert_int_equal(APPLY(f, FRONT(GAME_A), { GAME_A, 0, DMEM_MIN, MIB }), 0);
	pump(f);
	ASSERT_QUIET(f->lost);
	f->written.n = 0;

	put(f, APP, "cgroup.subtree_control", "-dmem");
	pump(f);
	ASSERT_HEARD(f->lost, "app.slice");
	assert_int_equal(APPLY(f, FRONT(GAME_A), { GAME_A, 0, DMEM_MIN, MIB }), 0);
	ASSERT_HEARD(f->written, "app-steam-app1-10.scope R0 min 0 1048576",
			"app-steam-app1-10.scope R0 low 0 7516192768");
	pump(f);
	ASSERT_QUIET(f->lost);

	/* off and on in one go, and a write by the one who did it: lost, not contested */
	put(f, APP, "cgroup.subtree_control", "-dmem");
	put(f, APP, "cgroup.subtree_control", "+dmem");
	put(f, GAME_A, "dmem.low", R0 " 3");
	pump(f);
	assert_true(f->lost.n > 0);
	ASSERT_QUIET(f->contested);
	assert_int_equal(APPLY(f, FRONT(GAME_A), { GAME_A, 0, DMEM_MIN, MIB }), 0);
	ASSERT_HEARD(f->written, "app-steam-app1-10.scope R0 min 0 1048576",
			"app-steam-app1-10.scope R0 low 3 7516192768");

	/* noticed by the plan itself, before any event */
	put(f, APP, "cgroup.subtree_control", "-dmem");
	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	assert_int_equal(APPLY(f, FRONT(GAME_B)), 0);
	assert_int_equal(value(f, GAME_B, "dmem.low", R0), 7 * GIB);
	pump(f);
	put(f, GAME_A, "dmem.low", R0 " 0");
	assert_int_equal(apply_restore(f->apply), 0);
	assert_first_state(f);
}

/* --- Rivals ---------------------------------------------------------------------------------- */

static void test_contested(void **state)
{
	Fixture *f = *state;
	uint64_t v;

	apply_set_ownership(f->apply, OWNERSHIP_SHARE, 2);
	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	pump(f);
	f->written.n = 0;
	/* our own value is no contest */
	put(f, GAME_A, "dmem.low", R0 " 7516192768");
	pump(f);
	ASSERT_QUIET(f->contested);

	put(f, GAME_A, "dmem.low", R0 " 1");
	pump(f);
	assert_int_equal(value(f, GAME_A, "dmem.low", R0), 7 * GIB);
	put(f, GAME_A, "dmem.low", R0 " 2");
	pump(f);
	assert_int_equal(value(f, GAME_A, "dmem.low", R0), 7 * GIB);
	put(f, GAME_A, "dmem.low", R0 " 3");
	pump(f);
	assert_int_equal(value(f, GAME_A, "dmem.low", R0), 3);
	ASSERT_HEARD(f->contested, "app-steam-app1-10.scope R0 low 7516192768 1",
			"app-steam-app1-10.scope R0 low 7516192768 2",
			"app-steam-app1-10.scope R0 low 7516192768 3 yielded");
	put(f, GAME_A, "dmem.low", R0 " 4");
	pump(f);
	ASSERT_QUIET(f->contested);
	assert_int_equal(apply_get(f->apply, GAME_A, R0, DMEM_LOW, &v), -ENOENT);

	/* another group has its own count */
	put(f, APP, "dmem.low", R0 " 1");
	pump(f);
	ASSERT_HEARD(f->contested, "app.slice R0 low 7516192768 1");

	/* yielded: not written, not put back, until it is planned anew */
	f->written.n = 0;
	assert_int_equal(APPLY(f, { GAME_A, 0, DMEM_LOW, 6 * GIB }), 0);
	assert_int_equal(value(f, GAME_A, "dmem.low", R0), 4);
	assert_int_equal(APPLY(f, FRONT(GAME_B)), 0);
	assert_int_equal(value(f, GAME_A, "dmem.low", R0), 4);
	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	assert_int_equal(value(f, GAME_A, "dmem.low", R0), 7 * GIB);
	assert_int_equal(apply_restore(f->apply), 0);
	assert_int_equal(value(f, GAME_A, "dmem.low", R0), 4);
	put(f, GAME_A, "dmem.low", R0 " 0");
	assert_int_equal(apply_restore(f->apply), 0);
	assert_first_state(f);
}

static void test_exclusive(void **state)
{
	Fixture *f = *state;
	struct stat st;

	assert_int_equal(APPLY(f, { SERVICE, 0, DMEM_LOW, 2 * MIB }), 0);
	for (DmemLimit l = 0; l < _DMEM_LIMIT_MAX; l++) {
		st = status_of(f, SERVICE, dmem_limit_to_file(l));
		assert_true(st.st_uid == 0 && st.st_gid == 0 && (st.st_mode & 07777) == 0644);
	}
	assert_int_equal(seteuid(DECK), 0);
	assert_int_equal(try_put(f, SERVICE, "dmem.low", R0 " 3"), -EACCES);
	assert_int_equal(seteuid(0), 0);

	/* taken back when someone changes it, at the next plan */
	own(f, SERVICE, 1001, 0600);
	pump(f);
	assert_int_equal(APPLY(f, { SERVICE, 0, DMEM_LOW, 3 * MIB }), 0);
	assert_int_equal(status_of(f, SERVICE, "dmem.low").st_uid, 0);
	assert_int_equal(apply_claims_n(f, 2, NULL, 0), 0);
	st = status_of(f, SERVICE, "dmem.low");
	assert_true(st.st_uid == 1001 && st.st_gid == 1001 && (st.st_mode & 07777) == 0600);
	own(f, SERVICE, DECK, 0664);

	/* the configuration changes under way */
	assert_int_equal(APPLY(f, { SERVICE, 0, DMEM_LOW, 2 * MIB }), 0);
	apply_set_ownership(f->apply, OWNERSHIP_SHARE, 2);
	assert_int_equal(APPLY(f, { SERVICE, 0, DMEM_LOW, 2 * MIB }), 0);
	assert_int_equal(status_of(f, SERVICE, "dmem.low").st_uid, DECK);
	apply_set_ownership(f->apply, OWNERSHIP_EXCLUSIVE, 2);
	assert_int_equal(APPLY(f, { SERVICE, 0, DMEM_LOW, 2 * MIB }), 0);
	assert_int_equal(status_of(f, SERVICE, "dmem.low").st_uid, 0);

	/* a stranger's later owner stays */
	own(f, SERVICE, 1001, 0600);
	assert_int_equal(apply_restore(f->apply), 0);
	assert_int_equal(status_of(f, SERVICE, "dmem.low").st_uid, 1001);
	own(f, SERVICE, DECK, 0664);
	assert_first_state(f);
}

static void test_share(void **state)
{
	Fixture *f = *state;

	apply_set_ownership(f->apply, OWNERSHIP_SHARE, 2);
	assert_int_equal(APPLY(f, { SERVICE, 0, DMEM_LOW, 2 * MIB }), 0);
	assert_int_equal(status_of(f, SERVICE, "dmem.low").st_uid, DECK);
	assert_int_equal(apply_restore(f->apply), 0);
	assert_first_state(f);
}

/* --- What goes wrong ------------------------------------------------------------------------- */

static void test_writes_refused(void **state)
{
	Fixture *f = *state;

	/* dmem everywhere first, so that there is something to refuse */
	assert_int_equal(APPLY(f, FRONT(GAME_A), FRONT(GAME_B)), 0);
	assert_int_equal(apply_claims_n(f, 2, NULL, 0), 0);
	own(f, GAME_B, NOBODY, 0644);
	assert_int_equal(chown(f->run, NOBODY, NOBODY), 0);
	f->written.n = 0;

	assert_int_equal(seteuid(NOBODY), 0);
	assert_int_equal(APPLY(f, FRONT(GAME_A), FRONT(GAME_B), { SERVICE, 0, DMEM_LOW, 2 * MIB }), -EACCES);
	assert_int_equal(seteuid(0), 0);
	ASSERT_HEARD(f->written, "app-steam-app2-20.scope R0 low 0 7516192768");

	/* the same again, now allowed */
	assert_int_equal(APPLY(f, FRONT(GAME_A), FRONT(GAME_B), { SERVICE, 0, DMEM_LOW, 2 * MIB }), 0);
	assert_int_equal(value(f, SERVICE, "dmem.low", R0), 2 * MIB);

	/* putting back is refused (to one that has no file open yet): the record stays for the next try */
	start(f, false, true);
	own(f, GAME_B, NOBODY, 0644);
	assert_int_equal(seteuid(NOBODY), 0);
	assert_int_equal(apply_restore(f->apply), -EACCES);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(value(f, GAME_B, "dmem.low", R0), 0);
	assert_int_equal(value(f, GAME_A, "dmem.low", R0), 7 * GIB);
	start(f, false, true);
	assert_int_equal(apply_restore(f->apply), 0);
	assert_first_state(f);
}

static void test_no_journal_no_write(void **state)
{
	Fixture *f = *state;

	assert_int_equal(rmdir(f->run), 0);
	assert_int_equal(APPLY(f, FRONT(GAME_A), { SERVICE, 0, DMEM_LOW, 2 * MIB }), -ENOENT);
	ASSERT_QUIET(f->written);
	assert_first_state(f);
	/* later it can be written again, and nothing was forgotten or made up */
	start(f, false, true);
	assert_int_equal(APPLY(f, FRONT(GAME_A), { SERVICE, 0, DMEM_LOW, 2 * MIB }), 0);
	assert_int_equal(apply_restore(f->apply), 0);
	assert_first_state(f);
}

/* A process in an inner node: the kernel refuses "+dmem". */
static void test_busy(void **state)
{
	Fixture *f = *state;
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	put(f, APP, "cgroup.procs", pid);
	assert_int_equal(APPLY(f, FRONT(GAME_A)), -EBUSY);
	/* everything else was done */
	assert_int_equal(value(f, APP, "dmem.low", R0), 7 * GIB);
	assert_false(has_dmem(f, APP));
	put(f, SERVICE, "cgroup.procs", pid);
	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	assert_int_equal(value(f, GAME_A, "dmem.low", R0), 7 * GIB);
	assert_int_equal(apply_restore(f->apply), 0);
	assert_first_state(f);
}

static void test_hierarchy_dies(void **state)
{
	Fixture *f = *state;

	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	kill(f->emulator, SIGKILL);
	waitpid(f->emulator, NULL, 0);
	assert_true(APPLY(f, FRONT(GAME_B)) < 0);
	assert_true(apply_restore(f->apply) < 0);
	(void)umount2(f->cg, MNT_DETACH);
}

static void test_dry_run(void **state)
{
	Fixture *f = *state;
	uint64_t v;

	assert_int_equal(rmdir(f->run), 0);
	start(f, true, true);
	assert_int_equal(APPLY(f, FRONT(GAME_A), { SERVICE, 0, DMEM_LOW, 2 * MIB }), 0);
	ASSERT_HEARD(f->written, "system.slice R0 low 0 2097152", "ai.service R0 low 1048576 2097152",
			"user.slice R0 low 0 7516192768", "user-1000.slice R0 low 0 7516192768",
			"user@1000.service R0 low 0 7516192768", "app.slice R0 low 0 7516192768",
			"app-steam-app1-10.scope R0 low 0 7516192768");
	assert_int_equal(APPLY(f, FRONT(GAME_A), { SERVICE, 0, DMEM_LOW, 2 * MIB }), 0);
	ASSERT_QUIET(f->written);
	assert_int_equal(apply_get(f->apply, GAME_A, R0, DMEM_LOW, &v), 0);
	assert_int_equal(APPLY(f, FRONT(GAME_A)), 0);
	ASSERT_HEARD(f->written, "ai.service R0 low 2097152 1048576", "system.slice R0 low 2097152 0");
	assert_int_equal(apply_restore(f->apply), 0);
	assert_int_equal(f->written.n, 5);
	assert_first_state(f);
	assert_int_equal(access(f->run, F_OK), -1);
}

/* --- kill -9 --------------------------------------------------------------------------------- */

/* The victim is stopped at each system call, so that the instants are spread evenly over what it does and not
 * over the time that a loaded machine takes; from the chosen one on it runs free for a moment, so that it may
 * also die in the middle of one. */
#define KILLS 300
#define STOPS_MAX 2600 /* twice round the loop of busy() */
#define FREE_USEC_MAX 300

static _Noreturn void busy(Fixture *f)
{
	static const Claim
		a[] = { FRONT(GAME_A), { COMPOSITOR, 0, DMEM_MIN, 256 * MIB }, { SERVICE, 1, DMEM_MAX, GIB },
			{ GAME_A, 1, DMEM_LOW, GIB } },
		b[] = { FRONT(GAME_B), { GAME_A, 0, DMEM_LOW, 512 * MIB }, { SERVICE, 0, DMEM_LOW, 64 * MIB },
			{ STEAM, 0, DMEM_MAX, GIB } };
	sd_event *event;

	if (sd_event_new(&event) < 0 || ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0 ||
			apply_new(&f->h, &f->roots, f->run, false, event, NULL, NULL, &f->apply) < 0)
		_exit(1);
	for (unsigned i = 0;; i++) {
		int r = apply_claims_n(f, 2, a, ARRAY_SIZE(a));

		if (r >= 0)
			r = apply_claims_n(f, 2, b, ARRAY_SIZE(b));
		if (r >= 0)
			r = i % 2 ? apply_restore(f->apply) : apply_claims_n(f, 2, NULL, 0);
		apply_set_ownership(f->apply, i % 3 == 1 ? OWNERSHIP_SHARE : OWNERSHIP_EXCLUSIVE, 5);
		while (r >= 0 && (r = sd_event_run(event, 0)) > 0)
			;
		if (r < 0)
			_exit(2);
	}
}

static void run_and_kill(Fixture *f, unsigned stops, unsigned free_usec)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		busy(f);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (unsigned i = 0; i < stops && WIFSTOPPED(status); i++) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	assert_true(WIFSTOPPED(status));
	if (free_usec > 0) {
		assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
		usleep(free_usec);
	}
	kill(pid, SIGKILL);
	do
		assert_int_equal(waitpid(pid, &status, 0), pid);
	while (WIFSTOPPED(status));
	assert_true(WIFSIGNALED(status));
}

static void test_kill(void **state)
{
	Fixture *f = *state;
	unsigned seed = (unsigned)time(NULL), found = 0;

	print_message("seed %u\n", seed);
	f->apply = apply_free(f->apply);
	for (unsigned i = 0; i < KILLS; i++) {
		/* Half of them hit the first plan, when the most is new. */
		unsigned stops = (unsigned)rand_r(&seed) % (i % 2 ? STOPS_MAX : STOPS_MAX / 5);

		run_and_kill(f, stops, (unsigned)rand_r(&seed) % FREE_USEC_MAX);
		/* Every third successor is killed, too, before anything was put back. */
		if (i % 3 == 0)
			continue;
		found += access(tree_path(f, "", "../run/" JOURNAL_FILE), F_OK) == 0;
		start(f, false, false);
		assert_int_equal(apply_restore(f->apply), 0);
		f->apply = apply_free(f->apply);
		f->written.n = 0;
		assert_first_state(f);
	}
	print_message("%u kills, %u journals found\n", KILLS, found);
	assert_true(found > KILLS / 4);
}

/* --- How long it takes ----------------------------------------------------------------------- */

static uint64_t now_nsec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* One in front, the other behind with half a GiB: the two change places. */
static void test_focus_change(void **state)
{
	static const Claim ab[2][2] = {
		{ FRONT(GAME_A), { GAME_B, 0, DMEM_LOW, 512 * MIB } },
		{ FRONT(GAME_B), { GAME_A, 0, DMEM_LOW, 512 * MIB } },
	};
	Fixture *f = *state;
	uint64_t took[200], floor[200];

	assert_int_equal(apply_claims_n(f, 2, ab[0], 2), 0);
	for (size_t i = 0; i < ARRAY_SIZE(took); i++) {
		pump(f);
		f->written.n = 0;
		took[i] = now_nsec();
		assert_int_equal(apply_claims_n(f, 2, ab[(i + 1) % 2], 2), 0);
		took[i] = now_nsec() - took[i];
		assert_int_equal(f->written.n, 2);

		floor[i] = now_nsec();
		put(f, GAME_A, "dmem.low", i % 2 ? R0 " 7516192768" : R0 " 536870912");
		put(f, GAME_B, "dmem.low", i % 2 ? R0 " 536870912" : R0 " 7516192768");
		floor[i] = now_nsec() - floor[i];
	}
	qsort(took, ARRAY_SIZE(took), sizeof(took[0]), by_number);
	qsort(floor, ARRAY_SIZE(floor), sizeof(floor[0]), by_number);
	print_message("focus change, 2 games at depth 5: median %" PRIu64 " us; two bare writes: %" PRIu64 " us\n",
			took[100] / 1000, floor[100] / 1000);
	assert_int_equal(apply_restore(f->apply), 0);
	assert_first_state(f);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_order), TEST(test_restore), TEST(test_owner_half_given_back), TEST(test_unwatched), TEST(test_same_value),
		TEST(test_foreign_at_restore), TEST(test_dmem_stays_where_used), TEST(test_damaged_journal),
		TEST(test_group_made_anew), TEST(test_subtree_made_anew), TEST(test_region_vanishes),
		TEST(test_dmem_toggled), TEST(test_contested), TEST(test_exclusive), TEST(test_share),
		TEST(test_writes_refused), TEST(test_no_journal_no_write), TEST(test_busy),
		TEST(test_hierarchy_dies), TEST(test_dry_run), TEST(test_focus_change), TEST(test_kill),
	};

	if (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK) < 0) {
		print_message("SKIP: needs root and /dev/fuse\n");
		return 77;
	}
	log_set_max_level(getenv("VRAMD_DEBUG") ? LOG_DEBUG : LOG_WARNING);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
