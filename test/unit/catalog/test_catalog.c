/* SPDX-License-Identifier: Apache-2.0
 *
 * The SQLite catalog on real files, with an env between them that counts and fails calls.
 */
#include <sqlite3.h>

#include "os/os.h"
#include "test_catalog.h"

static char dir[64], db_path[96];
static const struct catalog_ident ident = {.ns = "a.b", .name = "t"};

/* ---- an env whose nth writing call fails, once or for good ---- */

static struct env_ops fragile_ops;
static struct env fragile = {.ops = &fragile_ops};
static int64_t calls_left; /* the call that finds 0 fails; negative: none */
static bool stays_dead;
static unsigned file_syncs, dir_syncs;

static bool strikes(void)
{
    if (calls_left < 0)
        return false;
    if (calls_left == 0) {
        if (!stays_dead)
            calls_left = -1;
        return true;
    }
    calls_left--;
    return false;
}

static enum status broken(struct error *err)
{
    return error_set(err, STATUS_IO, "injected fault");
}

static enum status fragile_open(struct env *env, const char *path, unsigned flags,
                                struct env_file **out_file, struct error *err)
{
    TRY(env_real()->ops->file_open(env, path, flags, out_file, err));
    (*out_file)->ops = &fragile_ops;
    return STATUS_OK;
}

static enum status fragile_write(struct env_file *file, uint64_t offset,
                                 const struct env_slice *slices, size_t count, struct error *err)
{
    return strikes() ? broken(err) : env_real()->ops->file_write(file, offset, slices, count, err);
}

static enum status fragile_sync(struct env_file *file, struct error *err)
{
    file_syncs++;
    return strikes() ? broken(err) : env_real()->ops->file_sync(file, err);
}

static enum status fragile_truncate(struct env_file *file, uint64_t bytes, struct error *err)
{
    return strikes() ? broken(err) : env_real()->ops->file_truncate(file, bytes, err);
}

static enum status fragile_remove(struct env *env, const char *path, struct error *err)
{
    return strikes() ? broken(err) : env_real()->ops->path_remove(env, path, err);
}

static enum status fragile_rename(struct env *env, const char *from, const char *to,
                                  struct error *err)
{
    return strikes() ? broken(err) : env_real()->ops->path_rename(env, from, to, err);
}

static enum status fragile_rename_new(struct env *env, const char *from, const char *to,
                                      struct error *err)
{
    return strikes() ? broken(err) : env_real()->ops->path_rename_new(env, from, to, err);
}

static enum status fragile_dir_sync(struct env *env, const char *path, struct error *err)
{
    dir_syncs++;
    return strikes() ? broken(err) : env_real()->ops->dir_sync(env, path, err);
}

static void arm(int64_t n, bool for_good)
{
    calls_left = n;
    stays_dead = for_good;
}

/* ---- fixtures ---- */

static int setup(void **state)
{
    (void)state;
    fragile_ops = *env_real()->ops;
    fragile_ops.file_open = fragile_open;
    fragile_ops.file_write = fragile_write;
    fragile_ops.file_sync = fragile_sync;
    fragile_ops.file_truncate = fragile_truncate;
    fragile_ops.path_remove = fragile_remove;
    fragile_ops.path_rename = fragile_rename;
    fragile_ops.path_rename_new = fragile_rename_new;
    fragile_ops.dir_sync = fragile_dir_sync;
    arm(-1, false);
    snprintf(dir, sizeof dir, "/tmp/sluice-catalog-XXXXXX");
    if (!mkdtemp(dir))
        return 1;
    snprintf(db_path, sizeof db_path, "%s/catalog.db", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", dir);
    return system(command);
}

struct lake {
    struct store *store;
    struct catalog *catalog;
};

static enum status try_open(struct lake *lake, struct env *env, struct error *err)
{
    struct catalog_sqlite_options options = {.path = db_path, .busy_timeout_ms = 200};
    *lake = (struct lake){0};
    TRY(store_open(env, dir, &lake->store, err));
    return catalog_open_sqlite(env, lake->store, &options, &lake->catalog, err);
}

static void open_lake(struct lake *lake, struct env *env)
{
    struct error err;
    assert_ok(try_open(lake, env, &err));
}

static void close_lake(struct lake *lake)
{
    catalog_close(lake->catalog);
    store_close(lake->store);
}

static void create_table(struct lake *lake, struct catalog_table *out)
{
    struct error err;
    struct arena arena;
    struct json_value *metadata;
    char location[128];
    arena_init(&arena, 0);
    assert_ok(json_parse(test_metadata, strlen(test_metadata), &arena, &metadata, &err));
    snprintf(location, sizeof location, "%s/t", dir);
    assert_true(json_set(&arena, metadata, "location", json_new_text(&arena, location)));
    assert_ok(catalog_create_table(lake->catalog, ident, metadata, out, &err));
    arena_deinit(&arena);
}

static enum status set_property(struct lake *lake, const struct catalog_table *base,
                                const char *value, struct catalog_table *out, struct error *err)
{
    struct catalog_change change;
    catalog_change_init(&change, 5000);
    catalog_update_set_property(&change, "p", value);
    enum status status = catalog_commit(lake->catalog, ident, base, &change, out, err);
    catalog_change_deinit(&change);
    return status;
}

static void assert_property(struct lake *lake, const char *expected)
{
    struct error err;
    struct catalog_table table;
    assert_ok(catalog_load(lake->catalog, ident, &table, &err));
    assert_string_equal(json_get_text(json_get(table.metadata, "properties"), "p"), expected);
    catalog_table_deinit(&table);
}

/* ---- the happy path ---- */

static void test_life_of_a_table(void **state)
{
    (void)state;
    struct error err;
    struct lake lake;
    struct catalog_table first, second, third;
    struct arena arena;
    const char **names;
    size_t count;
    arena_init(&arena, 0);
    open_lake(&lake, env_real());
    assert_status(STATUS_NOT_FOUND, catalog_load(lake.catalog, ident, &first, &err));
    assert_ok(catalog_namespace_create(lake.catalog, "empty", &err));
    assert_status(STATUS_EXISTS, catalog_namespace_create(lake.catalog, "empty", &err));
    create_table(&lake, &first);
    assert_non_null(strstr(first.metadata_location, "/t/metadata/00000-"));
    assert_status(STATUS_EXISTS,
                  catalog_create_table(lake.catalog, ident, first.metadata, &second, &err));
    assert_ok(catalog_namespace_list(lake.catalog, &arena, &names, &count, &err));
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "a.b");
    assert_ok(catalog_table_list(lake.catalog, "a.b", &arena, &names, &count, &err));
    assert_int_equal(count, 1);
    assert_string_equal(names[0], "t");

    assert_ok(set_property(&lake, &first, "one", &second, &err));
    assert_non_null(strstr(second.metadata_location, "/t/metadata/00001-"));
    assert_property(&lake, "one");
    /* The base has moved: not applied, whoever it was. */
    assert_status(STATUS_CONFLICT, set_property(&lake, &first, "two", &third, &err));
    assert_property(&lake, "one");
    assert_ok(catalog_make_durable(lake.catalog, ident, &second, &err));
    assert_status(STATUS_CONFLICT, catalog_make_durable(lake.catalog, ident, &first, &err));

    assert_ok(catalog_drop_table(lake.catalog, ident, &err));
    assert_status(STATUS_NOT_FOUND, catalog_drop_table(lake.catalog, ident, &err));
    assert_status(STATUS_CONFLICT, set_property(&lake, &second, "three", &third, &err));
    catalog_table_deinit(&first);
    catalog_table_deinit(&second);
    arena_deinit(&arena);
    close_lake(&lake);
}

static void test_names(void **state)
{
    (void)state;
    struct error err;
    struct lake lake;
    struct catalog_table table;
    static const struct catalog_ident bad[] = {
        {"", "t"},    {"a", ""},    {"a..b", "t"}, {".a", "t"},  {"a.", "t"},
        {"a", "x/y"}, {"a/b", "t"}, {"a", "b.c"},  {"a", "x\n"}, {"a", ".."}};
    open_lake(&lake, env_real());
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_status(STATUS_INVALID, catalog_load(lake.catalog, bad[i], &table, &err));
    close_lake(&lake);
}

/* E10: the write transaction that changes nothing is a synced one all the same. */
static void test_make_durable_syncs(void **state)
{
    (void)state;
    struct error err;
    struct lake lake;
    struct catalog_table table;
    open_lake(&lake, &fragile);
    create_table(&lake, &table);
    file_syncs = dir_syncs = 0;
    assert_ok(catalog_make_durable(lake.catalog, ident, &table, &err));
    /* Journal (its header a second time), database, metadata file. */
    assert_true(file_syncs >= 3);
    /* The journal's birth and its removal, and the directories of the metadata. */
    assert_true(dir_syncs >= 4);
    for (int64_t n = 0;; n++) {
        arm(n, false);
        enum status status = catalog_make_durable(lake.catalog, ident, &table, &err);
        bool has_struck = calls_left < 0;
        arm(-1, false);
        if (!has_struck) {
            assert_int_equal(status, STATUS_OK);
            break;
        }
        assert_int_not_equal(status, STATUS_OK);
    }
    catalog_table_deinit(&table);
    close_lake(&lake);
}

/* ---- faults ---- */

/* Whatever call fails, the answer is true: OK is applied, a definite failure is not, and the
 * database is whole for whoever comes next. */
static void commit_under_faults(bool for_good)
{
    struct error err;
    struct lake lake, clean;
    struct catalog_table base, out;
    unsigned unknown = 0, definite = 0;
    open_lake(&clean, env_real());
    create_table(&clean, &base);
    catalog_table_deinit(&base);
    for (int64_t n = 0;; n++) {
        char value[32];
        snprintf(value, sizeof value, "v%d-%d", for_good, (int)n);
        assert_ok(catalog_load(clean.catalog, ident, &base, &err));
        open_lake(&lake, &fragile);
        arm(n, for_good);
        enum status status = set_property(&lake, &base, value, &out, &err);
        bool has_struck = for_good ? calls_left == 0 : calls_left < 0;
        bool is_over = status == STATUS_OK && !has_struck;
        close_lake(&lake); /* the dead one's handles go, and its locks with them */
        arm(-1, false);
        struct catalog_table after;
        assert_ok(catalog_load(clean.catalog, ident, &after, &err));
        const char *found = json_get_text(json_get(after.metadata, "properties"), "p");
        bool is_applied = strcmp(found, value) == 0;
        if (status == STATUS_OK)
            assert_true(is_applied);
        else if (status != STATUS_UNKNOWN_OUTCOME)
            assert_false(is_applied);
        unknown += status == STATUS_UNKNOWN_OUTCOME;
        definite += status == STATUS_IO;
        if (status == STATUS_OK)
            catalog_table_deinit(&out);
        catalog_table_deinit(&after);
        catalog_table_deinit(&base);
        if (is_over)
            break;
        assert_true(n < 100);
    }
    assert_true(unknown >= 3);  /* syncs and the removal of the journal within COMMIT */
    assert_true(definite >= 3); /* metadata file, journal */
    assert_ok(catalog_drop_table(clean.catalog, ident, &err));
    close_lake(&clean);
}

static void test_commit_with_one_fault(void **state)
{
    (void)state;
    commit_under_faults(false);
}

static void test_commit_with_a_dying_disk(void **state)
{
    (void)state;
    commit_under_faults(true);
}

static void test_create_under_faults(void **state)
{
    (void)state;
    struct error err;
    struct lake lake, clean;
    for (int64_t n = 0;; n++) {
        struct catalog_table out, after;
        struct arena arena;
        struct json_value *metadata;
        char location[128];
        arena_init(&arena, 0);
        assert_ok(json_parse(test_metadata, strlen(test_metadata), &arena, &metadata, &err));
        snprintf(location, sizeof location, "%s/c%d", dir, (int)n);
        assert_true(json_set(&arena, metadata, "location", json_new_text(&arena, location)));
        arm(n, false);
        enum status status = try_open(&lake, &fragile, &err);
        if (status == STATUS_OK)
            status = catalog_create_table(lake.catalog, ident, metadata, &out, &err);
        bool has_struck = calls_left < 0;
        arm(-1, false);
        if (status == STATUS_OK)
            catalog_table_deinit(&out);
        close_lake(&lake);
        open_lake(&clean, env_real());
        enum status found = catalog_load(clean.catalog, ident, &after, &err);
        assert_true(found == STATUS_OK || found == STATUS_NOT_FOUND);
        if (status != STATUS_UNKNOWN_OUTCOME)
            assert_int_equal(found == STATUS_OK, status == STATUS_OK);
        if (found == STATUS_OK) {
            catalog_table_deinit(&after);
            assert_ok(catalog_drop_table(clean.catalog, ident, &err));
        }
        close_lake(&clean);
        arena_deinit(&arena);
        if (!has_struck)
            break;
    }
}

static void test_memory_failures(void **state)
{
    (void)state;
    struct error err;
    struct lake lake;
    struct catalog_table base, out;
    open_lake(&lake, env_real());
    create_table(&lake, &base);
    bool is_done = false;
    for (int64_t n = 0; !is_done; n++) {
        struct catalog_change change;
        catalog_change_init(&change, 5000);
        catalog_update_set_property(&change, "p", "x");
        alloc_fail_after(n);
        enum status status = catalog_commit(lake.catalog, ident, &base, &change, &out, &err);
        alloc_fail_after(-1);
        is_done = status == STATUS_OK;
        if (!is_done) {
            /* LIMIT: a buffer with a bound does not tell why it could not grow. */
            if (status != STATUS_NO_MEMORY && status != STATUS_LIMIT &&
                status != STATUS_UNKNOWN_OUTCOME)
                fail_msg("allocation %d: %s: %s", (int)n, status_name(status), err.message);
            if (status != STATUS_UNKNOWN_OUTCOME)
                assert_property(&lake, "v");
        }
        catalog_change_deinit(&change);
    }
    catalog_table_deinit(&out);
    catalog_table_deinit(&base);
    assert_ok(catalog_drop_table(lake.catalog, ident, &err));
    close_lake(&lake);
}

/* ---- others on the same file ---- */

/* Two handles of one process, and SQLite's own locking of another: all see each other's locks. */
static void test_locks(void **state)
{
    (void)state;
    struct error err;
    struct lake one, two;
    struct catalog_table base, out;
    sqlite3 *other;
    open_lake(&one, env_real());
    open_lake(&two, env_real());
    create_table(&one, &base);
    assert_int_equal(sqlite3_open(db_path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_status(STATUS_BUSY, set_property(&one, &base, "x", &out, &err));
    assert_property(&two, "v"); /* RESERVED lets readers in */
    assert_int_equal(sqlite3_exec(other, "COMMIT; BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    assert_status(STATUS_BUSY, catalog_load(two.catalog, ident, &out, &err));
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    /* A reader in the middle of its statement keeps a writer from committing: nothing is applied.
     */
    sqlite3_stmt *reader;
    assert_int_equal(sqlite3_prepare_v2(other,
                                        "SELECT 1 FROM iceberg_namespace_properties UNION ALL "
                                        "SELECT 2",
                                        -1, &reader, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(reader), SQLITE_ROW);
    assert_status(STATUS_BUSY, set_property(&one, &base, "x", &out, &err));
    sqlite3_finalize(reader);
    assert_property(&two, "v");
    assert_ok(set_property(&one, &base, "y", &out, &err));
    assert_property(&two, "y");
    sqlite3_close(other);
    catalog_table_deinit(&base);
    catalog_table_deinit(&out);
    assert_ok(catalog_drop_table(two.catalog, ident, &err));
    close_lake(&one);
    close_lake(&two);
}

static void test_foreign_databases(void **state)
{
    (void)state;
    struct error err;
    struct lake lake;
    sqlite3 *other;
    char own_path[96];
    memcpy(own_path, db_path, sizeof own_path);
    snprintf(db_path, sizeof db_path, "%s/wal.db", dir);
    assert_int_equal(sqlite3_open(db_path, &other), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(other, "PRAGMA journal_mode=WAL; CREATE TABLE x(y)", NULL, NULL, NULL),
        SQLITE_OK);
    assert_status(STATUS_IO, try_open(&lake, env_real(), &err));
    assert_non_null(strstr(err.message, "WAL mode"));
    close_lake(&lake);
    sqlite3_close(other);
    snprintf(db_path, sizeof db_path, "%s/text.db", dir);
    static const char text[] = "this is no database, but long enough for its header: one hundred "
                               "bytes and some more of them, all of them text";
    assert_ok(files_create(env_real(), db_path, text, sizeof text - 1, &err));
    assert_ok(try_open(&lake, env_real(), &err));
    assert_status(STATUS_CORRUPT, catalog_check(lake.catalog, &err));
    close_lake(&lake);
    snprintf(db_path, sizeof db_path, "%s/none/catalog.db", dir);
    assert_status(STATUS_IO, try_open(&lake, env_real(), &err));
    close_lake(&lake);
    memcpy(db_path, own_path, sizeof db_path);
}

static void copy_file(const char *from, const char *to)
{
    struct error err;
    struct buf bytes = {0};
    assert_ok(files_read(env_real(), from, 1 << 20, &bytes, &err));
    struct env_file *file = NULL; /* in place: the same inode */
    assert_ok(env_open(env_real(), to, ENV_WRITE | ENV_CREATE | ENV_TRUNCATE, &file, &err));
    assert_ok(env_write(file, 0, bytes.data, bytes.length, &err));
    env_close(file);
    buf_deinit(&bytes);
}

/* Whatever is damaged: every call says so, and a copy that is put back serves at once. */
static void test_damaged_file(void **state)
{
    (void)state;
    static const struct {
        uint64_t offset, bytes, length; /* garbage in [offset, offset + bytes), cut at length */
    } cases[] = {{0, 100, 0}, {4096, 8192, 0}, {0, 0, 5000}, {8192, 4096, 0}};
    char own_path[96], copy[100];
    uint8_t garbage[8192];
    struct error err;
    struct lake lake;
    struct catalog_table table = {0};
    memset(garbage, 0x5a, sizeof garbage);
    memcpy(own_path, db_path, sizeof own_path);
    snprintf(db_path, sizeof db_path, "%s/damage.db", dir);
    snprintf(copy, sizeof copy, "%s.copy", db_path);
    open_lake(&lake, env_real());
    create_table(&lake, &table);
    catalog_table_deinit(&table);
    close_lake(&lake);
    copy_file(db_path, copy);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct env_file *file = NULL;
        assert_ok(env_open(env_real(), db_path, ENV_WRITE, &file, &err));
        assert_ok(env_write(file, cases[i].offset, garbage, cases[i].bytes, &err));
        if (cases[i].length)
            assert_ok(env_truncate(file, cases[i].length, &err));
        env_close(file);
        open_lake(&lake, env_real());
        assert_status(STATUS_CORRUPT, catalog_check(lake.catalog, &err));
        assert_non_null(strstr(err.message, "damage.db: "));
        assert_null(strstr(err.message, "SELECT"));
        assert_null(strstr(err.message, "PRAGMA"));
        assert_status(STATUS_CORRUPT, catalog_check(lake.catalog, &err));
        copy_file(copy, db_path);
        assert_ok(catalog_check(lake.catalog, &err));
        assert_ok(catalog_load(lake.catalog, ident, &table, &err));
        catalog_table_deinit(&table);
        close_lake(&lake);
    }
    memcpy(db_path, own_path, sizeof db_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requirements),
        cmocka_unit_test(test_apply_snapshots),
        cmocka_unit_test(test_apply_removals),
        cmocka_unit_test(test_apply_schemas),
        cmocka_unit_test(test_apply_refuses),
        cmocka_unit_test(test_change_without_memory),
        cmocka_unit_test_setup_teardown(test_life_of_a_table, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_make_durable_syncs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_commit_with_one_fault, setup, teardown),
        cmocka_unit_test_setup_teardown(test_commit_with_a_dying_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_create_under_faults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_failures, setup, teardown),
        cmocka_unit_test_setup_teardown(test_locks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_databases, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_file, setup, teardown),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
