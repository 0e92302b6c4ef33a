// Apart from the table, so that whoever needs a word does not load the ORM, which takes longer than most commands do.

export const EVENT_SOURCES = ['store', 'processor'] as const
export type EventSource = (typeof EVENT_SOURCES)[number]

export const EVENT_STATES = ['pending', 'done', 'ignored', 'set_aside'] as const
export type EventState = (typeof EVENT_STATES)[number]
