/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/ingest/gather.h"

enum {
    WRITES = 8, /* that an average is of, about */
    REQUESTS = 64,
    WRITE_MAX_NS = 2 * 1000 * 1000 /* a longer one says nothing of clients */
};

static const double enough = 0.75; /* of them come again: worth a wait */

void gather_came(struct gather *gather, int64_t pause_ns)
{
    double is_back = pause_ns <= 2 * gather->write_ns; /* the server kept it waiting as well */
    gather->returns += (is_back - gather->returns) / REQUESTS;
}

void gather_wrote(struct gather *gather, int64_t now_ns, int64_t took_ns, uint32_t answered,
                  uint32_t waiting)
{
    int64_t write_ns = took_ns < WRITE_MAX_NS ? took_ns : WRITE_MAX_NS;
    gather->write_ns += (write_ns - gather->write_ns) / WRITES;
    gather->until_ns = now_ns + gather->write_ns;
    gather->wanted = waiting;
    if (gather->returns >= enough)
        gather->wanted += (uint32_t)(answered * gather->returns + 0.5);
}

int64_t gather_until(const struct gather *gather, int64_t now_ns, uint32_t waiting)
{
    return waiting < gather->wanted && now_ns < gather->until_ns ? gather->until_ns : 0;
}
