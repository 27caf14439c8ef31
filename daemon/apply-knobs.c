/* SPDX-License-Identifier: MIT */
/* The knobs of the kernel. No event tells when one is written or its module goes: each call reads all of them. */
#include "apply-internal.h"
#include "knobs.h"

typedef struct KnobLook {
	int result;      /* -ENOENT: this kernel has none */
	uint32_t value;
	uint64_t inode;
	uint32_t target; /* value, if there is nothing to do */
} KnobLook;

static bool is_ours(const KnobRecord *record, uint32_t value)
{
	return value == record->ours || value == record->ours_before;
}

/* Drops a record of an earlier life of the module. */
static void look_at(Apply *a, Knob k, KnobLook *ret)
{
	const KnobRecord *record = &a->journal.knobs[k];
	KnobLook look = { 0 };

	look.result = knob_read(a->roots, k, &look.value, &look.inode);
	if (record->used && (look.result == -ENOENT || (look.result >= 0 && look.inode != record->inode)))
		journal_set_knob(&a->journal, k, (KnobRecord){ 0 });
	if (record->used && a->dry_run)
		look.value = record->ours;
	look.target = look.value;
	*ret = look;
}

static int write_value(Apply *a, Knob k, KnobLook *look, uint32_t value)
{
	int r = a->dry_run ? 0 : knob_write(a->roots, k, value);

	if (r < 0)
		return r;
	if (a->hooks.knob_written)
		a->hooks.knob_written(k, look->value, value, a->userdata);
	look->value = value;
	return 0;
}

static int set_value(Apply *a, Knob k, KnobLook *look)
{
	const KnobRecord before = a->journal.knobs[k];
	KnobRecord record = before;
	int r;

	if (!before.used)
		record = (KnobRecord){ .used = true, .inode = look->inode, .old = look->value, .ours = look->value };
	record.ours_before = record.ours;
	record.ours = look->target;
	journal_set_knob(&a->journal, k, record);
	r = journal_append(&a->journal);
	if (r >= 0)
		r = write_value(a, k, look, look->target);
	if (r < 0) {
		journal_set_knob(&a->journal, k, before);
		return r;
	}
	/* Whoever writes that from now on is a stranger. The file may say more: it is for a crash during the write. */
	a->journal.knobs[k].ours_before = record.ours;
	return 0;
}

/* The record has had its day, unless the old value could not be written. */
static int put_back(Apply *a, Knob k, KnobLook *look)
{
	const KnobRecord *record = &a->journal.knobs[k];
	int r = 0;

	if (!record->used)
		return 0;
	if (is_ours(record, look->value) && look->value != record->old)
		r = write_value(a, k, look, record->old);
	if (r >= 0)
		journal_set_knob(&a->journal, k, (KnobRecord){ 0 });
	return r;
}

/* What a knob is to be, given the targets of those before it. */
static uint32_t find_target(Apply *a, Knob k, const KnobWish *wish, const KnobLook *looks)
{
	KnobRecord *record = &a->journal.knobs[k];
	const KnobLook *look = &looks[k];
	Knob needs = knob_infos[k].needs;

	if (record->used && !is_ours(record, look->value)) {
		if (!record->yielded && a->hooks.knob_yielded)
			a->hooks.knob_yielded(k, record->ours, look->value, a->userdata);
		record->yielded = true;
		return look->value;
	}
	record->yielded = false;
	if (wish->kind == KNOB_SET &&
	    (wish->value == 0 || needs == _KNOB_MAX || (looks[needs].result >= 0 && looks[needs].target > 0)))
		return wish->value;
	return record->used ? record->old : look->value;
}

static int change(Apply *a, Knob k, KnobLook *looks, const KnobWish *wish)
{
	Knob needs = knob_infos[k].needs;
	KnobLook *look = &looks[k];

	/* What it needs could not be switched on. */
	if (look->target > look->value && needs != _KNOB_MAX && looks[needs].value == 0)
		return 0;
	if (a->journal.knobs[k].used && look->target == a->journal.knobs[k].old && wish->kind != KNOB_SET)
		return put_back(a, k, look);
	return set_value(a, k, look);
}

/* Where vramd's last value was the old one, nothing has to be written for it to have its day. */
static void forget_if_old(Apply *a, Knob k, const KnobLook *look, const KnobWish *wish)
{
	const KnobRecord *record = &a->journal.knobs[k];

	if (record->used && !record->yielded && look->result >= 0 && look->value == record->old &&
	    wish->kind != KNOB_SET)
		journal_set_knob(&a->journal, k, (KnobRecord){ 0 });
}

int apply_knobs(Apply *a, const KnobWish wishes[static _KNOB_MAX], int results[static _KNOB_MAX])
{
	KnobLook looks[_KNOB_MAX];

	for (Knob k = 0; k < _KNOB_MAX; k++) {
		look_at(a, k, &looks[k]);
		if (looks[k].result >= 0)
			looks[k].target = find_target(a, k, &wishes[k], looks);
	}
	/* Never is one on while what it needs is off. */
	for (Knob k = _KNOB_MAX; k-- > 0;)
		if (looks[k].result >= 0 && looks[k].target < looks[k].value)
			looks[k].result = change(a, k, looks, &wishes[k]);
	for (Knob k = 0; k < _KNOB_MAX; k++) {
		if (looks[k].result >= 0 && looks[k].target > looks[k].value)
			looks[k].result = change(a, k, looks, &wishes[k]);
		results[k] = looks[k].result;
		forget_if_old(a, k, &looks[k], &wishes[k]);
	}
	return journal_sync(&a->journal);
}

void apply_take_knob(Apply *a, Knob k)
{
	KnobLook look;

	look_at(a, k, &look);
	if (look.result >= 0 && a->journal.knobs[k].used && !is_ours(&a->journal.knobs[k], look.value))
		journal_set_knob(&a->journal, k, (KnobRecord){ 0 });
}

bool apply_knob_is_ours(const Apply *a, Knob k)
{
	return a->journal.knobs[k].used && !a->journal.knobs[k].yielded;
}

bool apply_knob_is_yielded(const Apply *a, Knob k)
{
	return a->journal.knobs[k].used && a->journal.knobs[k].yielded;
}

void apply_restore_knobs(Apply *a, int *first)
{
	KnobLook look;

	for (Knob k = _KNOB_MAX; k-- > 0;) {
		look_at(a, k, &look);
		if (look.result >= 0)
			look.result = put_back(a, k, &look);
		if (look.result != -ENOENT)
			apply_keep_error(first, look.result);
	}
}
