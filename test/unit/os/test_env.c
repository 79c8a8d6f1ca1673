/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of the real env over a kernel that writes and reads less than it was asked to, and is
 * interrupted: pwritev64 and pread64 of this program stand in front of the C library's.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/os.h"
#include "../unit.h"

static struct random chance;
static size_t most; /* bytes a call; 0: all */
static uint64_t short_calls, interrupted;

ssize_t pwritev64(int file, const struct iovec *parts, int count, off_t offset);
ssize_t pread64(int file, void *data, size_t bytes, off_t offset);

static bool is_interrupted(void)
{
    if (!most || random_below(&chance, 5) != 0)
        return false;
    interrupted++;
    errno = EINTR;
    return true;
}

static size_t cut(size_t bytes)
{
    size_t less = most && bytes ? 1 + (size_t)random_below(&chance, size_min(bytes, most)) : bytes;
    short_calls += less < bytes;
    return less;
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off_t offset)
{
    struct iovec some[64];
    size_t total = 0, left;
    int used = 0;
    if (is_interrupted())
        return -1;
    for (int i = 0; i < count; i++)
        total += parts[i].iov_len;
    left = cut(total);
    for (; used < count && left; used++) {
        some[used] = parts[used];
        some[used].iov_len = size_min(left, parts[used].iov_len);
        left -= some[used].iov_len;
    }
    return syscall(SYS_pwritev, file, some, used, offset, 0);
}

ssize_t pread64(int file, void *data, size_t bytes, off_t offset)
{
    return is_interrupted() ? -1 : syscall(SYS_pread64, file, data, cut(bytes), offset);
}

static void test_short_writes_and_reads_are_gone_on_with(void **state)
{
    enum { SLICES = 200, BYTES = 300000 };
    (void)state;
    struct error err;
    struct env *env = env_real();
    struct env_file *file;
    static uint8_t data[BYTES], back[BYTES];
    struct env_slice slices[SLICES];
    char path[] = "/tmp/sluice-env-XXXXXX";
    int made = mkstemp(path);
    assert_true(made >= 0);
    close(made);
    assert_ok(env_open(env, path, ENV_READ | ENV_WRITE, &file, &err));
    for (size_t round = 0; round < 40; round++) {
        size_t at = 0, got, bytes = BYTES - (size_t)random_below(&chance, 1000);
        for (size_t i = 0; i < BYTES; i++)
            data[i] = (uint8_t)random_next(&chance);
        for (size_t i = 0; i < SLICES; i++) { /* some of them empty */
            size_t end =
                i + 1 == SLICES
                    ? bytes
                    : at + (size_t)random_below(&chance, 2 * (bytes - at) / (SLICES - i) + 1);
            slices[i] = (struct env_slice){.data = data + at, .bytes = end - at};
            at = end;
        }
        most = round % 4 ? (size_t)1 << (4 + round % 14) : 0;
        assert_ok(env_writev(file, 4096 * round, slices, SLICES, &err));
        assert_ok(env_read(file, 4096 * round, back, bytes, &got, &err));
        assert_int_equal(got, bytes);
        assert_memory_equal(back, data, bytes);
    }
    most = 0;
    env_close(file);
    unlink(path);
    assert_true(short_calls > 1000 && interrupted > 100);
}

/* What was just written through the page cache is in it, and what was dropped is not. */
static void test_what_the_page_cache_holds(void **state)
{
    enum { PAGE = 4096, PAGES = 3000 };
    (void)state;
    struct error err;
    struct env_file *file;
    static uint8_t data[PAGES * PAGE];
    uint64_t from = 0, bytes = 0;
    char path[] = "./sluice-env-XXXXXX"; /* a file system on a disk, beside the program */
    int made = mkstemp(path);
    assert_true(made >= 0);
    assert_ok(env_open(env_real(), path, ENV_READ | ENV_WRITE, &file, &err));
    assert_ok(env_write(file, 0, data, sizeof data, &err));
    assert_true(env_cached(file, 100, sizeof data - 100, &from, &bytes));
    assert_true(from == 100 && bytes == sizeof data - 100);
    assert_false(env_cached(file, 100, 0, &from, &bytes));
    assert_ok(env_sync(file, &err));
    assert_int_equal(posix_fadvise(made, 1000 * PAGE, 1000 * PAGE, POSIX_FADV_DONTNEED), 0);
    assert_true(env_cached(file, PAGE, sizeof data - PAGE, &from, &bytes));
    assert_true(from == PAGE);
    if (bytes < sizeof data - PAGE) { /* else it is one in memory */
        assert_true(bytes == 999 * PAGE);
        assert_true(env_cached(file, 1500 * PAGE, sizeof data - 1500 * PAGE, &from, &bytes));
        assert_true(from == 2000 * PAGE && bytes == 1000 * PAGE);
        assert_false(env_cached(file, 1200 * PAGE, 100 * PAGE, &from, &bytes));
    }
    env_close(file);
    close(made);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_writes_and_reads_are_gone_on_with),
        cmocka_unit_test(test_what_the_page_cache_holds),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    random_init(&chance, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
