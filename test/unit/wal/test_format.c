/* SPDX-License-Identifier: Apache-2.0
 *
 * Segment bytes. golden/ holds a log of version 0 as it was written once: two tables, a schema, a
 * producer, five entries in segment 1, and its checkpoint. It must open, and what it holds must
 * encode to the same bytes.
 */
#include "log/wal/segment_internal.h"
#include "wal_fixture.h"
#include "wal_tests.h"

static void golden_read(const char *name, struct buf *out)
{
    char path[PATH_BYTES_MAX];
    struct error err;
    snprintf(path, sizeof path, "%s/golden/%s", wal_test_source_dir, name);
    assert_ok(files_read(env_real(), path, 1 << 20, out, &err));
}

static void golden_copy(const struct fixture *f, const char *folder, const char *name)
{
    struct buf bytes = {0};
    char path[PATH_BYTES_MAX];
    struct error err;
    golden_read(name, &bytes);
    snprintf(path, sizeof path, "%s/%s", f->dir, folder);
    assert_ok(files_make_dirs(env_real(), path, &err));
    snprintf(path, sizeof path, "%s/%s/%s", f->dir, folder, name);
    assert_ok(files_create(env_real(), path, bytes.data, bytes.length, &err));
    buf_deinit(&bytes);
}

void test_golden_log_opens(void **state)
{
    (void)state;
    static uint64_t numbers[16];
    struct fixture f;
    struct error err;
    struct buf schema = {0};
    struct wal_receipt receipts[16];
    uint32_t count;
    uint64_t expected;
    fixture_init(&f, "golden");
    wal_close(f.wal);
    fixture_remove_tree(f.dir);
    golden_copy(&f, "sealed", "0000000000000001.seg");
    golden_copy(&f, "state", "0000000000000003.state");
    fixture_open(&f);
    assert_int_equal(f.table, 1);
    assert_int_equal(fixture_scan(&f, numbers, COUNT_OF(numbers)), 5);
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(numbers[i], i + 1);
    assert_int_equal(wal_table_count(f.wal), 2);
    assert_ok(wal_schema_get(f.wal, 4242, &schema, &err));
    assert_memory_equal(schema.data, "golden schema", 13);
    buf_deinit(&schema);
    assert_int_equal(wal_producer_begin(f.wal, span_of_text("golden"), 1,
                                        (struct hash128){.low = 7, .high = 8}, receipts, &count,
                                        &expected),
                     WAL_PRODUCER_REPEAT);
    assert_int_equal(count, 1);
    assert_int_equal(receipts[0].rejected, 3);
    uint64_t entries;
    assert_ok(wal_verify(f.wal, &entries, &err));
    struct wal_damage damage;
    assert_false(wal_damage_at(f.wal, 0, &damage));
    fixture_deinit(&f);
}

/* One record of a unit, decoded and encoded again. */
static void record_again(const uint8_t *unit, uint32_t index, uint32_t seed)
{
    static struct wal_contribution contributions[WAL_CONTRIBUTIONS_MAX];
    static uint8_t again[RECORD_HEADER_MAX];
    struct unit_row row;
    struct record record;
    struct error err;
    unit_row_decode(unit, index, &row);
    struct span header = span_of(unit + row.offset, row.header_bytes);
    assert_ok(record_decode(header, seed, &record, &err));
    assert_ok(record_contributions(header, &record, contributions, &err));
    uint32_t crc = record_encode(again, &record, contributions, seed);
    assert_int_equal(crc, row.header_crc);
    assert_memory_equal(again, header.data, header.length);
    assert_int_equal(record.payload_crc, row.payload_crc);
    const uint8_t *payload = header.data + align_up(row.header_bytes, WAL_ALIGN);
    assert_int_equal(crc32c(0, payload, row.payload_bytes), row.payload_crc);
}

void test_golden_segment_is_encoded_the_same(void **state)
{
    (void)state;
    struct buf file = {0}, again = {0};
    struct segment_header header;
    struct error err;
    struct group_row rows[4];
    golden_read("0000000000000001.seg", &file);
    struct span bytes = span_of(file.data, file.length);
    assert_ok(segment_header_decode(bytes, 1, &header, &err));
    assert_true(header.row_count <= COUNT_OF(rows));
    for (uint32_t i = 0; i < header.row_count; i++)
        segment_header_row(bytes, i, &rows[i]);
    segment_header_encode(&again, &header, rows);
    assert_memory_equal(again.data, file.data, again.length);
    uint64_t offset = header.header_bytes, number = 1;
    uint32_t seed = segment_seed(&header.identity);
    struct unit_header unit = {0};
    while (unit.kind != UNIT_FOOTER) {
        uint8_t *at = file.data + offset;
        assert_int_equal(
            unit_header_decode(span_of(at, file.length - offset), &header.identity, true, &unit),
            STATUS_OK);
        assert_int_equal(unit.number, number++);
        assert_true(unit_rows_are_sound(at, &unit));
        for (uint32_t i = 0; i < unit.record_count; i++)
            record_again(at, i, seed);
        uint8_t saved[UNIT_HEADER_FIXED];
        memcpy(saved, at, sizeof saved);
        unit_header_encode(at, &unit, seed);
        assert_memory_equal(saved, at, sizeof saved);
        offset += unit.unit_bytes;
    }
    struct segment_identity identity;
    uint64_t unit_offset, unit_bytes;
    assert_ok(segment_trailer_decode(file.data + file.length - FOOTER_TRAILER_BYTES, 1, &identity,
                                     &unit_offset, &unit_bytes, &err));
    assert_int_equal(unit_offset + unit_bytes, file.length);
    assert_int_equal(offset, file.length);
    buf_deinit(&file);
    buf_deinit(&again);
}

void test_format_refuses_what_is_not_it(void **state)
{
    (void)state;
    struct buf file = {0};
    struct segment_header header;
    struct unit_header unit;
    struct error err;
    golden_read("0000000000000001.seg", &file);
    assert_ok(segment_header_decode(span_of(file.data, file.length), 1, &header, &err));
    assert_status(STATUS_CORRUPT,
                  segment_header_decode(span_of(file.data, file.length), 2, &header, &err));
    uint8_t *at = file.data + header.header_bytes;
    struct segment_identity recycled = header.identity;
    recycled.salt++; /* the same file begun again: what is left in it must not verify */
    assert_int_equal(unit_header_decode(span_of(at, WAL_BLOCK), &recycled, true, &unit),
                     STATUS_CORRUPT);
    recycled = header.identity;
    recycled.id++;
    assert_int_equal(unit_header_decode(span_of(at, WAL_BLOCK), &recycled, false, &unit),
                     STATUS_CORRUPT);
    for (size_t bit = 0; bit < SEGMENT_HEADER_FIXED * 8; bit++) {
        file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        struct segment_header other;
        enum status status =
            segment_header_decode(span_of(file.data, file.length), 1, &other, &err);
        assert_int_not_equal(status, STATUS_OK);
        file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t bit = 0; bit < (UNIT_HEADER_FIXED + UNIT_ROW_BYTES) * 8; bit++) {
        at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(unit_header_decode(span_of(at, file.length - header.header_bytes),
                                                &header.identity, true, &unit),
                             STATUS_OK);
        at[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    buf_deinit(&file);
}
