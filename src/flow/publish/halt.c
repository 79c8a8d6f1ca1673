/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of a lane, and how it stops: durably, with a reason and the command that resolves it
 * (E15).
 */
#include <stdio.h>

#include "flow/publish/publish_internal.h"

void lane_set_state(struct lane *lane, enum publish_state state, const char *reason)
{
    env_lock(lane->publisher->lock);
    lane->state = state;
    snprintf(lane->reason, sizeof lane->reason, "%s", reason);
    if (state != PUBLISH_HALTED && state != PUBLISH_STOOD_DOWN)
        lane->remedy[0] = '\0';
    env_unlock(lane->publisher->lock);
}

void lane_tell(const struct lane *lane, enum publish_state state, const char *reason,
               const char *remedy)
{
    if (lane->publisher->options.changed)
        lane->publisher->options.changed(lane->name, state, reason, remedy);
}

void lane_note_dropped(struct lane *lane, const char *columns)
{
    env_lock(lane->publisher->lock);
    bool is_news = strcmp(lane->info.dropped, columns) != 0;
    snprintf(lane->info.dropped, sizeof lane->info.dropped, "%s", columns);
    env_unlock(lane->publisher->lock);
    if (is_news && lane->publisher->options.dropped)
        lane->publisher->options.dropped(lane->name, columns);
}

void lane_stop(struct lane *lane, enum publish_state state, const char *reason, const char *remedy)
{
    struct error ignored;
    env_lock(lane->publisher->lock);
    lane->state = state;
    snprintf(lane->reason, sizeof lane->reason, "%s", reason);
    snprintf(lane->remedy, sizeof lane->remedy, "%s", remedy);
    env_unlock(lane->publisher->lock);
    enum status status = halt_save(lane, &ignored); /* without it the next start finds out again */
    UNUSED(status);
    lane_tell(lane, state, reason, remedy);
    lane_wake_waiters(lane);
}

/* The words before and behind the table's name; `after` NULL: the command takes no table; '@': the
 * name again. */
struct remedy_words {
    const char *before, *after;
};
static const struct remedy_words remedies[] = {
    [REMEDY_ACCEPT] = {"sluice clear-halt ", " --confirm --accept"},
    [REMEDY_REPUBLISH] = {"sluice clear-halt ", " --confirm --republish"},
    [REMEDY_REBIND] = {"sluice tables rebind ",
                       " --confirm --republish for a table with all that the log still holds, or "
                       "with --accept for one with what comes from now on"},
    [REMEDY_REPAIR_LOG] = {"stop the server, sluice log repair --confirm, start the server, then "
                           "sluice clear-halt ",
                           " --confirm --accept"},
    [REMEDY_FROM] = {"sluice clear-halt ", " --confirm --from GROUP=SEQ"},
    [REMEDY_FORK] = {"stop the server, sluice log fork --confirm, start the server", NULL},
    [REMEDY_ADOPT] = {"stop the server, sluice log adopt --confirm, start the server", NULL},
    [REMEDY_OTHER_TABLE] = {"rename the table, then sluice tables rebind ", " --confirm --accept"},
    [REMEDY_PLACE] = {"put the data directory back to where it was copied from, or give this one a "
                      "publish.warehouse and a catalog of its own; if no other server publishes "
                      "into that table, sluice clear-halt ",
                      " --confirm --accept"},
    [REMEDY_COLUMNS] = {"give the table back what the reason misses, then sluice clear-halt ",
                        " --confirm --accept"},
    [REMEDY_SNAPSHOT] = {"put the file back, then sluice clear-halt ",
                         " --confirm --accept; or set the table back to a snapshot that can be "
                         "read, then sluice clear-halt @ --confirm --republish"},
    [REMEDY_CATALOG] = {"put a good copy of catalog.db back, without a catalog.db-journal, then "
                        "sluice clear-halt ",
                        " --confirm --accept"},
    [REMEDY_REPAIR_TABLE] = {"stop the server, sluice tables repair ",
                             " --confirm, start the server, then sluice clear-halt @ --confirm "
                             "--republish to publish again what came after the metadata that it "
                             "went back to, or with --accept to do without"},
};

/* The same where the log is another server's, for those that are commands over a log. */
static const struct remedy_words remedies_there[REMEDY_ADOPT + 1] = {
    [REMEDY_REPAIR_LOG] = {"where the log is: stop its server, sluice log repair --confirm, start "
                           "it; then, here, sluice clear-halt ",
                           " --confirm --accept"},
    [REMEDY_FORK] = {"where the log is: stop its server, sluice log fork --confirm, with "
                     "--publish-from here and these tables' catalog and warehouse, start it; then "
                     "start this one with a new data directory",
                     NULL},
    [REMEDY_ADOPT] = {"where the log is: stop its server, sluice log adopt --confirm, with "
                      "--publish-from here and these tables' catalog and warehouse, start it; then "
                      "start this one with a new data directory",
                      NULL},
};

static void remedy_text(const struct lane *lane, enum remedy remedy, char out[PUBLISH_REMEDY_BYTES])
{
    bool is_there = !source_wal(lane->publisher->source) && remedies_there[remedy].before;
    const struct remedy_words *words = is_there ? &remedies_there[remedy] : &remedies[remedy];
    const char *before = words->before, *after = words->after;
    const char *name = after ? lane->name : "";
    after = after ? after : "";
    const char *again = strchr(after, '@');
    int until = (int)(again ? (size_t)(again - after) : strlen(after));
    snprintf(out, PUBLISH_REMEDY_BYTES, "%s%s%.*s%s%s", before, name, until, after,
             again ? name : "", again ? again + 1 : "");
}

enum status lane_halt_now(struct lane *lane, struct error *err, const char *reason,
                          enum remedy remedy)
{
    char text[PUBLISH_REMEDY_BYTES];
    remedy_text(lane, remedy, text);
    lane->halt_cause = remedy == REMEDY_CATALOG ? CAUSE_DAMAGE
                       : remedy == REMEDY_FROM  ? CAUSE_RECLAIMED
                       : remedy == REMEDY_FORK  ? CAUSE_IDENTITY
                                                : CAUSE_TABLE;
    lane_stop(lane, PUBLISH_HALTED, reason, text);
    return error_set(err, STATUS_HALTED, "%s: %s", lane->name, reason);
}

static enum status doubt_since(struct lane *lane, int64_t *inout_since_ns, struct error *err,
                               const char *reason, enum remedy remedy)
{
    struct publisher *publisher = lane->publisher;
    int64_t now_ns = env_mono_ns(publisher->env);
    if (lane->is_deciding)
        return error_set(err, STATUS_HALTED, "%s", reason);
    if (!*inout_since_ns)
        *inout_since_ns = now_ns;
    if (now_ns - *inout_since_ns < (int64_t)publisher->options.halt_confirm_ms * 1000000)
        return error_set(err, STATUS_BUSY, "%s", reason);
    *inout_since_ns = 0;
    return lane_halt_now(lane, err, reason, remedy);
}

enum status lane_doubt(struct lane *lane, struct error *err, const char *reason, enum remedy remedy)
{
    return doubt_since(lane, &lane->doubt_since_ns, err, reason, remedy);
}

enum status lane_doubt_source(struct lane *lane, struct error *err, const char *reason)
{
    return doubt_since(lane, &lane->source_doubt_ns, err, reason, REMEDY_FROM);
}

enum status lane_doubt_append(struct lane *lane, struct error *err)
{
    char reason[400];
    snprintf(reason, sizeof reason, "%s", err->message);
    return doubt_since(lane, &lane->append_doubt_ns, err, reason, REMEDY_SNAPSHOT);
}

enum status lane_stand_down(struct lane *lane, struct error *err, const char *reason)
{
    char text[PUBLISH_REMEDY_BYTES];
    remedy_text(lane, REMEDY_ACCEPT, text);
    lane->halt_cause = CAUSE_TABLE;
    lane_stop(lane, PUBLISH_STOOD_DOWN, reason, text);
    return error_set(err, STATUS_FENCED, "%s: %s", lane->name, reason);
}

enum status lane_fenced(struct lane *lane, struct error *err)
{
    char text[PUBLISH_REMEDY_BYTES], reason[200];
    snprintf(reason, sizeof reason,
             "this log was recovered on another machine, as incarnation %llu, and goes on there",
             (unsigned long long)source_fenced_by(lane->publisher->source));
    remedy_text(lane, REMEDY_ADOPT, text);
    lane->halt_cause = CAUSE_IDENTITY;
    lane_stop(lane, PUBLISH_STOOD_DOWN, reason, text);
    return error_set(err, STATUS_FENCED, "%s: %s", lane->name, reason);
}

enum status halt_status(const struct lane *lane)
{
    static const enum status statuses[CAUSE_COUNT] = {[CAUSE_TABLE] = STATUS_HALTED,
                                                      [CAUSE_DAMAGE] = STATUS_HALTED,
                                                      [CAUSE_RECLAIMED] = STATUS_RECLAIMED,
                                                      [CAUSE_IDENTITY] = STATUS_IDENTITY};
    return statuses[lane->halt_cause];
}
