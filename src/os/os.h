/* SPDX-License-Identifier: Apache-2.0
 *
 * The seam to the world. `struct env` (files, directories, clock, randomness, threads) is passed to
 * every init of what touches the world; the real one is here, its simulated twin in test/sim. Only
 * this module makes system calls. Sockets, pollers and process matters (socket.h) are real only
 * until a simulated network needs them.
 */
#ifndef SLUICE_OS_OS_H
#define SLUICE_OS_OS_H

#include "base/base.h"
#include "os/env.h"
#include "os/files.h"
#include "os/pool.h"
#include "os/socket.h"

#endif
