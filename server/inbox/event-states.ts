// Apart from the entity, so that code that needs these values does not load the ORM.

export const EVENT_SOURCES = ['store', 'processor'] as const
export type EventSource = (typeof EVENT_SOURCES)[number]

export const EVENT_STATES = ['pending', 'done', 'ignored', 'set_aside'] as const
export type EventState = (typeof EVENT_STATES)[number]
