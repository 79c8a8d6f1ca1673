/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables on real files: commits, what they are conditioned on, planning, damage.
 */
#include "os/os.h"
#include "test_iceberg.h"

static char dir[64];
static struct store *store;
static struct catalog *catalog;
static const struct catalog_ident ident = {.ns = "ns", .name = "t"};

static int setup(void **state)
{
    (void)state;
    struct error err;
    char path[96];
    snprintf(dir, sizeof dir, "/tmp/sluice-iceberg-XXXXXX");
    if (!mkdtemp(dir) || store_open(env_real(), dir, &store, &err) != STATUS_OK)
        return 1;
    snprintf(path, sizeof path, "%s/catalog.db", dir);
    struct catalog_sqlite_options options = {.path = path};
    return catalog_open_sqlite(env_real(), store, &options, &catalog, &err) != STATUS_OK;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    catalog_close(catalog);
    store_close(store);
    snprintf(command, sizeof command, "rm -r %s", dir);
    return system(command);
}

static struct iceberg_table *create(void)
{
    struct error err;
    struct iceberg_table *table;
    struct iceberg_field fields[] = {
        {.id = 1, .name = "time", .type = ICEBERG_TIMESTAMPTZ, .is_required = true},
        {.id = 2, .name = "name", .type = ICEBERG_STRING},
    };
    struct iceberg_schema schema = {.fields = fields, .field_count = 2};
    struct iceberg_partition_field partition = {1, 0, "time_day", {ICEBERG_DAY, 0}};
    struct iceberg_spec spec = {.fields = &partition, .field_count = 1};
    struct iceberg_pair properties[] = {{"owner", "us"}};
    struct iceberg_table_options options = {.schema = &schema,
                                            .spec = &spec,
                                            .properties = properties,
                                            .property_count = 1,
                                            .with_name_mapping = true};
    assert_ok(iceberg_table_create(env_real(), catalog, store, ident, &options, &table, &err));
    return table;
}

static struct uuid new_uuid(void)
{
    uint8_t random[16];
    env_random(env_real(), random, sizeof random);
    return uuid_from_random(random);
}

/* A file that is only told of: planning does not open it. */
struct one_file {
    struct iceberg_data_file file;
    struct iceberg_value day;
    struct iceberg_column_metrics columns[2];
    int64_t splits[2];
    char path[64];
};

static void fill_file(struct one_file *one, int64_t number)
{
    memset(one, 0, sizeof *one);
    snprintf(one->path, sizeof one->path, "file://%s/f%d.parquet", dir, (int)number);
    one->day = (struct iceberg_value){.type = ICEBERG_DATE, .integer = 20000 + number};
    one->columns[0] = (struct iceberg_column_metrics){.field_id = 1,
                                                      .column_bytes = 100,
                                                      .value_count = 10,
                                                      .null_count = 0,
                                                      .nan_count = -1,
                                                      .lower = span_of("\1\0\0\0\0\0\0\0", 8),
                                                      .upper = span_of("\2\0\0\0\0\0\0\0", 8)};
    one->columns[1] = (struct iceberg_column_metrics){.field_id = 2,
                                                      .column_bytes = 7,
                                                      .value_count = 10,
                                                      .null_count = 3,
                                                      .nan_count = -1,
                                                      .lower = span_of("", 0)};
    one->splits[0] = 4;
    one->splits[1] = 900;
    one->file = (struct iceberg_data_file){.path = one->path,
                                           .partition = &one->day,
                                           .record_count = 10,
                                           .file_bytes = 1000 + number,
                                           .columns = one->columns,
                                           .column_count = 2,
                                           .split_offsets = one->splits,
                                           .split_count = 2,
                                           .sort_order_id = -1};
}

static enum status append(const struct iceberg_table *table, int64_t snapshot_id, int64_t number,
                          struct iceberg_table **out, struct error *err)
{
    struct one_file one;
    fill_file(&one, number);
    struct iceberg_append request = {.snapshot_id = snapshot_id,
                                     .attempt = new_uuid(),
                                     .files = number >= 0 ? &one.file : NULL,
                                     .file_count = number >= 0 ? 1 : 0};
    return iceberg_append_commit(env_real(), catalog, store, table, &request, out, err);
}

static void test_append_and_plan(void **state)
{
    (void)state;
    struct error err;
    struct iceberg_table *t0 = create(), *t1, *t2, *opened;
    struct iceberg_plan plan;
    assert_null(t0->current);
    assert_int_equal(t0->spec->fields[0].field_id, 1000);
    assert_string_equal(iceberg_table_property(t0, "owner"), "us");
    assert_non_null(strstr(iceberg_table_property(t0, "schema.name-mapping.default"), "\"time\""));
    assert_ok(append(t0, 11, 1, &t1, &err));
    assert_ok(append(t1, 22, 2, &t2, &err));
    assert_int_equal(t2->current->parent_id, 11);
    assert_int_equal(t2->last_sequence_number, 2);
    assert_string_equal(iceberg_snapshot_summary(t2->current, "total-records"), "20");
    assert_string_equal(iceberg_snapshot_summary(t2->current, "total-files-size"), "2003");
    struct iceberg_plan_options with_metrics = {.with_metrics = true};
    assert_ok(iceberg_plan_create(store, t2, t2->current, &with_metrics, &plan, &err));
    assert_int_equal(plan.file_count, 2);
    assert_int_equal(plan.record_count, 20);
    const struct iceberg_live_file *live = &plan.files[0]; /* the newest manifest comes first */
    struct one_file expected;
    fill_file(&expected, 2);
    assert_string_equal(live->file.path, expected.path);
    assert_int_equal(live->sequence_number, 2);
    assert_int_equal(live->snapshot_id, 22);
    assert_true(iceberg_value_equal(live->file.partition, &expected.day));
    assert_int_equal(live->file.column_count, 2);
    assert_int_equal(live->file.columns[1].null_count, 3);
    assert_int_equal(live->file.columns[1].nan_count, -1);
    assert_true(live->file.columns[1].lower.data && live->file.columns[1].lower.length == 0);
    assert_null(live->file.columns[1].upper.data);
    assert_true(span_equal(live->file.columns[0].upper, expected.columns[0].upper));
    assert_int_equal(live->file.split_count, 2);
    assert_int_equal(live->file.split_offsets[1], 900);
    assert_int_equal(live->file.sort_order_id, -1);
    iceberg_plan_deinit(&plan);
    struct iceberg_plan_options above = {.above_sequence_number = 1};
    assert_ok(iceberg_plan_create(store, t2, t2->current, &above, &plan, &err));
    assert_int_equal(plan.file_count, 1);
    iceberg_plan_deinit(&plan);
    struct iceberg_plan_options few = {.file_count_max = 1};
    assert_status(STATUS_LIMIT, iceberg_plan_create(store, t2, t2->current, &few, &plan, &err));
    assert_ok(iceberg_table_open(store, t2->base.metadata_location, &opened, &err));
    assert_int_equal(opened->current->snapshot_id, 22);
    iceberg_table_destroy(t0);
    iceberg_table_destroy(t1);
    iceberg_table_destroy(t2);
    iceberg_table_destroy(opened);
}

/* E9, E12: a stale base conflicts; the same snapshot id may be tried again on a new one, once. */
static void test_conditions(void **state)
{
    (void)state;
    struct error err;
    struct iceberg_table *t0 = create(), *t1, *t2 = NULL, *again;
    struct iceberg_base base;
    iceberg_table_base(t0, &base);
    assert_int_equal(base.snapshot_id, -1);
    assert_ok(append(t0, 11, 1, &t1, &err));
    assert_status(STATUS_CONFLICT, append(t0, 22, 2, &t2, &err));
    assert_ok(append(t1, 22, 2, &t2, &err));
    assert_status(STATUS_CONFLICT, append(t2, 22, 2, &again, &err));
    struct iceberg_append request = {
        .snapshot_id = 33, .attempt = new_uuid(), .require_base = &base};
    assert_status(STATUS_CONFLICT,
                  iceberg_append_commit(env_real(), catalog, store, t2, &request, &again, &err));
    struct iceberg_pair fenced[] = {{"owner", "them"}};
    request = (struct iceberg_append){.snapshot_id = 33,
                                      .attempt = new_uuid(),
                                      .require_properties = fenced,
                                      .require_property_count = 1};
    assert_status(STATUS_CONFLICT,
                  iceberg_append_commit(env_real(), catalog, store, t2, &request, &again, &err));
    request = (struct iceberg_append){.snapshot_id = 0, .attempt = new_uuid()};
    assert_status(STATUS_INVALID,
                  iceberg_append_commit(env_real(), catalog, store, t2, &request, &again, &err));
    iceberg_table_destroy(t0);
    iceberg_table_destroy(t1);
    iceberg_table_destroy(t2);
}

/* An empty snapshot moves main, its clock never runs back, and properties move with it. */
static void test_takeover(void **state)
{
    (void)state;
    struct error err;
    struct iceberg_table *t0 = create(), *t1, *t2;
    struct iceberg_pair set[] = {{"sluice.epoch", "2"}, {"owner", NULL}};
    struct iceberg_append request = {.snapshot_id = 5,
                                     .attempt = new_uuid(),
                                     .now_ms = 1,
                                     .summary = set,
                                     .summary_count = 1,
                                     .properties = set,
                                     .property_count = 2};
    assert_ok(iceberg_append_commit(env_real(), catalog, store, t0, &request, &t1, &err));
    assert_int_equal(t1->current->timestamp_ms, t0->last_updated_ms);
    assert_string_equal(iceberg_table_property(t1, "sluice.epoch"), "2");
    assert_null(iceberg_table_property(t1, "owner"));
    assert_string_equal(iceberg_snapshot_summary(t1->current, "sluice.epoch"), "2");
    assert_string_equal(iceberg_snapshot_summary(t1->current, "added-data-files"), "0");
    assert_ok(iceberg_table_make_durable(catalog, store, t1, &err));
    assert_status(STATUS_CONFLICT, iceberg_table_make_durable(catalog, store, t0, &err));
    struct catalog_change change;
    catalog_change_init(&change, 0);
    catalog_update_set_property(&change, "x", "y");
    assert_ok(iceberg_change_commit(catalog, t1, &change, &t2, &err));
    catalog_change_deinit(&change);
    assert_int_equal(t2->current->snapshot_id, 5);
    assert_string_equal(iceberg_table_property(t2, "x"), "y");
    iceberg_table_destroy(t0);
    iceberg_table_destroy(t1);
    iceberg_table_destroy(t2);
}

/* Totals that a parent's writer left out are counted. */
static void test_totals_without_parent(void **state)
{
    (void)state;
    struct error err;
    struct iceberg_table *t0 = create(), *t1, *t2;
    assert_ok(append(t0, 11, 1, &t1, &err));
    json_remove(json_get(json_get(t1->base.metadata, "snapshots")->last, "summary"),
                "total-files-size");
    assert_ok(append(t1, 22, 2, &t2, &err));
    assert_string_equal(iceberg_snapshot_summary(t2->current, "total-files-size"), "2003");
    assert_string_equal(iceberg_snapshot_summary(t2->current, "total-data-files"), "2");
    assert_string_equal(iceberg_snapshot_summary(t2->current, "total-records"), "20");
    iceberg_table_destroy(t0);
    iceberg_table_destroy(t1);
    iceberg_table_destroy(t2);
}

static void test_create_refuses(void **state)
{
    (void)state;
    struct error err;
    struct iceberg_table *table;
    struct iceberg_field fields[] = {{.id = 1, .name = "time", .type = ICEBERG_LONG},
                                     {.id = 2, .name = "taken", .type = ICEBERG_LONG}};
    struct iceberg_schema schema = {.fields = fields, .field_count = 2};
    static const struct iceberg_partition_field bad[] = {
        {1, 0, "time_day", {ICEBERG_DAY, 0}},   {7, 0, "x", {ICEBERG_IDENTITY, 0}},
        {1, 0, "a-b", {ICEBERG_IDENTITY, 0}},   {1, 0, "", {ICEBERG_IDENTITY, 0}},
        {1, 0, "taken", {ICEBERG_IDENTITY, 0}}, {1, 0, "time", {ICEBERG_BUCKET, 4}},
        {1, 0, "1x", {ICEBERG_IDENTITY, 0}},    {1, 0, "x", {ICEBERG_TRANSFORM_UNKNOWN, 0}},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct iceberg_partition_field field = bad[i];
        struct iceberg_spec spec = {.fields = &field, .field_count = 1};
        struct iceberg_table_options options = {.schema = &schema, .spec = &spec};
        enum status status =
            iceberg_table_create(env_real(), catalog, store, ident, &options, &table, &err);
        if (status != STATUS_INVALID)
            fail_msg("case %zu: %s", i, status_name(status));
    }
}

static void test_create_names_the_unsorted_order(void **state)
{
    (void)state;
    struct error err;
    struct iceberg_field fields[] = {{.id = 1, .name = "n", .type = ICEBERG_LONG}};
    struct iceberg_schema schema = {.fields = fields, .field_count = 1};
    struct iceberg_sort_field by_n = {.source_id = 1, .transform = {ICEBERG_IDENTITY, 0}};
    struct iceberg_sort_order order = {.fields = &by_n, .field_count = 1};
    static const char *const names[] = {"unsorted", "sorted"};
    for (int i = 0; i < 2; i++) {
        struct iceberg_table *table;
        struct catalog_ident one = {.ns = "ns", .name = names[i]};
        struct iceberg_table_options options = {.schema = &schema, .sort_order = i ? &order : NULL};
        assert_ok(iceberg_table_create(env_real(), catalog, store, one, &options, &table, &err));
        assert_int_equal(table->default_sort_order_id, i);
        assert_int_equal(table->sort_order_count, 1 + i);
        for (int32_t id = 0; id <= i; id++) {
            assert_int_equal(table->sort_orders[id].order_id, id);
            assert_int_equal(table->sort_orders[id].field_count, id);
        }
        iceberg_table_destroy(table);
    }
}

/* ---- damage ---- */

static void overwrite(const char *uri, const void *data, size_t bytes)
{
    struct error err;
    assert_ok(store_put(store, uri, data, bytes, &err));
}

/* Every byte of a list and a manifest, cut off and flipped: an answer each time. */
static void damage(const struct iceberg_table *table, const char *uri)
{
    struct error err;
    struct buf whole;
    buf_init(&whole, 0);
    assert_ok(store_get(store, uri, 1 << 20, &whole, &err));
    for (size_t i = 0; i < whole.length; i++) {
        for (int kind = 0; kind < 2; kind++) {
            struct iceberg_plan plan = {0};
            struct iceberg_plan_options options = {.with_metrics = true};
            whole.data[i] ^= kind ? 0x41 : 0;
            struct error ignored;
            enum status status =
                store_put_hint(store, uri, whole.data, kind ? whole.length : i, &ignored);
            assert_int_equal(status, STATUS_OK);
            status = iceberg_plan_create(store, table, table->current, &options, &plan, &err);
            if (status == STATUS_NO_MEMORY || status == STATUS_NOT_FOUND)
                fail_msg("byte %zu: %s", i, err.message);
            iceberg_plan_deinit(&plan);
            whole.data[i] ^= kind ? 0x41 : 0;
        }
    }
    overwrite(uri, whole.data, whole.length);
    buf_deinit(&whole);
}

static void test_damaged_manifests(void **state)
{
    (void)state;
    struct error err;
    struct iceberg_table *t0 = create(), *t1;
    struct iceberg_plan plan;
    assert_ok(append(t0, 11, 1, &t1, &err));
    assert_ok(iceberg_plan_create(store, t1, t1->current, NULL, &plan, &err));
    damage(t1, t1->current->manifest_list);
    damage(t1, plan.files[0].manifest_path);
    assert_ok(store_delete(store, plan.files[0].manifest_path, &err));
    struct iceberg_plan none;
    assert_status(STATUS_CORRUPT, iceberg_plan_create(store, t1, t1->current, NULL, &none, &err));
    iceberg_plan_deinit(&plan);
    iceberg_table_destroy(t0);
    iceberg_table_destroy(t1);
}

static void test_damaged_metadata(void **state)
{
    (void)state;
    struct error err;
    struct iceberg_table *t0 = create(), *t1, *found;
    assert_ok(append(t0, 11, 1, &t1, &err));
    static const char *const removed[] = {
        "table-uuid",           "location",        "schemas",        "current-schema-id",
        "partition-specs",      "default-spec-id", "sort-orders",    "last-sequence-number",
        "last-updated-ms",      "last-column-id",  "format-version", "snapshots",
        "default-sort-order-id"};
    for (size_t i = 0; i < COUNT_OF(removed); i++) {
        struct arena arena;
        struct buf text;
        arena_init(&arena, 0);
        buf_init(&text, 0);
        struct json_value *copy = json_copy(&arena, t1->base.metadata);
        assert_true(json_remove(copy, removed[i]));
        assert_ok(json_serialize(copy, &text, &err));
        overwrite("damaged.metadata.json", text.data, text.length);
        enum status status = iceberg_table_open(store, "damaged.metadata.json", &found, &err);
        if (status != STATUS_CORRUPT)
            fail_msg("without %s: %s", removed[i], status_name(status));
        buf_deinit(&text);
        arena_deinit(&arena);
    }
    overwrite("v3.metadata.json", "{\"format-version\":3}", 20);
    assert_status(STATUS_UNSUPPORTED, iceberg_table_open(store, "v3.metadata.json", &found, &err));
    iceberg_table_destroy(t0);
    iceberg_table_destroy(t1);
}

/* Whatever allocation fails: an answer, and only UNKNOWN_OUTCOME where the table has moved. */
static void test_memory_failures(void **state)
{
    (void)state;
    struct error err;
    struct iceberg_table *t0 = create(), *t1, *t2 = NULL;
    assert_ok(append(t0, 11, 1, &t1, &err));
    bool is_done = false;
    for (int64_t n = 0; !is_done && n < 2000; n++) {
        struct iceberg_table *now;
        alloc_fail_after(n);
        enum status status = append(t1, 22, 2, &t2, &err);
        alloc_fail_after(-1);
        is_done = status == STATUS_OK;
        assert_ok(iceberg_table_load(catalog, ident, &now, &err));
        bool has_moved = now->current->snapshot_id == 22;
        if (!is_done && status != STATUS_UNKNOWN_OUTCOME && has_moved)
            fail_msg("allocation %d: %s: %s", (int)n, status_name(status), err.message);
        iceberg_table_destroy(now);
        if (has_moved &&
            !is_done) { /* the outcome was unknown, and it was applied: go on from it */
            is_done = true;
        }
    }
    assert_true(is_done);
    iceberg_table_destroy(t0);
    iceberg_table_destroy(t1);
    iceberg_table_destroy(t2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash_vectors),
        cmocka_unit_test(test_time_transforms),
        cmocka_unit_test(test_truncate),
        cmocka_unit_test(test_transform_text_and_types),
        cmocka_unit_test(test_values_in_order),
        cmocka_unit_test(test_values_encoded),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_partition_path),
        cmocka_unit_test(test_schema_json),
        cmocka_unit_test(test_schema_loses),
        cmocka_unit_test(test_schema_refused),
        cmocka_unit_test(test_schema_ids),
        cmocka_unit_test(test_schema_and_arrow),
        cmocka_unit_test_setup_teardown(test_append_and_plan, setup, teardown),
        cmocka_unit_test_setup_teardown(test_conditions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_takeover, setup, teardown),
        cmocka_unit_test_setup_teardown(test_totals_without_parent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_create_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_create_names_the_unsorted_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_manifests, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_metadata, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_failures, setup, teardown),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
