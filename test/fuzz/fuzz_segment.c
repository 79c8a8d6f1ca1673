/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of the log. The first byte says which one the rest is: an active segment, a sealed one, or
 * a checkpoint beside a good segment; with 3 and 4 an active or a sealed segment stands behind a
 * checkpoint of its own and that one's length (make_segments.py took some of a server). Checksums
 * hold whatever they are (sum_holds), so that what lies behind them is reached. A log that opens is
 * read whole, with a reader's questions.
 */
#include <stdio.h>
#include <stdlib.h>

#include "log/wal/wal.h"

enum { ENTRIES_MAX = 10000, FILE_BYTES_MAX = 1 << 20 };

static char dir[200];
static struct buf golden_segment, golden_state;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void must(enum status status, const struct error *err)
{
    if (status == STATUS_OK)
        return;
    fprintf(stderr, "%s\n", err->message);
    abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char *const folders[] = {"active", "sealed", "committed", "spare", "state"};
    struct error err;
    (void)argc;
    (void)argv;
    snprintf(dir, sizeof dir, "%s/sluice-fuzz-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    CHECK(mkdtemp(dir));
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        char path[PATH_BYTES_MAX];
        snprintf(path, sizeof path, "%s/%s", dir, folders[i]);
        must(files_make_dirs(env_real(), path, &err), &err);
    }
    must(files_read(env_real(), GOLDEN "/0000000000000001.seg", FILE_BYTES_MAX, &golden_segment,
                    &err),
         &err);
    must(files_read(env_real(), GOLDEN "/0000000000000003.state", FILE_BYTES_MAX, &golden_state,
                    &err),
         &err);
    return 0;
}

static void put(const char *name, struct span bytes, char out_path[PATH_BYTES_MAX])
{
    snprintf(out_path, PATH_BYTES_MAX, "%s/%s", dir, name);
    FILE *file = fopen(out_path, "wb");
    CHECK(file && fwrite(bytes.data, 1, bytes.length, file) == bytes.length);
    CHECK(fclose(file) == 0);
}

static void read_all(struct wal *wal)
{
    struct error err;
    struct wal_scan *scan = NULL;
    struct wal_damage damage;
    uint64_t entries, chain;
    for (uint32_t table = 0; table <= 2; table++) {
        struct wal_view view;
        uint64_t after = wal_reclaimed_through(wal, 0, table);
        if (wal_scan_open(wal, 0, table, after, &scan, &err) != STATUS_OK)
            continue;
        for (uint32_t i = 0; i < ENTRIES_MAX; i++) {
            if (wal_scan_next(scan, &view, &err) != STATUS_OK)
                break;
            CHECK(view.seq > after);
            after = view.seq;
            enum status status = wal_chain_at(wal, 0, view.seq, &chain, &err);
            UNUSED(status);
        }
        wal_scan_close(scan);
        wal_pending(wal, 0, table, 0);
    }
    enum status status = wal_verify(wal, &entries, &err);
    UNUSED(status);
    for (size_t i = 0; wal_damage_at(wal, i, &damage) && i < ENTRIES_MAX; i++)
        CHECK(damage.seq_first <= damage.seq_last);
}

/* Takes the checkpoint off the front; its name is the number that it holds. */
static struct span take_state(struct span *inout_file, char out_name[64])
{
    struct span file = *inout_file;
    size_t length = file.length < 4 ? 0 : get_le32(file.data);
    size_t from = file.length < 4 ? file.length : 4;
    if (length > file.length - from)
        length = file.length - from;
    struct span state = span_of(file.data + from, length);
    *inout_file = span_of(file.data + from + length, file.length - from - length);
    unsigned long long number = length < 16 ? 1 : get_le64(state.data + 8);
    snprintf(out_name, 64, "state/%016llx.state", number);
    return state;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct error err;
    struct wal *wal = NULL;
    char segment_path[PATH_BYTES_MAX], state_path[PATH_BYTES_MAX];
    char state_name[64] = "state/0000000000000003.state";
    if (bytes == 0)
        return 0;
    struct span segment = span_of(data + 1, bytes - 1);
    struct span state = span_of(golden_state.data, golden_state.length);
    int what = data[0] % 5;
    if (what == 2) {
        state = segment;
        segment = span_of(golden_segment.data, golden_segment.length);
    } else if (what > 2) {
        state = take_state(&segment, state_name);
    }
    bool is_active = what == 0 || what == 3;
    put(is_active ? "active/0000000000000001.seg" : "sealed/0000000000000001.seg", segment,
        segment_path);
    put(state_name, state, state_path);
    struct wal_options options = wal_options_default(dir);
    options.is_read_only = true;
    if (wal_open(env_real(), &options, &wal, &err) == STATUS_OK) {
        read_all(wal);
        wal_close(wal);
    }
    CHECK(remove(segment_path) == 0 && remove(state_path) == 0);
    return 0;
}
