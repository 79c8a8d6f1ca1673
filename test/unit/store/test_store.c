/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "../unit.h"
#include "lake/store/store.h"

static char root[64];
static struct store *store;

static int setup(void **state)
{
    (void)state;
    struct error err;
    snprintf(root, sizeof root, "/tmp/sluice-store-XXXXXX");
    if (!mkdtemp(root))
        return 1;
    return store_open(env_real(), root, &store, &err) != STATUS_OK;
}

static int teardown(void **state)
{
    (void)state;
    char command[96];
    store_close(store);
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

static void test_names(void **state)
{
    (void)state;
    struct error err;
    char uri[STORE_URI_BYTES_MAX], expected[STORE_URI_BYTES_MAX];
    static const char *const same[] = {"file:///a/b", "file:/a/b",    "/a/b",
                                       "//a///b/",    "file:////a/b", "file://localhost/a/b"};
    for (size_t i = 0; i < COUNT_OF(same); i++) {
        assert_ok(store_uri_canonical(store, same[i], uri, &err));
        assert_string_equal(uri, "file:///a/b");
    }
    snprintf(expected, sizeof expected, "file://%s/ns/t%%20x", root);
    assert_ok(store_uri_canonical(store, "ns/t%20x", uri, &err));
    assert_string_equal(uri, expected);
    assert_status(STATUS_INVALID, store_uri_canonical(store, "/a/../b", uri, &err));
    assert_status(STATUS_INVALID, store_uri_canonical(store, "a/./b", uri, &err));
    assert_status(STATUS_UNSUPPORTED, store_uri_canonical(store, "s3://bucket/a", uri, &err));
    assert_status(STATUS_UNSUPPORTED, store_uri_canonical(store, "file://host/a", uri, &err));
    char far[2000];
    memset(far, 'x', sizeof far - 1);
    far[sizeof far - 1] = '\0';
    assert_status(STATUS_INVALID, store_uri_canonical(store, far, uri, &err));
    assert_ok(store_uri_join("file:///a/", "b/c", uri, &err));
    assert_string_equal(uri, "file:///a/b/c");
    struct store *other;
    assert_status(STATUS_UNSUPPORTED, store_open(env_real(), "s3://b/p", &other, &err));
    assert_status(STATUS_INVALID, store_open(env_real(), "relative", &other, &err));
}

static void test_put_get(void **state)
{
    (void)state;
    struct error err;
    struct buf out;
    struct store_object object;
    buf_init(&out, 0);
    assert_ok(store_put(store, "a/b/one", "hello", 5, &err));
    assert_ok(store_put(store, "a/b/one", "hello world", 11, &err));
    assert_status(STATUS_EXISTS, store_put_if_absent(store, "a/b/one", "x", 1, &err));
    assert_ok(store_put_if_absent(store, "a/b/two", "", 0, &err));
    assert_ok(store_put_hint(store, "a/hint", "h", 1, &err));
    assert_ok(store_put_hint(store, "a/hint", "h2", 2, &err));
    assert_ok(store_get(store, "a/b/one", 100, &out, &err));
    assert_int_equal(out.length, 11);
    assert_status(STATUS_LIMIT, store_get(store, "a/b/one", 10, &out, &err));
    assert_ok(store_get_range(store, "a/b/one", 6, 5, &out, &err));
    assert_memory_equal(out.data + 11, "world", 5);
    assert_status(STATUS_INVALID, store_get_range(store, "a/b/one", 7, 5, &out, &err));
    assert_int_equal(out.length, 16);
    assert_status(STATUS_NOT_FOUND, store_get(store, "a/none", 1, &out, &err));
    assert_status(STATUS_NOT_FOUND, store_stat(store, "a/b", &object, &err));
    assert_ok(store_stat(store, "a/b/one", &object, &err));
    assert_int_equal(object.bytes, 11);
    assert_ok(store_sync_object(store, "a/b/one", &err));
    assert_ok(store_sync_prefix(store, "a/b", &err));
    assert_ok(store_delete(store, "a/b/one", &err));
    assert_ok(store_delete(store, "a/b/one", &err));
    assert_status(STATUS_NOT_FOUND, store_sync_object(store, "a/b/one", &err));
    buf_deinit(&out);
}

static void test_streaming(void **state)
{
    (void)state;
    struct error err;
    struct store_writer *writer, *second;
    struct store_object object;
    struct buf out;
    uint64_t bytes;
    char *part = mem_alloc(100000);
    memset(part, 'p', 100000);
    buf_init(&out, 0);
    assert_ok(store_create(store, "s/file", &writer, &err));
    assert_status(STATUS_EXISTS, store_create(store, "s/file", &second, &err));
    for (int i = 0; i < 7; i++) {
        part[0] = (char)('0' + i);
        assert_ok(sink_write(store_writer_sink(writer), part, 100000, &err));
    }
    assert_int_equal(store_writer_bytes(writer), 700000);
    assert_ok(store_writer_finish(writer, &bytes, &err));
    assert_int_equal(bytes, 700000);
    assert_ok(store_get(store, "s/file", 1 << 20, &out, &err));
    assert_int_equal(out.length, 700000);
    for (int i = 0; i < 7; i++)
        assert_int_equal(out.data[i * 100000], '0' + i);
    assert_ok(store_create(store, "s/gone", &writer, &err));
    assert_ok(sink_write(store_writer_sink(writer), part, 10, &err));
    store_writer_abort(writer);
    assert_status(STATUS_NOT_FOUND, store_stat(store, "s/gone", &object, &err));
    buf_deinit(&out);
    mem_free(part);
}

static enum status count_each(void *context, const struct store_object *object, struct error *err)
{
    (void)err;
    assert_non_null(strstr(object->uri, "file:///tmp/"));
    (*(size_t *)context)++;
    return STATUS_OK;
}

static enum status stop_at_once(void *context, const struct store_object *object, struct error *err)
{
    (void)context;
    return error_set(err, STATUS_CLOSED, "%s", object->uri);
}

static void test_list(void **state)
{
    (void)state;
    struct error err;
    static const char *const names[] = {"l/data/abc", "l/data/ab/c", "l/data/b", "l/meta/x"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_ok(store_put(store, names[i], "x", 1, &err));
    static const struct {
        const char *prefix;
        size_t count;
    } cases[] = {{"l", 4},      {"l/", 4},      {"l/data/ab", 2}, {"l/data/ab/", 1},
                 {"l/data", 3}, {"l/none/", 0}, {"l/d", 3},       {"l/data/abcd", 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t count = 0;
        assert_ok(store_list(store, cases[i].prefix, count_each, &count, &err));
        assert_int_equal(count, cases[i].count);
    }
    assert_status(STATUS_CLOSED, store_list(store, "l/", stop_at_once, NULL, &err));
}

/* ---- an env whose nth call fails, to see that nothing is left behind and nothing is reported ok
 * ---- */

static struct env_ops failing_ops;
static int fail_in;

static enum status failing_sync(struct env_file *file, struct error *err)
{
    if (--fail_in == 0)
        return error_set(err, STATUS_IO, "no sync");
    return env_real()->ops->file_sync(file, err);
}

static enum status failing_dir_sync(struct env *env, const char *path, struct error *err)
{
    if (--fail_in == 0)
        return error_set(err, STATUS_IO, "no directory sync");
    return env_real()->ops->dir_sync(env, path, err);
}

/* Handles carry the real table of functions: give them ours. */
static enum status failing_open(struct env *env, const char *path, unsigned flags,
                                struct env_file **out_file, struct error *err)
{
    TRY(env_real()->ops->file_open(env, path, flags, out_file, err));
    (*out_file)->ops = &failing_ops;
    return STATUS_OK;
}

static void test_failed_syncs(void **state)
{
    (void)state;
    struct error err;
    failing_ops = *env_real()->ops;
    failing_ops.file_open = failing_open;
    failing_ops.file_sync = failing_sync;
    failing_ops.dir_sync = failing_dir_sync;
    struct env failing = {.ops = &failing_ops};
    struct store *fragile;
    struct store_object object;
    assert_ok(store_open(&failing, root, &fragile, &err));
    /* The syncs of a put in two new directories: each directory, the file, the entry. */
    for (int n = 1; n <= 4; n++) {
        char name[64];
        snprintf(name, sizeof name, "f%d/sub/put", n);
        fail_in = n;
        assert_status(STATUS_IO, store_put(fragile, name, "x", 1, &err));
        fail_in = 0;
    }
    for (int n = 1; n <= 2; n++) {
        struct store_writer *writer;
        uint64_t bytes = 77;
        assert_ok(store_create(fragile, "f1/stream", &writer, &err));
        assert_ok(sink_write(store_writer_sink(writer), "x", 1, &err));
        fail_in = n;
        assert_status(STATUS_IO, store_writer_finish(writer, &bytes, &err));
        fail_in = 0;
        assert_int_equal(bytes, 77);
        assert_status(STATUS_NOT_FOUND, store_stat(fragile, "f1/stream", &object, &err));
    }
    fail_in = 1;
    assert_status(STATUS_IO, store_sync_prefix(fragile, "f1", &err));
    store_close(fragile);
}

static void test_drop_directory(void **state)
{
    (void)state;
    struct error err;
    struct env_stat stat;
    char path[128];
    snprintf(path, sizeof path, "%s/dropped", root);
    assert_ok(store_put(store, "dropped/a", "x", 1, &err));
    store_drop_directory(store, "dropped"); /* not empty */
    assert_ok(env_path_stat(env_real(), path, &stat, &err));
    assert_ok(store_delete(store, "dropped/a", &err));
    store_drop_directory(store, "dropped/");
    assert_status(STATUS_NOT_FOUND, env_path_stat(env_real(), path, &stat, &err));
    store_drop_directory(store, "dropped");
    assert_ok(store_put(store, "dropped/b", "x", 1, &err)); /* made again */
    assert_ok(env_path_stat(env_real(), path, &stat, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),        cmocka_unit_test(test_put_get),
        cmocka_unit_test(test_streaming),    cmocka_unit_test(test_list),
        cmocka_unit_test(test_failed_syncs), cmocka_unit_test(test_drop_directory),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
