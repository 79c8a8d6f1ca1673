/* SPDX-License-Identifier: Apache-2.0
 *
 * The ground that every module stands on. This is the one header that others include; the parts
 * below are split by subject. Nothing here makes a system call or keeps mutable global state, but
 * for the allocator's test hook.
 */
#ifndef SLUICE_BASE_BASE_H
#define SLUICE_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/banned.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/civil.h"
#include "base/executor.h"
#include "base/hash.h"
#include "base/lines.h"
#include "base/logline.h"
#include "base/random.h"
#include "base/sink.h"
#include "base/source.h"
#include "base/status.h"
#include "base/text.h"
#include "base/uuid.h"

#endif
