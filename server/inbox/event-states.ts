// Apart from the entity, so that code that needs these values does not load the ORM.

export const EVENT_SOURCES = ['store', 'processor'] as const
export type EventSource = (typeof EVENT_SOURCES)[number]

export const EVENT_STATES = ['pending', 'done', 'ignored', 'set_aside'] as const
export type EventState = (typeof EVENT_STATES)[number]

/** `unreadable`: its body. `unmapped`: no rule maps its type. `flagged`: what applied it has flagged the cause. */
export const SET_ASIDE_CODES = ['unreadable', 'unmapped', 'flagged'] as const
export type SetAsideCode = (typeof SET_ASIDE_CODES)[number]
