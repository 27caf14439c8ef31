/* SPDX-License-Identifier: MIT */
#include "world.h"

static const char *const menu_states[_MENU_STATE_MAX] = {
	[MENU_UNKNOWN] = "unknown",
	[MENU_CLOSED] = "closed",
	[MENU_OPEN] = "open",
};

static const char *const group_roles[_ROLE_MAX] = {
	[ROLE_COMPOSITOR] = "compositor",
	[ROLE_FRONT] = "front",
	[ROLE_OVERLAY] = "overlay",
	[ROLE_BACKGROUND] = "background",
	[ROLE_SERVICE] = "service",
	[ROLE_SIBLING] = "sibling",
	[ROLE_ROOM] = "room",
};

const char *menu_state_to_string(MenuState m)
{
	return m >= 0 && m < _MENU_STATE_MAX ? menu_states[m] : NULL;
}

MenuState menu_state_from_string(const char *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(menu_states); i++)
		if (streq(menu_states[i], s))
			return (MenuState)i;
	return _MENU_STATE_INVALID;
}

const char *group_role_to_string(GroupRole role)
{
	return role < _ROLE_MAX ? group_roles[role] : NULL;
}
