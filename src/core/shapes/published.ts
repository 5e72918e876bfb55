import type { EventOf } from '../events/events.ts'

/** The issue that a session works on, as its first event says. `title` is a stranger's text. */
export type IssueRef = NonNullable<EventOf<'session-created'>['issue']>

/** Where the result of a session was published. */
export type Published = Omit<EventOf<'published'>, 'type'>
