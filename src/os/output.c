/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that commands write for their users: the mode that such have, and none that is left behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"

enum status os_file_mode_as(const char *path, const char *like, struct error *err)
{
    struct stat found;
    mode_t mode = 0666;
    if (stat(like, &found) == 0 && S_ISREG(found.st_mode)) {
        mode = found.st_mode & 0777;
    } else {
        mode_t mask = umask(0777); /* it is only told by being set */
        umask(mask);
        mode &= ~mask;
    }
    if (chmod(path, mode) != 0 && errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
        return error_set_errno(err, errno, "mode of %s", path);
    return STATUS_OK;
}

void os_standard_files_hold(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        int opened = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY); /* the lowest one: fd */
        UNUSED(opened);
    }
}

/* ---- what signals remove ---- */

static char doomed[PATH_BYTES_MAX];
static volatile sig_atomic_t is_doomed;

static void remove_and_end(int number)
{
    if (is_doomed)
        unlink(doomed);
    raise(number); /* it is its default again, and comes once this returns */
}

void os_remove_at_signals(const char *path)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};
    is_doomed = 0;
    if (!path || snprintf(doomed, sizeof doomed, "%s", path) >= (int)sizeof doomed)
        return;
    is_doomed = 1;
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        struct sigaction action = {.sa_handler = remove_and_end, .sa_flags = (int)SA_RESETHAND};
        struct sigaction before;
        sigemptyset(&action.sa_mask);
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
    }
}
