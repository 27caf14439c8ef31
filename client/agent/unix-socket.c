/* SPDX-License-Identifier: MIT */
#include <sys/stat.h>
#include <sys/un.h>

#include "unix-socket.h"

bool unix_socket_is_own(int dir_fd, const char *path)
{
	struct stat st;

	return fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISSOCK(st.st_mode) && st.st_uid == getuid();
}

int unix_socket_connect(const char *path, struct ucred *ret_peer)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	auto_close int fd = -EBADF;
	socklen_t size = sizeof(*ret_peer);

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	(void)strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret_peer, &size) < 0)
		return -errno;
	return TAKE_FD(fd);
}
