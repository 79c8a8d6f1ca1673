/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SLUICE_APP_SERVER_INTERNAL_H
#define SLUICE_APP_SERVER_INTERNAL_H

#include "app/server/server.h"

enum { API_ROUTE_COUNT = 9 };

struct server {
    struct env *env;
    struct stack stack;
    struct mirror *mirror; /* or NULL */
    struct ingest *ingest;
    struct feed *feed;
    uint64_t file_limit; /* open files, of the process */
    struct http_server *otlp, *api, *log;
    struct http_route routes[API_ROUTE_COUNT];
    int64_t started_wall_ns;
    struct backup *backup; /* that is being copied; the API's worker alone */
};

/* Gives the body away. */
void server_respond_json(struct http_exchange *exchange, struct buf *body);
void server_handle_receipt(void *context, struct http_exchange *exchange); /* receipts.c */

/* limits.c */
enum status limits_check(const struct settings *settings, struct error *err) MUST_CHECK;
void limits_apply(const struct settings *settings, struct wal *wal); /* its tables are open */
uint64_t limits_least(const struct settings *settings); /* of all that are set; 0: none is */

void server_handle_backup(void *context, struct http_exchange *exchange); /* backup.c */
void server_backup_end(struct server *server); /* what it held is given back */
void server_backup_expire(struct server *server);

#endif
