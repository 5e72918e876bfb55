import type { RecordedOf } from '../session/events.ts'
import { clipLines } from './clip-lines.ts'
import { type Description, describe } from './description.ts'
import type { Hints } from './hints.ts'

const MOST_LINES = 40
const REST = 'the session has all of it'

/** A person who wants the plan to be another. */
export function describeReplanAsked({ text }: RecordedOf<'replan-asked'>): Description {
  return describe(`a person wants the plan changed: ${clipLines(text, MOST_LINES, REST)}`, 'strong')
}

/** What a change of plan did to the files, as diffs. */
export function describeReplanned({ files }: RecordedOf<'replanned'>, hints: Hints): Description {
  if (files.length === 0) return describe('the plan was left as it was', 'warning')
  const names = files.map(({ file }) => file).join(' and ')
  const diffs = files.map(({ diff }) => clipLines(diff, MOST_LINES, REST))
  return describe(`plan changed in ${names}; ${hints.changePlan}\n${diffs.join('\n')}`, 'strong')
}
