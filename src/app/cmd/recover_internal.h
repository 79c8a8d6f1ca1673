/* SPDX-License-Identifier: Apache-2.0
 *
 * Between recover.c, which makes a log anew, and recover_say.c, which says what of.
 */
#ifndef SLUICE_APP_CMD_RECOVER_INTERNAL_H
#define SLUICE_APP_CMD_RECOVER_INTERNAL_H

#include "app/cmd/cmd_internal.h"
#include "log/mirror/mirror.h"

struct recovery {
    struct invocation *invocation;
    const char *url;
    bool is_applied, as_json, has_catalog;
    char target[PATH_BYTES_MAX];  /* of the log */
    char scratch[PATH_BYTES_MAX]; /* where it is put together */
    struct store *store;
    struct mirror_plan *plan;
    struct arena arena; /* of what `known` names */
    struct wal_known_position *known;
    size_t known_count, known_capacity;
    struct wal_restore restore;
    uint64_t incarnation_before;    /* that the mirror knew */
    char token[MIRROR_TOKEN_BYTES]; /* of our claim to the new one */
};

/* `wal` is the scratch directory's, opened to read. */
void recovery_say(struct recovery *recovery, struct wal *wal);
/* For a directory that holds the log already. */
void recovery_say_done(struct recovery *recovery, struct wal *wal);

#endif
