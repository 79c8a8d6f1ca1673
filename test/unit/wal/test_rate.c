/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a refused client is told to wait.
 */
#include "../unit.h"
#include "log/wal/wal_internal.h"
#include "wal_tests.h"

void test_retry_follows_the_drain(void **state)
{
    (void)state;
    enum { MIB = 1 << 20 };
    const int64_t second = 1000 * 1000 * 1000, start = 5 * second;
    struct wal_rate rate = {0};
    assert_int_equal(wal_rate_ms(&rate, 64 * MIB, start), 1000);
    wal_rate_add(&rate, 4 * MIB, start);
    assert_int_equal(wal_rate_ms(&rate, 64 * MIB, start + second / 2), 1000);
    wal_rate_add(&rate, 12 * MIB, start + 2 * second); /* 16 MiB in two seconds */
    assert_int_equal(wal_rate_ms(&rate, 64 * MIB, start + 2 * second), 8000);
    assert_int_equal(wal_rate_ms(&rate, 1, start + 2 * second), 100);
    assert_int_equal(wal_rate_ms(&rate, (uint64_t)MIB << 20, start + 2 * second), 60000);
    /* Faster since: half of it is believed at once. */
    wal_rate_add(&rate, 24 * MIB, start + 3 * second);
    assert_int_equal(wal_rate_ms(&rate, 64 * MIB, start + 3 * second), 4000);
    /* Nothing for eight seconds, then nothing for an hour. */
    wal_rate_add(&rate, 8 * MIB, start + 3 * second + second / 2);
    assert_int_equal(wal_rate_ms(&rate, 4 * MIB, start + 11 * second), 3999);
    assert_int_equal(wal_rate_ms(&rate, 64 * MIB, start + 3600 * second), 60000);
}
