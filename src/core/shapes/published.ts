import type { EventOf } from '../events/events.ts'

/** The issue that a session works on, from its first event. `title` is a stranger's text. */
export type IssueRef = NonNullable<EventOf<'session-created'>['issue']>

/** Place where a session's result was published. */
export type Published = Omit<EventOf<'published'>, 'type'>
