/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <time.h>

#include "client.h"
#include "fileio.h"
#include "parse.h"
#include "scope.h"

#define SYSTEMD_NAME "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER SYSTEMD_NAME ".Manager"

/* A game must never wait long for us. */
#define SCOPE_TIMEOUT_USEC (5 * USEC_PER_SEC)
#define PROGRAM_MAX 60 /* characters; unit names end at 255 */

/* As systemd-escape does it; "-" too, since it separates the parts of the name. */
static void escape(FILE *f, const char *s)
{
	for (size_t i = 0; s[i] && i < PROGRAM_MAX; i++) {
		unsigned char c = (unsigned char)s[i];

		if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    c == '_' || c == ':' || (c == '.' && i > 0))
			(void)fputc(c, f);
		else
			(void)fprintf(f, "\\x%02x", c);
	}
}

char *scope_name(const char *program, const char *steam_appid, pid_t pid)
{
	const char *slash = strrchr(program, '/');
	char *name = NULL;
	size_t size = 0;
	uint32_t appid;
	FILE *f;

	if (steam_appid && parse_u32(steam_appid, &appid) >= 0 && appid > 0)
		return asprintf(&name, "app-steam-app%u-%d.scope", appid, pid) < 0 ? NULL : name;
	f = open_memstream(&name, &size);
	if (!f)
		return NULL;
	(void)fputs("app-vramd-", f);
	escape(f, slash ? slash + 1 : program);
	(void)fprintf(f, "-%d.scope", pid);
	if (fclose(f) != 0) {
		free(name);
		return NULL;
	}
	return name;
}

int scope_is_own(void)
{
	auto_free char *text = NULL;
	char *line, *end;

	if (read_file_at(AT_FDCWD, "/proc/self/cgroup", 65536, &text, NULL) < 0)
		return 0;
	line = strstr(text, "0::");
	if (!line)
		return 0;
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	line = strrchr(line, '/');
	return line && startswith(line, "/app-steam-app") && endswith(line, ".scope");
}

typedef struct Job {
	char *path;
	bool done, failed;
} Job;

static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *error _unused_)
{
	const char *path, *result;
	Job *job = userdata;

	if (sd_bus_message_read(m, "uoss", NULL, &path, NULL, &result) < 0)
		return 0;
	if (job->path && streq(path, job->path)) {
		job->done = true;
		job->failed = !streq(result, "done");
	}
	return 0;
}

static int append_processes(sd_bus_message *m, const Scope *s, bool by_fd)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', by_fd ? "h" : "u");
	for (size_t i = 0; i < s->n && r >= 0; i++)
		r = by_fd ? sd_bus_message_append(m, "h", s->processes[i].pidfd) :
			    sd_bus_message_append(m, "u", (uint32_t)s->processes[i].pid);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_pids(sd_bus_message *m, const Scope *s, bool by_fd)
{
	int r;

	r = sd_bus_message_open_container(m, 'r', "sv");
	if (r >= 0)
		r = sd_bus_message_append(m, "s", by_fd ? "PIDFDs" : "PIDs");
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'v', by_fd ? "ah" : "au");
	if (r >= 0)
		r = append_processes(m, s, by_fd);
	for (size_t i = 0; i < 2 && r >= 0; i++)
		r = sd_bus_message_close_container(m);
	return r;
}

static int append_properties(sd_bus_message *m, const Scope *s, bool by_fd)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "(sv)");
	if (r >= 0)
		r = sd_bus_message_append(m, "(sv)(sv)(sv)", "Description", "s", s->description, "Slice",
					  "s", s->slice, "CollectMode", "s", "inactive-or-failed");
	if (r >= 0 && s->delegate)
		r = sd_bus_message_append(m, "(sv)", "Delegate", "b", true);
	if (r >= 0)
		r = append_pids(m, s, by_fd);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int start_unit(sd_bus *bus, const Scope *s, bool by_fd, sd_bus_error *error, Job *job)
{
	auto_message sd_bus_message *m = NULL, *reply = NULL;
	const char *path;
	int r;

	r = sd_bus_message_new_method_call(bus, &m, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER,
					   "StartTransientUnit");
	if (r >= 0)
		r = sd_bus_message_append(m, "ss", s->name, "fail");
	if (r >= 0)
		r = append_properties(m, s, by_fd);
	if (r >= 0)
		r = sd_bus_message_append(m, "a(sa(sv))", 0);
	if (r >= 0)
		r = sd_bus_call(bus, m, SCOPE_TIMEOUT_USEC, error, &reply);
	if (r >= 0)
		r = sd_bus_message_read(reply, "o", &path);
	if (r < 0)
		return r;
	job->path = strdup(path);
	return job->path ? 0 : -ENOMEM;
}

static uint64_t now_usec(void)
{
	struct timespec t = {};

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)t.tv_nsec / 1000;
}

/* The signal may come before the reply that names the job: sd-bus keeps it queued until now. */
static int wait_job(sd_bus *bus, Job *job)
{
	uint64_t end = now_usec() + SCOPE_TIMEOUT_USEC, now;
	int r;

	for (;;) {
		r = sd_bus_process(bus, NULL);
		if (r < 0)
			return r;
		if (job->done)
			return job->failed ? -ECANCELED : 0;
		if (r > 0)
			continue;
		now = now_usec();
		if (now >= end)
			return -ETIMEDOUT;
		r = sd_bus_wait(bus, end - now);
		if (r < 0 && r != -EINTR)
			return r;
	}
}

int scope_start(const Scope *s, sd_bus_error *error)
{
	auto_bus sd_bus *bus = NULL;
	auto_free char *path = NULL;
	Job job = {};
	int r;

	if (sd_bus_open_user_with_description(&bus, "vramd-scope") < 0)
		return -ENOTCONN;
	r = sd_bus_set_method_call_timeout(bus, SCOPE_TIMEOUT_USEC);
	if (r >= 0)
		r = sd_bus_match_signal(bus, NULL, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "JobRemoved",
					on_job_removed, &job);
	if (r >= 0)
		r = sd_bus_call_method(bus, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "Subscribe",
				       error, NULL, "");
	if (r < 0)
		return r;
	r = start_unit(bus, s, true, error, &job);
	if (r < 0 &&
	    sd_bus_error_has_names(error, SD_BUS_ERROR_PROPERTY_READ_ONLY, SD_BUS_ERROR_UNKNOWN_PROPERTY)) {
		/* systemd before 254 knows PIDs only. */
		sd_bus_error_free(error);
		r = start_unit(bus, s, false, error, &job);
	}
	path = job.path;
	return r < 0 ? r : wait_job(bus, &job);
}

int scope_attach(const Scope *s, sd_bus_error *error)
{
	auto_message sd_bus_message *m = NULL;
	auto_bus sd_bus *bus = NULL;
	int r;

	if (sd_bus_open_user_with_description(&bus, "vramd-scope") < 0)
		return -ENOTCONN;
	r = sd_bus_message_new_method_call(bus, &m, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER,
					   "AttachProcessesToUnit");
	if (r >= 0)
		r = sd_bus_message_append(m, "ss", s->name, "");
	if (r >= 0)
		r = append_processes(m, s, false);
	return r < 0 ? r : sd_bus_call(bus, m, SCOPE_TIMEOUT_USEC, error, NULL);
}
