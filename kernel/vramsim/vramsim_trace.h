/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM vramsim

#if !defined(VRAMSIM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define VRAMSIM_TRACE_H

#include <linux/tracepoint.h>

#include "vramsim.h"

#define vramsim_show_mem(type) \
	__print_symbolic(type, \
			 { VRAMSIM_MEM_SYSTEM, "system" }, \
			 { VRAMSIM_MEM_GTT, "gtt" }, \
			 { VRAMSIM_MEM_VRAM, "vram" })

TRACE_EVENT(vramsim_bo_move,
	TP_PROTO(struct vramsim_bo *bo, u32 from, u32 to, bool evict),
	TP_ARGS(bo, from, to, evict),
	TP_STRUCT__entry(
		__string(device, dev_name(bo->tbo.base.dev->dev))
		__field(u64, size)
		__field(u32, from)
		__field(u32, to)
		__field(bool, evict)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->size = bo->tbo.base.size;
		__entry->from = from;
		__entry->to = to;
		__entry->evict = evict;
	),
	TP_printk("device=%s size=%llu from=%s to=%s evict=%d", __get_str(device), __entry->size,
		  vramsim_show_mem(__entry->from), vramsim_show_mem(__entry->to), __entry->evict)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE vramsim_trace
#include <trace/define_trace.h>
