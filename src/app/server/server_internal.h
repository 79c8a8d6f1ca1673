/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SLUICE_APP_SERVER_INTERNAL_H
#define SLUICE_APP_SERVER_INTERNAL_H

#include "app/server/server.h"

enum { API_ROUTE_COUNT = 6 };

struct server {
    struct env *env;
    struct stack stack;
    struct ingest *ingest;
    uint64_t file_limit; /* open files, of the process */
    struct http_server *otlp, *api;
    struct http_route routes[API_ROUTE_COUNT];
    int64_t started_wall_ns;
};

#endif
