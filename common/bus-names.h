/* SPDX-License-Identifier: MIT */
/* Names on the bus, shared by daemon and clients; io.github.vramd1(5) documents each. */
#pragma once

#define VRAMD_BUS_NAME "io.github.vramd1"
#define VRAMD_PATH "/io/github/vramd1"
#define VRAMD_PATH_GAME VRAMD_PATH "/game"
#define VRAMD_PATH_REGION VRAMD_PATH "/region"
#define VRAMD_IFACE_MANAGER VRAMD_BUS_NAME ".Manager"
#define VRAMD_IFACE_GAME VRAMD_BUS_NAME ".Game"
#define VRAMD_IFACE_KERNEL VRAMD_BUS_NAME ".Kernel"
#define VRAMD_IFACE_REGION VRAMD_BUS_NAME ".Region"

#define VRAMD_ACTION_SET_FOCUS VRAMD_BUS_NAME ".set-focus"
#define VRAMD_ACTION_HOLD VRAMD_BUS_NAME ".hold"
#define VRAMD_ACTION_RELOAD VRAMD_BUS_NAME ".reload"
#define VRAMD_ACTION_SET_KERNEL VRAMD_BUS_NAME ".set-kernel"

#define VRAMD_ERROR_NO_SUCH_PROCESS VRAMD_BUS_NAME ".NoSuchProcess"
#define VRAMD_ERROR_NO_UNIT VRAMD_BUS_NAME ".NoUnit"
#define VRAMD_ERROR_NOT_PERMITTED VRAMD_BUS_NAME ".NotPermitted"
#define VRAMD_ERROR_UNAVAILABLE VRAMD_BUS_NAME ".ControllerUnavailable"
#define VRAMD_ERROR_BUSY VRAMD_BUS_NAME ".Busy"
#define VRAMD_ERROR_INVALID_CONFIG VRAMD_BUS_NAME ".InvalidConfiguration"
#define VRAMD_ERROR_NO_SUCH_KNOB VRAMD_BUS_NAME ".NoSuchKnob"
#define VRAMD_ERROR_NEEDS_KNOB VRAMD_BUS_NAME ".NeedsKnob"
#define VRAMD_ERROR_OUT_OF_RANGE VRAMD_BUS_NAME ".OutOfRange"

/* Limits that io.github.vramd1(5) promises. */
#define VRAMD_HOLDS_PER_UID 64
#define VRAMD_HOLDS_TOTAL 1024
#define VRAMD_TEXT_MAX 255 /* bytes of who, why, source */
#define VRAMD_RUNNING_MAX 64 /* processes in one report's "running" */
