/* SPDX-License-Identifier: Apache-2.0
 *
 * What an object store has of a log: which logs there are below a root, and the names of one.
 * Nothing is read but the head.
 */
#include <stdio.h>
#include <stdlib.h>

#include "log/mirror/mirror.h"

enum { LOGS_MAX = 64 };

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "mirror: out of memory");
}

/* ---- which logs ---- */

struct finding {
    size_t root_bytes; /* of the store's root, with the slash */
    struct log_id logs[LOGS_MAX];
    size_t count;
    bool is_of_one; /* a head, segments/ or state/ right below the root */
    bool has_other;
    char other[160];
};

static enum status find_one(void *context, const struct store_object *object, struct error *err)
{
    struct finding *finding = context;
    struct log_id id;
    const char *name = object->uri + finding->root_bytes;
    const char *slash = strchr(name, '/');
    size_t length = slash ? (size_t)(slash - name) : strlen(name);
    if (strcmp(name, "head") == 0 || strncmp(name, "segments/", 9) == 0 ||
        strncmp(name, "state/", 6) == 0)
        finding->is_of_one = true;
    if (!slash || !log_id_from_text(name, length, &id)) {
        finding->has_other = true;
        snprintf(finding->other, sizeof finding->other, "%s", name);
        return STATUS_OK;
    }
    for (size_t i = 0; i < finding->count; i++)
        if (log_id_equal(finding->logs[i], id))
            return STATUS_OK;
    if (finding->count == LOGS_MAX)
        return error_set(err, STATUS_LIMIT, "mirror: more than %d logs below %.200s", LOGS_MAX,
                         object->uri);
    finding->logs[finding->count++] = id;
    return STATUS_OK;
}

static enum status find_log(struct store *store, struct log_id *out_id, struct error *err)
{
    char prefix[STORE_URI_BYTES_MAX];
    struct finding finding = {0};
    int length = snprintf(prefix, sizeof prefix, "%s/", store_root(store));
    if (length < 0 || (size_t)length >= sizeof prefix)
        return error_set(err, STATUS_INVALID, "mirror: root too long");
    finding.root_bytes = (size_t)length;
    TRY(store_list(store, prefix, find_one, &finding, err));
    if (finding.is_of_one)
        return error_set(err, STATUS_USAGE,
                         "%.300s is the mirror of one log: give the URL above it",
                         store_root(store));
    if (finding.count == 0)
        return error_set(err, STATUS_NOT_FOUND, "%.300s is no mirror: %s%.150s", store_root(store),
                         finding.has_other ? "it holds " : "nothing is there", finding.other);
    if (finding.count > 1) {
        char first[LOG_ID_TEXT_BYTES], second[LOG_ID_TEXT_BYTES];
        log_id_to_text(finding.logs[0], first);
        log_id_to_text(finding.logs[1], second);
        return error_set(err, STATUS_USAGE,
                         "%.200s has mirrors of %zu logs, such as %s and %s: one is to be named",
                         store_root(store), finding.count, first, second);
    }
    *out_id = finding.logs[0];
    return STATUS_OK;
}

/* ---- what of one ---- */

static enum status read_head(struct store *store, struct mirror_plan *plan, struct log_id id,
                             struct error *err)
{
    char uri[STORE_URI_BYTES_MAX], text[LOG_ID_TEXT_BYTES];
    struct buf bytes = {0};
    TRY(store_uri_join(plan->root, "head", uri, err));
    enum status status = store_get(store, uri, MIRROR_HEAD_BYTES_MAX, &bytes, err);
    if (status == STATUS_NOT_FOUND)
        status = error_set(err, STATUS_NOT_FOUND, "%.300s is no mirror of a log: it has no head",
                           plan->root);
    if (status == STATUS_OK)
        status = mirror_head_decode(span_of(bytes.data, bytes.length), &plan->head, err);
    buf_deinit(&bytes);
    if (status != STATUS_OK)
        return error_prefix(err, "%.300s", uri);
    log_id_to_text(plan->head.log_id, text);
    if (!log_id_equal(plan->head.log_id, id))
        return error_set(err, STATUS_IDENTITY, "%.300s says that it is of log %s", uri, text);
    plan->incarnation = plan->head.incarnation;
    return STATUS_OK;
}

static bool put(struct mirror_header **items, size_t *count, size_t *capacity,
                const struct mirror_header *header)
{
    if (*count == *capacity) {
        size_t wider = *capacity ? *capacity * 2 : 64;
        struct mirror_header *moved = mem_resize(*items, wider * sizeof *moved);
        if (!moved)
            return false;
        *items = moved;
        *capacity = wider;
    }
    (*items)[(*count)++] = *header;
    return true;
}

/* "claims/N" */
static bool parse_claim(const char *name, uint64_t *out_incarnation)
{
    static const char folder[] = "claims/";
    size_t length = sizeof folder - 1;
    return strncmp(name, folder, length) == 0 &&
           parse_u64(name + length, strlen(name + length), out_incarnation);
}

static enum status list_one(void *context, const struct store_object *object, struct error *err)
{
    struct mirror_plan *plan = context;
    const char *name = object->uri + strlen(plan->root) + 1;
    struct mirror_header header;
    uint64_t claimed;
    if (parse_claim(name, &claimed) && claimed > plan->claimed)
        plan->claimed = claimed;
    if (!mirror_name_parse(span_of_text(name), &header))
        return STATUS_OK;
    if (header.incarnation > plan->incarnation)
        plan->incarnation = header.incarnation;
    bool is_put = header.kind == MIRROR_STATE
                      ? put(&plan->states, &plan->state_count, &plan->state_capacity, &header)
                      : put(&plan->ranges, &plan->range_count, &plan->range_capacity, &header);
    return is_put ? STATUS_OK : no_memory(err);
}

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_ranges(const void *left, const void *right)
{
    const struct mirror_header *a = left, *b = right;
    int by = order(a->id, b->id);
    by = by ? by : order(a->incarnation, b->incarnation);
    by = by ? by : order(a->from, b->from);
    return by ? by : order(a->to, b->to);
}

static int compare_states(const void *left, const void *right)
{
    const struct mirror_header *a = left, *b = right;
    int by = order(b->incarnation, a->incarnation);
    return by ? by : order(b->id, a->id);
}

enum status mirror_plan_create(struct store *store, const struct log_id *wanted,
                               struct mirror_plan **out_plan, struct error *err)
{
    char prefix[STORE_URI_BYTES_MAX];
    struct log_id id;
    if (wanted)
        id = *wanted;
    else
        TRY(find_log(store, &id, err));
    struct mirror_plan *plan = mem_alloc_zero(1, sizeof *plan);
    if (!plan)
        return no_memory(err);
    enum status status = mirror_root(store_root(store), id, plan->root, err);
    if (status == STATUS_OK)
        status = read_head(store, plan, id, err);
    if (status == STATUS_OK)
        status = store_uri_join(plan->root, "", prefix, err);
    if (status == STATUS_OK)
        status = store_list(store, prefix, list_one, plan, err);
    if (status != STATUS_OK) {
        mirror_plan_destroy(plan);
        return status;
    }
    if (plan->range_count)
        qsort(plan->ranges, plan->range_count, sizeof *plan->ranges, compare_ranges);
    if (plan->state_count)
        qsort(plan->states, plan->state_count, sizeof *plan->states, compare_states);
    *out_plan = plan;
    return STATUS_OK;
}

void mirror_plan_destroy(struct mirror_plan *plan)
{
    if (!plan)
        return;
    mem_free(plan->ranges);
    mem_free(plan->states);
    mem_free(plan->segments);
    mem_free(plan->problems);
    mem_free(plan);
}

enum status mirror_claim(struct store *store, const struct mirror_plan *plan, uint64_t incarnation,
                         const char token[MIRROR_TOKEN_BYTES], struct error *err)
{
    char uri[STORE_URI_BYTES_MAX], name[40];
    struct buf found = {0};
    snprintf(name, sizeof name, "claims/%llu", (unsigned long long)incarnation);
    TRY(store_uri_join(plan->root, name, uri, err));
    enum status status = store_put_if_absent(store, uri, token, strlen(token), err);
    if (status != STATUS_EXISTS)
        return status;
    status = store_get(store, uri, MIRROR_TOKEN_BYTES, &found, err);
    if (status == STATUS_OK && !span_equal(span_of(found.data, found.length), span_of_text(token)))
        status = error_set(err, STATUS_BUSY, "another recovery of this log began meanwhile");
    buf_deinit(&found);
    return status;
}

enum status mirror_head_raise(struct env *env, struct store *store, const struct mirror_plan *plan,
                              uint64_t incarnation, struct error *err)
{
    char uri[STORE_URI_BYTES_MAX];
    struct buf text = {0};
    struct mirror_plan now = *plan;
    TRY(read_head(store, &now, plan->head.log_id, err));
    if (now.head.incarnation != plan->head.incarnation)
        return error_set(err, STATUS_BUSY, "another recovery of this log began meanwhile");
    struct mirror_head head = plan->head;
    if (head.incarnation >= incarnation)
        return STATUS_OK;
    head.incarnation = incarnation;
    head.writer = 0;
    head.made_ms = env_wall_ns(env) / 1000000;
    TRY(store_uri_join(plan->root, "head", uri, err));
    mirror_head_encode(&text, &head);
    enum status status = buf_status(&text, "mirror: head", err);
    if (status == STATUS_OK)
        status = store_put(store, uri, text.data, text.length, err);
    buf_deinit(&text);
    return status;
}
