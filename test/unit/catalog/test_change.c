/* SPDX-License-Identifier: Apache-2.0 */
#include "test_catalog.h"

const char test_metadata[] =
    "{\"format-version\":2,\"table-uuid\":\"11111111-2222-4333-8444-555555555555\","
    "\"location\":\"/nowhere/t\",\"last-sequence-number\":3,\"last-updated-ms\":1000,"
    "\"last-column-id\":2,\"current-schema-id\":0,"
    "\"schemas\":[{\"type\":\"struct\",\"schema-id\":0,\"fields\":["
    "{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":\"long\"},"
    "{\"id\":2,\"name\":\"b\",\"required\":false,\"type\":\"string\"}]}],"
    "\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,\"fields\":[]}],"
    "\"last-partition-id\":999,\"default-sort-order-id\":0,"
    "\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],"
    "\"properties\":{\"p\":\"v\"},\"current-snapshot-id\":30,"
    "\"refs\":{\"main\":{\"snapshot-id\":30,\"type\":\"branch\",\"max-ref-age-ms\":5},"
    "\"tag\":{\"snapshot-id\":10,\"type\":\"tag\"}},"
    "\"snapshots\":[{\"snapshot-id\":10,\"sequence-number\":1,\"timestamp-ms\":800,"
    "\"manifest-list\":\"l1\",\"summary\":{\"operation\":\"append\"}},"
    "{\"snapshot-id\":20,\"parent-snapshot-id\":10,\"sequence-number\":2,\"timestamp-ms\":900,"
    "\"manifest-list\":\"l2\",\"summary\":{\"operation\":\"append\"}},"
    "{\"snapshot-id\":30,\"parent-snapshot-id\":20,\"sequence-number\":3,\"timestamp-ms\":1000,"
    "\"manifest-list\":\"l3\",\"summary\":{\"operation\":\"append\"}}],"
    "\"snapshot-log\":[{\"timestamp-ms\":800,\"snapshot-id\":10},"
    "{\"timestamp-ms\":900,\"snapshot-id\":20},{\"timestamp-ms\":1000,\"snapshot-id\":30}],"
    "\"statistics\":[{\"snapshot-id\":20,\"statistics-path\":\"s\"}],"
    "\"unheard-of\":{\"kept\":[1.50]},\"nothing\":null}";

struct fixture {
    struct arena arena;
    struct json_value *metadata;
    struct catalog_change change;
};

static void start(struct fixture *f, int64_t timestamp_ms)
{
    struct error err;
    arena_init(&f->arena, 0);
    assert_ok(json_parse(test_metadata, strlen(test_metadata), &f->arena, &f->metadata, &err));
    catalog_change_init(&f->change, timestamp_ms);
}

static void end(struct fixture *f)
{
    catalog_change_deinit(&f->change);
    arena_deinit(&f->arena);
}

static void add(struct fixture *f, const char *update)
{
    struct error err;
    struct json_value *tree;
    assert_ok(json_parse(update, strlen(update), &f->arena, &tree, &err));
    catalog_update_add(&f->change, tree);
}

static enum status apply(struct fixture *f, struct error *err)
{
    return catalog_change_apply(&f->change, "/nowhere/t/metadata/00003-x.metadata.json", &f->arena,
                                f->metadata, err);
}

static int64_t number(const struct json_value *object, const char *key)
{
    int64_t value = -999;
    json_get_i64(object, key, &value);
    return value;
}

void test_requirements(void **state)
{
    (void)state;
    struct error err;
    for (int which = 0; which < 12; which++) {
        struct fixture f;
        start(&f, 0);
        bool holds = which < 6;
        switch (which) {
        case 0:
            catalog_require_uuid(&f.change, "11111111-2222-4333-8444-555555555555");
            catalog_require_ref(&f.change, "main", 30);
            catalog_require_ref(&f.change, "none", -1);
            break;
        case 1:
            catalog_require_last_sequence(&f.change, 3);
            catalog_require_last_updated(&f.change, 1000);
            break;
        case 2:
            catalog_require_property(&f.change, "p", "v");
            break;
        case 3:
            catalog_require_property(&f.change, "q", NULL);
            break;
        case 4:
            json_remove(f.metadata, "refs"); /* old writers: only current-snapshot-id */
            catalog_require_ref(&f.change, "main", 30);
            break;
        case 5:
            json_remove(json_get(f.metadata, "refs"), "main");
            assert_true(
                json_set(&f.arena, f.metadata, "current-snapshot-id", json_new_i64(&f.arena, -1)));
            catalog_require_ref(&f.change, "main", -1);
            break;
        case 6:
            catalog_require_uuid(&f.change, "11111111-2222-4333-8444-555555555556");
            break;
        case 7:
            catalog_require_ref(&f.change, "main", 20);
            break;
        case 8:
            catalog_require_ref(&f.change, "main", -1);
            break;
        case 9:
            catalog_require_last_sequence(&f.change, 2);
            break;
        case 10:
            catalog_require_property(&f.change, "p", NULL);
            break;
        case 11:
            catalog_require_property(&f.change, "p", "other");
            break;
        }
        assert_false(f.change.failed);
        enum status status = catalog_change_check(&f.change, f.metadata, &err);
        if (status != (holds ? STATUS_OK : STATUS_CONFLICT))
            fail_msg("case %d: %s", which, status_name(status));
        end(&f);
    }
}

void test_apply_snapshots(void **state)
{
    (void)state;
    struct error err;
    struct fixture f;
    start(&f, 500); /* a clock behind the table's: raised (E9) */
    struct json_value *snapshot;
    static const char text[] =
        "{\"snapshot-id\":40,\"parent-snapshot-id\":30,\"sequence-number\":4,"
        "\"timestamp-ms\":1000,\"manifest-list\":\"l4\",\"summary\":{}}";
    assert_ok(json_parse(text, strlen(text), &f.arena, &snapshot, &err));
    catalog_update_add_snapshot(&f.change, snapshot);
    catalog_update_set_ref(&f.change, "main", 40);
    catalog_update_set_property(&f.change, "p", "w");
    catalog_update_set_property(&f.change, "q", "r");
    assert_int_equal(f.change.updates->count, 3);
    assert_ok(apply(&f, &err));
    assert_int_equal(number(f.metadata, "last-sequence-number"), 4);
    assert_int_equal(number(f.metadata, "current-snapshot-id"), 40);
    assert_int_equal(number(f.metadata, "last-updated-ms"), 1000);
    const struct json_value *main_ref = json_get(json_get(f.metadata, "refs"), "main");
    assert_int_equal(number(main_ref, "snapshot-id"), 40);
    assert_int_equal(number(main_ref, "max-ref-age-ms"), 5);
    const struct json_value *log = json_get(f.metadata, "snapshot-log");
    assert_int_equal(log->count, 4);
    assert_int_equal(number(log->last, "snapshot-id"), 40);
    log = json_get(f.metadata, "metadata-log");
    assert_int_equal(log->count, 1);
    assert_int_equal(number(log->first, "timestamp-ms"), 1000);
    assert_string_equal(json_get_text(json_get(f.metadata, "properties"), "p"), "w");
    /* What we do not know stays, nulls go. */
    assert_string_equal(json_at(json_get(json_get(f.metadata, "unheard-of"), "kept"), 0)->text,
                        "1.50");
    assert_null(json_get(f.metadata, "nothing"));
    end(&f);
}

void test_apply_removals(void **state)
{
    (void)state;
    struct error err;
    struct fixture f;
    start(&f, 2000);
    add(&f, "{\"action\":\"remove-snapshots\",\"snapshot-ids\":[20]}");
    add(&f, "{\"action\":\"remove-snapshot-ref\",\"ref-name\":\"tag\"}");
    add(&f, "{\"action\":\"remove-properties\",\"removals\":[\"p\",\"none\"]}");
    assert_ok(apply(&f, &err));
    assert_int_equal(json_get(f.metadata, "snapshots")->count, 2);
    assert_int_equal(json_get(f.metadata, "statistics")->count, 0);
    /* Entries before the gap go, or the history would be wrong. */
    assert_int_equal(json_get(f.metadata, "snapshot-log")->count, 1);
    assert_int_equal(json_get(f.metadata, "refs")->count, 1);
    assert_int_equal(json_get(f.metadata, "properties")->count, 0);
    assert_int_equal(number(f.metadata, "last-updated-ms"), 2000);
    end(&f);

    start(&f, 2000);
    add(&f, "{\"action\":\"remove-snapshots\",\"snapshot-ids\":[30,10]}");
    assert_ok(apply(&f, &err));
    assert_int_equal(json_get(f.metadata, "refs")->count, 0);
    assert_null(json_get(f.metadata, "current-snapshot-id"));
    end(&f);
}

void test_apply_schemas(void **state)
{
    (void)state;
    struct error err;
    struct fixture f;
    start(&f, 2000);
    add(&f,
        "{\"action\":\"add-schema\",\"schema\":{\"type\":\"struct\",\"schema-id\":0,\"fields\":["
        "{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":\"long\"},"
        "{\"id\":5,\"name\":\"m\",\"required\":false,\"type\":{\"type\":\"map\",\"key-id\":6,"
        "\"key\":\"string\",\"value-id\":7,\"value\":\"int\",\"value-required\":false}}]}}");
    add(&f, "{\"action\":\"set-current-schema\",\"schema-id\":-1}");
    add(&f, "{\"action\":\"add-spec\",\"spec\":{\"fields\":[{\"source-id\":1,\"field-id\":1003,"
            "\"name\":\"x\",\"transform\":\"identity\"}]}}");
    add(&f, "{\"action\":\"set-default-spec\",\"spec-id\":-1}");
    add(&f,
        "{\"action\":\"add-sort-order\",\"sort-order\":{\"fields\":[]}}"); /* equal to order 0 */
    add(&f, "{\"action\":\"set-default-sort-order\",\"sort-order-id\":-1}");
    assert_ok(apply(&f, &err));
    assert_int_equal(number(f.metadata, "current-schema-id"), 1);
    assert_int_equal(number(f.metadata, "last-column-id"), 7);
    assert_int_equal(number(f.metadata, "default-spec-id"), 1);
    assert_int_equal(number(f.metadata, "last-partition-id"), 1003);
    assert_int_equal(json_get(f.metadata, "sort-orders")->count, 1);
    assert_int_equal(number(f.metadata, "default-sort-order-id"), 0);
    end(&f);
}

void test_apply_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *update;
        enum status expected;
    } cases[] = {
        {"{\"action\":\"no-such-thing\"}", STATUS_INVALID},
        {"{}", STATUS_INVALID},
        {"{\"action\":\"set-snapshot-ref\",\"ref-name\":\"main\",\"snapshot-id\":99}",
         STATUS_INVALID},
        {"{\"action\":\"add-snapshot\",\"snapshot\":{\"snapshot-id\":30,\"sequence-number\":9,"
         "\"timestamp-ms\":1}}",
         STATUS_CONFLICT},
        {"{\"action\":\"add-snapshot\",\"snapshot\":{\"snapshot-id\":50,\"sequence-number\":3,"
         "\"timestamp-ms\":1}}",
         STATUS_CONFLICT},
        {"{\"action\":\"add-snapshot\"}", STATUS_INVALID},
        {"{\"action\":\"set-current-schema\",\"schema-id\":7}", STATUS_INVALID},
        {"{\"action\":\"set-current-schema\",\"schema-id\":-1}", STATUS_INVALID},
        {"{\"action\":\"set-properties\",\"updates\":{\"a\":1}}", STATUS_INVALID},
        {"{\"action\":\"upgrade-format-version\",\"format-version\":3}", STATUS_UNSUPPORTED},
        {"{\"action\":\"upgrade-format-version\",\"format-version\":1}", STATUS_INVALID},
        {"{\"action\":\"assign-uuid\",\"uuid\":\"x\"}", STATUS_INVALID},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct error err;
        struct fixture f;
        start(&f, 2000);
        add(&f, cases[i].update);
        enum status status = apply(&f, &err);
        if (status != cases[i].expected)
            fail_msg("%s: %s", cases[i].update, status_name(status));
        end(&f);
    }
}

void test_change_without_memory(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 3; n++) {
        struct catalog_change change;
        alloc_fail_after(n);
        catalog_change_init(&change, 1);
        for (int i = 0; i < 200; i++) {
            catalog_require_property(&change, "key", "value");
            catalog_update_set_property(&change, "key", "value");
            catalog_update_remove_property(&change, "key");
        }
        alloc_fail_after(-1);
        assert_true(change.failed);
        catalog_change_deinit(&change);
    }
}
