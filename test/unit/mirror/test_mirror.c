/* SPDX-License-Identifier: Apache-2.0
 *
 * What is copied, in which order, and what goes; on the caller's thread.
 */
#include "mirror_fixture.h"
#include "mirror_tests.h"

static uint64_t append_many(struct mirrored *m, uint64_t first, uint64_t count)
{
    uint64_t seq = 0;
    for (uint64_t i = 0; i < count; i++)
        seq = fixture_append(&m->log, first + i, 1000 + (first + i) % 3000);
    return seq;
}

static void ack_all(struct mirrored *m)
{
    struct error err;
    struct wal_ack ack = {.through = wal_synced_end(m->log.wal, 0)};
    ack.committed = ack.through;
    assert_ok(wal_ack_table(m->log.wal, m->log.table, &ack, &err));
}

/* Waits until the keeper has moved everything sealed to committed/. */
static void wait_committed(struct mirrored *m)
{
    for (int i = 0; i < 2000 && wal_usage(m->log.wal).segments_sealed > 0; i++)
        env_sleep_ms(env_real(), 5);
    assert_true(wal_usage(m->log.wal).segments_sealed == 0);
}

/* Each range is contiguous with the one before it, and has the bytes of the log's file. Returns how
 * many bytes. */
static uint64_t check_ranges(struct mirrored *m, const struct found_list *list)
{
    struct error err;
    uint64_t id = 0, end = 0, bytes = 0;
    bool is_ended = true;
    for (size_t i = 0; i < list->count; i++) {
        const struct mirror_header *header = &list->items[i].header;
        if (header->kind != MIRROR_RANGE)
            continue;
        if (header->id != id) {
            assert_true(is_ended); /* only the last one is open */
            end = 0;
        }
        id = header->id;
        assert_true(header->from == end);
        end = header->to;
        is_ended = header->flags & MIRROR_IS_END;
        assert_true(!is_ended || header->floor == UINT64_MAX);
        struct wal_segment_file *file;
        size_t length = (size_t)(header->to - header->from);
        assert_true(length <= m->options.range_bytes);
        uint8_t *ours = mem_alloc(length);
        assert_non_null(ours);
        assert_ok(wal_segment_open(m->log.wal, id, &file, &err));
        assert_ok(wal_segment_read(file, header->from, ours, length, &err));
        wal_segment_close(file);
        assert_memory_equal(ours, list->items[i].object.data + MIRROR_HEADER_BYTES, length);
        mem_free(ours);
        bytes += length;
    }
    return bytes;
}

static void test_copies_what_is_synced(void **state)
{
    struct error err;
    struct mirrored m;
    static struct found_list list;
    (void)state;
    mirrored_init(&m, "mirror");
    append_many(&m, 0, 100);
    assert_ok(mirror_run_once(m.mirror, &err));
    assert_true(mirror_confirmed(m.mirror, 0) == wal_synced_end(m.log.wal, 0).seq);
    found_read(&list, m.url);
    uint64_t bytes = check_ranges(&m, &list);
    assert_true(bytes > 200000);
    assert_true(mirror_stats(m.mirror).uploaded_bytes_total == bytes);
    assert_true(mirror_stats(m.mirror).queue_bytes < 3 * 4096); /* a floor unit may follow */
    assert_int_equal(found_count(&list, MIRROR_STATE), 1);
    found_free(&list);
    uint64_t seq = append_many(&m, 100, 1);
    assert_true(mirror_confirmed(m.mirror, 0) < seq);
    assert_ok(mirror_run_once(m.mirror, &err));
    assert_true(mirror_confirmed(m.mirror, 0) == seq);
    found_read(&list, m.url);
    assert_true(check_ranges(&m, &list) > bytes);
    found_free(&list);
    mirrored_deinit(&m);
}

/* A start goes on where the confirmed ranges end, and removes what lies behind a gap. */
static void test_goes_on_after_a_restart(void **state)
{
    struct error err;
    struct mirrored m;
    static struct found_list list;
    (void)state;
    mirrored_init(&m, "mirror");
    append_many(&m, 0, 100);
    assert_ok(mirror_run_once(m.mirror, &err));
    uint64_t bytes = mirror_stats(m.mirror).uploaded_bytes_total;
    mirrored_reopen(&m);
    append_many(&m, 100, 5);
    assert_ok(mirror_run_once(m.mirror, &err));
    assert_true(mirror_stats(m.mirror).uploaded_bytes_total < 60000 &&
                mirror_stats(m.mirror).uploaded_bytes_total < bytes / 3);
    found_read(&list, m.url);
    check_ranges(&m, &list);
    /* The second range of the first segment is lost: it is copied again, with what is behind. */
    size_t count = list.count;
    char name[MIRROR_NAME_BYTES];
    assert_true(list.items[1].header.id == list.items[2].header.id);
    mirror_name_put(&list.items[1].header, name);
    assert_ok(store_delete(list.store, name, &err));
    found_free(&list);
    mirrored_reopen(&m);
    assert_ok(mirror_run_once(m.mirror, &err));
    found_read(&list, m.url);
    check_ranges(&m, &list);
    assert_true(list.count >= count);
    found_free(&list);
    mirrored_deinit(&m);
}

/* A log from a mirror; the shortest way. */
static void rebuild(const struct found_list *list, const char *dir)
{
    struct error err;
    const struct found *state = NULL;
    char path[400];
    for (size_t i = 0; i < list->count; i++)
        state = list->items[i].header.kind == MIRROR_STATE ? &list->items[i] : state;
    assert_non_null(state);
    snprintf(path, sizeof path, "%s/state", dir);
    assert_ok(files_make_dirs(env_real(), path, &err));
    snprintf(path, sizeof path, "%s/state/0000000000000000.state", dir);
    assert_ok(files_replace(env_real(), path, state->object.data + MIRROR_HEADER_BYTES,
                            state->object.length - MIRROR_HEADER_BYTES, &err));
    for (size_t i = 0, next; i < list->count && list->items[i].header.kind == MIRROR_RANGE;
         i = next) {
        struct buf file = {0};
        bool is_ended = false;
        for (next = i; next < list->count && list->items[next].header.kind == MIRROR_RANGE &&
                       list->items[next].header.id == list->items[i].header.id;
             next++) {
            buf_put(&file, list->items[next].object.data + MIRROR_HEADER_BYTES,
                    list->items[next].object.length - MIRROR_HEADER_BYTES);
            is_ended = list->items[next].header.flags & MIRROR_IS_END;
        }
        snprintf(path, sizeof path, "%s/%s", dir, is_ended ? "sealed" : "active");
        assert_ok(files_make_dirs(env_real(), path, &err));
        snprintf(path, sizeof path, "%s/%s/%016llx.seg", dir, is_ended ? "sealed" : "active",
                 (unsigned long long)list->items[i].header.id);
        assert_ok(files_replace(env_real(), path, file.data, file.length, &err));
        buf_deinit(&file);
    }
}

/* What tables have goes, after a state that says so; the rest, with that state, is the log. */
static void test_sweeps_what_tables_have(void **state)
{
    struct error err;
    struct mirrored m;
    static struct found_list list;
    static uint64_t numbers[200];
    (void)state;
    mirrored_init(&m, "mirror");
    append_many(&m, 0, 100);
    assert_ok(mirror_run_once(m.mirror, &err));
    found_read(&list, m.url);
    size_t before = found_count(&list, MIRROR_RANGE);
    uint64_t first_id = list.items[0].header.id;
    found_free(&list);
    assert_ok(wal_seal(m.log.wal, &err));
    ack_all(&m);
    wait_committed(&m);
    append_many(&m, 100, 40);
    assert_ok(mirror_run_once(m.mirror, &err));
    found_read(&list, m.url);
    assert_true(list.items[0].header.id > first_id);
    assert_true(found_count(&list, MIRROR_RANGE) < before);
    assert_int_equal(found_count(&list, MIRROR_STATE), 2);
    assert_true(mirror_stats(m.mirror).swept_total == before);
    check_ranges(&m, &list);
    struct fixture copy = m.log;
    snprintf(copy.dir, sizeof copy.dir, "%s-copy", m.log.dir);
    copy.options.dir = copy.dir;
    copy.wal = NULL;
    rebuild(&list, copy.dir);
    found_free(&list);
    assert_ok(wal_open(env_real(), &copy.options, &copy.wal, &err));
    struct wal_damage damage;
    if (wal_damage_at(copy.wal, 0, &damage))
        fail_msg("damage: %llu-%llu %s", (unsigned long long)damage.seq_first,
                 (unsigned long long)damage.seq_last, damage.where);
    assert_int_equal(wal_table_find(copy.wal, "otel.logs"), copy.table);
    struct wal_scan *scan;
    struct wal_view view;
    size_t count = 0;
    assert_status(STATUS_RECLAIMED, wal_scan_open(copy.wal, 0, copy.table, 0, &scan, &err));
    uint64_t from = wal_reclaimed_through(copy.wal, 0, copy.table);
    assert_ok(wal_scan_open(copy.wal, 0, copy.table, from, &scan, &err));
    while (wal_scan_next(scan, &view, &err) == STATUS_OK)
        numbers[count++] = get_le64(view.payload.data);
    wal_scan_close(scan);
    assert_int_equal(count, 40);
    for (size_t i = 0; i < count; i++)
        assert_true(numbers[i] == 100 + i);
    fixture_deinit(&copy);
    mirrored_deinit(&m);
}

/* A committed segment needs no copy, and who asked for one is told that there is none. */
static void test_passes_over_what_tables_have(void **state)
{
    struct error err;
    struct mirrored m;
    static struct found_list list;
    int64_t at_ms;
    (void)state;
    mirrored_init(&m, "mirror");
    uint64_t lost = append_many(&m, 0, 30);
    assert_ok(wal_seal(m.log.wal, &err));
    ack_all(&m);
    wait_committed(&m);
    uint64_t kept = append_many(&m, 30, 1);
    assert_ok(mirror_run_once(m.mirror, &err));
    assert_true(mirror_confirmed(m.mirror, 0) >= kept);
    assert_false(mirror_receipt(m.mirror, 0, lost, &at_ms));
    kept = append_many(&m, 31, 1);
    assert_ok(mirror_run_once(m.mirror, &err));
    assert_true(mirror_receipt(m.mirror, 0, kept, &at_ms));
    assert_true(at_ms > 1600000000000);
    assert_false(mirror_receipt(m.mirror, 0, kept + 1, &at_ms));
    found_read(&list, m.url);
    check_ranges(&m, &list);
    assert_true(found_count(&list, MIRROR_RANGE) <= 2);
    found_free(&list);
    mirrored_deinit(&m);
}

static void put_head(struct mirrored *m, struct mirror_head head)
{
    struct error err;
    struct buf text = {0};
    char path[400];
    snprintf(path, sizeof path, "%s/head", m->url);
    mirror_head_encode(&text, &head);
    assert_ok(files_make_dirs(env_real(), m->url, &err));
    assert_ok(files_replace(env_real(), path, text.data, text.length, &err));
    buf_deinit(&text);
}

static void test_refuses(void **state)
{
    struct error err;
    struct mirrored m;
    char path[400], copy[400], command[1000];
    (void)state;
    mirrored_init(&m, "mirror");
    append_many(&m, 0, 20);
    struct mirror_head head = {
        .log_id = wal_log_id(m.log.wal), .incarnation = 1, .group_count = 1, .made_ms = 1};
    head.log_id.bytes[0] ^= 1;
    put_head(&m, head);
    assert_status(STATUS_HALTED, mirror_run_once(m.mirror, &err));
    assert_status(STATUS_HALTED, mirror_check(m.mirror, &err));
    assert_true(mirror_stats(m.mirror).condition == MIRROR_REFUSED);
    snprintf(path, sizeof path, "%s/head", m.url);
    assert_ok(files_replace(env_real(), path, "{}", 2, &err));
    mirrored_reopen(&m);
    assert_status(STATUS_HALTED, mirror_run_once(m.mirror, &err));
    assert_ok(files_remove(env_real(), path, &err));
    mirrored_reopen(&m);
    assert_ok(mirror_run_once(m.mirror, &err));

    /* The data directory is an older copy than the mirror. */
    mirrored_close(&m);
    snprintf(copy, sizeof copy, "%s-copy", m.log.dir);
    snprintf(command, sizeof command, "cp -a '%s' '%s'", m.log.dir, copy);
    assert_int_equal(system(command), 0);
    fixture_open(&m.log);
    mirrored_open(&m);
    append_many(&m, 21, 30);
    assert_ok(mirror_run_once(m.mirror, &err));
    mirrored_close(&m);
    remove_everything(m.log.dir);
    assert_int_equal(rename(copy, m.log.dir), 0);
    fixture_open(&m.log);
    mirrored_open(&m);
    assert_status(STATUS_HALTED, mirror_run_once(m.mirror, &err));
    assert_non_null(strstr(err.message, "old copy"));
    assert_true(wal_fenced_by(m.log.wal) == 0);
    mirrored_deinit(&m);
}

/* What was on its way when somebody began to recover is not confirmed: he may have read the list
 * before. The log is fenced (L36), at once and after a restart. */
static void test_recovered_elsewhere(void **state)
{
    struct error err;
    struct mirrored m;
    (void)state;
    mirrored_init(&m, "mirror");
    uint64_t seq = append_many(&m, 0, 20);
    assert_ok(mirror_run_once(m.mirror, &err));
    assert_true(append_many(&m, 20, 1) > seq);
    put_head(&m, (struct mirror_head){
                     .log_id = wal_log_id(m.log.wal), .incarnation = 2, .group_count = 1});
    assert_status(STATUS_HALTED, mirror_run_once(m.mirror, &err));
    assert_status(STATUS_HALTED, mirror_check(m.mirror, &err));
    assert_non_null(strstr(err.message, "recovered elsewhere"));
    assert_true(mirror_stats(m.mirror).condition == MIRROR_REFUSED);
    assert_true(mirror_confirmed(m.mirror, 0) == seq);
    assert_true(wal_fenced_by(m.log.wal) == 2);
    mirrored_deinit(&m);

    mirrored_init(&m, "mirror");
    append_many(&m, 0, 20);
    put_head(&m, (struct mirror_head){
                     .log_id = wal_log_id(m.log.wal), .incarnation = 3, .group_count = 1});
    assert_status(STATUS_HALTED, mirror_run_once(m.mirror, &err));
    assert_true(wal_fenced_by(m.log.wal) == 3);
    mirrored_deinit(&m);
}

/* A copy of the data directory is started beside the original: from then on only one of them is
 * told that something is in the mirror. */
static void test_two_of_one_log(void **state)
{
    struct error err;
    struct mirrored m, copy;
    char command[1000];
    (void)state;
    mirrored_init(&m, "mirror");
    uint64_t seq = append_many(&m, 0, 20);
    assert_ok(mirror_run_once(m.mirror, &err));
    copy = m;
    snprintf(copy.log.dir, sizeof copy.log.dir, "%s-copy", m.log.dir);
    snprintf(command, sizeof command, "cp -a '%s' '%s'", m.log.dir, copy.log.dir);
    assert_int_equal(system(command), 0);
    copy.log.options.dir = copy.log.dir;
    fixture_open(&copy.log);
    mirrored_open(&copy);
    append_many(&copy, 100, 3);
    assert_ok(mirror_run_once(copy.mirror, &err));
    assert_true(append_many(&m, 20, 3) > seq);
    assert_status(STATUS_HALTED, mirror_run_once(m.mirror, &err));
    assert_non_null(strstr(err.message, "another server"));
    assert_true(mirror_confirmed(m.mirror, 0) == seq && wal_fenced_by(m.log.wal) == 0);
    /* Nor does it take the place back: the copy knows more. */
    mirrored_reopen(&m);
    assert_status(STATUS_HALTED, mirror_run_once(m.mirror, &err));
    append_many(&copy, 103, 3);
    assert_ok(mirror_run_once(copy.mirror, &err));
    mirrored_close(&copy);
    remove_everything(copy.log.dir);
    mirrored_deinit(&m);
}

/* As `log recover` would: in both checkpoints of a log that is closed. */
static void raise_incarnation(const char *log_dir, uint64_t incarnation)
{
    enum { BODY = 64, INCARNATION_AT = BODY + 8 };
    struct error err;
    struct arena arena;
    char dir[400], path[800], **names;
    size_t count;
    arena_init(&arena, 0);
    snprintf(dir, sizeof dir, "%s/state", log_dir);
    assert_ok(files_list(env_real(), dir, &arena, &names, &count, &err));
    for (size_t i = 0; i < count; i++) {
        struct buf file = {0};
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_ok(files_read(env_real(), path, 1 << 20, &file, &err));
        put_le64(file.data + INCARNATION_AT, incarnation);
        put_le32(file.data + 36, crc32c(0, file.data + BODY, (size_t)get_le64(file.data + 24)));
        put_le32(file.data + 60, crc32c(0, file.data, 60));
        assert_ok(files_replace(env_real(), path, file.data, file.length, &err));
        buf_deinit(&file);
    }
    arena_deinit(&arena);
}

/* A recovered log copies all that it has under its own incarnation, before what the one before left
 * goes; that one, should it come back, writes nothing. */
static void test_after_a_recovery(void **state)
{
    struct error err;
    struct mirrored m;
    static struct found_list list;
    char old[400], command[1000];
    (void)state;
    mirrored_init(&m, "mirror");
    append_many(&m, 0, 60);
    assert_ok(mirror_run_once(m.mirror, &err));
    mirrored_close(&m);
    snprintf(old, sizeof old, "%s-old", m.log.dir);
    snprintf(command, sizeof command, "cp -a '%s' '%s'", m.log.dir, old);
    assert_int_equal(system(command), 0);
    raise_incarnation(m.log.dir, 2);
    fixture_open(&m.log);
    mirrored_open(&m);
    assert_true(wal_incarnation(m.log.wal) == 2);
    append_many(&m, 60, 5);
    assert_ok(mirror_run_once(m.mirror, &err));
    found_read(&list, m.url);
    assert_true(check_ranges(&m, &list) > 60000);
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i].header.kind == MIRROR_RANGE)
            assert_true(list.items[i].header.incarnation == 2);
    assert_true(list.items[list.count - 1].header.incarnation == 2);
    found_free(&list);
    mirrored_close(&m);
    remove_everything(m.log.dir);
    assert_int_equal(rename(old, m.log.dir), 0);
    fixture_open(&m.log);
    mirrored_open(&m);
    append_many(&m, 65, 5);
    assert_status(STATUS_HALTED, mirror_run_once(m.mirror, &err));
    assert_non_null(strstr(err.message, "recovered elsewhere"));
    mirrored_deinit(&m);
}

/* What fails is tried again; what was taken away is copied again. */
static void test_comes_back(void **state)
{
    struct error err;
    struct mirrored m;
    static struct found_list list;
    (void)state;
    mirrored_init(&m, "mirror");
    assert_ok(files_replace(env_real(), m.dir, "x", 1, &err)); /* no directory */
    uint64_t seq = append_many(&m, 0, 20);
    assert_true(mirror_run_once(m.mirror, &err) != STATUS_OK);
    struct mirror_stats stats = mirror_stats(m.mirror);
    assert_true(stats.condition == MIRROR_RETRIES && stats.failures_total[MIRROR_BEGIN] > 0);
    assert_true(stats.why[0] && stats.queue_bytes > 20000 && stats.uploads_total == 0);
    assert_true(mirror_confirmed(m.mirror, 0) == 0);
    assert_ok(files_remove(env_real(), m.dir, &err));
    assert_ok(mirror_run_once(m.mirror, &err));
    assert_true(mirror_confirmed(m.mirror, 0) >= seq);
    assert_true(mirror_stats(m.mirror).condition == MIRROR_RUNS);

    remove_everything(m.url);
    assert_ok(mirror_run_once(m.mirror, &err));
    found_read(&list, m.url);
    assert_true(check_ranges(&m, &list) > 20000);
    assert_true(list.items[0].header.from == 0);
    assert_int_equal(found_count(&list, MIRROR_STATE), 1);
    found_free(&list);
    mirrored_deinit(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_object),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_copies_what_is_synced),
        cmocka_unit_test(test_goes_on_after_a_restart),
        cmocka_unit_test(test_sweeps_what_tables_have),
        cmocka_unit_test(test_passes_over_what_tables_have),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_recovered_elsewhere),
        cmocka_unit_test(test_two_of_one_log),
        cmocka_unit_test(test_after_a_recovery),
        cmocka_unit_test(test_comes_back),
        cmocka_unit_test(test_waiters),
        cmocka_unit_test(test_waiters_of_what_is_gone),
        cmocka_unit_test(test_stop_copies),
        cmocka_unit_test(test_refused_waiters),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
