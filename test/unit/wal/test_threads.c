/* SPDX-License-Identifier: Apache-2.0
 *
 * The log under real threads: submissions of all sizes from many of them, so that units are copied
 * ahead while others are written; and a sync that fails in the middle of such a copy.
 */
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log/wal/wal_internal.h"
#include "wal_fixture.h"
#include "wal_tests.h"

enum { THREADS = 4, ROUNDS = 60, FLIGHT_MAX = 24, LARGE_BYTES = 100 << 20 };

static atomic_int in_flight, failed;
static atomic_ullong appended;

struct job {
    struct wal_submission submission;
    struct wal_entry entry;
    struct wal_contribution contribution;
    uint8_t *payload;
};

static void job_done(struct wal_submission *submission, enum status status, const struct error *err)
{
    struct job *job = CONTAINER_OF(submission, struct job, submission);
    UNUSED(err);
    if (status != STATUS_OK)
        atomic_fetch_add(&failed, 1);
    bool is_large = job->entry.payload.length >= LARGE_BYTES;
    free(job->payload);
    free(job);
    if (is_large) /* whoever still reads it has time to be caught */
        env_sleep_ms(env_real(), 200);
    atomic_fetch_sub(&in_flight, 1);
}

static struct job *job_make(uint32_t table, uint64_t number, size_t bytes)
{
    struct job *job = calloc(1, sizeof *job);
    CHECK(job && (job->payload = malloc(bytes)));
    fixture_payload(number, job->payload, bytes);
    job->contribution.rows = 1;
    job->entry = (struct wal_entry){.type = WAL_DATA,
                                    .table_id = table,
                                    .rows = 1,
                                    .schema_fingerprint = 1 + number % 5,
                                    .contributions = &job->contribution,
                                    .contribution_count = 1,
                                    .payload = span_of(job->payload, bytes),
                                    .payload_crc = crc32c(0, job->payload, bytes)};
    job->submission = (struct wal_submission){
        .entries = &job->entry,
        .entry_count = 1,
        .durability = number % 5 ? WAL_SYNCED : WAL_WRITTEN,
        .done = job_done,
    };
    return job;
}

static void submit_many(void *context)
{
    struct fixture *f = context;
    struct random random;
    struct error err;
    uint64_t seed;
    env_random(env_real(), &seed, sizeof seed);
    random_init(&random, seed);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t choice = random_next(&random);
        size_t bytes = 100 + (size_t)(choice >> 8) % (choice % 3 ? 200000 : 2000);
        struct job *job = job_make(f->table, (uint64_t)atomic_fetch_add(&appended, 1) + 1, bytes);
        while (atomic_fetch_add(&in_flight, 1) > FLIGHT_MAX) {
            atomic_fetch_sub(&in_flight, 1);
            env_sleep_ms(env_real(), 1);
        }
        if (choice % 4)
            wal_submit(f->wal, &job->submission);
        else if (wal_append(f->wal, &job->submission, &err) != STATUS_OK)
            atomic_fetch_add(&failed, 1);
        if (choice % 23 == 0 && wal_seal(f->wal, &err) != STATUS_OK)
            atomic_fetch_add(&failed, 1);
    }
}

void test_many_threads_copy_ahead(void **state)
{
    (void)state;
    static uint64_t numbers[64 * THREADS * ROUNDS];
    struct fixture f;
    struct error err;
    struct env_thread *threads[THREADS];
    fixture_init(&f, "threads");
    wal_close(f.wal);
    f.options.segment_bytes = 4 << 20;
    f.options.budget_bytes = 512 << 20;
    fixture_open(&f);
    for (uint64_t schema = 1; schema <= 5; schema++)
        assert_ok(wal_schema_add(f.wal, schema, span_of_text("a schema"), &err));
    atomic_store(&appended, 0);
    for (int round = 0; round < 64 && !wal_usage(f.wal).units_copied_ahead; round++) {
        for (int i = 0; i < THREADS; i++)
            assert_ok(env_thread_start(env_real(), "submit", submit_many, &f, &threads[i], &err));
        for (int i = 0; i < THREADS; i++)
            env_thread_join(threads[i]);
        while (atomic_load(&in_flight) > 0)
            env_sleep_ms(env_real(), 1);
    }
    assert_true(wal_usage(f.wal).units_copied_ahead > 0);
    assert_int_equal(atomic_load(&failed), 0);
    size_t count = (size_t)atomic_load(&appended);
    assert_int_equal(fixture_scan(&f, numbers, COUNT_OF(numbers)), count);
    wal_close(f.wal);
    fixture_open(&f);
    assert_int_equal(wal_recovery_report(f.wal).damaged_ranges, 0);
    assert_int_equal(fixture_scan(&f, numbers, COUNT_OF(numbers)), count);
    fixture_deinit(&f);
}

/* ---- a sync that fails while somebody copies ---- */

static struct env_ops failing_ops;
static enum status (*open_file)(struct env *, const char *, unsigned, struct env_file **,
                                struct error *);
static enum status (*sync_file)(struct env_file *, struct error *);
static struct wal *failing_wal;
static atomic_bool is_armed, is_syncing;

static enum status failing_open(struct env *env, const char *path, unsigned flags,
                                struct env_file **out_file, struct error *err)
{
    if (flags & ENV_DIRECT)
        return error_set(err, STATUS_UNSUPPORTED, "no direct writes here");
    enum status status = open_file(env, path, flags, out_file, err);
    if (status == STATUS_OK)
        (*out_file)->ops = &failing_ops;
    return status;
}

static enum status failing_sync(struct env_file *file, struct error *err)
{
    if (!atomic_load(&is_armed))
        return sync_file(file, err);
    atomic_store(&is_syncing, true);
    for (bool is_copying = false; !is_copying; sched_yield()) {
        env_lock(failing_wal->lock);
        is_copying = failing_wal->is_copying;
        env_unlock(failing_wal->lock);
    }
    return error_set(err, STATUS_IO, "sync: Input/output error");
}

static void submit_large(void *context)
{
    struct fixture *f = context;
    struct job *job = job_make(f->table, 1, LARGE_BYTES);
    job->entry.schema_fingerprint = 0;
    while (!atomic_load(&is_syncing))
        sched_yield();
    wal_submit(f->wal, &job->submission);
}

_Noreturn static void fail_while_copying(struct fixture *f)
{
    struct env *env = env_real();
    struct env_thread *thread;
    struct error err;
    failing_ops = *env->ops;
    open_file = failing_ops.file_open;
    sync_file = failing_ops.file_sync;
    failing_ops.file_open = failing_open;
    failing_ops.file_sync = failing_sync;
    env->ops = &failing_ops;
    fixture_open(f);
    failing_wal = f->wal;
    CHECK(env_thread_start(env, "large", submit_large, f, &thread, &err) == STATUS_OK);
    atomic_store(&is_armed, true);
    struct job *job = job_make(f->table, 2, 10);
    job->entry.schema_fingerprint = 0;
    wal_submit(f->wal, &job->submission);
    env_thread_join(thread);
    for (;;)
        env_sleep_ms(env, 1000);
}

/* Of a segment that is read by several threads, whole or cut short. */
void test_a_large_segment_is_left_active(void **state)
{
    enum { ROWS = 400, ROW_BYTES = 100000 };
    (void)state;
    static uint64_t numbers[ROWS];
    struct fixture f;
    int status = 0;
    fixture_init(&f, "large");
    wal_close(f.wal);
    f.options.segment_bytes = 64 << 20;
    f.options.budget_bytes = (uint64_t)1 << 30;
    f.options.volume_free_percent_min = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(300);
        fixture_open(&f);
        for (uint64_t i = 1; i <= ROWS; i++)
            fixture_append(&f, i, ROW_BYTES);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fixture_open(&f);
    assert_int_equal(wal_recovery_report(f.wal).damaged_ranges, 0);
    assert_int_equal(fixture_scan(&f, numbers, COUNT_OF(numbers)), ROWS);
    for (uint64_t i = 0; i < ROWS; i++)
        assert_int_equal(numbers[i], i + 1);
    fixture_deinit(&f);
}

void test_failed_sync_while_copying_ahead(void **state)
{
    (void)state;
    struct fixture f;
    int status = 0;
    fixture_init(&f, "die");
    wal_close(f.wal);
    f.options.segment_bytes = 256 << 20;
    f.options.budget_bytes = (uint64_t)4 << 30;
    f.options.volume_free_percent_min = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(300); /* a sanitized build on a busy machine takes its time */
        fail_while_copying(&f);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 74);
    fixture_remove_tree(f.dir);
}
