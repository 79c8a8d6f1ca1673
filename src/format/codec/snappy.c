/* SPDX-License-Identifier: Apache-2.0
 *
 * Snappy blocks through libsnappy.
 */
#include <snappy-c.h>

#include "format/codec/codec_internal.h"

enum status codec_snappy_expand_block(struct span in, void *place, size_t bytes, struct error *err)
{
    const char *data = (const char *)in.data;
    size_t made = 0;
    if (!in.length || snappy_uncompressed_length(data, in.length, &made) != SNAPPY_OK ||
        made != bytes || snappy_uncompress(data, in.length, place, &made) != SNAPPY_OK ||
        made != bytes)
        return error_set(err, STATUS_INVALID, "snappy: block does not expand to %zu bytes", bytes);
    return STATUS_OK;
}
