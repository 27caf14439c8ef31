/* SPDX-License-Identifier: MIT */
#include <sys/socket.h>
#include <sys/un.h>

#include "workload.h"

typedef union Control {
	struct cmsghdr header; /* for the alignment */
	char bytes[CMSG_SPACE(IMAGES * sizeof(int))];
} Control;

int link_open(const char *path, int *ret_fd)
{
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (fd < 0)
		return -errno;
	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >= (int)sizeof(address.sun_path))
		return -ENAMETOOLONG;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int link_send(int fd, const Message *m)
{
	struct iovec part = { (void *)m->text, strlen(m->text) };
	Control control = { 0 };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	size_t n = m->n_fds * sizeof(int);

	if (n > 0) {
		control.header = (struct cmsghdr){ CMSG_LEN(n), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), m->fds, n);
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(n);
	}
	return sendmsg(fd, &header, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int link_receive(int fd, int flags, Message *ret)
{
	struct iovec part = { ret->text, sizeof(ret->text) - 1 };
	Control control = { 0 };
	struct msghdr header = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(fd, &header, flags | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c;

	if (n < 0)
		return -errno;
	ret->text[n] = '\0';
	ret->n_fds = 0;
	c = CMSG_FIRSTHDR(&header);
	if (c && c->cmsg_type == SCM_RIGHTS) {
		ret->n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(ret->fds, CMSG_DATA(c), ret->n_fds * sizeof(int));
	}
	return n > 0;
}

void message_done(Message *m)
{
	while (m->n_fds > 0)
		close_fd(m->fds[--m->n_fds]);
}
