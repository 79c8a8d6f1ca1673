/* SPDX-License-Identifier: Apache-2.0
 *
 * Many groups in the same segments, each of which has a few of them: what the index says of each
 * after a start from headers and footers, and after segments were reclaimed.
 */
#include "wal_fixture.h"
#include "wal_tests.h"

enum { GROUPS = 200, EACH = 30, SEGMENTS = 80, PLACES_MAX = SEGMENTS * EACH };

struct place {
    uint32_t group;
    uint64_t seq, chain;
};

static struct place places[PLACES_MAX];
static size_t place_count;

/* One entry in each of EACH groups from `first` on. */
static void turn(struct fixture *f, uint32_t first)
{
    static const uint8_t payload[8] = {1};
    struct wal_entry entries[EACH];
    struct error err;
    for (uint32_t i = 0; i < EACH; i++)
        entries[i] = (struct wal_entry){.type = WAL_DATA,
                                        .group = (first + i) % GROUPS,
                                        .table_id = f->table,
                                        .rows = 1,
                                        .payload = span_of(payload, sizeof payload),
                                        .payload_crc = crc32c(0, payload, sizeof payload)};
    struct wal_submission submission = {
        .entries = entries, .entry_count = EACH, .durability = WAL_SYNCED};
    assert_ok(wal_append(f->wal, &submission, &err));
    for (uint32_t i = 0; i < EACH; i++)
        places[place_count++] = (struct place){
            .group = entries[i].group, .seq = entries[i].seq, .chain = entries[i].chain};
    assert_ok(wal_seal(f->wal, &err));
}

/* Every entry that is not reclaimed is found by a scan of its group, and has its chain. Returns how
 * many are gone whose chain something behind them still tells. */
static size_t groups_check(struct fixture *f, uint64_t ends[GROUPS])
{
    struct error err;
    size_t seen = 0, here = 0, told = 0;
    for (uint32_t g = 0; g < GROUPS; g++) {
        struct wal_scan *scan;
        struct wal_view view;
        assert_true(wal_synced_end(f->wal, g).seq >= ends[g]);
        ends[g] = wal_synced_end(f->wal, g).seq;
        assert_true(wal_retained_from(f->wal, g) == 0 || wal_retained_from(f->wal, g) <= ends[g]);
        uint64_t after = wal_reclaimed_through(f->wal, g, f->table);
        assert_ok(wal_scan_open(f->wal, g, f->table, after, &scan, &err));
        while (wal_scan_next(scan, &view, &err) == STATUS_OK)
            seen++;
        wal_scan_close(scan);
    }
    for (size_t i = 0; i < place_count; i++) {
        uint64_t chain = 0;
        const struct place *place = &places[i];
        bool is_gone = place->seq <= wal_reclaimed_through(f->wal, place->group, f->table);
        here += !is_gone;
        enum status status = wal_chain_at(f->wal, place->group, place->seq, &chain, &err);
        assert_true(status == STATUS_OK ? chain == place->chain
                                        : is_gone && status == STATUS_NOT_FOUND);
        told += is_gone && place->seq != ends[place->group] && status == STATUS_OK;
    }
    assert_int_equal(seen, here);
    return told;
}

static void acknowledge(struct fixture *f, uint32_t below)
{
    struct error err;
    struct wal_ack acks[GROUPS] = {0};
    for (uint32_t g = 0; g < below; g++)
        acks[g].through = acks[g].committed = wal_synced_end(f->wal, g);
    assert_ok(wal_ack_table(f->wal, f->table, acks, &err));
}

/* Until nothing has been reclaimed for a while. */
static void settle(struct fixture *f)
{
    uint64_t before = 0, now = 1;
    for (int i = 0; i < 100 && now != before; i++) {
        before = now;
        env_sleep_ms(env_real(), 400);
        struct wal_usage usage = wal_usage(f->wal);
        now = usage.segments_sealed + 1000 * usage.segments_committed;
    }
}

void test_many_groups(void **state)
{
    (void)state;
    struct fixture f;
    static uint64_t ends[GROUPS];
    fixture_init(&f, "groups");
    wal_close(f.wal);
    fixture_remove_tree(f.dir);
    f.options.group_count = GROUPS;
    f.options.budget_bytes = 1 << 30;
    f.options.keep_committed_ms = 0;
    fixture_open(&f);
    place_count = 0;
    for (uint32_t i = 0; i < SEGMENTS / 2; i++)
        turn(&f, i * 7);
    groups_check(&f, ends);
    wal_close(f.wal);
    fixture_open(&f);
    groups_check(&f, ends);
    for (uint32_t i = SEGMENTS / 2; i < SEGMENTS; i++)
        turn(&f, i * 7);
    groups_check(&f, ends);
    /* Segments of the first half of the groups alone go, in whatever order that is. */
    acknowledge(&f, GROUPS / 2);
    settle(&f);
    assert_true(wal_reclaimed_through(f.wal, 0, 0) > 0);
    assert_true(groups_check(&f, ends) > 0);
    wal_close(f.wal);
    fixture_open(&f);
    assert_true(groups_check(&f, ends) > 0);
    acknowledge(&f, GROUPS);
    for (int i = 0; i < 500 && wal_usage(f.wal).segments_sealed > 0; i++)
        env_sleep_ms(env_real(), 10);
    wal_close(f.wal);
    fixture_open(&f);
    groups_check(&f, ends);
    struct wal_damage damage;
    assert_false(wal_damage_at(f.wal, 0, &damage));
    fixture_deinit(&f);
}
